#!/usr/bin/env python3
"""Runs the test suites of others with and without `assure trace`, and compares the verdicts case by case.

    run.py --cache DIR --prepare [--quick] [--only SUITE]...
    run.py --cache DIR --assure BIN [--prepare] [--quick] [--only SUITE]... [--user] [--table]

--prepare fetches what Debian has as source or package, and builds it below DIR; nothing is installed. What a suite needs
and is not there is said, and that suite is skipped. --quick: a part that takes about two minutes and builds nothing.
--user: everything, assure too, as an account without rights; without it as root, but for programs that refuse to be
root's. --only takes the name of a suite or a pattern of names of tests, as in cpython/test_os. --table prints only the
table.

A case that differs runs natively and under assure up to three times more. One that is not the same each time natively is
flaky; one that differs in one of at least three runs under assure differs `once`, which is said and is no failure.
exceptions.txt says what may differ, why, and how often at most; any other difference, and a test that ends only
at its time limit under assure, is a failure. --control: a supervisor that lets every call go on (bare_supervisor): what
is the same under it as natively is no exception, whatever the list says. A suite of which no case passes natively is a
failure too: it compares nothing.

As root, the tests run in mount, host name, IPC and network namespaces of this program's own.
"""
import argparse
import collections
import fnmatch
import importlib
import json
import os
import pathlib
import pwd
import statistics
import subprocess
import sys

import compare
from sources import Failed, read_names, run

HERE = pathlib.Path(__file__).resolve().parent
ACCOUNT = "assure-test"
ISOLATED = "ASSURE_TRANSPARENCY_ISOLATED"
TIME_LIMIT = 120
SLOWER = 3
COLUMNS = ("cases", "pass", "same", "flaky", "once", "excepted", "changed", "hung")
PASSES = ("ok", "pass", "0")


def suites():
    """All of them, in the order of their files."""
    found = []
    for path in sorted(HERE.glob("suites_*.py")):
        found += importlib.import_module(path.stem).SUITES
    return found


def chosen_suites(options):
    every = suites()
    names = {suite.name for suite in every}
    for pattern in options.only or ():
        if pattern.split("/")[0] not in names:
            raise Failed(f"no such suite: {pattern}; there are {' '.join(sorted(names))}")
    wanted = {pattern.split("/")[0] for pattern in options.only or names}
    return [suite for suite in every if suite.name in wanted and (suite.quick or not options.quick)]


def skip_reason(suite, options):
    if missing := suite.missing():
        return "not installed: " + " ".join(missing)
    return suite.root if suite.root and options.user else ""


def wanted(test, suite, options):
    name = test.name
    if options.only and not any(fnmatch.fnmatchcase(name, pattern if "/" in pattern else f"{pattern}/*")
                                for pattern in options.only):
        return False
    return not options.quick or any(fnmatch.fnmatchcase(name, f"{suite.name}/{pattern}") for pattern in suite.quick)


def account():
    try:
        return pwd.getpwnam(ACCOUNT)
    except KeyError:
        run(["useradd", "--system", "--no-create-home", "--shell", "/bin/sh", ACCOUNT])
        return pwd.getpwnam(ACCOUNT)


# Judging


class Exceptions:
    """Differences that are permitted: patterns of SUITE/TEST/CASE, each for so many cases of one run."""

    def __init__(self, path):
        self.rows = []
        for pattern, rest in read_names(path):
            most, reason = rest.split(None, 1)
            self.rows.append([pattern, int(most), reason])
        self.used = collections.Counter()

    def permit(self, name):
        for number, (pattern, most, _) in enumerate(self.rows):
            if fnmatch.fnmatchcase(name, pattern) and self.used[number] < most:
                self.used[number] += 1
                return True
        return False


NAMES = {"differs": "changed", "sometimes": "once", "flaky natively": "flaky", "same": "same"}


def only_under_assure(runs, case):
    control = [verdict.get(case, "none") for verdict in runs.get("control", ())]
    native = [verdict.get(case, "none") for verdict in runs["native"]]
    return bool(control) and all(verdict in native for verdict in control)


def judge(name, runs, exceptions):
    """State per case: same, flaky, once, excepted, changed, hung."""
    states = compare.states_of_cases(runs)
    limit_natively = any(verdict["exit"] == compare.LIMIT for verdict in runs["native"])
    limit_traced = any(verdict["exit"] == compare.LIMIT for verdict in runs["assure"])
    judged = {}
    for case, state in states.items():
        if case == "exit" and limit_traced and not limit_natively:
            state = "hung"
        else:
            state = NAMES[state]
        if state in ("changed", "hung") and not only_under_assure(runs, case) and exceptions.permit(f"{name}/{case}"):
            state = "excepted"
        judged[case] = state
    # The status of the whole follows from its cases.
    if judged["exit"] in ("changed", "once") and any(state in ("changed", "excepted", "flaky", "once")
                                                     for case, state in judged.items() if case != "exit"):
        del judged["exit"]
    return judged


def passes(verdict):
    return verdict in PASSES or str(verdict).startswith("0: ")


class Report:
    def __init__(self, quiet):
        self.quiet = quiet
        self.exceptions = Exceptions(HERE / "exceptions.txt")
        self.counts = collections.defaultdict(collections.Counter)
        self.ratios = collections.defaultdict(list)
        self.problems = []
        self.skipped = {}
        self.rows = []

    def take(self, result):
        name, seen, texts, seconds, runs = result
        suite = name.split("/")[0]
        judged = judge(name, runs, self.exceptions)
        counts = self.counts[suite]
        counts.update(judged.values())
        counts["cases"] += len(judged)
        counts["pass"] += sum(passes(seen["native"][0].get(case)) for case in judged)
        self.ratios[suite].append(seconds["assure"][0] / max(seconds["native"][0], 0.001))
        self.rows.append({"name": name, "verdicts": seen, "seconds": seconds, "judged": judged,
                          "output": texts if set(judged.values()) != {"same"} else {}})
        if all(verdict["exit"] == compare.LIMIT for verdict in seen["native"]):
            self.problems.append(f"{name}: reaches the time limit natively, so nothing was compared")
        if not self.quiet:
            self.tell(name, seen, judged, seconds)

    @staticmethod
    def tell(name, seen, judged, seconds):
        """At once, for who waits."""
        print(f"{name}: {len(judged)} cases, {seconds['native'][0]:.1f} s, {seconds['assure'][0]:.1f} s", flush=True)
        for case, state in judged.items():
            if state == "same":
                continue
            shown = [" | ".join(compare.shorten(verdict.get(case, "none")).replace("\n", "⏎")
                                for verdict in seen[column]) for column in ("native", "assure")]
            print(f"  {state}: {case}\n    native  {shown[0]}\n    assure  {shown[1]}", flush=True)

    def table(self):
        print(f"\n{'suite':<14}" + "".join(f"{column:>10}" for column in COLUMNS) + f"{'wall ratio':>12}")
        total = collections.Counter()
        for suite, counts in self.counts.items():
            print(f"{suite:<14}" + "".join(f"{counts[column]:>10}" for column in COLUMNS)
                  + f"{statistics.median(self.ratios[suite]):>12.2f}")
            total.update(counts)
            if not counts["pass"]:
                self.problems.append(f"{suite}: not one case passes natively, so nothing was compared")
        for suite, reason in self.skipped.items():
            print(f"{suite:<14}   skipped: {reason}")
        print(f"{'total':<14}" + "".join(f"{total[column]:>10}" for column in COLUMNS))
        for problem in self.problems:
            print(problem)
        failed = total["changed"] + total["hung"] + len(self.problems)
        print(f"{total['same'] + total['excepted']} passed, {failed} failed, {total['flaky']} skipped")
        return 1 if failed or not total["same"] else 0


# Running


def prepare(options):
    """Whether all could be prepared."""
    ready = True
    for suite in chosen_suites(options):
        if suite.prepare and not skip_reason(suite, options):
            try:
                suite.prepare(options.cache, options.jobs)
            except (Failed, OSError) as error:
                print(f"{suite.name}: cannot be prepared: {error}", file=sys.stderr)
                ready = False
    return ready


def shared_cache(base, cache):
    """Where tests find what was prepared: readable for everybody, and nothing that one of them could change."""
    if os.geteuid() != 0:
        return cache
    where = pathlib.Path(base, "cache")
    where.mkdir()
    run(["mount", "--bind", "-o", "ro", cache, where])
    return where


def collect(options, cache, report):
    tests = []
    for suite in chosen_suites(options):
        reason = skip_reason(suite, options)
        if not reason and suite.prepare and not suite.prepare.ready(cache):
            reason = "not prepared"
        if reason:
            report.skipped[suite.name] = reason
        else:
            tests += [test for test in suite.tests(cache) if wanted(test, suite, options)]
    return tests


def compare_all(options):
    report = Report(options.table)
    who = account().pw_name if options.user and os.geteuid() == 0 else None
    with compare.Base("assure-transparency-") as base:
        cache = shared_cache(base, options.cache)
        columns = compare.wrappers(base, options.assure, options.results, options.control)
        setting = compare.Setting(base, columns, TIME_LIMIT, SLOWER, compare.any_case_differs, who)
        compare.run_all(collect(options, cache, report), setting, options.jobs, report.take)
    if options.json:
        options.json.write_text(json.dumps(report.rows, indent=1), encoding="utf-8")
    return report.table()


def isolate():
    if os.geteuid() == 0:
        account()
        compare.isolate(ISOLATED, __file__, "--net")
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, required=True, help="where archives and builds are kept")
    parser.add_argument("--prepare", action="store_true", help="fetch and build what is missing in the cache")
    parser.add_argument("--assure", help="the program under test")
    parser.add_argument("--control", help="a supervisor that changes nothing, for what exceptions.txt permits")
    parser.add_argument("--only", action="append", metavar="SUITE", help="a suite, or a pattern of tests; may be repeated")
    parser.add_argument("--quick", action="store_true", help="the part that takes two minutes")
    parser.add_argument("--user", action="store_true", help="as an account without rights")
    parser.add_argument("--table", action="store_true", help="print only the table")
    parser.add_argument("--results", choices=("perform", "verify", "none"), help="passed on to assure")
    parser.add_argument("--jobs", type=int, default=1, help="tests, or compilers, at a time")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write every verdict to this file")
    options = parser.parse_args()
    options.cache = options.cache.resolve()
    if not options.prepare and not options.assure:
        parser.error("--prepare or --assure is needed")
    try:
        if options.prepare and not os.environ.get(ISOLATED):
            ready = prepare(options)
            if not options.assure:
                return 0 if ready else 1
        isolate()
        return compare_all(options)
    except Failed as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
