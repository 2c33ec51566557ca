#!/usr/bin/env python3
"""Run public suites of system call tests natively and under `assure trace`, and compare the verdicts.

    run.py --cache DIR --prepare [--suite NAME]
    run.py --cache DIR --assure BIN [--control BIN] [--only GLOB] [--suite NAME] [--results HOW] [--json FILE]

--prepare fetches the pinned source archives with apt (from the mirror that apt is configured for) and builds them
below DIR. --control: a supervisor that lets every call go on (bare_supervisor): tests that differ run under it too, to
show what any supervisor would change. Tests in left_out.txt do not run; those in expected.txt may differ.

Needs root. The tests run in mount, host name and IPC namespaces of this program's own, so that nothing that they
mount or name reaches the host.
"""

import argparse
import collections
import fnmatch
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "transparency"))
# pylint: disable=wrong-import-position
import compare as engine  # noqa: E402
from compare import LIMIT, STATES, Test, describe, read_status, read_tap, state_of  # noqa: E402
from sources import Failed, Source, compile_all, read_names, run, unpack  # noqa: E402

TIME_LIMIT = 30
SLOWER = 2
USER = "nobody"
ISOLATED = "ASSURE_SUITE_ISOLATED"


# Sources: what apt is asked for, and the digest that the archive must have.


SOURCES = {
    "coreutils": Source("coreutils", "9.1-1", "bookworm",
                        "61a1f410d78ba7e7f37a5a4f50e6d1320aca33375484a3255eddf17a38580423", "coreutils-9.1"),
    "fuse": Source("fuse3", "3.14.0-4", "bookworm",
                   "96115b2a8ff34bd1e0c7b00c5dfd8297571d7e165042b94498c9a26356a9a70a", "fuse-3.14.0"),
    "posix": Source("posixtestsuite", "1.5.2-8", "bookworm",
                    "15a2185672127cba851d35ec9d538ff6148defdbb75f99c7e9c50aeba0f94757", "posixtestsuite"),
    "rr": Source("rr", "5.9.0-3", "trixie",
                 "e3a7ea10fc72a74fe9949baa8f2598192c4ee77e50ed229b88d6c3ee34381a39", "rr-5.9.0"),
    # Point releases replace this one on the mirror: then the archive has to be put into DIR/archives by hand, or the
    # pin moved.
    "kernel": Source("linux", "6.12.107-1", "trixie",
                     "efc76d3c78a5d65f42724118c437d11db1c9f6309a5f024ee9a8b1978fdc6919", "linux-6.12.107"),
}


# Building


def build_coreutils(folder, jobs):
    environment = {**os.environ, "FORCE_UNSAFE_CONFIGURE": "1"}
    run(["./configure", "-q", "--disable-nls"], cwd=folder, env=environment)
    run(["make", f"-j{jobs}"], cwd=folder)
    # Scripts that the suite makes for itself.
    made = re.findall(r"^tests/factor/\S+", run(["make", "-s", "-f", "-", "show"], cwd=folder,
                                                input="include Makefile\nshow:\n\t@printf '%s\\n' $(TESTS)\n"),
                      flags=re.MULTILINE)
    run(["make", f"-j{jobs}", *[name for name in made if not (folder / name).exists()]], cwd=folder)
    show = "include Makefile\nshow:\n" + "".join(
        f"\t$(info {name} $({name}))\n" for name in ("TESTS", "TESTS_ENVIRONMENT", "SH_LOG_COMPILER",
                                                     "PL_LOG_COMPILER", "XPL_LOG_COMPILER"))
    lines = run(["make", "-s", "-f", "-", "show"], cwd=folder, input=show + "\t@:\n").splitlines()
    values = dict(line.split(" ", 1) for line in lines if " " in line)
    (folder / "how.json").write_text(json.dumps(values), encoding="utf-8")
    return []


def build_fuse(folder, jobs):
    del jobs
    (folder / "test" / "fuse_config.h").write_text(
        "#define HAVE_COPY_FILE_RANGE\n#define HAVE_STRUCT_STAT_ST_ATIM\n", encoding="utf-8")
    run(["gcc", "-w", "-o", "test_syscalls", "test/test_syscalls.c"], cwd=folder)
    return []


def build_posix(folder, jobs):
    interfaces = folder / "conformance" / "interfaces"
    commands = []
    for path in sorted(interfaces.rglob("*.c")):
        name = str(path.relative_to(interfaces))[:-2]
        if re.fullmatch(r"\d+-\d+", path.stem) and not left_out(f"posix/{name}"):
            commands.append((name, ["gcc", "-w", "-std=gnu99", "-D_GNU_SOURCE", "-pthread", f"-I{folder}/include",
                                    "-o", path.with_suffix(".test"), path, "-lrt"], folder))
    return compile_all(jobs, commands)


def build_rr(folder, jobs):
    for name in ("X64", "X86", "Generic"):
        run([sys.executable, "src/generate_syscalls.py", f"SyscallEnumsForTests{name}.generated"], cwd=folder)
    flags = ["-std=gnu11", "-pthread", "-w", "-D__USE_LARGEFILE64", "-DMQUEUE_H=1", "-DFANOTIFY_H=1", "-Iinclude",
             "-Isrc/test", "-Isrc/preload", "-I."]
    run(["gcc", *flags, "-x", "c-header", "-o", "src/test/util.h.gch", "src/test/util.h"], cwd=folder)
    # These need neither a debugger nor a recording to run to their end.
    text = (folder / "CMakeLists.txt").read_text(encoding="utf-8")
    names = re.search(r"^set\(BASIC_TESTS\n(.*?)^\)", text, flags=re.MULTILINE | re.DOTALL).group(1).split()
    commands = []
    (folder / "out").mkdir(exist_ok=True)
    for name in names:
        if (folder / "src" / "test" / f"{name}.c").exists() and not name.startswith("arm/"):
            out = f"out/{os.path.basename(name)}"
            commands.append((name, ["gcc", *flags, "-o", out, f"src/test/{name}.c", "-lrt", "-ldl"], folder))
    return compile_all(jobs, commands)


# Those of the kernel's own tests that are about processes, files, mounts and filters of calls.
KERNEL = ("clone3", "core", "exec", "fchmodat2", "filesystems", "filesystems/overlayfs", "filesystems/statmount",
          "kcmp", "landlock", "memfd", "mount", "mount_setattr", "move_mount_set_group", "nsfs", "openat2",
          "pid_namespace", "pidfd", "proc", "ptrace", "rlimits", "seccomp", "sigaltstack", "tmpfs")


def build_kernel(folder, jobs):
    del jobs
    arch = {"x86_64": "x86", "aarch64": "arm64"}[platform.machine()]
    run(["make", f"ARCH={arch}", "headers"], cwd=folder)
    failed = []
    for name in KERNEL:
        where = folder / "tools" / "testing" / "selftests" / name
        done = subprocess.run(["make", "-k", "-C", where], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", check=False)
        failed += [f"{name}/{os.path.basename(target)}"
                   for target in re.findall(r"^make: \*\*\* \[\S+ (\S+)\] Error", done.stdout, flags=re.MULTILINE)]
    return failed


# Of the kernel's archive the rest is not needed, and is large.
KERNEL_PARTS = ("Kbuild", "Makefile", "arch/x86", "arch/arm64", "include", "scripts", "tools/arch", "tools/build",
                "tools/include", "tools/lib", "tools/scripts", "tools/testing/selftests")


def prepare(cache, name, jobs):
    source = SOURCES[name]
    folder = cache / "build" / source.folder
    stamp = folder / ".built"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == source.sha256:
        return
    unpack(cache, source, KERNEL_PARTS if name == "kernel" else (), {other.suite for other in SOURCES.values()})
    missing = globals()[f"build_{name}"](folder, jobs)
    stamp.write_text(source.sha256, encoding="utf-8")
    if missing:
        (folder / ".missing").write_text("\n".join(missing) + "\n", encoding="utf-8")
    print(f"{name}: {source.package} {source.version} built; {len(missing)} tests cannot be built here"
          + (": " + ", ".join(missing[:20]) if missing else ""))


# Reading verdicts: from the exit status and what the test printed, to a dictionary of cases.


def read_rr(status, output):
    return {"exit": status, "says": "EXIT-SUCCESS" if "EXIT-SUCCESS" in output else "nothing"}


def read_coreutils(status, output):
    del output
    return {"exit": {"0": "pass", "77": "skip", "99": "error"}.get(status, f"fail {status}")}


def read_fuse(status, output):
    return {"exit": status} | {name: "ok" for name in re.findall(r"^ *\d+ \[.*\](?= OK$)", output, flags=re.MULTILINE)}


# What there is to run


LEFT_OUT = read_names(HERE / "left_out.txt")
EXPECTED = read_names(HERE / "expected.txt")


def reason_for(patterns, name):
    """What holds for a test holds for the same as another user."""
    return next((reason for pattern, reason in patterns if fnmatch.fnmatchcase(name.replace("@user", ""), pattern)),
                None)


def left_out(name):
    return reason_for(LEFT_OUT, name)


def as_user(name):
    """What is about permissions differs for root: these run once more as another user."""
    head, tail = name.split("/", 1)
    return f"{head}@user/{tail}"


def tests_of_coreutils(folder):
    how = json.loads((folder / "how.json").read_text(encoding="utf-8"))
    for path in how["TESTS"].split():
        compiler = {".pl": "PL_LOG_COMPILER", ".xpl": "XPL_LOG_COMPILER"}.get(os.path.splitext(path)[1],
                                                                             "SH_LOG_COMPILER")
        # As the suite's own makefile does it; its rule is for one run of all, and compares times of files.
        script = f"tst={path}; {how['TESTS_ENVIRONMENT'].replace('$$', '$')} {how[compiler]} {path}"
        # Those that find their own programs by a relative name look in the current folder.
        script = f"for f in {folder}/*; do ln -s \"$f\" .; done; {script}"
        name = "coreutils/" + path.removeprefix("tests/")
        yield Test(name, ["bash", "-c", script], None, read_coreutils)
        if "skip_if_root_" in (folder / path).read_text(encoding="utf-8", errors="replace"):
            yield Test(as_user(name), ["bash", "-c", script], USER, read_coreutils)


def tests_of_fuse(folder):
    for more, label in (([], "syscalls"), (["-u"], "unlinked")):
        for user in (None, USER):
            command = ["sh", "-c", "exec \"$0\" \"$PWD\" \"$@\"", str(folder / "test_syscalls"), *more]
            name = f"fuse/{label}"
            yield Test(as_user(name) if user else name, command, user, read_fuse)


def tests_of_posix(folder):
    interfaces = folder / "conformance" / "interfaces"
    for path in sorted(interfaces.rglob("*.test")):
        yield Test(f"posix/{str(path.relative_to(interfaces))[:-5]}", [str(path)], None, read_status)


def tests_of_rr(folder):
    for path in sorted((folder / "out").iterdir()):
        for user in (None, USER):
            name = f"rr/{path.name}"
            yield Test(as_user(name) if user else name, [str(path)], user, read_rr)


# One case that waits for ever would hide the others.
KERNEL_BY_CASE = ("seccomp_bpf",)


def cases_of(program):
    """The cases of a program that was made with the kernel's harness, from its list of them: three columns."""
    # Its status says that nothing was tested.
    lines = subprocess.run([program, "-l"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           check=False).stdout.splitlines()
    variant, test = lines[0].index("VARIANT"), lines[0].index("TEST")
    for block in "\n".join(lines[1:]).split("-" * 20):
        rows = [line for line in block.splitlines() if line.strip("- ")]
        if not rows:
            continue
        fixture = rows[0][:variant].strip()
        variants = [name for name in (row[variant:test].strip() for row in rows) if name]
        for case in (name for name in (row[test:].strip() for row in rows) if name):
            yield from [f"{fixture}.{name}.{case}" for name in variants] or [f"{fixture}.{case}"]


def tests_of_kernel(folder):
    base = folder / "tools" / "testing" / "selftests"
    for part in KERNEL:
        for path in sorted((base / part).iterdir()):
            with open(path, "rb") if path.is_file() else open(os.devnull, "rb") as file:
                program = file.read(4) == b"\x7fELF"
            if program and os.access(path, os.X_OK) and not path.name.startswith("load_address"):
                # They look for their helpers in the folder that they were built in.
                command = ["sh", "-c", "cd \"${0%/*}\" && exec \"$0\" \"$@\"", str(path)]
                name = f"kernel/{part}/{path.name}"
                if path.name in KERNEL_BY_CASE:
                    for case in cases_of(path):
                        yield Test(f"{name}/{case}", [*command, "-r", case], None, read_tap)
                else:
                    yield Test(name, command, None, read_tap)


# Report


def name_state(name, seen):
    state = state_of(seen)
    return "expected" if state in ("differs", "sometimes") and reason_for(EXPECTED, name) else state


def report(results, with_control, out=print):
    states = collections.defaultdict(collections.Counter)
    rows = []
    for name, seen, *_ in results:
        state = name_state(name, seen)
        states[name.split("/")[0]][state] += 1
        if state == "same":
            continue
        native, assure = seen["native"][0], next((v for v in seen["assure"] if v != seen["native"][0]),
                                                 seen["assure"][0])
        control = ""
        if with_control:
            control = " | ".join("as natively" if verdict in seen["native"] else describe(verdict, native)
                                 for verdict in seen["control"]) or "did not run"
        rows.append((state, name, describe(native, assure), describe(assure, native), control))
    for state in STATES[1:]:
        chosen = [row for row in rows if row[0] == state]
        if chosen:
            out(f"\n{state} ({len(chosen)})")
        for _, name, native, assure, control in sorted(chosen):
            out(f"  {name}\n      native   {native}\n      assure   {assure}"
                + (f"\n      control  {control}" if with_control else ""))
    out(f"\n{'suite':<16} {'tests':>7}" + "".join(f"  {state:>9}" for state in STATES))
    total = collections.Counter()
    for suite, counts in [*sorted(states.items()), ("total", total)]:
        out(f"{suite:<16} {sum(counts.values()):>7}"
            + "".join(f"  {counts[state]:>{max(9, len(state))}}" for state in STATES))
        if counts is not total:
            total.update(counts)
    return total


def collect(cache, suites, only):
    """The tests to run; and how many were left out, per suite."""
    chosen, omitted = [], collections.Counter()
    for name in suites:
        folder = cache / "build" / SOURCES[name].folder
        if not (folder / ".built").exists():
            print(f"{name}: not prepared, so none of its tests ran")
            continue
        for test in globals()[f"tests_of_{name}"](folder):
            if only and not fnmatch.fnmatchcase(test.name, only):
                continue
            if left_out(test.name):
                omitted[name] += 1
            else:
                chosen.append(test)
    return chosen, omitted


def tell(result):
    """At once, for who waits."""
    name, seen, *_ = result
    if (state := name_state(name, seen)) != "same":
        print(f"{state}: {name}", flush=True)
    elif seen["native"] == [{"exit": LIMIT}]:
        print(f"reaches the time limit both ways: {name}", flush=True)


def compare(options, suites):
    tests, omitted = collect(options.cache, suites, options.only)
    with engine.Base("assure-suite-") as base:
        columns = engine.wrappers(base, options.assure, options.results, options.control)
        setting = engine.Setting(base, columns, TIME_LIMIT, SLOWER, engine.differs)
        results = engine.run_all(tests, setting, options.jobs, tell)
    total = report(results, bool(options.control))
    if omitted:
        print("left out: " + ", ".join(f"{count} of {name}" for name, count in sorted(omitted.items()))
              + " (left_out.txt says why)")
    if options.json:
        keys = ("name", "verdicts", "output", "seconds")
        rows = [dict(zip(keys, result)) for result in results]
        for row in rows:
            row["state"] = name_state(row["name"], row["verdicts"])
            if row["state"] == "same":
                del row["output"]
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    failed = total["differs"] + total["sometimes"]
    passed = total["same"] + total["expected"]
    print(f"{passed} passed, {failed} failed, {total['flaky natively']} skipped")
    return 1 if failed or not passed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, required=True, help="where archives and builds are kept")
    parser.add_argument("--prepare", action="store_true", help="fetch and build what is missing in the cache")
    parser.add_argument("--assure", help="the program under test")
    parser.add_argument("--control", help="a supervisor that only lets calls go on")
    parser.add_argument("--results", choices=("perform", "verify", "none"), help="passed on to assure")
    parser.add_argument("--suite", action="append", choices=sorted(SOURCES), help="only this suite; may be repeated")
    parser.add_argument("--only", metavar="GLOB", help="only tests of such a name, as in rr/chmod")
    parser.add_argument("--jobs", type=int, default=1, help="tests, or compilers, at a time")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write every verdict to this file")
    options = parser.parse_args()
    options.cache = options.cache.resolve()
    suites = options.suite or sorted(SOURCES)
    if not options.prepare and not options.assure:
        parser.error("--prepare or --assure is needed")
    try:
        if options.prepare:
            for name in suites:
                try:
                    prepare(options.cache, name, options.jobs)
                except Failed as error:
                    print(f"{name}: {error}", file=sys.stderr)
                    if not options.assure:
                        return 1
        if not options.assure:
            return 0
        if os.geteuid() != 0:
            raise Failed("needs root")
        engine.isolate(ISOLATED, __file__)
        return compare(options, suites)
    except Failed as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
