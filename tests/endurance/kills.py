"""Our own processes are killed at random moments: the tree ends with them, the caller is told, and the run says why."""
import contextlib
import os
import random
import signal
import time

from harness import Agreement, Run, Skip, alive, below, require, same

WORKERS = {"plain": 4, "space": 5}  # processes of endure_kills that make files
PATIENCE = 20.0
SOON = 1.0
LATEST = 5.0
OURS = 125


def wait_for(good, what, limit=PATIENCE):
    end = time.monotonic() + limit
    while not good():
        require(time.monotonic() < end, f"{what() if callable(what) else what}: not after {limit} s")
        time.sleep(0.002)


def role_in(tree, guardian, role):
    if role == "guardian":
        return [guardian]
    return [pid for pid, comm in tree.items() if comm == f"assure-{role}"]


def kill_at_random(place, child, role, space):
    """Once all of the tree works; returns what there was."""
    wait_for(lambda: all(os.path.exists(place.work / f"d-{i}-0") for i in range(WORKERS[space])), "the busy tree")
    time.sleep(random.choice((0, 0.01, 0.1, 0.3)) * random.random())
    tree = below(child.pid)
    victims = role_in(tree, child.pid, role)
    require(len(victims) == 1, f"not one {role}: {tree}")
    os.kill(victims[0], signal.SIGKILL)
    return tree


def ended(tree, what):
    """How long the tree lived on; what is ours may take longer, to close the run."""
    killed = time.monotonic()
    agent = {pid for pid, comm in tree.items() if comm.startswith("endure")}
    require(len(agent) >= 4, f"{what}: no tree: {tree}")
    wait_for(lambda: not alive(agent), lambda: f"{what}: the tree lives on: {alive(tree)}", LATEST)
    return time.monotonic() - killed


def kill_one(place, role, space):
    what = f"{role} killed, {space}"
    place.fresh()
    with open(place.home / "err", "w+b") as err:
        child = place.popen(place.traced(place.program("endure_kills", "busy", space)), stdout=err, stderr=err)
        tree = kill_at_random(place, child, role, space)
        took = ended(tree, what)
        status = child.wait(PATIENCE)
        err.seek(0)
        said = err.read().decode(errors="replace")
    place.gone(what)
    same(-signal.SIGKILL if role == "guardian" else OURS, status, f"{what}: status ({said[-300:]})")
    if role != "guardian":
        require("assure: the run is not complete" in said and role in said, f"{what}: it said {said[-300:]!r}")
    run = Run(place.state)
    require(not run.is_complete(), f"{what}: the run is complete")
    shown = place.show(what)
    require("incomplete" in shown and role in shown, f"{what}: show does not say why: {shown}")
    agreement = Agreement(place.work, place.records(), r"[kd]-\d+-\d+")
    # A call is recorded before its caller goes on, and what the monitor recorded outlives it: only a call that it was
    # just making can be missing. What the scribe had not yet written goes with it.
    missing = {"monitor": WORKERS[space], "scribe": len(agreement.there)}
    agreement.require(what, missing.get(role, 0))
    return took, agreement


def killed(role):
    def test(place):
        times, there, unrecorded = [], 0, 0
        # The end of the keeper is a long one: others see to it that it is the end of all.
        for number in range(place.arguments.scale(8 if role == "keeper" else 20, 200)):
            took, agreement = kill_one(place, role, "space" if number % 2 else "plain")
            times.append(took)
            there += len(agreement.there)
            unrecorded += len(agreement.unrecorded)
        times.sort()
        require(times[len(times) * 19 // 20 - 1] <= SOON, f"the tree lived on for {times[-3:]} s")
        return (f"{len(times)} kills, the tree gone after {times[len(times) // 2]:.3f} s, at most {times[-1]:.3f} s; "
                f"{there} made, {unrecorded} of them not recorded")
    test.__doc__ = f"The {role} is killed."
    return test


def performer(place):
    """Performers are killed: the calls are made all the same."""
    count, kills = place.arguments.scale(1000, 10000), 0
    command = place.program("endure_kills", "spaced", count)
    alone = place.execute(command, place.native)
    if alone.status == 77:
        raise Skip("there are no namespaces of its own for it")
    wanted = place.arguments.scale(20, 200)
    with open(place.home / "out", "w+b") as out, open(place.home / "err", "w+b") as err:
        child = place.popen(place.traced(command), stdout=out, stderr=err)
        while child.poll() is None:
            victims = role_in(below(child.pid), child.pid, "perform")
            if victims and kills < wanted:
                time.sleep(0.03 * random.random())
                for pid in set(victims) & set(role_in(below(child.pid), child.pid, "perform")):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        kills += 1
            time.sleep(0.002)
        out.seek(0)
        err.seek(0)
        said, complaints = out.read().decode(), err.read().decode(errors="replace")
    place.gone("performer killed")
    same((alone.status, alone.out), (child.returncode, said), f"performer killed ({complaints[-300:]})")
    run = Run(place.state)
    agreement = Agreement(place.work, place.records(), r"p-\d+-\d+")
    agreement.require("performer killed")
    require(run.is_complete() or run.gaps, f"incomplete without a gap: {run.meta}")
    require(kills >= min(wanted, 3), f"only {kills} performers were there to be killed")
    twice = next(line for line in complaints.splitlines() if line.startswith("twice"))
    return f"{kills} kills, {twice}, gaps {run.codes()}, complete {run.meta.get('complete')}; {agreement.text()}"


TESTS = {f"kill-{role}": (killed(role), "any") for role in ("monitor", "keeper", "scribe", "guardian")}
TESTS["kill-performer"] = (performer, "any")
