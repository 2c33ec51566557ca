"""Storms: many at once, short-lived ones, and interruptions. None is lost, none is done twice, and nothing stays."""
import contextlib
import os
import pathlib

from harness import MIB, Agreement, Failure, Skip, require, same

MOST_MEMORY = 96 * MIB
MOST_DISK = 1.5
MOST_UNKNOWN = 50  # of a thousand connections
SETTLED = 250000  # bytes of records from which on what a store needs in any case does not count


def complete(place, traced, what, gaps=()):
    """What has to be true after each storm; returns the run and its figures."""
    place.gone(what)
    run = place.run()
    run.require_complete(what, gaps)
    shown = place.show(what)
    require("incomplete" not in shown, f"{what}: show says {shown}")
    if not gaps:
        same(0, run.end["gaps"], f"{what}: gaps that the end counts")
    require(traced.memory < MOST_MEMORY, f"{what}: {traced.memory / MIB:.0f} MiB of memory")
    share = run.disk() / run.bytes
    require(run.bytes < SETTLED or share <= MOST_DISK,
            f"{what}: {run.disk()} bytes of disk for {run.bytes} bytes of records ({share:.2f})")
    return run, (f"{run.effects} effects, {traced.memory / MIB:.0f} MiB, disk {share:.2f} of the records, "
                 f"{traced.took:.1f} s")


def creations(place, count, what, interesting):
    """Each of `count` files is there, and recorded once."""
    agreement = Agreement(place.work, place.records(), interesting)
    agreement.require(what)
    same(count, len(agreement.there), f"{what}: files")
    same(count, len(agreement.ok), f"{what}: files that are recorded as made")
    same(0, len(agreement.unknown), f"{what}: files of which nothing is known")
    return agreement


def brief(place):
    """Processes of a millisecond."""
    count = place.arguments.scale(2000, 10000)
    alone, traced = place.both(place.program("endure_storms", "brief", count), watch=True)
    same(f"{count}\n", alone.out, "processes that ended")
    _, figures = complete(place, traced, "brief")
    if "connector" not in place.show("brief"):
        raise Skip(f"births of processes without effects (there is no proc connector); {figures}")
    ends = {}
    for effect in place.records():
        if effect["kind"] == "proc.exit":
            ends.setdefault(effect["status"].get("code"), set()).add(effect["process"]["id"])
    same(count, len(ends.get(7, ())), "processes recorded as ended with 7")
    same(1, len(ends.get(0, ())), "others that ended")
    return figures


def threads(place):
    """200 threads that open files."""
    each = place.arguments.scale(20, 500)
    _, traced = place.both(place.program("endure_calls", "threads", each), watch=True)
    same({"made": 200 * each, "failed": 0}, traced.numbers(), "threads")
    _, figures = complete(place, traced, "threads")
    creations(place, 200 * each, "threads", r"t-\d+-\d+")
    tids = {effect["process"]["tid"] for effect in place.records() if "/t-" in effect.get("path", "")}
    same(200, len(tids), "threads that made files")
    return figures


def opens(place):
    """16 processes; 100 000 effects, or a million."""
    each = place.arguments.scale(6250, 62500)
    traced = place.execute(place.traced(place.program("endure_storms", "opens", each)), watch=True)
    same((0, f"{16 * each}\n"), (traced.status, traced.out), f"opens ({traced.err[-300:]})")
    run, figures = complete(place, traced, "opens")
    require(run.effects >= 16 * each, f"only {run.effects} effects")
    creations(place, 16 * each, "opens", r"o-\d+-\d+")
    return figures


def timer(place):
    """Creations under a timer signal of 5 kHz, with and without SA_RESTART."""
    count = place.arguments.scale(1000, 20000)
    said = []
    for word in ("restart", "not"):
        place.fresh()
        _, traced = place.both(place.program("endure_calls", "timer", count, word), watch=True)
        same({"made": count, "failed": 0}, traced.numbers(), f"timer, {word}")
        _, figures = complete(place, traced, f"timer, {word}")
        creations(place, count, f"timer, {word}", r"s-\d+-\d+")
        seen = traced.numbers(traced.err)
        require(seen["signals"] > 0, "no signals came")
        same(0, seen["interrupted"] if word == "restart" else 0, "calls that say EINTR with SA_RESTART")
        said.append(f"{word}: {seen['signals']} signals, {seen['interrupted']} EINTR, {figures}")
    return "; ".join(said)


def connects(place):
    """A thousand connections at once to a server on the loopback, of threads that wait and of one that polls."""
    said = []
    for word in ("wait", "poll"):
        place.fresh()
        _, traced = place.both(place.program("endure_calls", "connects", 1000, word), watch=True)
        same({"connected": 1000, "failed": 0, "accepted": 1000}, traced.numbers(), f"connects, {word}")
        _, figures = complete(place, traced, f"connects, {word}")
        records = [effect for effect in place.records() if effect["kind"] == "net.connect"]
        states = {}
        for effect in records:
            states[effect["result"]["state"]] = states.get(effect["result"]["state"], 0) + 1
        same(1000, len(records), f"connects, {word}: records {states}")
        same(0, states.get("failed", 0), f"connects, {word}: recorded as failed")
        # Whoever waits for a connection that takes its time finds out alone; on the loopback few do.
        require(states.get("unknown", 0) <= MOST_UNKNOWN, f"connects, {word}: {states}")
        same(1, len({effect["peer"]["port"] for effect in records}), f"connects, {word}: servers")
        said.append(f"{word}: {states}, {figures}")
    return "; ".join(said)


def execs(place):
    """In each process one thread executes a program while others make files."""
    count = place.arguments.scale(200, 2000)
    traced = place.execute(place.traced(place.program("endure_calls", "execs", count)), watch=True)
    same((0, {"ended well": count}), (traced.status, traced.numbers()), f"execs ({traced.err[-300:]})")
    _, figures = complete(place, traced, "execs")
    executed = [effect for effect in place.records()
                if effect["kind"] == "proc.exec" and effect.get("argv", [""])[0] == "executed"]
    same(count, len(executed), "recorded execs")
    same({"ok"}, {effect["result"]["state"] for effect in executed}, "results of execs")
    same(sorted(str(i + 1) for i in range(count)), sorted(effect["argv"][2] for effect in executed), "their arguments")
    creations(place, count, "execs", r"x-\d+-\d+")
    # What the other threads were doing when the exec ended them may have been done or not.
    agreement = Agreement(place.work, place.records(), r"m-\d+-\d+")
    agreement.require("execs, others")
    return f"{figures}; others: {agreement.text()}"


def bomb(place):
    """Forks of forks, held by RLIMIT_NPROC alone: of the agent, and of us as well."""
    own = sum(1 for task in tasks_of(place.identity.entry.pw_uid) for _ in task.iterdir())
    limit, said = own + 150, []
    for word in ("inside", "outside"):
        place.fresh()
        prefix = [] if word == "inside" else ["prlimit", f"--nproc={limit}", "--"]
        traced = place.execute([*prefix, *place.traced(place.program("endure_calls", "bomb", limit, word))], watch=True)
        same((0, {"first": 2}), (traced.status, traced.numbers()), f"bomb, {word} ({traced.err[-300:]})")
        seen = traced.numbers(traced.err)
        require(seen["refused"] > 0, f"bomb, {word}: nothing held it: {seen}")
        # Who cannot have more workers may have to let calls go.
        run, figures = complete(place, traced, f"bomb, {word}", () if word == "inside" else ("no_worker",))
        ids = {effect["process"]["id"] for effect in place.records() if effect["kind"] == "file.create"
               and "/b-" in effect.get("path", "") and effect["result"]["state"] == "ok"}
        if not run.gaps:
            same(seen["made"], len(ids), f"bomb, {word}: processes that made a file")
        said.append(f"{word}: {seen}, gaps {run.codes()}, {figures}")
    return "; ".join(said)


def tasks_of(uid):
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and os.stat(entry).st_uid == uid:
                yield entry / "task"


def stopped(place):
    """Stopped, continued and killed in mid-call: records say what was done, or that it is not known."""
    workers, rounds = 16, place.arguments.scale(5, 100)
    traced = place.execute(place.traced(place.program("endure_kills", "stopped", workers, rounds)), watch=True)
    same((0, {"stopped": workers * rounds, "killed": workers * rounds}), (traced.status, traced.numbers()),
         f"stopped ({traced.err[-300:]})")
    _, figures = complete(place, traced, "stopped")
    agreement = Agreement(place.work, place.records(), r"[kd]-\d+-\d+")
    agreement.require("stopped")
    if not agreement.there:
        raise Failure("nothing was made")
    require(len(agreement.unknown) <= workers * rounds, f"more unknown than killed: {agreement.text()}")
    return f"{agreement.text()}; {figures}"


TESTS = {
    "brief": (brief, "any"), "threads": (threads, "any"), "opens": (opens, "any"), "timer": (timer, "any"),
    "connects": (connects, "any"), "execs": (execs, "any"), "bomb": (bomb, "user"), "stopped": (stopped, "any"),
}
