"""What a suite is, and the readers and commands that several suites share."""

import dataclasses
import hashlib
import os
import re
import shlex
import shutil

from compare import Test
from sources import Source, packages, run, unpack

DEBIAN = "bookworm"
LONGEST = 160


@dataclasses.dataclass(frozen=True)
class Suite:
    name: str
    tests: object  # function of the cache: the tests
    prepare: object = None  # a Prepared
    quick: tuple = ()  # patterns of the names of the tests that `--quick` runs: of suites that need no build
    needs: tuple = ()  # programs of this machine
    root: str = ""  # why there is nothing to run as an ordinary user

    def missing(self):
        path = os.pathsep.join((os.environ.get("PATH", ""), os.defpath, "/usr/sbin", "/sbin"))
        return [name for name in self.needs if not shutil.which(name, path=path)]


class Prepared:
    """Something below build/ in the cache that is made once, of what `version` says."""

    def __init__(self, name, version):
        self.name, self.version = name, version

    def folder(self, cache):
        return cache / "build" / self.name

    def ready(self, cache):
        stamp = self.folder(cache) / ".built"
        return stamp.exists() and stamp.read_text(encoding="utf-8") == self.version

    def __call__(self, cache, jobs):
        if not self.ready(cache):
            self.make(cache, jobs)
            # Ordinary users run what root built.
            run(["chmod", "-R", "a+rX", self.folder(cache)])
            (self.folder(cache) / ".built").write_text(self.version, encoding="utf-8")

    def make(self, cache, jobs):
        raise NotImplementedError


class FromSource(Prepared):
    def __init__(self, package, sha256, folder, build):
        super().__init__(folder, f"{sha256} {build.__name__}")
        # The revision of the package is left open: it changes with Debian's point releases, and the archive does not.
        self.source, self.build = Source(package, "", DEBIAN, sha256, folder), build

    def make(self, cache, jobs):
        self.build(unpack(cache, self.source), jobs)


class FromPackages(Prepared):
    """Debian packages, unpacked and not installed. `finish`: what is to be done in their folder."""

    def __init__(self, name, *names, finish=None):
        super().__init__(name, " ".join(names))
        self.names, self.finish = names, finish

    def make(self, cache, jobs):
        del jobs
        packages(cache, DEBIAN, self.names, self.folder(cache))
        if self.finish:
            self.finish(self.folder(cache))


def shell(script, *arguments):
    return ["bash", "-c", script, "bash", *map(str, arguments)]


# Scenarios of our own: steps, of which each is a case with its exit status and what it printed.


MARK = "@@step"


def masked(text):
    """Without what is another at each run: large numbers (process ids), fractions (times), addresses, and names made by
    chance. Small ones stay: they are statuses and counts."""
    text = re.sub(r"@PLACE@[\w./-]*/tmp\.\w+", "@PLACE@", text)
    text = re.sub(r"\b0x[0-9a-f]+\b|\d+[.,]\d+|\d{4,}", "N", text)
    text = "\n".join(line.rstrip() for line in text.strip().splitlines())
    if len(text) <= LONGEST:
        return text
    return text[:LONGEST] + "… " + hashlib.sha256(text.encode()).hexdigest()[:12]


def read_steps(status, output):
    cases = {"exit": status}
    for name, printed, code in re.findall(rf"^{MARK} ([^\n]*)\n(.*?)^{MARK}-ends (\d+)$", output, re.M | re.S):
        cases[name] = f"{code}: {masked(printed)}"
    return cases


# For `before`. Waits for a condition, and says when it did not come true.
UNTIL = 'until_() { for _ in $(seq 300); do eval "$1" >/dev/null 2>&1 && return; sleep 0.1; done; echo "never: $1"; return 1; }\n'


def steps(name, cases, before="", apart=False, **how):
    """A test of several steps: name -> script. They share the folder and what `before` set, or
    with `apart` each has a folder of its own.

    A step prints what is to be compared; of a large number only that there was one, so that a step which is to show it
    prints a word instead: `[ $n = 1000 ] && echo yes`.
    """
    script = [before]
    for number, (case, body) in enumerate(cases.items()):
        if apart:
            body = f"mkdir step-{number} && cd step-{number} || exit\n{body}"
        script.append(f"echo {shlex.quote(f'{MARK} {case}')}\n(\n{body}\n) </dev/null 2>&1\n"
                      f"status=$?; echo; echo '{MARK}-ends' $status")
    script.append("exit 0")
    return Test(name, shell("\n".join(script)), read=read_steps, **how)

