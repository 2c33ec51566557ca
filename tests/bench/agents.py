#!/usr/bin/env python3
"""What supervision costs real agents: their basic scenarios natively and under each supervisor, in interleaved rounds.

    agents.py --assure BIN --programs DIR [--agents DIR] [--only AGENT] [--columns NAME,...] [--rounds N] [--write]

The agents answer a scripted model (tests/agents/run.py says where they come from), which replies at once: nothing hides
what supervision costs. Wall time is the agent's own, from its start to its end. CPU time is user and system time of all
of its tree and of everything that supervises it, until the last of these processes has ended.
"""
import argparse
import datetime
import os
import pathlib
import platform
import random
import re
import shutil
import statistics
import sys
import tempfile
import time

import run as bench

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "agents"))

import outcome  # noqa: E402
import scenarios  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
LIMITS = {"wall": 1.05, "CPU": 1.10}  # of assure over the bare supervisor of the same lens
LENSES = ("changes", "reads")
ENDS_WITHIN = 60
MADE = ("out.txt", "note.md")


class RusageOfChildren:
    """What shells call `times`: without processes that nobody waited for."""
    name = "getrusage of the agent's script, which misses what nobody waited for (orphans, a monitor that stays)"
    prefix = ()

    def seconds(self, summary):
        return float(re.search(r"cpu=([\d.]+)", summary)[1])

    def close(self):
        pass


class ControlGroup:
    """A group of its own for each run, entered by the process that becomes the command."""

    def __init__(self, root, place, version):
        self.root, self.version, self.number = root, version, 0
        self.name = f"cpu.stat of a cgroup (v{version})" if version == 2 else "cpuacct.usage of a cgroup (v1)"
        self.enter = place / "enter-group"
        self.enter.write_text("#!/bin/sh\necho $$ >\"$1/cgroup.procs\" || exit 125\nshift\nexec \"$@\"\n")
        self.enter.chmod(0o755)
        self.group = None

    @property
    def prefix(self):
        self.close()
        self.number += 1
        self.group = self.root / f"assure-bench-{os.getpid()}-{self.number}"
        self.group.mkdir()
        return (str(self.enter), str(self.group))

    def seconds(self, _):
        deadline = time.monotonic() + ENDS_WITHIN
        while (self.group / "cgroup.procs").read_text():
            if time.monotonic() > deadline:
                raise bench.Failed(f"processes still there after {ENDS_WITHIN} s")
            time.sleep(0.02)
        if self.version == 1:
            return int((self.group / "cpuacct.usage").read_text()) / 1e9
        stat = dict(line.split() for line in (self.group / "cpu.stat").read_text().splitlines())
        return (int(stat["user_usec"]) + int(stat["system_usec"])) / 1e6

    def close(self):
        if self.group and self.group.exists():
            self.group.rmdir()


def group_roots():
    """Where groups can be made that count CPU time: version and folder, the newer version first."""
    found = []
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        _, root, kind, flags = line.split()[:4]
        if kind == "cgroup2":
            found.append((2, root))
        elif kind == "cgroup" and "cpuacct" in flags.split(","):
            found.append((1, root))
    return sorted(found, reverse=True)


def cpu_clock(place):
    """The best way to measure CPU time that this host has."""
    for version, root in group_roots():
        clock = ControlGroup(pathlib.Path(root), place, version)
        try:
            group = pathlib.Path(clock.prefix[1])
            usable = (group / ("cpu.stat" if version == 2 else "cpuacct.usage")).exists()
        except OSError:
            continue
        clock.close()
        if usable:
            return clock
    return RusageOfChildren()


def measure(runs, agent, scenario, prefix, clock):
    """Wall and CPU seconds of one run."""
    wrap = " ".join((*clock.prefix, *prefix))
    try:
        folder, status = runs.start(agent, f"{agent.name}-bench", scenario.path, wrap, scenario.settings)
    except RuntimeError as problem:
        raise bench.Failed(str(problem)) from problem
    summary = (folder / "summary").read_text()
    seconds = {"wall": float(re.search(r"wall=([\d.]+)", summary)[1]), "CPU": clock.seconds(summary)}
    missing = [name for name in MADE if not (folder / "work" / name).exists()]
    said = (folder / "stderr").read_text(errors="replace").strip().splitlines()[-2:]
    shutil.rmtree(folder, ignore_errors=True)
    if status != 0 or missing:
        raise bench.Failed(f"exit status {status}, without {missing or 'nothing'}: {' | '.join(said)}")
    return seconds


def run_rounds(runs, agent, scenario, wraps, options, clock):
    """Seconds by column and kind, one entry a round; a column that fails is left out with its reason."""
    times = {name: {"wall": [], "CPU": []} for name, _ in wraps}
    # The first round warms caches and is not counted. Each round begins with another column.
    for number in range(options.rounds + 1):
        start = number % len(wraps)
        for name, wrap in wraps[start:] + wraps[:start]:
            if name not in times:
                continue
            try:
                seconds = measure(runs, agent, scenario, wrap([]), clock)
            except bench.Failed as problem:
                print(f"bench: {agent.name}: {name}: {problem}", file=sys.stderr)
                del times[name]
                continue
            if number > 0:
                for kind, value in seconds.items():
                    times[name][kind].append(value)
        shutil.rmtree(runs.environment["ASSURE_HOME"], ignore_errors=True)
    return times


def limit_cell(values, control, limit, randomness):
    if values is None or control is None:
        return "failed"
    middle, low, high = bench.ratio(values, control, randomness)
    verdict = "within" if high <= limit else "not shown" if middle <= limit else "over"
    return f"{middle:.3f} [{low:.3f}, {high:.3f}] {verdict}"


def report(results, names, rounds, clock):
    randomness = random.Random(1)
    over_native = {"wall": [], "CPU": []}
    to_bare = []
    for agent, times in results:
        for kind, rows in over_native.items():
            native = times.get("native", {}).get(kind)
            rows.append([agent.name, f"{statistics.median(native):.3f} s" if native else "failed"] +
                        [bench.cell(times.get(name, {}).get(kind), native, randomness) for name in names[1:]])
        to_bare.append([agent.name] + [
            limit_cell(times.get(f"assure {lens}", {}).get(kind), times.get(f"bare {lens}", {}).get(kind),
                       LIMITS[kind], randomness) for kind in LIMITS for lens in LENSES])
    machine = f"Linux {platform.release()}, {platform.machine()}, {os.cpu_count()} cores"
    return "\n".join([
        "# What supervision costs real agents",
        "",
        f"{machine}; {datetime.date.today().isoformat()}; {rounds} interleaved rounds. Made by "
        "`tests/bench/agents.py --write`.",
        "",
        "The basic scenario of each agent (a shell command, a file written, a file edited) against a scripted model",
        "that replies at once. Cells are multiples of the control's in the same round: median of the rounds, and the",
        f"bootstrap 95% interval of that median. CPU: {clock.name}.",
        "",
        "## Wall time over the native run",
        "",
        *bench.table(["agent", "native"] + names[1:], over_native["wall"]),
        "",
        "## CPU time over the native run",
        "",
        *bench.table(["agent", "native"] + names[1:], over_native["CPU"]),
        "",
        "## Over the bare supervisor of the same lens",
        "",
        *bench.table(["agent"] + [f"{kind}, {lens} (≤ {limit:.2f})" for kind, limit in LIMITS.items()
                                  for lens in LENSES], to_bare),
        "",
        "within: the whole interval is within the limit; not shown: the median is; over: not even that.",
        "",
    ])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assure", required=True, type=pathlib.Path)
    parser.add_argument("--programs", required=True, type=pathlib.Path, help="folder of the built programs")
    parser.add_argument("--agents", type=pathlib.Path, default=HERE.parents[2] / "shared" / "agents")
    parser.add_argument("--only", choices=[agent.name for agent in scenarios.AGENTS])
    parser.add_argument("--columns", metavar="NAME,…", help="only these, and the native control")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--write", action="store_true", help="write AGENTS.md")
    return parser.parse_args()


def measured(options, runs, wraps, clock):
    for agent in scenarios.AGENTS:
        if options.only not in (None, agent.name):
            continue
        try:
            scenario = scenarios.basic(agent, runs)
        except outcome.Skip as reason:
            print(f"bench: {agent.name}: skipped: {reason}", file=sys.stderr)
            continue
        yield agent, run_rounds(runs, agent, scenario, wraps, options, clock)
        print(f"bench: {agent.name}: done", file=sys.stderr)


def main():
    options = arguments()
    if options.rounds < 1:
        sys.exit("bench: --rounds must be at least 1")
    try:
        outcome.check_host(options.agents, outcome.agents_home())
    except outcome.Skip as reason:
        sys.exit(f"bench: skipped: {reason}")
    # As in run.py: what is measured works in memory where it can, runs are stored on the usual file system.
    memory = bench.MEMORY if os.access(bench.MEMORY, os.W_OK) else None
    assure = options.assure.resolve(strict=True)
    with tempfile.TemporaryDirectory(prefix="assure-bench-") as home, \
            outcome.Bench(assure, options.agents.resolve(), outcome.agents_home().resolve(), False, memory) as runs:
        runs.environment["ASSURE_HOME"] = str(pathlib.Path(home) / "runs")
        clock = cpu_clock(pathlib.Path(home))
        wraps = [(name, wrap) for name, wrap in bench.columns(assure, options.programs.resolve(), f"{home}/strace.log")
                 if name != "filter alone"]
        if options.columns:
            wraps = [(name, wrap) for name, wrap in wraps if name in ["native"] + options.columns.split(",")]
        try:
            results = list(measured(options, runs, wraps, clock))
        finally:
            clock.close()
    if not results:
        sys.exit("bench: no agent to measure")
    text = report(results, [name for name, _ in wraps], options.rounds, clock)
    print(text)
    if options.write:
        (HERE / "AGENTS.md").write_text(text, encoding="utf-8")
    if any(len(times) < len(wraps) for _, times in results):
        sys.exit("bench: some runs failed")


if __name__ == "__main__":
    main()
