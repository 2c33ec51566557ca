#!/usr/bin/env python3
"""Run the cases of this folder's programs alone and under `assure trace`; there must be no difference.

    run.py --assure BIN --programs DIR [--results perform|verify|none] [--only CASE]... [--rounds N]
           [--as root|user] [--alone] [--self] [--keep]

A case is a function in one of equal_*.c; it gets a folder of its own and prints what it saw. Compared are its lines,
how it ended, and the folder afterwards: types, modes, owners, sizes, links, attributes, content. Everything runs as
root and as an ordinary user, or only as who we are when that is not root. A few cases of a program share a run of it;
with --alone each has its own. --self compares two runs without assure: what differs then is the case's own fault.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

USER = "assure-test"
JOBS = 2
# So many cases of a program are run together.
SHARE = 5
# The programs give up a case after 20 s; this is for what makes them unable to.
TIME_LIMIT = 150
SHOWN = 12

Who = collections.namedtuple("Who", "name uid gid")
Outcome = collections.namedtuple("Outcome", "cases loose status")


# Folders


def attribute(path, name):
    value = os.getxattr(path, name, follow_symlinks=False)
    # An overlay keeps handles and random numbers in its own.
    return f"{len(value)} bytes" if name.startswith("trusted.overlay.") else value.hex()


def attributes(path):
    """Extended attributes of a name, access control lists among them."""
    try:
        names = sorted(os.listxattr(path, follow_symlinks=False))
        return ",".join(f"{name}={attribute(path, name)}" for name in names)
    except OSError as error:
        return f"({error.strerror})"


def fingerprint(path):
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()[:16]
    except OSError as error:
        return f"({error.strerror})"


def listing(folder):
    """A line for each name below a folder. By descriptors, because a path may be longer than the kernel takes."""
    lines, first_names = [], {}

    def visit(descriptor, prefix):
        for name in sorted(os.listdir(descriptor), key=os.fsencode):
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            here = f"/proc/self/fd/{descriptor}/{name}"
            kind = stat.S_IFMT(status.st_mode)
            shown = prefix + name
            # The size and the links of a folder are the file system's own business.
            parts = [f"{status.st_mode:06o} {status.st_uid}:{status.st_gid}"]
            if kind != stat.S_IFDIR:
                first = first_names.setdefault((status.st_dev, status.st_ino), shown)
                parts.append(f"size {status.st_size} nlink {status.st_nlink}")
                parts += [f"is {first!a}"] if first != shown else []
            if kind == stat.S_IFLNK:
                parts.append(f"to {os.readlink(name, dir_fd=descriptor)!a}")
            if kind == stat.S_IFREG:
                parts.append(fingerprint(here))
            if kind in (stat.S_IFCHR, stat.S_IFBLK):
                parts.append(f"device {status.st_rdev:x}")
            lines.append(f"{shown!a}: {' '.join(parts)} [{attributes(here)}]")
            if kind == stat.S_IFDIR:
                try:
                    inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
                except OSError as error:
                    lines.append(f"{shown!a}: {error.strerror}")
                    continue
                try:
                    visit(inner, shown + "/")
                finally:
                    os.close(inner)

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        visit(descriptor, "")
    finally:
        os.close(descriptor)
    return lines


def remove(folder):
    shutil.rmtree(folder, ignore_errors=True)
    if os.path.exists(folder):
        # A case that was cut short may have left flags that forbid it.
        subprocess.run(["chattr", "-R", "-f", "-i", "-a", folder], check=False)
        subprocess.run(["chmod", "-R", "u+rwX", folder], check=False)
        shutil.rmtree(folder)


def owned_folder(path, who, mode=0o755):
    os.mkdir(path)
    os.chmod(path, mode)
    if os.geteuid() == 0:
        os.chown(path, who.uid, who.gid)
    return path


# Running


def as_user(who):
    """Arguments of subprocess that make it this user's."""
    return {} if who.uid == os.geteuid() else {"user": who.uid, "group": who.gid, "extra_groups": []}


def execute(command, who, work, home):
    """Run, with a limit. Returns the exit status or a reason, and what was printed."""
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "HOME": home,
                   "ASSURE_HOME": os.path.join(home, "assure")}
    with subprocess.Popen(command, cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True, umask=0o022, **as_user(who)) as child:
        try:
            output, _ = child.communicate(timeout=TIME_LIMIT)
            return child.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            output, _ = child.communicate()
            return f"not done after {TIME_LIMIT} s", output


def split(output):
    """The lines of each case, and those that are in none."""
    cases, loose, current = {}, [], None
    for line in output.decode("ascii", "backslashreplace").split("\n"):
        if line.startswith("== begin "):
            current = cases.setdefault(line.split()[2], [])
        elif current is not None:
            current.append(line)
            current = None if line.startswith("== end ") else current
        elif line:
            loose.append(line)
    return cases, loose


def run_once(command, names, who, base):
    """Run cases in fresh folders, whose path is the same every time."""
    work, home = (owned_folder(os.path.join(base, name), who) for name in ("work", "home"))
    for name in names:
        owned_folder(os.path.join(work, name), who)
    status, output = execute(command + names, who, work, home)
    cases, loose = split(output)
    for name in names:
        lines = cases.setdefault(name, ["(it never began)"])
        lines += ["== folder"] + listing(os.path.join(work, name))
    remove(work)
    remove(home)
    return Outcome(cases, loose, status)


# Comparison


def differences(left, right):
    """Lines that differ, each with the one that stands there instead."""
    found = []
    for index in range(max(len(left), len(right))):
        one = left[index] if index < len(left) else "(nothing)"
        other = right[index] if index < len(right) else "(nothing)"
        if one != other:
            found += [f"    alone:        {one}", f"    under assure: {other}"]
    more = len(found) - 2 * SHOWN
    return found[:2 * SHOWN] + ([f"    ... and {more // 2} more lines"] if more > 0 else [])


class Report:
    def __init__(self):
        self.equal, self.different, self.skipped = 0, 0, 0

    def case(self, label, alone, watched):
        bad = [line for line in alone if line.startswith(("broken: ", "== end hang", "(it never"))]
        found = differences(alone, watched)
        reasons = [line for line in alone if line.startswith("skip: ")]
        if bad or found:
            self.different += 1
            print("\n".join([f"DIFFERENT {label}"] + [f"    without assure already: {line}" for line in bad] + found))
            return
        steps = [line for line in alone[:alone.index("== folder")] if not line.startswith(("skip: ", "== "))]
        if reasons and not steps:
            self.skipped += 1
        else:
            self.equal += 1
        for reason in reasons:
            print(f"{'skip' if not steps else 'equal'} {label}: {reason}")

    def program(self, label, alone, watched):
        """What is not of a single case: how the program ended, and what it printed beside them."""
        if alone.status != 0 or watched.status != 0 or alone.loose != watched.loose:
            self.different += 1
            print(f"DIFFERENT {label}: status {alone.status} alone, {watched.status} under assure")
            print("\n".join(differences(alone.loose, watched.loose)))

    def print_total(self):
        print(f"{self.equal} equal, {self.different} different, {self.skipped} skipped")


def case_names(program, who, only):
    lines = subprocess.run([program, "--list"], check=True, stdout=subprocess.PIPE).stdout.decode().splitlines()
    named = [line.split() for line in lines]
    return [name for name, needs in named if (needs == "any" or who.uid == 0) and (not only or name in only)]


def compare(arguments, stage, program, names, who):
    """Both runs of some cases of one program."""
    base = tempfile.mkdtemp(prefix="run-", dir=stage)
    os.chmod(base, 0o755)
    trace = [os.path.join(stage, "assure"), "trace", "--quiet"]
    trace += ["--results", arguments.results] if arguments.results else []
    alone = run_once([program], names, who, base)
    watched = run_once([program] if arguments.self else trace + ["--", program], names, who, base)
    return alone, watched


def run_all(arguments, stage, programs, who, report):
    jobs = []
    for program in programs:
        names = case_names(program, who, arguments.only)
        share = 1 if arguments.alone else SHARE
        jobs += [(program, names[start:start + share]) for start in range(0, len(names), share)]
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        pending = [pool.submit(compare, arguments, stage, program, names, who) for program, names in jobs]
        for (program, names), future in zip(jobs, pending):
            alone, watched = future.result()
            label = f"{os.path.basename(program)} as {who.name}"
            report.program(label, alone, watched)
            for name in names:
                report.case(f"{name} ({label})", alone.cases[name], watched.cases[name])
            sys.stdout.flush()


# Users


def users():
    own = pwd.getpwuid(os.geteuid())
    if own.pw_uid != 0:
        print("skip: the half as root (this is not run by root)")
        return [Who("user", own.pw_uid, own.pw_gid)]
    try:
        account = pwd.getpwnam(USER)
    except KeyError:
        subprocess.run(["useradd", "--system", "--no-create-home", "--shell", "/bin/sh", USER], check=True)
        account = pwd.getpwnam(USER)
    return [Who("root", 0, 0), Who("user", account.pw_uid, account.pw_gid)]


def staged(stage, arguments):
    """Copies that an ordinary user can read, wherever the tree lies."""
    if arguments.assure:
        shutil.copy2(arguments.assure, os.path.join(stage, "assure"))
    programs = []
    for name in sorted(os.listdir(arguments.programs)):
        if re.fullmatch(r"equal_\w+", name):
            programs.append(shutil.copy2(os.path.join(arguments.programs, name), os.path.join(stage, name)))
    subprocess.run(["chmod", "-R", "a+rX", stage], check=True)
    return programs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assure")
    parser.add_argument("--programs", required=True)
    parser.add_argument("--results", choices=("perform", "verify", "none"))
    parser.add_argument("--only", action="append", default=[], metavar="CASE")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--as", dest="identity", choices=("root", "user"))
    parser.add_argument("--alone", action="store_true", help="a run of its own for each case")
    parser.add_argument("--self", action="store_true", help="compare two runs without assure")
    parser.add_argument("--keep", action="store_true", help="keep the folders")
    arguments = parser.parse_args()
    if not arguments.self and not arguments.assure:
        parser.error("--assure is needed")

    report = Report()
    stage = tempfile.mkdtemp(prefix="assure-equality-")
    try:
        os.chmod(stage, 0o755)
        programs = staged(stage, arguments)
        for who in users():
            for _ in range(arguments.rounds if arguments.identity in (None, who.name) else 0):
                run_all(arguments, stage, programs, who, report)
    finally:
        if not arguments.keep:
            remove(stage)
    report.print_total()
    if not report.equal and not report.different and not report.skipped:
        sys.exit("no case ran")
    sys.exit(1 if report.different else 0)


if __name__ == "__main__":
    main()
