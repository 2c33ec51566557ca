"""What the tests of endurance share: a place of their own, a program run natively or traced, and a look at its run."""
import contextlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20
OURS = "assure"


def beside(folder, name):
    """A module of another folder of tests."""
    spec = importlib.util.spec_from_file_location(f"{folder}_{name[:-3]}", HERE.parent / folder / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


e2e = beside("e2e", "run.py")  # has the two users, and ends what a program leaves behind


class Skip(Exception):
    """It cannot be tested here."""


class Failure(Exception):
    """What a test found wrong."""


def require(good, what):
    if not good:
        raise Failure(what)


def same(wanted, got, what):
    require(wanted == got, f"{what}: wanted {wanted!r}, got {got!r}")


def processes():
    """pid: (comm, parent, state)."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                stat = pathlib.Path("/proc", entry, "stat").read_bytes().decode(errors="replace")
                state, parent = stat[stat.rindex(")") + 2:].split()[:2]
                found[int(entry)] = (stat[stat.index("(") + 1:stat.rindex(")")], int(parent), state)
    return found


def below(root, everybody=None):
    """pid: comm of `root` and of all that descends from it."""
    everybody = everybody or processes()
    children = {}
    for pid, (_, parent, _) in everybody.items():
        children.setdefault(parent, []).append(pid)
    found, waiting = {}, [root]
    while waiting:
        pid = waiting.pop()
        if pid in everybody and pid not in found:
            found[pid] = everybody[pid][0]
            waiting += children.get(pid, [])
    return found


def alive(pids):
    everybody = processes()
    return {pid: everybody[pid][0] for pid in pids if pid in everybody and everybody[pid][2] not in "ZX"}


class Memory(threading.Thread):
    """Samples what our processes need: the highest sum of their shares of memory (or of their peaks, where these
    may not be read), as long as the guardian lives."""

    def __init__(self, guardian):
        super().__init__(daemon=True)
        self.guardian, self.over = guardian, threading.Event()
        self.peaks, self.most, self.readable = {}, 0, False
        self.start()

    def measured(self, pid):
        with contextlib.suppress(OSError, ValueError):
            for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    self.peaks[pid] = max(self.peaks.get(pid, 0), int(line.split()[1]) * 1024)
            for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    self.readable = True
                    return int(line.split()[1]) * 1024
        return 0

    def run(self):
        ours, looked = [], 0.0
        while not self.over.wait(0.05):
            if time.monotonic() - looked > 0.5:
                # The guardian has its name from its program.
                ours = [pid for pid, comm in below(self.guardian).items()
                        if pid == self.guardian or comm.startswith(OURS)]
                looked = time.monotonic()
            self.most = max(self.most, sum(self.measured(pid) for pid in ours))

    def end(self):
        self.over.set()
        self.join()
        return self.most if self.readable else sum(self.peaks.values())


class Run:
    """What the store has of a run; read as it lies on the disk, and not through the program that is tested."""

    def __init__(self, home):
        runs = [entry for entry in (home / "runs").iterdir() if entry.is_dir()] if (home / "runs").is_dir() else []
        same(1, len(runs), "runs in the state folder")
        self.folder = runs[0]
        # A copy, because reading with a WAL makes side files, and the disk may be full.
        with tempfile.TemporaryDirectory() as copy:
            for file in self.folder.glob("run.sqlite*"):
                with contextlib.suppress(FileNotFoundError):  # files beside the database come and go
                    shutil.copy(file, copy)
            with contextlib.closing(sqlite3.connect(pathlib.Path(copy, "run.sqlite"))) as store:
                self.meta = dict(store.execute("select key, value from meta"))
                self.count, self.bytes, first, last = store.execute(
                    "select count(*), sum(length(json)), min(seq), max(seq) from records").fetchone()
                self.gaps = [json.loads(row[0]) for row in
                             store.execute("select json from records where type='assure.gap/1' order by seq")]
                self.effects = store.execute("select count(*) from records where type='assure.effect/1'").fetchone()[0]
                ends = store.execute("select json from records where type='assure.end/1'").fetchall()
                self.end = json.loads(ends[0][0]) if ends else None
                stamps = [json.loads(row[0])["mono_ns"] for row in store.execute(
                    "select json from records where type='assure.effect/1' order by seq limit 20000")]
        require(self.count == 0 or (first == 0 and last == self.count - 1),
                f"holes in seq: {first}…{last}, {self.count}")
        self.highest_mono, self.lowest_mono = max(stamps, default=0), min(stamps, default=0)

    def codes(self):
        return sorted({gap["code"] for gap in self.gaps})

    def is_complete(self):
        return self.meta.get("complete") == 1

    def disk(self):
        total = 0
        for file in self.folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # files beside the database come and go
                total += file.stat().st_blocks * 512
        return total

    def require_complete(self, what, gaps=()):
        require(self.is_complete(), f"{what}: the run is not complete: {self.meta} {self.gaps[:3]}")
        require(set(self.codes()) <= set(gaps), f"{what}: gaps: {self.gaps[:5]}")
        require(self.end is not None, f"{what}: there is no end")


class Outcome:
    def __init__(self, status, out, err, took, memory=0):
        self.status, self.out, self.err, self.took, self.memory = status, out, err, took, memory

    def numbers(self, text=None):
        """The `name number` lines that a program prints."""
        return {name: int(number) for name, number in
                re.findall(r"^([a-z][a-z ]*) (-?\d+)$", self.out if text is None else text, re.M)}


class Place:
    """Where a test runs, as somebody."""

    def __init__(self, stage, identity, arguments, name):
        self.stage, self.identity, self.arguments = stage, identity, arguments
        memory = pathlib.Path("/dev/shm")
        # In memory: some file systems take most of a millisecond for a new file.
        parent = memory if os.access(memory, os.W_OK | os.X_OK) else stage
        self.top = pathlib.Path(tempfile.mkdtemp(prefix=f"assure-endure-{name}-", dir=parent))
        self.top.chmod(0o755)
        identity.own(self.top)
        self.number, self.mounts, self.helpers = 0, [], set()
        self.fresh()

    def folder(self, name):
        path = self.top / f"{name}{self.number}"
        path.mkdir(mode=0o700)
        self.identity.own(path)
        return path

    def fresh(self):
        """Other folders, and a state folder without runs; those that were there go."""
        if self.number:
            for path in (self.work, self.home, self.native):
                shutil.rmtree(path, ignore_errors=True)
        self.number += 1
        self.work, self.native, self.home = self.folder("work"), self.folder("native"), self.folder("home")
        self.state = self.home / "state"
        return self

    def environment(self, state=None):
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C",
                       "HOME": str(self.home), "ASSURE_HOME": str(state or self.state), "TERM": "xterm",
                       "PATH_OF_PROGRAMS": str(self.stage / "bin")}
        environment.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        return environment

    def assure(self):
        return str(self.stage / "bin/assure")

    def program(self, name, *words):
        return [str(self.stage / "bin" / name), *map(str, words)]

    def traced(self, command, *options):
        return [self.assure(), "trace", "--lens", "changes", *options, "--", *command]

    def popen(self, command, cwd=None, **other):
        wanted = {"cwd": cwd or self.work, "env": self.environment(), "stdin": subprocess.DEVNULL, "umask": 0o022,
                  **self.identity.arguments(), **other}
        return subprocess.Popen(command, **wanted)

    def execute(self, command, cwd=None, limit=None, watch=False, **other):
        """To its end; output goes to files, so that nobody waits for a reader."""
        limit = limit or self.arguments.limit
        with open(self.home / "out", "w+b") as out, open(self.home / "err", "w+b") as err:
            start = time.monotonic()
            child = self.popen(command, cwd, **{"stdout": out, "stderr": err, **other})
            memory = Memory(child.pid) if watch else None
            try:
                status = child.wait(limit)
            except subprocess.TimeoutExpired:
                left = below(child.pid)
                e2e.end_all()
                raise Failure(f"{command} not done after {limit} s; there were {left}") from None
            finally:
                most = memory.end() if memory else 0
            took = time.monotonic() - start
            out.seek(0)
            err.seek(0)
            return Outcome(status, out.read(1 << 24).decode(errors="replace"),
                           err.read(1 << 20).decode(errors="replace"), took, most)

    def both(self, command, *options, watch=False, prefix=(), **other):
        """Natively, then traced: what comes out has to be the same. `prefix` comes before both."""
        alone = self.execute([*prefix, *command], self.native, **other)
        traced = self.execute([*prefix, *self.traced(command, *options)], watch=watch, **other)
        what = " ".join(map(str, [pathlib.Path(command[0]).name, *command[1:3]]))
        same(alone.status, traced.status, f"{what}: status ({traced.err[-500:]})")
        same(alone.out, traced.out, f"{what}: output ({traced.err[-500:]})")
        return alone, traced

    def run(self):
        return Run(self.state)

    def gone(self, what, grace=None):
        """Nothing of the tree and nothing of ours is left."""
        end = time.monotonic() + (self.arguments.grace if grace is None else grace)
        while True:
            e2e.reap()
            left = [row for row in e2e.descendants() if row[2] != "Z" and row[0] not in self.helpers]
            if not left:
                return
            if time.monotonic() > end:
                e2e.end_all()
                raise Failure(f"{what}: left behind: {left[:6]}")
            time.sleep(0.01)

    def show(self, what, state=None):
        shown = subprocess.run([self.assure(), "show", "last"], env=self.environment(state), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=60,
                               **self.identity.arguments())
        text = shown.stdout.decode(errors="replace")
        same(0, shown.returncode, f"{what}: status of show ({text[-300:]})")
        self.verify(what, re.search(r"^ended .*incomplete", text, re.M) is not None, state)
        return text

    def verify(self, what, incomplete, state=None):
        """Whatever happened, the run is intact as far as it reaches, and never complete when it is not."""
        done = subprocess.run([self.assure(), "verify", "last"], env=self.environment(state), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=60,
                              **self.identity.arguments())
        same(2 if incomplete else 0, done.returncode, f"{what}: verify ({done.stdout.decode(errors='replace')[-600:]})")

    def records(self, state=None):
        """Each effect, as `assure effects --json` says it."""
        with subprocess.Popen([self.assure(), "effects", "last", "--json"], env=self.environment(state),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, **self.identity.arguments()) as reader:
            for line in reader.stdout:
                yield json.loads(line)
        same(0, reader.returncode, "status of `assure effects`")

    def close(self):
        for path in reversed(self.mounts):
            subprocess.run(["umount", "-l", path], check=False, stderr=subprocess.DEVNULL)
        if self.arguments.keep:
            print(f"kept: {self.top}")
        else:
            shutil.rmtree(self.top, ignore_errors=True)


MADE = {"file.create": "file", "dir.create": "dir"}


class Agreement:
    """What records say of new files and folders in one folder, against what is there. Nothing may have been removed."""

    def __init__(self, folder, records, interesting=r"[a-z]-\d+-\d+"):
        pattern = re.compile(re.escape(str(folder)) + "/(" + interesting + ")")
        self.there = {entry.name for entry in os.scandir(folder) if re.fullmatch(interesting, entry.name)}
        self.ok, self.unknown, self.twice, self.undelivered = set(), set(), [], 0
        for effect in records:
            match = effect["kind"] in MADE and pattern.fullmatch(effect.get("path", ""))
            if not match:
                continue
            state, name = effect["result"]["state"], match.group(1)
            if state == "ok":
                self.undelivered += effect["result"].get("delivered") is False
                if name in self.ok:
                    self.twice.append(name)
                self.ok.add(name)
            elif state == "unknown":
                self.unknown.add(name)
        self.unrecorded = self.there - self.ok - self.unknown
        self.untrue = self.ok - self.there

    def require(self, what, unrecorded=0):
        require(not self.untrue,
                f"{what}: recorded as made, and not there: {sorted(self.untrue)[:5]} of {len(self.untrue)}")
        require(not self.twice, f"{what}: recorded twice: {self.twice[:5]} of {len(self.twice)}")
        require(len(self.unrecorded) <= unrecorded,
                f"{what}: {len(self.unrecorded)} made and not recorded: {sorted(self.unrecorded)[:5]}")

    def text(self):
        return (f"{len(self.there)} made: {len(self.ok)} recorded, {len(self.unknown - self.ok)} unknown, "
                f"{len(self.unrecorded)} unrecorded, {self.undelivered} undelivered")
