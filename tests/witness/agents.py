#!/usr/bin/env python3
"""Real agents on a scripted model, with the witness between and without: the same run, and each call of the scenario told.

    agents.py --program WITNESS_ALONE [--agents DIR] [--only AGENT]

What is needed is said in tests/agents/run.py, whose scenarios these are; what is not there is skipped, with the reason.
"""
import argparse
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "agents"))

from outcome import Bench, Skip, agents_home, check_host, differences  # noqa: E402
from scenarios import AGENTS, basic, plain  # noqa: E402


def scripted(path, folder):
    """The calls that the scenario has the model ask for: tool and arguments."""
    text = path.read_text().replace("{{CWD}}", str(folder / "work"))
    for turn in json.loads(text):
        for block in turn:
            if "tool" in block:
                yield block["tool"], json.dumps(block["args"], sort_keys=True)
            elif "custom" in block:
                yield block["custom"], block["input"]


def declared(call):
    try:
        return call["tool"], json.dumps(json.loads(call["bytes"]), sort_keys=True)
    except ValueError:
        return call["tool"], call["bytes"]


def problems(scenario, native, witnessed):
    yield from differences(native, witnessed, scenario.ordered)
    told = [json.loads(line) for line in (witnessed.folder / "told.jsonl").read_text().splitlines()]
    begins = [x for x in told if x["event"] == "begin"]
    ends = [x for x in told if x["event"] == "end"]
    exchanges = [x for x in told if x["event"] == "exchange"]
    if [declared(x) for x in begins] != list(scripted(scenario.path, witnessed.folder)):
        yield f"told calls {[declared(x) for x in begins]}"
    if sorted(x["id"] for x in begins) != sorted(x["id"] for x in ends):
        yield f"results of {[x['id'] for x in ends]}, calls {[x['id'] for x in begins]}"
    if any(x["event"] == "loss" for x in told) or {x["state"] for x in exchanges} != {"complete"}:
        yield f"{[x for x in told if x['event'] == 'loss' or x.get('state', 'complete') != 'complete']}"
    asked = len((witnessed.folder / "requests.jsonl").read_text().splitlines())
    if asked != len(exchanges):
        yield f"{asked} requests reached the model, {len(exchanges)} exchanges were told"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--agents", type=pathlib.Path, default=HERE.parents[2] / "shared" / "agents")
    parser.add_argument("--only")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    failed = 0
    try:
        check_host(options.agents, agents_home())
    except Skip as reason:
        print(f"skip: {reason}")
        return 0
    wrap = f"python3 {HERE / 'through.py'} {options.program.resolve()} @RUN@/told.jsonl --"
    with Bench(options.program, options.agents, agents_home(), options.keep) as bench:
        for agent in AGENTS:
            if options.only not in (None, agent.name):
                continue
            for make in (basic, plain("parallel", ordered=False)):
                try:
                    scenario = make(agent, bench)
                    native = bench.run(agent, f"{agent.name}-native", scenario.path, **agent.settings)
                    witnessed = bench.run(agent, f"{agent.name}-witness", scenario.path, wrap, **agent.settings)
                except Skip as reason:
                    print(f"skip: {agent.name}: {reason}")
                    continue
                found = list(problems(scenario, native, witnessed))
                failed += bool(found)
                print(f"{'FAIL' if found else 'ok  '} {agent.name} {scenario.name}", *found, sep="\n     ", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
