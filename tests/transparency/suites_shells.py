"""Shells and what is built and run by them: bash, busybox, git, sqlite, make."""

import os
import re

from compare import read_tap, Test
from sources import packages, run
from suite import DEBIAN, FromSource, Suite, masked, shell, steps

# bash: run-NAME compares what a script prints with what is expected. The machine's bash is of the same version.


def build_helpers_of_bash(folder, jobs):
    del jobs
    # What a build makes: for the helpers, and as large files for the tests.
    for name in ("config.h", "version.h"):
        run(["cp", "config.h.in", name], cwd=folder)
    for name in ("recho", "zecho", "printenv", "xcase"):
        run(["gcc", "-w", "-I.", "-Iinclude", "-o", name, f"support/{name}.c"], cwd=folder)


BASH = FromSource("bash", "7a315bc0e9d90713159e4390ec1096a41e4f33cd8cc3d1a749a8e5ad56600f51", "bash-5.2.15",
                  build_helpers_of_bash)
# They run all, or are no tests.
NO_BASH_TESTS = ("all", "minimal", "gprof")


def read_bash(status, output):
    cases = {"exit": status}
    if unlike := "\n".join(re.findall(r"^[<>] .*$", output, re.M)):
        cases["unlike expected"] = masked(unlike)
    return cases


def tests_of_bash(cache):
    folder = BASH.folder(cache)
    script = 'cp -r "$1/tests" . && cd tests && PATH="$1:$PATH" sh "run-$2"'
    for path in sorted((folder / "tests").glob("run-*")):
        name = path.name.removeprefix("run-")
        if name not in NO_BASH_TESTS:
            yield Test(f"bash/{name}", shell(script, folder, name), read=read_bash, environment={
                "THIS_SH": "/bin/bash", "BUILD_DIR": str(folder), "BASH_TSTOUT": "output"})


# busybox: Debian's program, which is linked statically, as hardly another one is.


def build_tests_of_busybox(folder, jobs):
    del jobs
    # The configuration says which tests there are; those of what Debian's lacks fail natively too.
    run(["make", "defconfig"], cwd=folder)
    packages(folder.parents[1], DEBIAN, ["busybox-static"], folder / "debian")
    run(["cp", "debian/bin/busybox", "."], cwd=folder)


BUSYBOX = FromSource("busybox", "faeeb244c35a348a334f4a59e44626ee870fb07b6884d68c10ae8bc19f83a694", "busybox-1.35.0",
                     build_tests_of_busybox)
# The applets with tests, a few at a time: what is the same for all of them is done once per test.
APPLETS = {
    "archives": "ar bunzip2 bzcat cpio gunzip gzip tar uncompress unlzma unxz unzip xxd dd",
    "files": "basename cat chgrp chmod chown cmp cp cut dirname du find head install ln ls md5sum mkdir mkfs.minix mount "
             "mv od paste patch pwd readlink realpath rm rmdir rx sha1sum sha256sum sha512sum sum tail tee touch "
             "truncate which xargs",
    "text": "awk comm diff dos2unix echo expand expr factor false fold grep hexdump nl printf rev sed seq sort "
            "strings tr true ts tsort unexpand uniq unix2dos uuencode wc",
    "system": "ash busybox cal cryptpw date hostid hostname id logname makedevs mdev parse pidof printf sh start-stop-daemon "
              "taskset test time tree uptime wget",
}


def read_busybox(status, output):
    cases = {"exit": status}
    for verdict, name in re.findall(r"^(PASS|FAIL|SKIPPED|UNTESTED): (.*)$", output, re.M):
        cases[f"{name} {sum(key.startswith(name) for key in cases)}"] = "ok" if verdict == "PASS" else verdict
    return cases


def read_busybox_shell(status, output):
    return {"exit": status, **dict(re.findall(r"^(\S+\.tests): (\w+)", output, re.M))}


def tests_of_busybox(cache):
    folder = BUSYBOX.folder(cache)
    script = 'cp -r "$1/testsuite" "$1/busybox" "$1/.config" . && cd testsuite && shift && ./runtest -v "$@"'
    for name, applets in APPLETS.items():
        yield Test(f"busybox/{name}", shell(script, folder, *applets.split()), read=read_busybox,
                   environment={"ECHO": "/bin/echo"})
    script = ('cp -r "$1/shell/ash_test" . && cp "$1/.config" ash_test && ln -s "$1/busybox" ash_test/ash && '
              'cd ash_test && ./run-all')
    yield Test("busybox/ash-scripts", shell(script, folder), read=read_busybox_shell, limit=300)


# git: its own scripts, which print the test anything protocol.


def build_git(folder, jobs):
    run(["make", f"-j{jobs}", "CFLAGS=-O1", *[f"NO_{name}=1" for name in ("GETTEXT", "TCLTK", "EXPAT", "PYTHON", "CURL")],
         "all"], cwd=folder)


GIT = FromSource("git", "c58da92c378df4a986ca33266897a7397e86c22ee266a284d8c2432c39066b59", "git-2.39.5", build_git)
GIT_SCRIPTS = (
    "t0001-init", "t0005-signals", "t0021-conversion", "t0061-run-command", "t1301-shared-repo", "t1400-update-ref",
    "t1450-fsck", "t2200-add-update", "t3600-rm", "t3700-add", "t3903-stash", "t5300-pack-object", "t5304-prune",
    "t5500-fetch-pack", "t5601-clone", "t6500-gc", "t7001-mv", "t7006-pager", "t7300-clean", "t9300-fast-import",
)


def tests_of_git(cache):
    script = 'export TEST_OUTPUT_DIRECTORY="$PWD"; cd "$1/t" && exec sh "./$2.sh" --root="$TMPDIR"'
    for name in GIT_SCRIPTS:
        yield Test(f"git/{name.split('-')[0]}", shell(script, GIT.folder(cache), name), read=read_tap, limit=300)


# sqlite: the scripts about files, locks and logs.


def build_sqlite(folder, jobs):
    run(["./configure", "-q", "CFLAGS=-O0"], cwd=folder)
    run(["make", f"-j{jobs}", "testfixture"], cwd=folder)


SQLITE = FromSource("sqlite3", "aaa776260ab4dc976db34aa7891819484c8676b5b2783123ebc6301e2ca5d655", "sqlite3-3.40.1",
                    build_sqlite)
SQLITE_SCRIPTS = (
    "attach", "backup", "backup2", "crash4", "delete_db", "exclusive", "exclusive2", "filectrl", "io", "journal1", "journal2",
    "journal3", "lock", "lock2", "lock3", "lock4", "lock5", "lock6", "mmap1", "multiplex", "nolock", "oserror",
    "pager2", "pagesize", "quota", "shared2", "shared_lock", "superlock", "symlink", "symlink2", "syscall", "temptable",
    "tempdb", "thread001", "unixexcl", "wal", "wal2", "wal3", "walmode", "walprotocol", "walro", "walvfs",
)


def read_sqlite(status, output):
    cases = {"exit": status}
    for name in re.findall(r"^(\S+)\.\.\.", output, re.M):
        cases[name] = "ok"
    for name, got in re.findall(r"^! (\S+) got: +(.*)$", output, re.M):
        cases[name] = f"got {masked(got)}"
    return cases


def tests_of_sqlite(cache):
    folder = SQLITE.folder(cache)
    for name in SQLITE_SCRIPTS:
        yield Test(f"sqlite/{name}", [f"{folder}/testfixture", f"{folder}/test/{name}.test"], read=read_sqlite)


# make -j4 of a whole project, with everything that it runs.


def tests_of_make(cache):
    yield steps("make/bash", {
        "copies": 'cp -a "$BASH_TREE" tree && find tree -type f | wc -l',
        "configures": 'cd tree && ./configure -q --disable-nls "CFLAGS=-O0 -g0"',
        "builds": "cd tree && make -j4 >../log 2>&1; code=$?; tail -1 ../log | cut -c1-80; exit $code",
        "files": "cd tree && find . -newer config.status -type f | sort | sha256sum",
        "same program": "cd tree && objdump -d bash | sed 1,3d | sha256sum",
        "works": "cd tree && ./bash -c 'echo \"$BASH_VERSION\" works'",
        "nothing left to do": "cd tree && make -q && echo done",
        "cleans": "cd tree && make -s clean && find . -name '*.o' | wc -l",
    }, limit=300, environment={"BASH_TREE": str(BASH.folder(cache)), "TERM": os.environ.get("TERM", "dumb")})


SUITES = [
    Suite("bash", tests_of_bash, BASH, quick=(
        "arith", "builtins", "execscript", "glob-test", "globstar", "heredoc", "procsub", "redir", "test", "vredir"),
        needs=("gcc", "diff")),
    Suite("busybox", tests_of_busybox, BUSYBOX, quick=("system",), needs=("gcc", "make", "bzip2")),
    Suite("git", tests_of_git, GIT, needs=("gcc", "make", "perl")),
    Suite("sqlite", tests_of_sqlite, SQLITE, needs=("gcc", "make", "tclsh8.6")),
    Suite("make", tests_of_make, BASH, needs=("gcc", "make", "objdump")),
]
