#!/usr/bin/env python3
"""What a sealed ledger costs: storing, and checking, each beside its floor, in interleaved rounds.

    ledger.py --assure BIN --programs DIR [--records N] [--rounds N] [--write]

Storing: a scribe is given typical effects as fast as it takes them (ledger_append.c), until the run is closed, sealed and
synced; the floor is a bare loop of SQLite inserts of the same bytes. Checking: `assure verify` of a traced run; the floor
reads the same records, hashes them with the same library and parses them with jansson (ledger_floor.c). Memory is the
highest that verify had.
"""
import argparse
import datetime
import os
import pathlib
import platform
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import run as bench

HERE = pathlib.Path(__file__).resolve().parent
APPEND_LIMIT, VERIFY_LIMIT, DISK_LIMIT = 0.6, 1.5, 1.5


def seconds(command, environment):
    start = time.monotonic()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - start


def said_seconds(command):
    """The program's own clock: "N records, S s"."""
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.split()[2])


def storing(programs, records, rounds):
    """Pairs of seconds (the floor's, ours): the ratio is that of rates."""
    pairs = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(prefix="assure-bench-") as home:
            ours = said_seconds([programs / "ledger_append", home, str(records)])
            store = next(pathlib.Path(home, "runs").glob("*/run.sqlite"))
            pairs.append((said_seconds([programs / "ledger_floor", "insert", store, f"{home}/bare.sqlite"]), ours))
    return pairs


def checking(assure, programs, records, rounds):
    """Pairs of seconds (ours, the floor's), MiB of memory, and bytes of the file over bytes of its records."""
    with tempfile.TemporaryDirectory(prefix="assure-bench-") as home, \
            tempfile.TemporaryDirectory(prefix="assure-bench-") as work:  # nobody traced may write where runs are
        environment = {**os.environ, "ASSURE_HOME": home}
        subprocess.run([assure, "trace", "--quiet", "--name", "big", "--", programs / "open_close", "write",
                        str(records)], env=environment, cwd=work, check=True)
        store = next(pathlib.Path(home, "runs").glob("*/run.sqlite"))
        verify = [assure, "verify", "big"]
        floor = [programs / "ledger_floor", "verify", store]
        seconds(floor, environment)
        pairs = [(seconds(verify, environment), seconds(floor, environment)) for _ in range(rounds)]
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
        size = subprocess.run([programs / "ledger_floor", "size", store], check=True, stdout=subprocess.PIPE).stdout
        return pairs, peak, store.stat().st_size / int(size)


def cell(pairs):
    middle, low, high = bench.ratio([one for one, _ in pairs], [other for _, other in pairs], random.Random(1))
    return middle, f"{middle:.2f} [{low:.2f}, {high:.2f}]"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assure", required=True, type=pathlib.Path)
    parser.add_argument("--programs", required=True, type=pathlib.Path)
    parser.add_argument("--records", type=int, default=100000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write LEDGER.md")
    return parser.parse_args()


def main():
    options = arguments()
    assure, programs = options.assure.resolve(), options.programs.resolve()
    if not shutil.which(programs / "ledger_append"):
        sys.exit(f"ledger.py: {programs}/ledger_append is missing: build it first")
    append, append_cell = cell(storing(programs, options.records, options.rounds))
    pairs, peak, disk = checking(assure, programs, options.records, options.rounds)
    verify, verify_cell = cell(pairs)
    text = f"""# What a sealed ledger costs

Linux {platform.release()}, {platform.machine()}, {os.cpu_count()} cores; {datetime.date.today()}; {options.rounds} interleaved
rounds of {options.records} records. Made by `tests/bench/ledger.py --write`. Median of the rounds' ratios, and the bootstrap 95%
interval of that median.

| what | over | ratio | limit |
|---|---|---|---|
| records stored and sealed a second | a bare loop of SQLite inserts of the same bytes | {append_cell} | ≥ {APPEND_LIMIT} |
| seconds of `assure verify` | reading, hashing and parsing the same records | {verify_cell} | ≤ {VERIFY_LIMIT} |
| bytes of a run's file | bytes of its records | {disk:.2f} | ≤ {DISK_LIMIT} |

The highest memory of any process while verifying: {peak} MiB.
"""
    print(text)
    if options.write:
        (HERE / "LEDGER.md").write_text(text, encoding="utf-8")
    return 0 if append >= APPEND_LIMIT and verify <= VERIFY_LIMIT and disk <= DISK_LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
