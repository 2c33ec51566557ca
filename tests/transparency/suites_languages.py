"""Interpreters and compilers with their runtimes: CPython, perl, node, a JVM, cargo and go."""

import os
import pathlib
import re
import shutil
import xml.etree.ElementTree

from compare import read_tap, Test
from sources import run
from suite import FromPackages, FromSource, Suite, masked, shell, steps

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"

# CPython: the modules of its own tests that are about the system, with the verdicts that it writes itself.

PYTHON = "/usr/bin/python3.11"


def complete_cpython(folder):
    """The package of the tests lacks what runs them, which lies with the standard library."""
    run(["cp", "-rn", "/usr/lib/python3.11/test", folder / "usr/lib/python3.11"])


CPYTHON = FromPackages("cpython", "libpython3.11-testsuite", finish=complete_cpython)
MODULES = (
    "os posix shutil pathlib tempfile subprocess socket signal threading mmap fcntl pty multiprocessing_spawn "
    "multiprocessing_fork multiprocessing_main_handling stat posixpath glob fileio largefile file_eintr eintr select epoll "
    "poll selectors openpty resource fork1 wait3 wait4 popen faulthandler socketserver asyncio concurrent_futures "
    "tarfile zipfile venv mailbox dbm threadsignals inspect cmd_line ssl"
).split()
JUNIT = "@@junit"


def read_junit(status, output):
    cases = {"exit": status}
    document = output.rpartition(JUNIT)[2].strip()
    try:
        root = xml.etree.ElementTree.fromstring(document)
    except xml.etree.ElementTree.ParseError:
        return cases | {"results": "none"}
    for number, case in enumerate(root.iter("testcase")):
        if not case.get("name"):  # it has begun, and nothing was said of it since
            cases[f"case {number}"] = "no result"
            continue
        words = [f"{part.tag}: {masked(part.text or '')}" if part.tag == "skipped" else part.tag
                 for part in case if part.tag in ("skipped", "failure", "error")]
        cases[case.get("name").removeprefix("test.")] = "; ".join(words) or "ok"
    return cases


def tests_of_cpython(cache):
    # They can wait without end: for a peer in another virtual machine, and for a daemon thread (natively too).
    script = f'"$1" -m test $3 -i "*VSOCK*" -i "*test_4_daemon_threads" --junit-xml results.xml "$2"; status=$?; echo; echo {JUNIT}; cat results.xml; exit $status'
    for name in MODULES:
        # The others that ask for a network would look for hosts of the Internet.
        network = "-unetwork" if name == "socketserver" else ""
        yield Test(f"cpython/test_{name}", shell(script, PYTHON, f"test_{name}", network), read=read_junit, limit=400,
                   environment={"PYTHONPATH": f"{CPYTHON.folder(cache)}/usr/lib/python3.11",
                                "PYTHONDONTWRITEBYTECODE": "1"})


# perl: the core's tests that touch the system, with the machine's perl in place of one built for them.


def build_perl(folder, jobs):
    del jobs
    shutil.rmtree(folder / "lib")
    (folder / "lib").mkdir()
    paths = run(["/usr/bin/perl", "-MConfig", "-e", 'print "@Config{qw(archlibexp privlibexp)} /usr/lib/"'
                 ' . (split m{/}, $Config{archlibexp})[3] . "/perl-base"']).split()
    for path in paths:
        run(["cp", "-r", f"{path}/.", folder / "lib"])


PERL = FromSource("perl", "0f386dccbee8e26286404b2cca144e1005be65477979beb9b1ba272d4819bcf0", "perl-5.36.0", build_perl)
PERL_OP = (
    "alarm chdir die_exit exec fh filetest filetest_t fork getpid getppid glob groups inccode kill0 lfs magic mkdir "
    "pwent grent read readdir readline select sigdispatch signame_canonical sigsystem sleep sselect stat stat_errors "
    "sysio taint threads threads-dirh unlink waitpid"
).split()


def read_perl(status, output):
    """Not every case has a name, and some have the name of a temporary file."""
    output = re.sub(r"^((?:not )?ok \d+)$", r"\1 ", output, flags=re.M)
    return read_tap(status, re.sub(r"tmp_[A-Z]+_", "tmp_", output))


def tests_of_perl(cache):
    folder = PERL.folder(cache)
    # They find their helpers by relative names, and write where they are.
    script = ('mkdir t && ln -s "$1"/t/*.pl "$1"/t/lib "$1"/t/TEST "$1"/t/harness t/ && cp -r "$1/t/io" "$1/t/op" t/ && '
              'ln -s "$1/lib" "$1/dist" "$1/ext" "$1/cpan" . && ln -s /usr/bin/perl t/perl && cd t && exec ./perl -I../lib "$2"')
    names = sorted(f"io/{path.stem}" for path in (folder / "t" / "io").glob("*.t")) + [f"op/{name}" for name in PERL_OP]
    for name in names:
        yield Test(f"perl/{name.replace('/', '-')}", shell(script, folder, f"{name}.t"), read=read_perl,
                   environment={"PERL_CORE": "1"})


# node, and a JVM: small programs of ours.


def tests_of_node(cache):
    del cache
    for path in sorted(PROGRAMS.glob("*.js")):
        # A copy, because others may not read where we are.
        yield Test(f"node/{path.stem}", ["node", "-e", path.read_text(encoding="utf-8")], read=read_tap)


def tests_of_java(cache):
    del cache
    source = (PROGRAMS / "Effects.java").read_text(encoding="utf-8")
    before = f"cat >Effects.java <<'JAVA'\n{source}JAVA\n"
    yield steps("java/version", {"version": "java -version"}, limit=60)
    if shutil.which("javac"):
        yield steps("java/jar", {
            "compiles": "mkdir out && javac -d out Effects.java && ls out",
            "packs": "cd out && jar cfe ../effects.jar Effects *.class && jar tf ../effects.jar",
            "runs": "java -jar effects.jar",
            "runs shared": "java -XX:+UseSerialGC -Xshare:auto -cp effects.jar Effects",
        }, before=before, limit=120)
        yield steps("java/single-file", {"runs": "java Effects.java"}, before=before, limit=120)


# cargo and go


def tests_of_cargo(cache):
    del cache
    where = os.path.dirname(shutil.which("cargo"))
    home = os.environ.get("RUSTUP_HOME", os.path.expanduser("~/.rustup"))
    yield steps("cargo/build", {
        "makes": "cargo new --vcs none --lib part && cargo new --vcs none whole && printf 'part = { path = \"../part\" }\\n' "
                 ">>whole/Cargo.toml && echo 'fn main() { println!(\"cargo:rustc-env=MADE={}\", std::process::id() > 0); }' "
                 ">whole/build.rs && echo 'fn main() { println!(\"{} {}\", part::add(2, 2) == 4, env!(\"MADE\")); }' "
                 ">whole/src/main.rs",
        "builds": "cd whole && cargo -q build --offline -j 4 && ls target/debug",
        "runs": "cd whole && cargo -q run --offline",
        "nothing left to do": "cd whole && cargo build --offline 2>&1 | sed 's/ in .*//'",
        "tests": "cd part && cargo -q test --offline 2>&1 | sed 's/finished in.*//'",
        "releases": "cd whole && cargo -q build --offline --release && ./target/release/whole",
        "cleans": "cd whole && cargo -q clean && ls",
    }, limit=200, environment={"PATH": f"{where}:{os.defpath}", "RUSTUP_HOME": home, "CARGO_TERM_COLOR": "never"})


def tests_of_go(cache):
    del cache
    source = (PROGRAMS / "effects.go.txt").read_text(encoding="utf-8")
    yield steps("go/build", {
        "builds": "go build -o program . && echo built",
        "runs": "./program",
        "vets": "go vet . && echo fine",
        "tests": "go test . 2>&1 | cut -f1,3-",
    }, before=f"cat >main.go <<'GO'\n{source}GO\nprintf 'module small\\n' >go.mod\n", limit=200,
        environment={"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local"})


def of_one_account(program):
    where = os.path.realpath(shutil.which(program) or "/")
    return f"{program} lies in a home folder" if where.startswith(os.path.expanduser("~/")) else ""


SUITES = [
    Suite("cpython", tests_of_cpython, CPYTHON, quick=(
        "test_os", "test_posix", "test_shutil", "test_pathlib", "test_tempfile", "test_fcntl", "test_pty", "test_fileio",
        "test_epoll", "test_mmap"), needs=(PYTHON,)),
    Suite("perl", tests_of_perl, PERL, needs=("/usr/bin/perl", "xz")),
    Suite("node", tests_of_node, quick=("*",), needs=("node",)),
    Suite("java", tests_of_java, needs=("java",)),
    Suite("cargo", tests_of_cargo, needs=("cargo",), root=of_one_account("cargo")),
    Suite("go", tests_of_go, needs=("go",), root=of_one_account("go")),
]
