"""Runs every executable *.sh and *.py of this folder against a built `assure`.

Each test runs as root and as an ordinary user (made here when it is missing), because most users are not root; when this
is not run by root, only as who we are. A test gets a fresh folder as cwd, a fresh ASSURE_HOME and HOME, and

  ASSURE     the program             PROGRAMS   small programs built from tests/e2e/*.c
  IDENTITY   root or user            FIXTURES   the folder fixtures/ of the tree

It is ok with status 0, skipped with 77 and a line `skip: REASON`; a line `skip: REASON` of a test that is ok says which
part of it could not be tested. `# timeout: SECONDS` in a test changes the limit of 60 s. A process that outlives its
test by 5 s is a failure: nothing of ours may hang.
"""
import argparse
import contextlib
import ctypes
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
USER = "assure-test"
SKIP = 77
GRACE = 5.0
PR_SET_CHILD_SUBREAPER = 36


def descendants():
    """(pid, command line, state) of all that descends from us."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                stat = pathlib.Path("/proc", entry, "stat").read_bytes()
                state, parent = stat[stat.rindex(b")") + 2:].split()[:2]
                parents[int(entry)] = (int(parent), state.decode())
    found, grown = {os.getpid()}, True
    while grown:
        grown = False
        for pid, (parent, _) in parents.items():
            if parent in found and pid not in found:
                found.add(pid)
                grown = True
    result = []
    for pid in sorted(found - {os.getpid()}):
        command = b"?"
        with contextlib.suppress(OSError):
            command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").strip()
        result.append((pid, command.decode(errors="replace"), parents[pid][1]))
    return result


def reap():
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def end_all():
    """Kills what is left, until nothing is."""
    for _ in range(200):
        reap()
        left = descendants()
        if not left:
            return
        for pid, _, _ in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def still_there():
    """Who outlives the test, once the time of grace is over."""
    end = time.monotonic() + GRACE
    while True:
        reap()
        left = [row for row in descendants() if row[2] != "Z"]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.02)


def shown(rows):
    return "\n".join(f"    {state} {pid} {command[:150]}" for pid, command, state in rows)


class Identity:
    def __init__(self, name, entry):
        self.name, self.entry = name, entry

    def own(self, path):
        if os.geteuid() == 0:
            os.chown(path, self.entry.pw_uid, self.entry.pw_gid)

    def arguments(self):
        if os.geteuid() != 0 or self.entry.pw_uid == 0:
            return {}
        return {"user": self.entry.pw_uid, "group": self.entry.pw_gid, "extra_groups": []}


def identities():
    if os.geteuid() != 0:
        print("skip: the half as root (this is not run by root)")
        return [Identity("user", pwd.getpwuid(os.geteuid()))]
    try:
        entry = pwd.getpwnam(USER)
    except KeyError:
        subprocess.run(["useradd", "--system", "--no-create-home", "--shell", "/bin/sh", USER], check=True)
        entry = pwd.getpwnam(USER)
    return [Identity("root", pwd.getpwuid(0)), Identity("user", entry)]


def run_one(test, identity, stage, arguments):
    """(word, reason, output): ok, FAIL or skip."""
    source = test.read_text()
    limit = re.search(r"^# timeout: (\d+)", source, re.M)
    limit = (int(limit.group(1)) if limit else 60) * arguments.slower
    place = pathlib.Path(tempfile.mkdtemp(prefix=f"{test.stem}-{identity.name}-", dir=stage))
    folders = {name: place / name for name in ("work", "home", "state", "tmp")}
    identity.own(place)
    for folder in folders.values():
        folder.mkdir(mode=0o700)
        identity.own(folder)
    environment = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8", "TERM": "xterm", "USER": identity.entry.pw_name, "LOGNAME": identity.entry.pw_name,
        "HOME": str(folders["home"]), "TMPDIR": str(folders["tmp"]), "ASSURE_HOME": str(folders["state"]),
        "ASSURE": str(stage / "bin/assure"), "PROGRAMS": str(stage / "bin"), "FIXTURES": str(stage / "fixtures"),
        "IDENTITY": identity.name, "PYTHONDONTWRITEBYTECODE": "1",
        "ASSURE_TEST_FULL": os.environ.get("ASSURE_TEST_FULL", "no"),
    }
    environment.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
    with open(place / "output", "w+b") as output:
        child = subprocess.Popen([str(stage / "e2e" / test.name)], cwd=folders["work"], env=environment,
                                 stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                 start_new_session=True, umask=0o022, **identity.arguments())
        try:
            status = child.wait(limit)
            late = still_there()
            word = "left behind when the test had ended:\n" + shown(late) if late else ""
        except subprocess.TimeoutExpired:
            status = None
            word = f"not done after {limit} s; there were:\n" + shown(descendants())
        end_all()
        output.seek(0)
        text = output.read(1 << 20).decode(errors="replace")
    if not arguments.keep:
        shutil.rmtree(place, ignore_errors=True)
    reasons = re.findall(r"^skip: (.+)$", text, re.M)
    if word:
        return "FAIL", word, text
    if status == SKIP:
        return ("skip", reasons[-1], "") if reasons else ("FAIL", "skipped, and did not say why", text)
    if status:
        return "FAIL", f"status {status}" if status > 0 else f"signal {-status}", text
    return "ok", "".join(f"\n    skip: {r}" for r in reasons), ""


def staged(stage, arguments):
    """A copy of what tests need that an ordinary user can read, wherever the tree lies."""
    (stage / "bin").mkdir()
    shutil.copy2(arguments.assure, stage / "bin/assure")
    if arguments.programs and arguments.programs.is_dir():
        for program in arguments.programs.iterdir():
            if program.is_file() and os.access(program, os.X_OK):
                shutil.copy2(program, stage / "bin" / program.name)
    shutil.copytree(HERE, stage / "e2e", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(HERE.parent.parent / "fixtures", stage / "fixtures")
    subprocess.run(["chmod", "-R", "a+rX", stage], check=True)


def chosen(arguments):
    tests = sorted(p for p in HERE.iterdir() if p.suffix in (".sh", ".py") and os.access(p, os.X_OK))
    names = set(arguments.names)
    if arguments.only:
        lines = (line.split("#")[0].strip() for line in arguments.only.read_text().splitlines())
        names |= {line for line in lines if line}
    if not names:
        return tests
    unknown = names - {p.stem for p in tests}
    if unknown:
        sys.exit(f"no such test: {' '.join(sorted(unknown))}")
    return [p for p in tests if p.stem in names]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assure", type=pathlib.Path, required=True)
    parser.add_argument("--programs", type=pathlib.Path)
    parser.add_argument("--only", type=pathlib.Path, help="a file with the names of the tests to run")
    parser.add_argument("--as", dest="identity", choices=("root", "user"))
    parser.add_argument("--keep", action="store_true", help="keep the folders of the tests")
    parser.add_argument("--slower", type=float, default=1, help="multiplies every time limit")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if not arguments.assure.is_file():
        sys.exit(f"{arguments.assure}: not there; build first")
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        sys.exit("cannot become a subreaper")

    # Whoever runs this in the background, or under nohup, has them ignored, and tests are about what they do.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    counts = {"ok": 0, "FAIL": 0, "skip": 0}
    stage = pathlib.Path(tempfile.mkdtemp(prefix="assure-e2e-"))
    try:
        stage.chmod(0o755)
        staged(stage, arguments)
        for identity in identities():
            if arguments.identity not in (None, identity.name):
                continue
            for test in chosen(arguments):
                start = time.monotonic()
                word, reason, output = run_one(test, identity, stage, arguments)
                counts[word] += 1
                took = time.monotonic() - start
                print(f"{word:4} {test.stem} as {identity.name} ({took:.1f} s)"
                      + (reason if word == "ok" else f": {reason}"))
                if word == "FAIL" and output:
                    print("\n".join("    | " + line for line in output.rstrip().split("\n")[-40:]))
                sys.stdout.flush()
    finally:
        if arguments.keep:
            print(f"kept: {stage}")
        else:
            shutil.rmtree(stage, ignore_errors=True)
    print(f"{counts['ok']} passed, {counts['FAIL']} failed, {counts['skip']} skipped")
    return 1 if counts["FAIL"] or not counts["ok"] else 0


if __name__ == "__main__":
    sys.exit(main())
