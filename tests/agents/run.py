#!/usr/bin/env python3
"""Run real agents against a scripted model, natively and under `assure trace`, and compare.

    run.py --assure BIN [--agents DIR] [--only AGENT] [--scenario NAME] [--repeat N] [--basic] [--keep]

DIR (default: shared/agents beside the checkout) holds run-AGENT.sh and scenarios/AGENT-basic.json; the agents are in
$AGENTS_HOME/npm (default ~/.cache/assure-agents). What is not there is skipped, with the reason.

Each scenario (scenarios.py) runs natively twice, which shows whether the comparison can be trusted, and then traced;
the basic one also in variants: each lens, `--results verify`, `--wait main` (--basic: the basic one alone, without
variants). A traced run must have the native outcome: exit status, output on both streams, what the model was told by
the tools, the workspace, what the hooks were told. Its effects must show each file that the scenario made, and it must
be complete.

Then the records are held against strace, call by call and in both directions: of a separate run, where the names that
vary are made equal (effects.py) and what still differs must have a row in explanations.txt; and of the same run, strace
inside assure. Two runs under strace, compared in the same way, show that what is made equal and explained is what
varies.
"""

import argparse
import collections
import json
import pathlib
import shutil
import subprocess
import sys

import effects as records
import strace
from outcome import Bench, Skip, agents_home, check_host, differences
from scenarios import AGENTS, BASIC_VARIANTS, Variant, scenarios_of

HERE = pathlib.Path(__file__).resolve().parent
COMMAND = "echo hi > out.txt && cat out.txt"


class Report:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def result(self, name, problems, note=""):
        if problems:
            self.failed += 1
            print(f"FAIL {name}", flush=True)
            for problem in problems:
                print(f"  {problem}", flush=True)
        else:
            self.passed += 1
            print(f"ok   {name}{': ' + note if note else ''}", flush=True)

    def skip(self, name, reason):
        self.skipped += 1
        print(f"skip: {name}: {reason}", flush=True)


# What a traced run must have


def no_basic_effect(effects):
    execs = [effect for effect in effects if effect["kind"] == "proc.exec" and records.is_ok(effect)]
    if not any(any(COMMAND in str(argument) for argument in effect.get("argv", ())) for effect in execs):
        yield f"no proc.exec of a shell with {COMMAND!r}"
    if not any(effect.get("argv") == ["cat", "out.txt"] for effect in execs):
        yield "no proc.exec of cat out.txt"


def unmade(effects, outcome, made):
    changed = set()
    for effect in effects:
        if records.changes_files(effect) and records.is_ok(effect):
            changed.update((effect.get("path"), effect.get("to", {}).get("path")))
    return [f"nothing made {name}" for name in made if str(outcome.folder / "work" / name) not in changed]


def missing_effects(bench, run, outcome, made):
    """What the effects of a traced run do not show, though it must have happened."""
    effects = bench.effects(run)
    found = unmade(effects, outcome, made)
    tree = {process["id"] for process in json.loads(bench.ask("tree", run, "--json"))["processes"]}
    strangers = {effect["process"]["id"] for effect in effects} - tree
    if strangers:
        found.append(f"effects of processes that `tree` does not know: {sorted(strangers)}")
    port = int((outcome.folder / "port").read_text())
    if not any(effect["kind"] == "net.connect" and effect.get("peer", {}).get("address") == "127.0.0.1" and
               effect["peer"].get("port") == port for effect in effects):
        found.append(f"no net.connect to 127.0.0.1:{port}")
    # A call that its process did not live to see return (Codex ends with threads at work) has no result.
    last = {}
    for effect in effects:
        if effect["kind"] != "proc.exit":
            last[effect["process"]["tid"]] = effect["seq"]
    unknown = sorted({f"{effect['kind']} by {effect['syscall']} of {effect.get('path')}" for effect in effects
                      if records.is_unknown(effect) and effect["seq"] != last[effect["process"]["tid"]]})
    if unknown:
        found.append(f"changes of files with an unknown result: {', '.join(unknown[:4])}")
    return found


def incomplete(shown, status):
    found = []
    if shown["state"] != "complete" or shown["gaps"]:
        found.append(f"state {shown['state']}, gaps {shown['gaps']}")
    if shown.get("status") != {"code": status}:
        found.append(f"recorded status {shown.get('status')}, exit status {status}")
    if not shown["effects"]:
        found.append("no effects")
    return found


def figures(effects):
    changing = [effect for effect in effects if records.changes_files(effect)]
    unknown = sum(effect["result"]["state"] == "unknown" for effect in changing)
    avoidable = sum(map(records.is_unknown, changing))
    by_how = collections.Counter(effect["how"] for effect in effects)
    return (f"{len(effects)} effects ({', '.join(f'{count} {how}' for how, count in sorted(by_how.items()))}), "
            f"{len(changing)} change files, {unknown} of them unknown, {unknown - avoidable} of these on devices")


def escaped(scenario, outcome):
    """Files that a sandbox let into being."""
    return [f"there is {path}" for path in scenario.refused if (outcome.folder / path).exists()]


# The tests


class Test:
    """One agent in one scenario."""

    def __init__(self, bench, report, agent, scenario):
        self.bench, self.report, self.agent, self.scenario = bench, report, agent, scenario
        self.name = f"{agent.name} {scenario.name}"

    def run(self, what, wrap=""):
        return self.bench.run(self.agent, f"{self.agent.name}-{what}", self.scenario.path, wrap,
                              **self.agent.settings, **self.scenario.settings)

    def native_pair(self):
        """Two native runs, which must not differ by what is compared; or None."""
        try:
            pair = [self.run("native") for _ in range(2)]
        except RuntimeError as error:
            self.report.result(f"{self.name}, native, twice", [str(error)])
            return None
        problems = differences(*pair, ordered=self.scenario.ordered) + escaped(self.scenario, pair[0])
        self.report.result(f"{self.name}, native, twice", problems, f"exit status {pair[0].status}")
        return pair

    def traced(self, variant, native):
        """One traced run against the native one, or None."""
        name = f"{self.name}, traced{', ' + variant.name if variant.name else ''}"
        wrap = " ".join(("assure trace --quiet --name @NAME@", *variant.options, "--"))
        try:
            outcome = self.run("traced", wrap)
            run = outcome.folder.name
            shown = self.bench.shown(run)
            left = self.bench.left(outcome.folder)
            made = sorted(path for path in native.parts["workspace"]
                          if not path.startswith(".git") and path != "seed.txt")
            effects = self.bench.effects(run)
            problems = differences(native, outcome, ordered=self.scenario.ordered) + incomplete(shown, outcome.status)
            problems += missing_effects(self.bench, run, outcome, made) + escaped(self.scenario, outcome)
            if self.scenario.name == "basic":
                problems += no_basic_effect(effects)
            if left:
                problems.append(f"still there: {left}")
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            self.report.result(name, [str(error)])
            return None
        self.report.result(name, problems, f"{outcome.wall:.2f} s (native {native.wall:.2f}), {figures(effects)}")
        return outcome

    def against_strace(self, traced, explanations):
        if not shutil.which("strace"):
            self.report.skip(f"{self.name}, strace", "there is no strace")
            return
        try:
            pair = [self.run("strace", strace.COMMAND) for _ in range(2)]
            views = [records.steady_events(strace.events_of(run.folder / "strace", run.folder), run.folder)
                     for run in pair]
            self.compare("strace, twice", explanations, ("first", "second"), *views)
            mine = records.recorded(self.bench.effects(traced.folder.name))
            self.compare("strace of a separate run", explanations, ("strace", "assure"), views[0],
                         records.steady_events(mine, traced.folder))
            self.same_run(explanations)
        except RuntimeError as error:
            self.report.result(f"{self.name}, strace", [str(error)])

    def same_run(self, explanations):
        outcome = self.run("both", f"assure trace --quiet --name @NAME@ -- {strace.COMMAND}")
        seen = strace.events_of(outcome.folder / "strace", outcome.folder)
        effects = self.bench.effects(outcome.folder.name)
        first = min(effect["process"]["id"] for effect in effects)  # strace itself
        mine = records.recorded(effect for effect in effects if effect["process"]["id"] != first)
        views = [records.steady_events(view, outcome.folder) for view in (seen, mine)]
        self.compare("strace of the same run", explanations, ("strace", "assure"), *views,
                     incomplete(self.bench.shown(outcome.folder.name), outcome.status))

    def compare(self, what, explanations, sides, one, other, problems=()):
        comparison = records.Comparison(self.agent.name, explanations, native=sides == ("first", "second"))
        comparison.compare(sides, one, other)
        self.report.result(f"{self.name}, {what}", [*comparison.problems(), *comparison.unnoticed(sides, one, other),
                                                    *problems], comparison.note(one, other))


def test_scenario(test, options, explanations):
    pair = test.native_pair()
    if not pair:
        return
    is_basic = test.scenario.name == "basic"
    variants = ()
    if is_basic and not options.basic:
        variants = BASIC_VARIANTS
    elif test.scenario.name == "detached":
        variants = (Variant("wait main", ("--wait", "main")),)
    traced = [test.traced(Variant(""), pair[0]) for _ in range(options.repeat if is_basic else 1)]
    for variant in variants:
        for _ in range(options.repeat):
            test.traced(variant, pair[0])
    if traced[-1]:
        test.against_strace(traced[-1], explanations)


def test_agent(bench, report, agent, options, explanations):
    for number, make in enumerate(scenarios_of(agent)):
        if options.basic and number > 0:
            break
        try:
            scenario = make(agent, bench)
        except Skip as reason:
            report.skip(f"{agent.name}", reason)
            if number == 0:
                return
            continue
        if options.scenario in (None, scenario.name):
            test_scenario(Test(bench, report, agent, scenario), options, explanations)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assure", required=True, type=pathlib.Path)
    parser.add_argument("--agents", type=pathlib.Path, default=HERE.parents[2] / "shared" / "agents")
    parser.add_argument("--only", choices=[agent.name for agent in AGENTS])
    parser.add_argument("--scenario", help="only the one of this name")
    parser.add_argument("--repeat", type=int, default=1, help="traced runs of the basic scenario and each variant")
    parser.add_argument("--basic", action="store_true", help="the basic scenario alone, without variants")
    parser.add_argument("--keep", action="store_true", help="keep the folders of the runs")
    options = parser.parse_args()
    report = Report()
    try:
        check_host(options.agents, agents_home())
        assure = options.assure.resolve(strict=True)
        explanations = records.read_explanations()
        with Bench(assure, options.agents.resolve(), agents_home().resolve(), options.keep) as bench:
            for agent in AGENTS:
                if options.only in (None, agent.name):
                    test_agent(bench, report, agent, options, explanations)
    except Skip as reason:
        report.skip("agents", reason)
    if options.scenario and not report.passed + report.failed + report.skipped:
        parser.error(f"there is no scenario {options.scenario!r}")
    print(f"{report.passed} passed, {report.failed} failed, {report.skipped} skipped")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
