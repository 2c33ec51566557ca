#!/usr/bin/env python3
"""What a sealed run costs to check: `assure verify` over the floor of it, interleaved.

    ledger.py --assure BIN --programs DIR [--records N] [--rounds N]

The floor reads the same records, hashes them with the same library and parses them with jansson (ledger_floor.c); the limit
is 1.5 of it. Memory is the highest that verify had.
"""
import argparse
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import time

import run as bench

LIMIT = 1.5


def seconds(command, environment):
    start = time.monotonic()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assure", required=True, type=pathlib.Path)
    parser.add_argument("--programs", required=True, type=pathlib.Path)
    parser.add_argument("--records", type=int, default=100000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    assure, programs = options.assure.resolve(), options.programs.resolve()
    with tempfile.TemporaryDirectory(prefix="assure-bench-") as home, \
            tempfile.TemporaryDirectory(prefix="assure-bench-") as work:  # nobody traced may write where runs are
        environment = {**os.environ, "ASSURE_HOME": home}
        subprocess.run([assure, "trace", "--quiet", "--name", "big", "--", programs / "open_close", "write",
                        str(options.records)], env=environment, cwd=work, check=True)
        store = next(pathlib.Path(home, "runs").glob("*/run.sqlite"))
        verify = [assure, "verify", "big"]
        floor = [programs / "ledger_floor", "verify", store]
        seconds(floor, environment)
        pairs = [(seconds(verify, environment), seconds(floor, environment)) for _ in range(options.rounds)]
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    middle, low, high = bench.ratio([one for one, _ in pairs], [other for _, other in pairs], random.Random(1))
    print(f"verify of {options.records} effects over hashing and parsing them: {middle:.2f} [{low:.2f}, {high:.2f}] "
          f"(limit {LIMIT}); highest memory of any process {peak} MiB")
    return 0 if middle <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
