"""What a caller can do to a run: streams that are closed, full or left by their reader, few descriptors, a terminal
that suspends, and clocks that are moved."""
import contextlib
import itertools
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import time

from harness import Agreement, Failure, Run, Skip, below, processes, require, same
from kills import wait_for

HOUR_NS = 3600 * 10 ** 9
# What it finds on its descriptors, told by a file: there may be nothing else to tell it by.
LIST = ("for f in 0 1 2 3 4 5; do if [ -e /proc/$$/fd/$f ]; then readlink /proc/$$/fd/$f | sed 's/:.*//'; "
        "else echo none; fi; done >told; echo out; echo status $? >>told; echo err >&2; echo status $? >>told; "
        "read line; echo status $? >>told; exit 7")


def told(place, command, folder, closed):
    """Its status, and what the program told, with these descriptors closed."""
    closing = " ".join(f"{number}{'<' if number == 0 else '>'}&-" for number in closed)
    # What is not closed is /dev/null: the shell that opens it must not fill the holes itself.
    outcome = place.execute(["bash", "-c", f'exec "$@" {closing}', "bash", *command], folder, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return outcome.status, (folder / "told").read_text().replace(str(folder), "FOLDER")


def closed_streams(place):
    """Standard streams closed, in all combinations, with and without a summary."""
    said = 0
    for count in range(4):
        for closed in itertools.combinations((0, 1, 2), count):
            for quiet in ([], ["--quiet"]):
                place.fresh()
                command = ["sh", "-c", LIST]
                wanted = told(place, command, place.native, closed)
                got = told(place, place.traced(command, *quiet), place.work, closed)
                same(wanted, got, f"{closed} closed {quiet}")
                place.gone(f"{closed} closed")
                place.run().require_complete(f"{closed} closed")
                said += 1
    return f"{said} runs"


def full_pipe():
    """A pipe that nobody reads, and that takes no more."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x")
    os.set_blocking(writer, True)
    return reader, writer


def unread_stderr(place):
    """Nobody reads standard error, and it is full: neither the agent nor we wait for that."""
    reader, writer = full_pipe()
    try:
        # What it leaves behind is still there when we want to say so.
        command = ["sh", "-c", "(sleep 4; echo x >late) >/dev/null 2>&1 & echo x >early"]
        child = place.popen(place.traced(command), stdout=subprocess.DEVNULL, stderr=writer)
        wait_for((place.work / "late").exists, "the agent")
        wait_for(lambda: place.run().meta.get("ended_ns"), "the end of the run", 10)
        place.run().require_complete("unread stderr")
        try:
            status = child.wait(10)
        except subprocess.TimeoutExpired:
            where = pathlib.Path(f"/proc/{child.pid}/wchan").read_text()
            raise Failure(f"10 s after its run was closed, assure waits for a reader of stderr ({where})") from None
        same(0, status, "status")
        place.gone("unread stderr")
    finally:
        os.close(reader)
        os.close(writer)
    return "ended"


def unread_signals(place):
    """A note that cannot be printed must not keep signals from the agent, or the agent's end from the caller."""
    reader, writer = full_pipe()
    try:
        command = ["sh", "-c", "trap 'echo x >got; exit 9' TERM; echo x >ready; while :; do sleep 0.05; done"]
        child = place.popen(place.traced(["sh", "-c", 'sleep 30 >/dev/null 2>&1 & exec "$@"', "sh", *command]),
                            stdout=subprocess.DEVNULL, stderr=writer)
        wait_for((place.work / "ready").exists, "the agent")
        time.sleep(2.5)
        child.terminate()
        wait_for((place.work / "got").exists, "SIGTERM at the agent", 10)
        # It has left somebody behind; after two seconds that is said; then an interrupt ends the waiting.
        time.sleep(3)
        child.send_signal(signal.SIGINT)
        wait_for(lambda: not [pid for pid, comm in below(child.pid).items() if comm == "sleep"],
                 "the end of what was left behind", 10)
        same(9, child.wait(10), "status")
    except subprocess.TimeoutExpired:
        raise Failure("10 s after the end of the tree, assure still waits for a reader of stderr") from None
    finally:
        os.close(reader)
        os.close(writer)
    place.gone("unread signals")
    return "ended"


def left_stderr(place):
    """Who read standard error is gone: the status is still the agent's, and the run is whole."""
    for wanted, script in ((5, "echo x >made; exit 5"), (5, "sleep 3 >/dev/null 2>&1 & echo x >made; exit 5")):
        place.fresh()
        reader, writer = os.pipe()
        os.close(reader)
        child = place.popen(place.traced(["sh", "-c", script]), stdout=subprocess.DEVNULL, stderr=writer)
        os.close(writer)
        same(wanted, child.wait(20), "status")
        place.gone("left stderr")
        place.run().require_complete("left stderr")
    return "2 runs"


def few_descriptors(place):
    """RLIMIT_NOFILE of 64: the agent has as many as without us, and we have enough."""
    said = []
    for limit in (1024, 64, 24):
        place.fresh()
        _, traced = place.both(place.program("endure_calls", "descriptors", 2000),
                               prefix=["prlimit", f"--nofile={limit}", "--"])
        place.gone("few descriptors")
        place.run().require_complete(f"{limit} descriptors")
        agreement = Agreement(place.work, place.records(), r"e-\d+-\d+")
        agreement.require(f"{limit} descriptors")
        require(not agreement.unknown, f"{limit} descriptors: {agreement.text()}")
        said.append(f"{limit}: {traced.numbers()['opened']} opened")
    # Sixteen processes with a descriptor each: no more than 64, however they are counted.
    each = place.arguments.scale(100, 2000)
    for limit in ("64:4096", "64:64"):
        what = f"16 processes with {limit} descriptors"
        place.fresh()
        traced = place.execute(["prlimit", f"--nofile={limit}", "--",
                                *place.traced(place.program("endure_storms", "opens", each))])
        same((0, f"{16 * each}\n"), (traced.status, traced.out), f"{what} ({traced.err[-300:]})")
        place.gone(what)
        place.run().require_complete(what)
        Agreement(place.work, place.records(), r"o-\d+-\d+").require(what)
        said.append(what)
    return ", ".join(said)


class Shell:
    """An interactive shell on a terminal of its own."""

    def __init__(self, place):
        self.seen = b""
        self.child, self.fd = pty.fork()
        if self.child == 0:
            os.chdir(place.work)
            wanted = place.identity.arguments()
            if wanted:
                os.setgroups([])
                os.setgid(wanted["group"])
                os.setuid(wanted["user"])
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], {**place.environment(), "PS1": "%> "})
        self.expect(rb"%> ")

    def say(self, data):
        os.write(self.fd, data)

    def expect(self, pattern, limit=20.0):
        end = time.monotonic() + limit
        while not re.search(pattern, self.seen):
            require(time.monotonic() < end, f"no {pattern!r} on the terminal: {self.seen[-400:]!r}")
            if select.select([self.fd], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    self.seen += os.read(self.fd, 65536)
        found = re.search(pattern, self.seen)
        self.seen = self.seen[found.end():]
        return found

    def tree(self):
        return [pid for pid, comm in below(self.child).items() if comm.startswith("endure")]

    def states(self):
        everybody = processes()
        return {everybody[pid][2] for pid in self.tree() if pid in everybody}

    def close(self):
        self.say(b"exit\n")
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.child, 0)
        os.close(self.fd)


def suspended(place):
    """Ctrl-Z in the middle of a storm: the whole tree stops, nothing is done meanwhile, and `fg` goes on."""
    rounds, each = place.arguments.scale(5, 60), place.arguments.scale(1000, 10000)
    shell = Shell(place)
    command = place.traced(place.program("endure_calls", "steady", each))
    shell.say((" ".join(command) + "; echo =$?=\n").encode())
    stops = 0
    for _ in range(rounds):
        wait_for(lambda: len(shell.tree()) == 5, "the tree")
        time.sleep(0.3)
        shell.seen = b""
        shell.say(b"\x1a")
        shell.expect(rb"Stopped(?s:.*)%> ")
        wait_for(lambda: shell.states() == {"T"}, "all of the tree stopped")
        before = len(os.listdir(place.work))
        time.sleep(0.1)
        same(before, len(os.listdir(place.work)), "files, while everything is stopped")
        stops += 1
        shell.say(b"fg\n")
        wait_for(lambda: "T" not in shell.states(), "all of the tree continued")
    shell.expect(rb"ended well 4", place.arguments.limit)
    shell.expect(rb"assure: sealed")
    shell.expect(rb"%> ")
    shell.close()
    place.gone("suspended")
    place.run().require_complete("suspended")
    agreement = Agreement(place.work, place.records(), r"y-\d+-\d+")
    agreement.require("suspended")
    same(4 * each, len(agreement.ok), "files")
    return f"{stops} stops; {agreement.text()}"


def other_clock(place):
    """A monotonic clock that is elsewhere: from the start, and for a part of the tree."""
    space = ["unshare", "-T", "--monotonic", "864000", "--boottime", "864000"]
    if place.execute([*space, "true"]).status:
        raise Skip("there are no time namespaces for us")
    said = []
    for name, command in (("all in it", [*space, *place.traced(place.program("endure_storms", "opens", 20))]),
                          ("a part", place.traced([*space, *place.program("endure_storms", "opens", 20)]))):
        place.fresh()
        outcome = place.execute(command)
        same((0, "320\n"), (outcome.status, outcome.out), f"{name} ({outcome.err[-300:]})")
        place.gone(name)
        run = place.run()
        run.require_complete(name)
        Agreement(place.work, place.records(), r"o-\d+-\d+").require(name)
        require(0 <= run.lowest_mono <= run.highest_mono < HOUR_NS, f"{name}: mono_ns up to {run.highest_mono}")
        said.append(f"{name}: mono_ns up to {run.highest_mono}")
    return "; ".join(said)


def moved_clock(place):
    """The machine's clock is moved there and back under a run."""
    seconds = place.arguments.set_clock
    if not seconds:
        raise Skip("it would move the machine's clock for everybody (--set-clock SECONDS does)")
    child = place.popen(place.traced(place.program("endure_calls", "steady", 300)), stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL)
    wait_for((place.work / "y-0-20").exists, "the agent")
    moved = 0
    try:
        for step in (seconds, -2 * seconds, seconds):
            # Counted, so that it ends where it would be without us.
            time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME) + step)
            moved += step
            time.sleep(0.3)
    except PermissionError as problem:
        raise Skip(f"the clock cannot be moved: {problem}") from problem
    finally:
        if moved:
            time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME) - moved)
    same(0, child.wait(place.arguments.limit), "status")
    place.gone("moved clock")
    run = Run(place.state)
    run.require_complete("moved clock")
    Agreement(place.work, place.records(), r"y-\d+-\d+").require("moved clock")
    # In the order of `seq`, but for calls at the same time.
    stamps = [effect["mono_ns"] for effect in place.records()]
    require(max(stamps) < HOUR_NS and min(stamps) >= 0, f"mono_ns from {min(stamps)} to {max(stamps)}")
    return f"{len(stamps)} effects, by {seconds} s there and back"


TESTS = {
    "closed-streams": (closed_streams, "any"), "unread-stderr": (unread_stderr, "any"),
    "unread-signals": (unread_signals, "any"), "left-stderr": (left_stderr, "any"),
    "descriptors": (few_descriptors, "any"), "suspended": (suspended, "any"), "other-clock": (other_clock, "root"),
    "moved-clock": (moved_clock, "root"),
}
