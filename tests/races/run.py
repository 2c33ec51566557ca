#!/usr/bin/env python3
"""Runs the programs of this folder, and compares what was recorded of their calls with what the calls did.

    run.py --assure PATH --programs DIR [--rounds N] [--exec-rounds N] [--slow-rounds N] [--full]
           [--only KIND]... [--results perform|verify|none] [--as root|user] [--keep]

In each program somebody changes the arguments of a call, or what they mean, while the call is made, and the program
finds out from the world what the call did (race.h). It runs alone first: an outcome that comes up in less than 1 % of
the rounds there is a failure, because then nothing raced. Then it runs under `assure trace`, and there is a row for
each call: how often each outcome came up, and how many records say what the call did, say something else, or do not say
it. One wrong record is a failure, and so is a call with more than 5 % unknown ones. While calls are stalled,
another process has to get on.
"""
import argparse
import collections
import concurrent.futures
import ctypes
import errno
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SKIP = 77
LEAST_SHARE = 0.01
MOST_UNKNOWN = 0.05
LEAST_PROGRESS = 100
SHOWN = 2
BATCH = 20000  # rounds of one run: all its records are in memory at once
STALLED_AT_ONCE = 50
STALL_MS = {"alone": 50, "traced": 2000}

# `share`: how much of the rounds of its group (`rounds`, `exec`, `slow`) are this kind's.
Kind = collections.namedtuple("Kind", "name program group share")
KINDS = (
    Kind("thread", "race_names", "rounds", 1),
    Kind("peer", "race_names", "rounds", 1),
    Kind("shared", "race_names", "rounds", 1),
    Kind("symlink", "race_names", "rounds", 0.5),
    Kind("symlink-file", "race_swap", "rounds", 0.5),
    Kind("parent", "race_names", "rounds", 1),
    Kind("dirfd", "race_names", "rounds", 1),
    Kind("sockaddr", "race_sockets", "rounds", 1),
    Kind("exec-peer", "race_exec", "exec", 0.34),
    Kind("exec-shared", "race_exec", "exec", 0.33),
    Kind("exec-thread", "race_exec", "exec", 0.33),
    Kind("userfaultfd", "race_fault", "slow", 1),
    Kind("fuse", "race_fuse", "slow", 1),
)
COUNTS = {"rounds": (10 ** 4, 10 ** 6), "exec": (10 ** 3, 10 ** 5), "slow": (10 ** 2, 10 ** 3)}


def beside(name):
    """A module of tests/e2e."""
    spec = importlib.util.spec_from_file_location(f"e2e_{name[:-3]}", HERE.parent / "e2e" / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


e2e = beside("run.py")  # has the two users, and ends what a program leaves behind
effects = beside("effects.py")  # looks into records
ABSENT, field = effects.ABSENT, effects.field


# Comparison


def matches(value, wanted):
    if wanted is None:
        return value is ABSENT
    return value in wanted if isinstance(wanted, list) else value == wanted


def judge(line, effect):
    """(`right`, `wrong` or `unknown`, why)."""
    if effect is None:
        return "wrong", "there is no record"
    result = effect["result"]
    if result["state"] == "unknown":
        return "unknown", ""
    seen = errno.errorcode.get(line["errno"], str(line["errno"])) if line["errno"] else ""
    if (result["state"] == "ok") == bool(seen) or result.get("errno", "") != seen:
        return "wrong", f"the call's result was {seen or 'ok'}, recorded {json.dumps(result)}"
    undecided = False
    for key, wanted in line["is"].items():
        name = key.rstrip("?")
        value = field(effect, name)
        if value is ABSENT and wanted is not None:
            undecided |= name == key
        elif not matches(value, wanted):
            return "wrong", f"{name} was {json.dumps(wanted)}, recorded {json.dumps(value)}"
    return ("unknown", "") if undecided else ("right", "")


class Row:
    """One call of one kind."""

    def __init__(self):
        self.alone, self.traced = collections.Counter(), collections.Counter()
        self.verdicts, self.examples = collections.Counter(), []

    def count(self, line, effect):
        self.traced[line["outcome"]] += 1
        verdict, why = judge(line, effect)
        self.verdicts[verdict] += 1
        if verdict == "wrong" and len(self.examples) < SHOWN:
            self.examples.append(f"{why}: {json.dumps(effect, ensure_ascii=False)}")

    def problems(self):
        total, every = sum(self.traced.values()), sum(self.alone.values())
        found = []
        if self.verdicts["wrong"]:
            found.append(f"{self.verdicts['wrong']} wrong")
        if not total:
            found.append("no rounds")
        if self.verdicts["unknown"] > MOST_UNKNOWN * total:
            found.append(f"{100 * self.verdicts['unknown'] / total:.0f} % unknown")
        decided = [outcome for outcome in self.alone if outcome != "either"]
        if len(decided) < 2 or any(self.alone[outcome] < LEAST_SHARE * every for outcome in decided):
            found.append("nothing races")
        return found


def shares(counter):
    total = sum(counter.values())
    return " ".join(f"{outcome} {100 * counter[outcome] / total:.0f}%" for outcome in sorted(counter)) if total else "-"


# Running


class Runner:
    """All for one user."""

    def __init__(self, stage, identity, arguments):
        self.stage, self.identity, self.arguments = stage, identity, arguments
        self.failures, self.skips = 0, 0

    def folder(self, kind, name, fast=True):
        """Fresh; in memory where that can be, since some file systems take most of a millisecond for a new file."""
        memory = pathlib.Path("/dev/shm")
        parent = memory if fast and os.access(memory, os.W_OK | os.X_OK) else self.stage
        place = pathlib.Path(tempfile.mkdtemp(prefix=f"assure-race-{kind}-{name}-", dir=parent))
        place.chmod(0o755)
        self.identity.own(place)
        return place

    def execute(self, command, place, home):
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C",
                       "HOME": str(home), "ASSURE_HOME": str(home / "state"),
                       "PROGRAMS": str(self.stage / "bin")}
        environment.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        with open(home / "output", "w+b") as output, open(home / "errors", "w+b") as errors:
            child = subprocess.Popen(command, cwd=place, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                     stderr=errors, umask=0o022, **self.identity.arguments())
            try:
                status = child.wait(self.arguments.limit)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
                status = f"not done after {self.arguments.limit} s"
            output.seek(0)
            errors.seek(0)
            lines = output.read().decode(errors="replace").splitlines()
            return status, lines, errors.read(4096).decode(errors="replace").strip()

    def lines_of(self, command, place, home):
        """What the program said, each line parsed; and a reason when it did not come to its end."""
        status, lines, errors = self.execute(command, place, home)
        reason = "" if status in (0, SKIP) else f"ended with {status}: {errors}"
        parsed = []
        for line in lines:
            try:
                parsed.append(json.loads(line))
            except ValueError:
                reason = reason or f"said {line[:100]!r}"
        return parsed, reason

    def effects(self, home, wanted):
        """The records of the calls that are asked for, in their order: (`tid` or `pid`, number, call) → records."""
        found = collections.defaultdict(collections.deque)
        environment = {"ASSURE_HOME": str(home / "state"), "HOME": str(home), "LC_ALL": "C"}
        command = [str(self.stage / "bin/assure"), "effects", "last", "--json"]
        with subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              **self.identity.arguments()) as reader:
            for line in reader.stdout:
                effect = json.loads(line)
                for who in ("tid", "pid"):
                    key = (who, effect["process"].get(who), effect.get("syscall"))
                    if key in wanted:
                        found[key].append(effect)
        return found, f"assure effects ended with {reader.returncode}" if reader.returncode else ""

    def commands(self, kind, rounds):
        """The program alone, and traced."""
        trace = [str(self.stage / "bin/assure"), "trace", "--quiet", "--lens", "changes"]
        if self.arguments.results:
            trace += ["--results", self.arguments.results]
        for how, begin in (("alone", []), ("traced", [*trace, "--"])):
            command = [*begin, str(self.stage / "bin" / kind.program), kind.name, str(rounds)]
            if kind.group == "slow":
                command += [str(STALLED_AT_ONCE), str(STALL_MS[how])]
            yield how, command

    def batch(self, kind, rounds, rows):
        """One run alone and one traced. Returns what is wrong about them as a whole, and what cannot be tested."""
        problems, skips = [], []
        for how, command in self.commands(kind, rounds):
            place = self.folder(kind.name, how, kind.group == "rounds")
            home = self.folder(kind.name, "home")
            try:
                lines, reason = self.lines_of(command, place, home)
                problems += [f"{how}: {reason}"] if reason else []
                skips += [f"{line['call']}: {line['skip']}" for line in lines if "skip" in line]
                calls = [line for line in lines if "is" in line]
                if how == "alone":
                    for line in calls:
                        rows[line["call"]].alone[line["outcome"]] += 1
                else:
                    problems += self.compare(home, calls, rows)
                    problems += [f"only {line['progress']} calls of another process in a stall" for line in lines
                                 if line.get("progress", LEAST_PROGRESS) < LEAST_PROGRESS]
            finally:
                if self.arguments.keep:
                    print(f"kept: {place} {home}")
                else:
                    subprocess.run(["umount", "-l", place / "mount"], check=False, stderr=subprocess.DEVNULL)
                    shutil.rmtree(place, ignore_errors=True)
                    shutil.rmtree(home, ignore_errors=True)
        return problems, skips

    def compare(self, home, calls, rows):
        keys = [("tid", line["tid"], line["syscall"]) if "tid" in line else ("pid", line["pid"], line["syscall"])
                for line in calls]
        if not keys:
            return []
        found, problem = self.effects(home, set(keys))
        for line, key in zip(calls, keys):
            rows[line["call"]].count(line, found[key].popleft() if found[key] else None)
        left = sum(len(records) for records in found.values())
        return [text for text in (problem, f"{left} records too many" if left else "") if text]

    def kind(self, kind):
        rounds = max(1, round(self.arguments.counts[kind.group] * kind.share))
        rows, problems, skips = collections.defaultdict(Row), [], set()
        start = time.monotonic()
        while rounds > 0 and not problems:
            more, skipped = self.batch(kind, min(rounds, BATCH), rows)
            problems += more
            skips |= set(skipped)
            rounds -= BATCH
        return rows, problems, sorted(skips), time.monotonic() - start

    def report(self, kind, rows, problems, skips, took):
        for call, row in rows.items():
            bad = row.problems()
            counts = "".join(f"{row.verdicts[verdict]:8}" for verdict in ("right", "wrong", "unknown"))
            print(f"{kind.name:12} {call:16} {shares(row.alone):32} {shares(row.traced):32}{counts}"
                  + (f"  FAIL {', '.join(bad)}" if bad else ""))
            for example in row.examples if self.arguments.examples else ():
                print(f"    {example}")
            self.failures += bool(bad)
        for problem in problems:
            print(f"{kind.name:12} FAIL {problem}")
        for reason in skips:
            print(f"{kind.name:12} skip: {reason}")
        if not rows and not skips and not problems:
            problems = ["nothing was run"]
        self.failures += len(problems)
        self.skips += len(skips)
        print(f"{kind.name:12} ({took:.1f} s)", flush=True)

    def run(self, kinds):
        print(f"-- as {self.identity.name}")
        print(f"{'kind':12} {'call':16} {'alone':32} {'traced':32}{'right':>8}{'wrong':>8}{'unknown':>8}")
        # The slow ones sleep most of the time, so that the others can run meanwhile.
        with concurrent.futures.ThreadPoolExecutor() as pool:
            slow = {kind: pool.submit(self.kind, kind) for kind in kinds if kind.group == "slow"}
            for kind in kinds:
                self.report(kind, *(slow[kind].result() if kind in slow else self.kind(kind)))


def staged(stage, arguments):
    """A copy of what is run that an ordinary user can read, wherever the tree lies."""
    (stage / "bin").mkdir()
    shutil.copy2(arguments.assure, stage / "bin/assure")
    for program in arguments.programs.iterdir():
        if program.name.startswith("race_") and os.access(program, os.X_OK):
            shutil.copy2(program, stage / "bin" / program.name)
    subprocess.run(["chmod", "-R", "a+rX", stage], check=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assure", type=pathlib.Path, required=True)
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    for group, (usual, _) in COUNTS.items():
        name = "--rounds" if group == "rounds" else f"--{group}-rounds"
        parser.add_argument(name, dest=group, type=int, help=f"for each kind, over all its calls ({usual})")
    parser.add_argument("--full", action="store_true", help="a hundred times as many rounds, and ten times stalls")
    parser.add_argument("--only", action="append", choices=[kind.name for kind in KINDS])
    parser.add_argument("--results", choices=("perform", "verify", "none"))
    parser.add_argument("--as", dest="identity", choices=("root", "user"))
    parser.add_argument("--limit", type=float, help="seconds that one run of a program may take")
    parser.add_argument("--examples", action="store_true", help="print some of the wrong records")
    parser.add_argument("--keep", action="store_true", help="keep the folders of the runs, and say where")
    arguments = parser.parse_args()
    arguments.counts = {group: getattr(arguments, group) or counts[arguments.full]
                        for group, counts in COUNTS.items()}
    # A run of a batch takes seconds; this only ends one that hangs.
    arguments.limit = arguments.limit or 180 + arguments.counts["slow"] / STALLED_AT_ONCE * 20
    return arguments


def main():
    arguments = parse()
    if not arguments.assure.is_file():
        sys.exit(f"{arguments.assure}: not there; build first")
    if ctypes.CDLL(None, use_errno=True).prctl(e2e.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        sys.exit("cannot become a subreaper")
    kinds = [kind for kind in KINDS if not arguments.only or kind.name in arguments.only]
    stage = pathlib.Path(tempfile.mkdtemp(prefix="assure-races-"))
    failures, skips = 0, 0
    try:
        stage.chmod(0o755)
        staged(stage, arguments)
        for identity in e2e.identities():
            if arguments.identity in (None, identity.name):
                runner = Runner(stage, identity, arguments)
                runner.run(kinds)
                failures, skips = failures + runner.failures, skips + runner.skips
    finally:
        e2e.end_all()
        shutil.rmtree(stage, ignore_errors=True)
    print(f"{failures} failures, {skips} skipped")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
