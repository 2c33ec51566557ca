"""effects.py [--run RUN] [--count N | --none | --at-least N] [--print FIELD] FILTER…

Looks in `assure effects RUN --json` (default: last) for effects that match every FILTER, and fails, with the nearest
ones, when there are not as many as wanted (default: at least one).

A FILTER is FIELD=VALUE, FIELD!=VALUE, FIELD~REGEX (search), FIELD*=GLOB, FIELD? (is there) or FIELD! (is absent). FIELD
is a dotted path (result.state, to.path, argv.0). A VALUE that reads as JSON number, boolean or null also equals that.
"""
import argparse
import fnmatch
import json
import os
import re
import subprocess
import sys

FILTER = re.compile(r"^([A-Za-z_][\w.]*)(!=|\*=|=|~|\?$|!$)(.*)$", re.S)
ABSENT = object()


def load(run):
    done = subprocess.run([os.environ["ASSURE"], "effects", run, "--json"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(f"assure effects {run} --json ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
    effects = []
    for number, line in enumerate(done.stdout.splitlines(), 1):
        try:
            effects.append(json.loads(line))
        except ValueError as problem:
            sys.exit(f"line {number} is not JSON ({problem}): {line!r}")
    return effects


def field(effect, path):
    value = effect
    for step in path.split("."):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return ABSENT
    return value


def equal(value, wanted):
    if isinstance(value, str):
        return value == wanted
    try:
        return value == json.loads(wanted)
    except ValueError:
        return False


def text_of(value):
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def holds(effect, rule):
    path, operator, wanted = rule
    value = field(effect, path)
    if operator == "?":
        return value is not ABSENT
    if operator == "!":
        return value is ABSENT
    if operator == "!=":
        return value is ABSENT or not equal(value, wanted)
    if value is ABSENT:
        return False
    if operator == "=":
        return equal(value, wanted)
    if operator == "~":
        return re.search(wanted, text_of(value)) is not None
    return fnmatch.fnmatchcase(text_of(value), wanted)


def parse(words):
    rules = []
    for word in words:
        match = FILTER.match(word)
        if not match:
            sys.exit(f"not a filter: {word}")
        rules.append(match.groups())
    return rules


def brief(effect):
    keys = ("seq", "kind", "syscall", "how", "path", "as_given", "to", "peer", "target", "argv", "flags", "mode", "args",
            "result")
    return json.dumps({k: effect[k] for k in keys if k in effect}, ensure_ascii=False)


def near(effects, rules):
    ranked = sorted(effects, key=lambda e: sum(holds(e, r) for r in rules), reverse=True)
    for effect in ranked[:8]:
        missed = ["".join(r) for r in rules if not holds(effect, r)]
        print(f"  misses {' '.join(missed)}: {brief(effect)}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", default="last")
    parser.add_argument("--print", dest="shown")
    wanted = parser.add_mutually_exclusive_group()
    wanted.add_argument("--count", type=int)
    wanted.add_argument("--none", action="store_true")
    wanted.add_argument("--at-least", type=int, default=1)
    parser.add_argument("filters", nargs="*")
    arguments = parser.parse_args()
    rules = parse(arguments.filters)
    effects = load(arguments.run)
    found = [e for e in effects if all(holds(e, r) for r in rules)]
    exact = 0 if arguments.none else arguments.count
    good = len(found) == exact if exact is not None else len(found) >= arguments.at_least
    if not good:
        amount = exact if exact is not None else f"at least {arguments.at_least}"
        print(f"wanted {amount} of {len(effects)} effects with {' '.join(arguments.filters)}; there are {len(found)}",
              file=sys.stderr)
        if found:
            for effect in found[:8]:
                print(f"  matches: {brief(effect)}", file=sys.stderr)
        else:
            near(effects, rules)
        return 1
    if arguments.shown:
        for effect in found:
            value = field(effect, arguments.shown)
            print("" if value is ABSENT else text_of(value))
    return 0


if __name__ == "__main__":
    sys.exit(main())
