#!/usr/bin/env python3
"""What the model witness costs, beside a relay that only passes bytes on, and beside none, in the same minute.

    witness.py --programs BUILD/tests [--megabytes N] [--rounds N]

A provider speaks at 20 MB/s, in events of three sizes. Measured: how much later each event comes than without a relay
(99 of a hundred), the processor's time for each megabyte, and the time to the first byte of a short exchange. Rounds are
interleaved; what is shown are medians.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

RATE = 20_000_000
TICK = os.sysconf("SC_CLK_TCK")


def processor(pid):
    """Seconds, to the nanosecond where the kernel tells."""
    try:
        return sum(int(path.read_text().split()[0]) for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9
    except OSError:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK


def measure(programs, relay, chunk, megabytes, requests, folder):
    load = subprocess.Popen([programs / "bench" / "witness_load", str(chunk), str(RATE), str(megabytes * 1_000_000 // chunk),
                             str(requests)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    upstream = load.stdout.readline().strip()
    commands = {"plain relay": [programs / "bench" / "plain_relay", upstream],
                "witness": [programs / "witness" / "witness_alone", f"{folder}/told", f"anthropic,,http://127.0.0.1:{upstream}"]}
    between, port, before = None, "0", 0
    if relay in commands:
        between = subprocess.Popen(commands[relay], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        port = between.stdout.readline().strip()
        before = processor(between.pid)
    load.stdin.write(port + "\n")
    load.stdin.flush()
    words = load.stdout.read().split()
    used = (processor(between.pid) - before) if between else 0
    if between:
        between.stdin.close()
        between.wait()
    if load.wait() != 0 or len(words) != 4:
        sys.exit(f"{relay}: the load ended with {load.returncode}")
    return [int(word) / 1000 for word in words] + [used * 1e6 / megabytes]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--megabytes", type=int, default=40)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"{'event':>6}  {'':12} {'delay p50':>10} {'p99':>8} {'later p99':>10} {'first byte':>11} {'CPU/MB':>9}   (µs)")
    with tempfile.TemporaryDirectory(prefix="assure-bench-") as folder:
        for chunk in (400, 2000, 16000):
            seen = {"direct": [], "plain relay": [], "witness": []}
            for _ in range(options.rounds):
                for relay, rows in seen.items():
                    requests = options.requests if chunk == 2000 else 20
                    rows.append(measure(options.programs, relay, chunk, options.megabytes, requests, folder))
            medians = {relay: [statistics.median(column) for column in zip(*rows)] for relay, rows in seen.items()}
            for relay, (p50, p99, first, _, used) in medians.items():
                later = p99 - medians["direct"][1]
                print(f"{chunk:>6}  {relay:12} {p50:10.0f} {p99:8.0f} {later:10.0f} {first:11.0f} {used:9.0f}")
            print(f"{'':6}  witness / plain relay: CPU {medians['witness'][4] / medians['plain relay'][4]:.2f}, "
                  f"first byte {medians['witness'][2] / medians['plain relay'][2]:.2f} "
                  f"(direct {medians['witness'][2] / medians['direct'][2]:.2f})", flush=True)


if __name__ == "__main__":
    main()
