#!/usr/bin/env python3
"""Runs every means of escape alone and under `assure trace`, and looks for the records that are owed for it.

    run.py --assure BIN --programs DIR [--only NAME|NUMBER]... [--as root|user] [--lens L] [--list] [--table] [--keep]

A means is a program in means/ and a row in rows_*.py. The program runs in a fresh folder, which is also $EV_DIR, and
says on standard output what it really did, a line `did VERB DETAIL...` for each thing; what differs from run to run is
`name~value`, and what must not is `name=value`. Status 77 with a reason on standard error: the host cannot do it.

Status, lines and the folder afterwards must be the same alone and traced, unless the row permits only a refusal. Then
all that the row expects must be recorded, and nothing that it excludes. --table prints the outcomes as a table, too.
"""
import argparse
import ctypes
import dataclasses
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

import means as model

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent.parent / "tests"
SKIP = 77
LENSES = ("changes", "reads", "all")
RUN_NAME = "evasion"
STRAGGLERS_S = 20
SHOWN = 12


def beside(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


e2e = beside("e2e_run", TESTS / "e2e/run.py")  # has the two users, and ends what a program leaves behind
equality = beside("equality_run", TESTS / "equality/run.py")  # has what is compared of a folder


def rows():
    found = []
    for name in ("rows_first", "rows_second", "rows_more"):
        path = HERE / f"{name}.py"
        if path.is_file():
            found += beside(name, path).ROWS
    for row in found:
        row.check()
    for key in ("number", "name"):
        values = [getattr(row, key) for row in found]
        twice = {value for value in values if values.count(value) > 1}
        if twice:
            sys.exit(f"more than one row has the {key} {', '.join(map(str, twice))}")
    return sorted(found, key=lambda row: row.number)


@dataclasses.dataclass
class Run:
    """What one run of a program left."""
    status: object
    lines: list
    facts: dict
    folder: list
    errors: str

    def steady(self):
        return [re.sub(r"\b(\w+)~\S*", r"\1~", line) for line in self.lines]


class Outside:
    """The helper outside the tree, for the time of one run."""

    def __init__(self, row, place, identity, stage):
        self.facts, self.process = {}, None
        if not row.outside:
            return
        folder = place / "outside"
        folder.mkdir(mode=0o755)
        identity.own(folder)
        name = f"evasion-{os.getpid()}-{row.name}"
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen(["/usr/bin/python3", stage / "outside.py", name, folder, *row.outside_paths],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                        start_new_session=True, **identity.arguments())
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            sys.exit("outside.py did not come up")
        self.facts = json.loads(line)

    def environment(self):
        return {f"EV_{name.upper()}": str(value).removeprefix("@") for name, value in self.facts.items()}

    def end(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()


class Runner:
    """All for one user."""

    def __init__(self, stage, identity, arguments):
        self.stage, self.identity, self.arguments = stage, identity, arguments

    def command(self, row, facts, traced):
        found = [path for path in (self.stage / "bin" / f"{row.program or row.name}{end}" for end in ("", ".sh", ".py"))
                 if path.is_file()]
        if not found:
            return None
        words = [str(found[0]), *(facts.fill(word) for word in row.arguments)]
        if traced:
            lens = max(row.lens, self.arguments.lens or "reads", key=LENSES.index)
            words = [str(self.stage / "bin/assure"), "trace", "--quiet", "--name", RUN_NAME, "--lens", lens,
                     *row.options, "--", *words]
        for number, what in row.inherit:
            opened = f"<>/dev/tcp/127.0.0.1/{facts['outside_tcp']}" if what == "tcp" else f">>'{facts.fill(what)}'"
            words = ["bash", "-c", f'exec {number}{opened}; exec "$@"', "bash", *words]
        return words

    def once(self, row, place, traced):
        """One run, in place/work. Returns it, or what is wrong."""
        work = place / "work"
        work.mkdir(mode=0o755)
        self.identity.own(work)
        outside = Outside(row, place, self.identity, self.stage)
        facts = model.Facts(dir=str(work), place=str(place), **outside.facts)
        try:
            command = self.command(row, facts, traced)
            if command is None:
                return None, "the program is not built"
            run = self.wait(row, command, place, facts, outside)
        finally:
            left = self.stragglers(outside)
            outside.end()
            e2e.end_all()
        return run, f"left behind: {e2e.shown(left)}" if left else ""

    def wait(self, row, command, place, facts, outside):
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "HOME": str(place / "home"),
            "ASSURE_HOME": str(place / "home/state"), "EV_DIR": facts["dir"], "EV_PLACE": facts["place"],
            "EV_ASSURE": str(self.stage / "bin/assure"), **outside.environment(),
        }
        with open(place / "stdin", "w+", encoding="utf-8") as text, open(place / "stdout", "w+b") as output, \
                open(place / "stderr", "w+b") as errors:
            text.write(row.stdin)
            text.seek(0)
            child = subprocess.Popen(command, cwd=facts["dir"], env=environment, stdin=text, stdout=output,
                                     stderr=errors, start_new_session=True, umask=0o022, **self.identity.arguments())
            try:
                status = child.wait(row.limit * self.arguments.slower)
            except subprocess.TimeoutExpired:
                status = f"not done after {row.limit * self.arguments.slower:.0f} s"
            self.stragglers(outside)
            output.seek(0)
            errors.seek(0)
            lines = [line for line in output.read().decode(errors="replace").splitlines() if line.startswith("did ")]
            for line in lines:
                for name, value in re.findall(r"\b(\w+)[=~](\S+)", line):
                    if facts.setdefault(name, value) != value:
                        lines.append(f"did name {name} twice")
            return Run(status, lines, facts, equality.listing(facts["dir"]),
                       errors.read().decode(errors="replace").strip())

    def stragglers(self, outside):
        """Who is still there some time after the program: a daemon may have something to do."""
        end = time.monotonic() + STRAGGLERS_S
        while True:
            e2e.reap()
            ours = {os.getpid(), outside.process.pid if outside.process else 0}
            left = [row for row in e2e.descendants() if row[0] not in ours and row[2] != "Z"]
            if not left or time.monotonic() > end:
                return left
            time.sleep(0.02)

    def records(self, place):
        """All that was recorded of the run."""
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": str(place / "home"),
                       "ASSURE_HOME": str(place / "home/state")}

        def said(*words):
            done = subprocess.run([self.stage / "bin/assure", *words], stdin=subprocess.DEVNULL, env=environment,
                                  capture_output=True, check=False, **self.identity.arguments())
            if done.returncode:
                raise ValueError(f"assure {' '.join(words)}: {done.returncode}: {done.stderr.decode()[:300]}")
            return done.stdout.decode()

        shown = json.loads(said("show", RUN_NAME, "--json"))
        effects = [json.loads(line) for line in said("effects", RUN_NAME, "--json").splitlines()]
        store = place / "home/state/runs" / shown["id"] / "run.sqlite"
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as records:
            start = records.execute("SELECT json FROM records WHERE type = 'assure.run/1'").fetchone()
        records.close()
        return model.Records(effects, shown, json.loads(start[0]) if start else {})

    def compare(self, row, alone, traced):
        """What a program could tell."""
        if row.outcome == "refused+recorded":
            return [] if traced.status == row.status else \
                [f"status {traced.status} when refused, {row.status} is due: {traced.errors[-300:]}"]
        bad = []
        if alone.status != traced.status:
            bad.append(f"status {alone.status} alone, {traced.status} traced: {traced.errors[-300:]}")
        parts = [("lines", alone.steady(), traced.steady())]
        if not row.folder_differs:
            parts.append(("folder", alone.folder, traced.folder))
        for what, left, right in parts:
            found = equality.differences(left, right)
            bad += [f"{what} differ:\n" + "\n".join(found[:2 * SHOWN])] if found else []
        return bad

    def owed(self, row, traced, records):
        """(What is missing or too much, the outcome seen)."""
        bad, found = [], []
        for wanted in row.expects:
            reason, some = records.miss(wanted, traced.facts)
            bad += [reason] if reason else []
            found += [(wanted, one) for one in some]
        for unwanted in row.absent:
            if isinstance(unwanted, model.Gap):
                some = [] if records.miss(unwanted, traced.facts)[0] else ["a gap"]
            else:
                some = [model.brief(e) for e in records.found(unwanted, traced.facts)]
            bad += [f"must not be there: {some[0]}"] if some else []
        seen = model.outcome_of(found)
        if not bad and seen != row.outcome:
            bad.append(f"the outcome is {seen}")
        return bad, "missed" if bad else seen

    def means(self, row):
        """(word, outcome seen, reasons)."""
        if row.identity not in ("any", self.identity.name):
            return "skip", "-", [f"only as {row.identity}"]
        place = pathlib.Path(tempfile.mkdtemp(prefix=f"{row.name}-", dir=self.stage))
        place.chmod(0o755)
        (place / "home").mkdir(mode=0o700)
        self.identity.own(place / "home")
        self.identity.own(place)
        try:
            return self.judged(row, place)
        finally:
            if self.arguments.keep:
                print(f"kept: {place}")
            else:
                equality.remove(place)

    def judged(self, row, place):
        alone, problem = self.once(row, place, False)
        if problem:
            return "FAIL", "-", [f"alone: {problem}"]
        if alone.status == SKIP:
            return "skip", "-", [alone.errors.splitlines()[-1] if alone.errors else "(the program did not say why)"]
        if alone.status != row.status or not alone.lines:
            return "FAIL", "-", [f"alone: status {alone.status}, {len(alone.lines)} lines: {alone.errors[-500:]}"]
        equality.remove(place / "work")
        shutil.rmtree(place / "outside", ignore_errors=True)
        traced, problem = self.once(row, place, True)
        if problem:
            return "FAIL", "-", [f"traced: {problem}"]
        bad = self.compare(row, alone, traced)
        bad += [f"nothing raced {how}: {name} is 0" for how, run in (("alone", alone), ("traced", traced))
                for name in row.races if not int(run.facts.get(name, 0))]
        try:
            missed, seen = self.owed(row, traced, self.records(place))
        except KeyError as name:
            missed, seen = [f"the program did not say {name}"], "missed"
        except ValueError as problem:
            missed, seen = [str(problem)], "missed"
        bad += missed
        return ("FAIL" if bad else "ok"), seen, bad


def staged(stage, arguments):
    """A copy of what is run that an ordinary user can read, wherever the tree lies."""
    (stage / "bin").mkdir()
    shutil.copy2(arguments.assure, stage / "bin/assure")
    shutil.copy2(HERE / "outside.py", stage / "outside.py")
    scripts = [path for path in (HERE / "means").iterdir() if path.suffix in (".sh", ".py")]
    for program in [*arguments.programs.iterdir(), *scripts]:
        if program.is_file() and (os.access(program, os.X_OK) or program in scripts):
            shutil.copy2(program, stage / "bin" / program.name)
            (stage / "bin" / program.name).chmod(0o755)
    subprocess.run(["chmod", "-R", "a+rX", stage], check=True)


def print_table(chosen, outcomes):
    names = sorted({name for by_name in outcomes.values() for name in by_name})
    print(f"\n| # | means | kind | permitted | {' | '.join(f'as {name}' for name in names)} |")
    print("|---" * (4 + len(names)) + "|")
    for row in chosen:
        seen = outcomes[row.number]
        print(f"| {row.number} | {row.name} | {row.kind} | {row.outcome} | "
              f"{' | '.join(seen.get(name, '-') for name in names)} |")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assure", type=pathlib.Path)
    parser.add_argument("--programs", type=pathlib.Path)
    parser.add_argument("--only", action="append", default=[], metavar="NAME|NUMBER|FROM-TO")
    parser.add_argument("--as", dest="identity", choices=("root", "user"))
    parser.add_argument("--lens", choices=LENSES, help="at least this one (default: reads)")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--keep", action="store_true", help="keep the folders of the runs, and say where")
    parser.add_argument("--slower", type=float, default=1, help="multiplies every time limit")
    arguments = parser.parse_args()
    if not arguments.list and not (arguments.assure and arguments.programs):
        parser.error("--assure and --programs are needed")
    return arguments


def chosen_of(every, words):
    chosen = []
    for word in words:
        span = re.fullmatch(r"(\d+)(?:-(\d+))?", word)
        if span:
            first, last = int(span[1]), int(span[2] or span[1])
            some = [row for row in every if first <= row.number <= last]
        else:
            some = [row for row in every if row.name == word]
        if not some:
            sys.exit(f"no such means: {word}")
        chosen += [row for row in some if row not in chosen]
    return chosen or every


def main():
    arguments = parse()
    chosen = chosen_of(rows(), arguments.only)
    if arguments.list:
        for row in chosen:
            print(f"{row.number:3} {row.name:20} {row.kind:20} {row.outcome:16} {row.note}".rstrip())
        return 0
    if not arguments.assure.is_file():
        sys.exit(f"{arguments.assure}: not there; build first")
    if ctypes.CDLL(None, use_errno=True).prctl(e2e.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        sys.exit("cannot become a subreaper")
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    counts, outcomes = {"ok": 0, "FAIL": 0, "skip": 0}, {row.number: {} for row in chosen}
    stage = pathlib.Path(tempfile.mkdtemp(prefix="assure-evasion-"))
    try:
        stage.chmod(0o755)
        staged(stage, arguments)
        for identity in e2e.identities():
            if arguments.identity not in (None, identity.name):
                continue
            runner = Runner(stage, identity, arguments)
            for row in chosen:
                word, seen, reasons = runner.means(row)
                counts[word] += 1
                outcomes[row.number][identity.name] = word if word == "skip" else seen
                print(f"{word:4} {row.number:3} {row.name:20} {row.kind:20} {row.outcome:16} {seen}"
                      f" (as {identity.name})" + (f": {reasons[0]}" if word == "skip" else ""))
                if word == "FAIL":
                    print("\n".join(f"    | {line}" for reason in reasons for line in reason.split("\n")))
                sys.stdout.flush()
    finally:
        e2e.end_all()
        if not arguments.keep:
            shutil.rmtree(stage, ignore_errors=True)
    if arguments.table:
        print_table(chosen, outcomes)
    print(f"{counts['ok']} as permitted, {counts['FAIL']} not, {counts['skip']} skipped")
    return 1 if counts["FAIL"] or not counts["ok"] else 0


if __name__ == "__main__":
    sys.exit(main())
