#!/usr/bin/env python3
"""The model witness between clients and a provider of ours: what passes is compared with what passes without it.

    tests/witness/run.py --program build/dev/tests/witness/witness_alone [CASE…]
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback

import cases
import hostile
from upstream import Upstream


class Witness:
    """The program, its port, and what it told."""

    def __init__(self, program, folder, routes, environment=None):
        self.told_file = pathlib.Path(folder) / "told.jsonl"
        self.process = subprocess.Popen([program, str(self.told_file), *routes], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        self.port = int(self.process.stdout.readline() or 0)

    def told(self, event=None):
        import json
        lines = [json.loads(line) for line in self.told_file.read_bytes().split(b"\n") if line]
        return [x for x in lines if event is None or x["event"] == event]

    def exchanges(self, count):
        """What was told, once so many exchanges are over."""
        for _ in range(2000):
            told = self.told("exchange")
            if len(told) >= count:
                return told
            time.sleep(0.005)
        raise AssertionError(f"{count} exchanges never ended: {self.told('exchange')}")

    def memory(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(x for x in status.splitlines() if x.startswith("VmHWM")).split()[1]) * 1024

    def stop(self):
        self.process.stdin.close()
        error = self.process.stderr.read().decode()
        status = self.process.wait(timeout=60)
        assert status == 0 and not error, f"the witness ended with {status}: {error}"


class Bench:
    """What a case works with: a provider, a witness before it, and ports of both."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.upstream = Upstream()
        url = self.upstream.url
        self.witness = Witness(program, folder, [
            f"anthropic,,{url}", f"openai,/openai,{url}/v1", f"gemini,/gemini,{url}", f"openai,/base,{url}/a/b/",
            "anthropic,/dead,http://127.0.0.1:1", "openai,/dead-openai,http://127.0.0.1:1",
            "gemini,/dead-gemini,http://127.0.0.1:1"])

    def start(self, routes, environment=None):
        return Witness(self.program, self.folder, routes, environment)

    def stop(self):
        self.upstream.close()
        self.witness.stop()


def run(name, case, program):
    with tempfile.TemporaryDirectory(prefix="assure-witness-") as folder:
        bench = Bench(program, folder)
        try:
            case(bench)
            bench.stop()
        except Exception:  # pylint: disable=broad-except
            bench.witness.process.kill()
            print(f"FAIL {name}")
            traceback.print_exc()
            return False
    print(f"ok   {name}")
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    every = {n[5:]: f for module in (cases, hostile) for n, f in vars(module).items() if n.startswith("case_")}
    for name in options.cases:
        if name not in every:
            sys.exit(f"no such case: {name} (of {', '.join(every)})")
    chosen = {n: f for n, f in every.items() if not options.cases or n in options.cases}
    failed = [n for n, f in chosen.items() if not run(n, f, options.program)]
    print(f"{len(chosen) - len(failed)} of {len(chosen)} passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
