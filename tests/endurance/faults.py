"""Faults of the machine around a run: full and failing disks, little memory, moved clocks, and odd standard streams."""
import contextlib
import os
import pathlib
import shlex
import signal
import subprocess
import time

from harness import MIB, Agreement, Run, Skip, require, same
from kills import OURS, wait_for

ROOM = 4 * MIB
ENOUGH = 96  # MiB that we say that we need at most
LOST = "records could not be stored"


def mounted(place, command, path, what):
    """The folder with a file system of its own on it, which its owner may use."""
    path.mkdir(mode=0o700, exist_ok=True)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise Skip(f"{what}: {done.stderr.decode(errors='replace').strip()}")
    place.mounts.append(path)
    path.chmod(0o700)
    place.identity.own(path)
    return path


def small_disk(place, size, inodes=0):
    options = f"size={size},mode=0700" + (f",nr_inodes={inodes}" if inodes else "")
    return mounted(place, ["mount", "-t", "tmpfs", "-o", options, "endurance", str(place.state)], place.state,
                   "a small file system")


def unmount(place):
    subprocess.run(["umount", "-l", place.mounts.pop()], check=True)


def lost_of(run):
    return sum(gap.get("count", 0) for gap in run.gaps if gap["code"] == "store")


def not_started(place, what):
    """Nothing can be stored from the start: the command is not run, and we say why."""
    outcome = place.execute(place.traced(["touch", "begun"]))
    place.gone(what)
    same(OURS, outcome.status, f"{what}: status ({outcome.err[-300:]})")
    require(outcome.err.startswith("assure: "), f"{what}: it said {outcome.err!r}")
    require(not (place.work / "begun").exists(), f"{what}: the command was run all the same")


def went_on(place, what, count, lasting=False, **how):
    """The agent makes its files as if nothing were, and the run says how many records are missing."""
    alone, traced = place.both(place.program("endure_storms", "opens", count), **how)
    place.gone(what)
    same(0, alone.status, what)
    same(16 * count, len(os.listdir(place.work)), f"{what}: files")
    run = Run(place.state)
    require(not run.is_complete(), f"{what}: the run is complete")
    # To the caller it is said at once, also when nothing can be written any more.
    require("incomplete" in traced.err or "not complete" in traced.err, f"{what}: it said {traced.err[-300:]!r}")
    require("incomplete" in place.show(what), f"{what}: show does not say so")
    if lasting:
        agreement = Agreement(place.work, place.records(), r"o-\d+-\d+")
        agreement.require(what, 16 * count)
        return f"{what}: {run.count} stored"
    require(LOST in run.meta.get("reason", ""), f"{what}: the reason is {run.meta.get('reason')!r}")
    lost = lost_of(run)
    require(lost > 0, f"{what}: no gap says how many are missing: {run.gaps}")
    agreement = Agreement(place.work, place.records(), r"o-\d+-\d+")
    agreement.require(what, lost)
    return f"{what}: {run.count} stored, {lost} lost, {len(agreement.unrecorded)} files without a record"


def disk_full(place):
    """The state folder is full: from the start, without inodes, and in the middle."""
    small_disk(place, ROOM)
    (place.state / "filler").write_bytes(b"x" * (ROOM - 64 * 1024))
    not_started(place, "full from the start")
    unmount(place)
    small_disk(place.fresh(), ROOM, inodes=3)
    not_started(place, "no inodes")
    unmount(place)
    small_disk(place.fresh(), ROOM)
    said = went_on(place, "full in the middle", 1000)
    unmount(place)
    return said


def disk_freed(place):
    """The disk is full for some time: a gap in the middle, and records after it."""
    small_disk(place, ROOM)
    filler = place.state / "filler"
    filler.write_bytes(b"x" * (ROOM - 2 * MIB))
    with open(place.home / "err", "w+b") as err:
        child = place.popen(place.traced(place.program("endure_calls", "steady", 800)), stdout=subprocess.DEVNULL,
                            stderr=err)
        wait_for(lambda: (place.work / "y-0-20").exists(), "the run")
        # Whatever was left is used up, until some records cannot be stored; then there is room again.
        with open(place.state / "more", "wb", buffering=0) as more, contextlib.suppress(OSError):
            while True:
                more.write(b"x" * 4096)
        time.sleep(2)
        (place.state / "more").unlink()
        filler.unlink()
        same(0, child.wait(place.arguments.limit), "status")
    place.gone("disk freed")
    run = Run(place.state)
    lost = lost_of(run)
    require(not run.is_complete() and LOST in run.meta["reason"], f"meta {run.meta}")
    require(lost > 0 and run.end is not None, f"gaps {run.gaps}, end {run.end}")
    last = max(gap["seq"] for gap in run.gaps)
    require(last < run.count - 100, f"the gap is record {last} of {run.count}: nothing came after it")
    agreement = Agreement(place.work, place.records(), r"y-\d+-\d+")
    agreement.require("disk freed", lost)
    unmount(place)
    return f"{run.count} stored, {lost} lost, gaps at {[gap['seq'] for gap in run.gaps]}"


@contextlib.contextmanager
def failing(place, fault, after):
    """The state folder on a file system that goes wrong."""
    place.state.mkdir(mode=0o700)
    with open(place.top / "faults", "w+b") as said:
        server = subprocess.Popen(place.program("endure_fs", place.state, fault, after), stdin=subprocess.DEVNULL,
                                  stdout=said)
        place.mounts.append(place.state)
        place.helpers = {server.pid}
        try:
            wait_for(lambda: os.path.ismount(place.state) or server.poll() is not None, "mounting")
            if server.poll() is not None:
                raise Skip(f"there is no fuse here (status {server.returncode})")
            yield
        finally:
            unmount(place)
            server.terminate()
            status = server.wait(20)
    same(0, status, "status of the server")
    text = (place.top / "faults").read_text()
    require(fault == "none" or int(text.split()[1]) > 0, f"{fault}: nothing went wrong")


def disk_fails(fault):
    def test(place):
        with failing(place, fault, 0):
            not_started(place, f"{fault} from the start")
        with failing(place.fresh(), fault, 2 * MIB):
            return went_on(place, fault, 500, lasting=True)
    test.__doc__ = f"The state folder on a file system that takes no bytes any more: {fault}."
    return test


def disk_passing(place):
    """A few writes fail, then all is well again."""
    with failing(place, "passing", 2 * MIB):
        return went_on(place, "passing", 1500)


def disk_short(place):
    """Writes that write less than they were asked to, on a file system that is otherwise good."""
    said = []
    for fault in ("none", "short"):
        with failing(place.fresh(), fault, 0):
            place.both(place.program("endure_storms", "opens", 200))
            run = Run(place.state)
            run.require_complete(fault)
            require("incomplete" not in place.show(fault), f"{fault}: show says incomplete")
            Agreement(place.work, place.records(), r"o-\d+-\d+").require(fault)
            said.append(f"{fault}: {run.count} stored")
    return "; ".join(said)


def disk_fsync(place):
    """What could not be made safe on the disk must not pass for stored: it is said."""
    with failing(place, "fsync", MIB):
        _, traced = place.both(place.program("endure_storms", "opens", 200))
        run = Run(place.state)
        require(not run.is_complete() or "not synced" in traced.err or "records were lost" in traced.err,
                f"complete {run.meta.get('complete')}, and it said {traced.err[-300:]!r}")
        place.show("fsync")
        return f"{run.count} stored, complete {run.meta.get('complete')}"


def file_size(place):
    """RLIMIT_FSIZE ends the store's file, and not its writer."""
    # More than what we share among us; when no file may grow any more, that may be all that can be said.
    return went_on(place, "file size", 1800, lasting=True, prefix=["prlimit", f"--fsize={9 * MIB}", "--"])


def file_size_small(place):
    """So small that nothing of ours fits: what does not write files has to run all the same, or not to begin."""
    prefix = ["prlimit", "--fsize=4096", "--"]
    outcome = place.execute([*prefix, *place.traced(["touch", "begun"])])
    how = orderly(place, outcome, "RLIMIT_FSIZE of 4096")
    same(how != "not begun", (place.work / "begun").exists(), f"{how}: whether the command was run")
    return how


@contextlib.contextmanager
def control_group(limit):
    """A group of processes that may have so much memory, and how to get into it."""
    for top, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = pathlib.Path(top, f"assure-endure-{os.getpid()}")
        with contextlib.suppress(OSError):
            group.mkdir()
            try:
                (group / file).write_text(str(limit))
            except OSError:
                group.rmdir()
                continue
            try:
                yield group
            finally:
                wait_for(lambda: not (group / "cgroup.procs").read_text().strip(), "the end of the control group")
                group.rmdir()
            return
    raise Skip("no control group can be made that limits memory")


def orderly(place, outcome, what):
    """Either all went well, or it says that it did not, and nothing is left. Returns which."""
    place.gone(what)
    if outcome.status == 0:
        Run(place.state).require_complete(what)
        return "complete"
    if not (place.state / "runs").is_dir() or not any((place.state / "runs").iterdir()):
        same(OURS, outcome.status, f"{what}: status ({outcome.err[-300:]})")
        require(outcome.err.startswith("assure: "), f"{what}: it said {outcome.err[-300:]!r}")
        return "not begun"
    require(outcome.status in (OURS, -signal.SIGKILL), f"{what}: status {outcome.status} ({outcome.err[-300:]})")
    require(not Run(place.state).is_complete(), f"{what}: status {outcome.status}, and the run is complete")
    require("incomplete" in place.show(what), f"{what}: show does not say so")
    return "incomplete"


def in_group(limit):
    def test(place):
        with control_group(limit * MIB) as group:
            # The shell goes in, and all that follows is born there.
            user = place.identity.entry
            line = (f"echo $$ >{shlex.quote(str(group / 'cgroup.procs'))} && exec setpriv --reuid={user.pw_uid} "
                    f"--regid={user.pw_gid} --clear-groups "
                    + shlex.join(place.traced(place.program("endure_calls", "connects", 300, "wait"))))
            outcome = place.execute(["sh", "-c", line])
            how = orderly(place, outcome, f"{limit} MiB")
        require(limit < ENOUGH or how == "complete", f"{limit} MiB were not enough: {outcome.err[-300:]}")
        return how
    test.__doc__ = f"All of it in a control group of {limit} MiB."
    return test


def address_space(place):
    """RLIMIT_AS: it works, or says why it does not; never a part of it."""
    said = []
    for limit in (1024, 512, 256, 128, 96, 64, 48, 32, 24):
        place.fresh()
        prefix = ["prlimit", f"--as={limit * MIB}", "--"]
        same(0, place.execute([*prefix, "sh", "-c", "echo x >begun"], place.native).status, f"natively in {limit} MiB")
        outcome = place.execute([*prefix, *place.traced(["sh", "-c", "echo x >begun"])])
        how = orderly(place, outcome, f"RLIMIT_AS of {limit} MiB")
        require(how != "not begun" or not (place.work / "begun").exists(), f"{limit} MiB: it did begin")
        said.append(f"{limit} MiB {how}")
    return ", ".join(said)


TESTS = {
    "disk-full": (disk_full, "root"), "disk-freed": (disk_freed, "root"),
    "disk-eio": (disk_fails("eio"), "root"), "disk-enospc": (disk_fails("enospc"), "root"),
    "disk-passing": (disk_passing, "root"), "disk-short": (disk_short, "root"), "disk-fsync": (disk_fsync, "root"),
    "file-size": (file_size, "any"), "file-size-small": (file_size_small, "any"),
    "memory-enough": (in_group(ENOUGH), "root"), "memory-12": (in_group(12), "root"), "memory-4": (in_group(4), "root"),
    "address-space": (address_space, "any"),
}
