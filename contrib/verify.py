#!/usr/bin/env python3
"""A second verifier of sealed runs, written from specs/LEDGER.md and
specs/INTOTO.md alone: it shares no code with assure.

    contrib/verify.py RUNFOLDER [--log LOG.sqlite] [--key FINGERPRINT|FILE]... [--json]
    contrib/verify.py FILE.assure [--key FINGERPRINT|FILE]... [--json]
    contrib/verify.py FILE.intoto.jsonl [--log LOG.sqlite] [--key FINGERPRINT|FILE]... [--json]

RUNFOLDER is <state>/runs/<RUN>; the host log is the log.sqlite of <state>, when there is one. Without --key the keys of
the host log are believed.

Exit status: 0 intact and complete, 1 tampered with, 2 intact but incomplete or recovered, 3 unreadable, 4 intact but
signed by a key that was not named.
"""
import argparse
import base64
import json
import os
import pathlib
import re
import sqlite3
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from verifier.attestation import is_attestation, verify_attestation  # noqa: E402
from verifier.bundle import bundle_parts  # noqa: E402
from verifier.dsse import MOST_ENVELOPE  # noqa: E402
from verifier.encoding import fingerprint, from_base64  # noqa: E402
from verifier.faults import (FINGERPRINT, INCOMPLETE, INTACT, MOST_EXTRACT, MOST_NOTE, RUN_NAME, TAMPERED,  # noqa: E402
                             UNNAMED, UNREADABLE, VERDICTS, Fault, Unreadable, require)
from verifier.hostlog import check_logged, read_extract, read_log  # noqa: E402
from verifier.run import Run  # noqa: E402
from verifier.store import small  # noqa: E402


def verify(path, log, given):
    if path.is_file() and is_attestation(path):
        return verify_attestation(path, read_log(log, None)[0] if log else {}, given)
    with tempfile.TemporaryDirectory(prefix="verify-") as stage:
        parts = {}
        if path.is_dir():
            name, store, seal = path.resolve().name, path / "run.sqlite", path / "seal"
            log = log or next(filter(pathlib.Path.is_file, [path.resolve().parents[1] / "log.sqlite"]), None)
        else:
            name, parts = bundle_parts(path, stage)
            store, seal = parts["run.sqlite"], parts["seal"]
        if not isinstance(name, str) or not RUN_NAME.fullmatch(name):
            raise Unreadable(f"{name!r} is not the name of a run")
        redaction = small(parts["redaction"], MOST_ENVELOPE) if "redaction" in parts else None
        run = Run(store, small(seal, MOST_NOTE) if os.path.lexists(seal) else None, name, redaction)
        run.check()
        keys, entries, own = {}, [], fingerprint(run.host)
        if log:
            keys, entries = read_log(log, name)
        elif "log" in parts:
            entries = read_extract(small(parts["log"], MOST_EXTRACT), name, run.host, given)
            require(entries, "log", "the bundle's part of the host log does not know the run")
        require(entries or own not in keys, "log", "the host log does not know this run")
        require(not log or not entries or own in keys, "log", "the host log has this run with another host key")
        if entries:
            check_logged(run, entries)
    status = INTACT if run.complete else INCOMPLETE
    return UNNAMED if own not in (given or keys) else status, {
        "run": name, "host_key": own, "host": sorted(run.hosts)[0], "records": run.tree.size, "effects": run.effects,
        "covered": run.seal.size if run.seal else run.covered, "complete": run.complete, "sealed": bool(run.seal),
        "recovered": run.recovered is not None, "in_log": bool(entries), "store_covered": bool(run.digest or redaction),
        "redacted": run.redaction and run.redaction.count,
        "key_exposed": run.first.get("key_exposed"), "class": run.first.get("class"),
        "root": base64.b64encode(run.tree.root()).decode()}


def named(text):
    """A key that is believed: its fingerprint, and the key itself when a verifier key of a note gives it."""
    if not FINGERPRINT.fullmatch(text):
        text = small(text, MOST_NOTE).decode().strip()
    form = re.fullmatch(r"[^ +]+\+[0-9a-f]{8}\+([A-Za-z0-9+/=]+)", text)
    key = from_base64(form.group(1), 33) if form else None
    if not key and not FINGERPRINT.fullmatch(text):
        raise argparse.ArgumentTypeError("neither a fingerprint nor a file with a key")
    return (fingerprint(key[1:]), key[1:]) if key else (text, None)


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=pathlib.Path)
    parser.add_argument("--log", type=pathlib.Path)
    parser.add_argument("--key", type=named, action="append", default=[])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(words)
    try:
        status, report = verify(arguments.path, arguments.log, dict(arguments.key))
    except Fault as fault:
        status, report = TAMPERED, {"what": fault.what, "message": str(fault), "record": fault.seq}
    except (Unreadable, OSError, sqlite3.Error) as problem:
        status, report = UNREADABLE, {"message": str(problem)}
    report["verdict"] = VERDICTS[status]
    if arguments.json:
        print(json.dumps(report, sort_keys=True))
    else:
        print(f"{arguments.path}: {report.pop('verdict')}")
        for name, value in sorted(report.items()):
            if value is not None:
                print(f"  {name}: {value}")
    return status


if __name__ == "__main__":
    sys.exit(main())
