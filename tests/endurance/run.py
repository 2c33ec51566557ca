#!/usr/bin/env python3
"""Runs storms of effects and faults of the machine against `assure trace`.

    run.py --assure PATH --programs DIR [--only NAME]... [--full] [--as root|user] [--keep] [--set-clock SECONDS]

What a program knows to have done is compared with the same program run alone, with the file system, and with what was
recorded; afterwards the run has to be closed as it should, and nothing of the tree or of ours may be left. Each test
prints a line with its figures. Tests run as root and as an ordinary user in turn, or as the one that they need; as one
of them alone with --as, or when this is not run by root.
"""
import argparse
import ctypes
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import faults  # noqa: E402
import kills  # noqa: E402
import storms  # noqa: E402
import streams  # noqa: E402
from harness import Failure, Place, Skip, e2e  # noqa: E402

TESTS = {**storms.TESTS, **kills.TESTS, **faults.TESTS, **streams.TESTS}


def identity_for(needed, number, identities, wanted):
    """Who runs the test: the one that it needs, or, when it does not matter, each in turn."""
    allowed = [identity for identity in identities
               if needed in ("any", identity.name) and wanted in (None, identity.name)]
    return allowed[number % len(allowed)] if allowed else None


def run_one(name, number, stage, identities, arguments):
    """(word, text)."""
    function, needed = TESTS[name]
    identity = identity_for(needed, number, identities, arguments.identity)
    if not identity:
        return "skip", f"it needs {needed}"
    place = Place(stage, identity, arguments, name)
    start = time.monotonic()
    try:
        word, text = "ok", function(place)
    except Skip as reason:
        word, text = "skip", str(reason)
    except Failure as problem:
        word, text = "FAIL", str(problem)
    except (OSError, subprocess.SubprocessError, ValueError, LookupError) as problem:
        word, text = "FAIL", f"{type(problem).__name__}: {problem}"
    finally:
        e2e.end_all()
        place.close()
    return word, f"as {identity.name} ({time.monotonic() - start:.1f} s): {text}"


def staged(stage, arguments):
    """A copy of what is run that an ordinary user can read, wherever the tree lies."""
    stage.chmod(0o755)
    (stage / "bin").mkdir()
    shutil.copy2(arguments.assure, stage / "bin/assure")
    for program in arguments.programs.glob("endure_*"):
        if program.is_file():
            shutil.copy2(program, stage / "bin" / program.name)
    subprocess.run(["chmod", "-R", "a+rX", stage], check=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assure", type=pathlib.Path, required=True)
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--only", action="append", choices=list(TESTS))
    parser.add_argument("--full", action="store_true", help="the full counts: a million effects, hundreds of kills")
    parser.add_argument("--as", dest="identity", choices=("root", "user"))
    parser.add_argument("--keep", action="store_true", help="keep the folders of the tests, and say where")
    parser.add_argument("--limit", type=float, help="seconds that one run of a program may take")
    parser.add_argument("--grace", type=float, default=5, help="seconds until everything has to be gone")
    parser.add_argument("--set-clock", type=int, default=0, metavar="SECONDS",
                        help="also move the machine's clock there and back, by so much")
    arguments = parser.parse_args()
    arguments.limit = arguments.limit or (1800 if arguments.full else 120)
    arguments.scale = lambda usual, full: full if arguments.full else usual
    return arguments


def main():
    arguments = parse()
    if not arguments.assure.is_file():
        sys.exit(f"{arguments.assure}: not there; build first")
    if ctypes.CDLL(None, use_errno=True).prctl(e2e.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        sys.exit("cannot become a subreaper")
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    counts = {"ok": 0, "FAIL": 0, "skip": 0}
    stage = pathlib.Path(tempfile.mkdtemp(prefix="assure-endurance-"))
    try:
        staged(stage, arguments)
        identities = e2e.identities()
        for number, name in enumerate(TESTS):
            if not arguments.only or name in arguments.only:
                word, text = run_one(name, number, stage, identities, arguments)
                counts[word] += 1
                print(f"{word:4} {name:14} {text}", flush=True)
    finally:
        e2e.end_all()
        shutil.rmtree(stage, ignore_errors=True)
    print(f"{counts['ok']} passed, {counts['FAIL']} failed, {counts['skip']} skipped")
    return 1 if counts["FAIL"] or not counts["ok"] + counts["skip"] else 0


if __name__ == "__main__":
    sys.exit(main())
