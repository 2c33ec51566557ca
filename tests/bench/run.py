#!/usr/bin/env python3
"""What supervision costs: workloads run natively and under each supervisor, in interleaved rounds.

Ratios are to a control of the same round, because absolute times say more about the machine and its other guests than
about the program. The interval is a bootstrap of the median of the rounds' ratios.
"""
import argparse
import datetime
import os
import pathlib
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import workloads

HERE = pathlib.Path(__file__).resolve().parent
RESAMPLES = 2000
# Upper end of the interval up to which a difference does not count (the project's rule for "as fast as").
NOT_DISTINGUISHABLE = 1.10
LIMIT_SECONDS = 300
MEMORY = "/dev/shm"
TO_FILTER = ["bare changes", "assure changes", "bare reads", "assure reads"]


# What was asked for: workload, column, its control, the limit of the median ratio, and the column that does as little as can
# be done for the same knowledge. Where that one is above the limit too, the limit asks for what a supervisor cannot give.
LIMITS = [
    ("open for reading", "assure reads", "bare reads", 1.5, None),
    ("open for writing", "assure changes", "bare changes", 1.8, None),
    ("mkdir", "assure changes", "bare changes", 1.8, None),
    ("rename", "assure changes", "bare changes", 1.8, None),
    ("spawn", "assure changes", "native", 1.15, "checked changes"),
    *((name, "assure changes", "filter alone", NOT_DISTINGUISHABLE, "checked changes")
      for name in ("git", "make", "node", "find", "sqlite")),
    *((name, "assure reads", "bare reads", 1.2 if name == "make" else 1.1, "checked reads")
      for name in ("git", "make", "node", "find", "sqlite")),
    ("tar", "assure changes", "bare changes", 1.25, None),
    ("tar", "assure changes", "strace", 0.7, None),
]


class Failed(Exception):
    pass


def columns(assure, programs, log):
    """Name, and how a command is wrapped. The first one is the control."""
    bare = str(programs / "bare_supervisor")
    found = [("native", lambda command: command),
             ("filter alone", lambda command: [bare, "--lens", "reads", "--filter-alone", "--", *command])]
    for lens in ("changes", "reads"):
        found.append((f"bare {lens}", lambda command, lens=lens: [bare, "--lens", lens, "--", *command]))
    if shutil.which("strace"):
        calls = subprocess.run([bare, "--lens", "reads", "--list"], check=True, capture_output=True, text=True)
        traced = "trace=" + ",".join("?" + name for name in calls.stdout.split())
        strace = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", str(log), "-e", traced, "--"]
        found.append(("strace", lambda command: [*strace, *command]))
    for lens in ("changes", "reads"):
        trace = [str(assure), "trace", "--quiet", "--lens", lens, "--"]
        found.append((f"assure {lens}", lambda command, trace=trace: [*trace, *command]))
    return found


def checked_columns(programs):
    """The bare supervisor that also stops at each exec and asks what was put in place: the least that this costs."""
    bare = str(programs / "bare_supervisor")
    return [(f"checked {lens}", lambda command, lens=lens: [bare, "--lens", lens, "--exec-check", "--", *command])
            for lens in ("changes", "reads")]


def measure(workload, command, place, environment):
    """Seconds of one run in a fresh copy of the workload's folder."""
    folder = place / "work"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    workload.prepare(folder)
    start = time.monotonic()
    try:
        done = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=LIMIT_SECONDS, check=False)
    except subprocess.TimeoutExpired as problem:
        raise Failed(f"no end after {LIMIT_SECONDS} s") from problem
    seconds = time.monotonic() - start
    if done.returncode != 0:
        tail = done.stderr.decode(errors="replace").strip().splitlines()[-3:]
        raise Failed(f"exit status {done.returncode}: {' | '.join(tail)}")
    return seconds


def ratio(values, controls, randomness):
    """Median of the rounds' ratios, and its 95% interval."""
    each = [value / control for value, control in zip(values, controls)]
    medians = sorted(statistics.median(randomness.choices(each, k=len(each))) for _ in range(RESAMPLES))
    return statistics.median(each), medians[int(RESAMPLES * 0.025)], medians[int(RESAMPLES * 0.975) - 1]


def run_rounds(workload, wraps, options, environment, place):
    """Seconds by column, one entry a round; a column that fails is left out with its reason."""
    times = {name: [] for name, _ in wraps}
    failures = {}
    # The first round warms caches and is not counted.
    for number in range(options.rounds + 1):
        for name, wrap in wraps:
            if name in failures:
                continue
            try:
                seconds = measure(workload, wrap(workload.command), place, environment)
            except Failed as problem:
                failures[name] = str(problem)
                print(f"bench: {workload.name}: {name}: {problem}", file=sys.stderr)
                continue
            if number > 0:
                times[name].append(seconds)
        shutil.rmtree(environment["ASSURE_HOME"], ignore_errors=True)
    return {name: values for name, values in times.items() if name not in failures}


def cell(values, control, randomness):
    if values is None or control is None:
        return "failed"
    middle, low, high = ratio(values, control, randomness)
    mark = " ≈" if high <= NOT_DISTINGUISHABLE else ""
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]{mark}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join(["---"] * len(head)) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def limits(results):
    """A row for each limit: what was measured, and what the floor has."""
    times = {workload.name: each for workload, each in results}
    randomness = random.Random(1)
    rows = []
    for name, column, control, limit, floor in LIMITS:
        measured = times.get(name, {})
        if column not in measured or control not in measured:
            continue
        middle = ratio(measured[column], measured[control], randomness)[0]
        bare = ratio(measured[floor], measured[control], randomness)[0] if floor in measured else None
        verdict = "met" if middle <= limit else "**not met**" if bare is None or bare <= limit else "**below the floor**"
        rows.append([name, column, control, f"{limit:.2f}", f"{middle:.2f}", f"{bare:.2f}" if bare else "", verdict])
    return rows


def report(results, names, rounds):
    randomness = random.Random(1)
    to_native, to_filter, to_bare = [], [], []
    for workload, times in results:
        native = times.get("native")
        seconds = f"{statistics.median(native):.3f} s" if native else "failed"
        to_native.append([workload.name, seconds] + [cell(times.get(name), native, randomness) for name in names[1:]])
        to_filter.append([workload.name] + [
            cell(times.get(name), times.get("filter alone"), randomness) for name in TO_FILTER])
        to_bare.append([workload.name] + [
            cell(times.get(f"assure {lens}"), times.get(f"{control} {lens}"), randomness)
            for control in ("bare", "checked") for lens in ("changes", "reads")])
    machine = f"Linux {platform.release()}, {platform.machine()}, {os.cpu_count()} cores"
    return "\n".join([
        "# What supervision costs",
        "",
        f"{machine}; {datetime.date.today().isoformat()}; {rounds} interleaved rounds. Made by `contrib/x bench --write`.",
        "",
        "Wall-clock time as a multiple of the control's in the same round: median of the rounds, and the bootstrap 95%",
        f"interval of that median. ≈: not distinguishable (the interval ends at or below {NOT_DISTINGUISHABLE:.2f}).",
        "Only ratios mean something on another machine. The commands work on a file system in memory; runs are stored on",
        "the usual one.",
        "",
        "## Over the native run",
        "",
        *table(["workload", "native"] + names[1:], to_native),
        "",
        "`filter alone`: the filter of the lens `reads`, nobody asked. `bare`: its calls notified, each let go on without",
        "a look. `checked`: the same, but each exec is stopped before the new program's first instruction, and asked for",
        "its image and arguments. `strace`: `strace -f --seccomp-bpf` on the same calls, its output to a file.",
        "",
        "## Over the filter alone",
        "",
        *table(["workload", *TO_FILTER], to_filter),
        "",
        "## Over the bare supervisor of the same lens",
        "",
        *table(["workload", "assure changes", "assure reads", "changes, over checked", "reads, over checked"], to_bare),
        "",
        "## Limits",
        "",
        "Medians beside what was asked for. The floor is the bare supervisor with checked execs, which learns what must be",
        "learned of an exec and does nothing else: a limit below it can be met by nobody who stops these calls.",
        "",
        *table(["workload", "of", "over", "limit", "measured", "floor", ""], limits(results)),
        "",
        "## Workloads",
        "",
        *(f"- `{workload.name}`: {workload.meaning}" for workload, _ in results),
        "",
    ])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assure", required=True, type=pathlib.Path)
    parser.add_argument("--programs", required=True, type=pathlib.Path, help="folder of the built programs")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", action="append", default=[], metavar="WORKLOAD")
    parser.add_argument("--columns", metavar="NAME,…", help="only these, and the native control")
    parser.add_argument("--write", action="store_true", help="write RESULTS.md")
    return parser.parse_args()


def main():
    options = arguments()
    if options.rounds < 1:
        sys.exit("bench: --rounds must be at least 1")
    programs = options.programs.resolve()
    # The commands work in memory where there is such a place, because a disk's own pace would hide what is measured;
    # runs are stored where they would be.
    memory = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="assure-bench-", dir=memory) as temporary, \
            tempfile.TemporaryDirectory(prefix="assure-bench-") as home:
        place = pathlib.Path(temporary)
        environment = {**os.environ, "ASSURE_HOME": str(pathlib.Path(home) / "runs"), "HOME": home, "LC_ALL": "C",
                       "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        wraps = columns(options.assure.resolve(), programs, place / "strace.log") + checked_columns(programs)
        if options.columns:
            wanted = ["native"] + options.columns.split(",")
            wraps = [(name, wrap) for name, wrap in wraps if name in wanted]
        results = []
        for workload in workloads.all_of_them(programs):
            if options.only and workload.name not in options.only:
                continue
            if missing := [tool for tool in workload.tools if not shutil.which(tool)]:
                print(f"bench: {workload.name}: skipped, no {', '.join(missing)}", file=sys.stderr)
                continue
            results.append((workload, run_rounds(workload, wraps, options, environment, place)))
            print(f"bench: {workload.name}: done", file=sys.stderr)
    if not results:
        sys.exit("bench: no such workload")
    text = report(results, [name for name, _ in wraps], options.rounds)
    print(text)
    if options.write:
        (HERE / "RESULTS.md").write_text(text, encoding="utf-8")
    if any(len(times) < len(wraps) for _, times in results):
        sys.exit("bench: some runs failed")


if __name__ == "__main__":
    main()
