#!/usr/bin/env python3
"""The ledgers of fixtures/ledgers: how they were made, and what each must answer.

    fixtures.py --assure BIN --make     makes those of the schema that BIN writes, into fixtures/ledgers/schema-N

Ledgers of an older schema stay as they are: what wrote them is gone, and a verifier must go on to judge them. What each
must answer is the table in its folder, answers.txt; run.py asks both verifiers.

Some are real runs, which BIN recorded with a host key that everybody can read (fixtures/ledgers/throw-away.key). The
forged ones hold the records of the real one and are signed anew, by that key and others of forge.py, so that each has
one fault alone.
"""
import argparse
import contextlib
import gzip
import io
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cases_attestation  # noqa: E402
import cases_real  # noqa: E402
import cases_redacted  # noqa: E402
import cases_signed  # noqa: E402
import forge  # noqa: E402

PLACE = forge.TOP / "fixtures" / "ledgers"
KEY = PLACE / "throw-away.key"
SIGNED = {  # name of the fixture: case of cases_signed.py
    "signed-anew": "good",
    "recovered-anew": "good-recovered",
    "rotated": "good-rotated-log",
    "blank-in-a-record": "record-blank",
    "number-twice": "seq-twice",
    "number-left-out": "seq-hole",
    "exchanged": "seq-exchanged",
    "other-kind-beside-a-record": "column-kind",
    "behind-the-seal": "behind-the-seal",
    "behind-the-seal-signed": "behind-the-seal-signed",
    "run-renamed": "first-record-other-run",
    "checkpoint-by-witness": "checkpoint-by-witness",
    "checkpoint-of-another-root": "checkpoint-other-root",
    "seal-by-the-host": "seal-by-host",
    "seal-malleable": "seal-malleable",
    "seal-of-another-root": "seal-other-root",
    "key-of-small-order": "ledger-key-of-small-order",
    "certificate-of-another-use": "certificate-ledger-other-use",
    "certificate-of-another-run": "certificate-ledger-other-run",
    "certificate-of-another-host": "certificate-ledger-other-host",
    "two-seals": "log-two-seals",
    "log-does-not-know-it": "log-unknown",
    "log-knows-it-otherwise": "log-other-root",
    "recovered-said-to-be-complete": "recovered-complete",
    "blob": "blob-good",
    "blob-changed": "blob-changed",
    "blob-missing": "blob-missing",
    "blob-of-nobody": "blob-more",
}
REAL = {  # name of the fixture: case of cases_real.py, done to the real good run
    "changed": "long-changed",
    "changed-hashed": "long-changed-hashed",
    "removed": "long-removed",
    "added": "long-added",
    "duplicated": "long-duplicated",
    "tail-cut": "long-tail-cut-with-checkpoints",
    "unsealed": "long-seal-removed",
}
BUNDLES = {"bundle-cut": "byte-less", "bundle-longer": "byte-behind", "bundle-other-log": "log-entry"}
REDACTED = {"redacted": "same", "redacted-list-shorter": "list-shorter", "redacted-by-another-host": "by-another-host",
            "redacted-another-changed": "another-record-changed"}
ATTESTED = {"attestation": "same", "attestation-by-another-host": "by-another-host",
            "attestation-of-another-root": "root-other", "attestation-sealed-by-the-host": "seal-by-the-host"}
# Nothing of who makes them stands in them.
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}
SCRIPTS = {"good": "exit 0", "incomplete": "sleep 60", "crashed": "sleep 60"}


def row(line):
    name, status, record, what = line.split()[:4]
    return name, int(status), None if record == "-" else int(record), None if what == "-" else what


def tables():
    """Each folder with its rows."""
    for table in sorted(PLACE.glob("schema-*/answers.txt")):
        yield table.parent, [row(line) for line in table.read_text().splitlines() if line and line[0] != "#"]


@contextlib.contextmanager
def unpacked(folder, name, stage):
    """The state and what to verify of one fixture."""
    with tempfile.TemporaryDirectory(dir=stage) as top:
        state, bundle = pathlib.Path(top) / "state", pathlib.Path(top) / f"{name}.assure"
        state.mkdir(mode=0o700)
        files = [*folder.glob(f"{name}.assure.gz"), *folder.glob(f"{name}.intoto.jsonl.gz")]
        if files:
            bundle.write_bytes(gzip.decompress(files[0].read_bytes()))
            yield state, bundle
        else:
            with tarfile.open(folder / f"{name}.tar.gz") as archive:
                archive.extractall(state, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
            yield state, next((state / "runs").iterdir())


# Making them


def packed(data):
    return gzip.compress(data, 9, mtime=0)


def keep(name, state, folder):
    """The host log and the run of a state folder, in one file that has nothing of who made it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(state.rglob("*")):
            where = path.relative_to(state)
            if where.parts[0] not in ("runs", "log.sqlite") or path.name.endswith("-shm") or path.is_symlink():
                continue
            info = tarfile.TarInfo(str(where))
            info.mode = 0o700 if path.is_dir() else 0o600
            info.type = tarfile.DIRTYPE if path.is_dir() else tarfile.REGTYPE
            data = b"" if path.is_dir() else path.read_bytes()
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    (folder / f"{name}.tar.gz").write_bytes(packed(out.getvalue()))


class Host:
    def __init__(self, assure, stage, name):
        self.assure, self.state = assure, stage / name
        (self.state / "keys").mkdir(mode=0o700, parents=True)
        self.state.chmod(0o700)
        shutil.copyfile(KEY, self.state / "keys" / "host.key")
        (self.state / "keys" / "host.key").chmod(0o600)
        self.environment = {**ENVIRONMENT, "ASSURE_HOME": str(self.state)}

    def call(self, *words):
        subprocess.run([self.assure, *words], env=self.environment, stdin=subprocess.DEVNULL, check=True,
                       stdout=subprocess.DEVNULL)

    def run(self):
        return next((self.state / "runs").iterdir())

    def trace(self, name, victim=None):
        """A run; `victim` is which of assure's processes is killed once there is a checkpoint."""
        with subprocess.Popen([self.assure, "trace", "--quiet", "--name", name, "--", "sh", "-c", SCRIPTS[name]],
                              cwd="/", env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as tracer:
            if victim:
                time.sleep(2)
                for pid in forge.descendants(tracer.pid):
                    if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == victim:
                        os.kill(pid, signal.SIGKILL)
            tracer.wait(30)
        return self.run()


def make_signed_anew(host, stage, folder):
    """What the host signs for others, which is forged with its key."""
    host.call("export", "good", "--output", str(stage / "shown.assure"), "--redact", "exit 0")
    host.call("export", "good", "--output", str(stage / "good.jsonl"), "--format", "intoto")
    for name, of in REDACTED.items():
        bundle = cases_redacted.Bundle((stage / "shown.assure").read_bytes(), (stage / "good.assure").read_bytes())
        cases_redacted.CASES[of][0](bundle)
        (folder / f"{name}.assure.gz").write_bytes(packed(bundle.data()))
    for name, of in ATTESTED.items():
        lines = [cases_attestation.Line(line) for line in (stage / "good.jsonl").read_bytes().splitlines()]
        cases_attestation.CASES[of][0](lines)
        (folder / f"{name}.intoto.jsonl.gz").write_bytes(packed(b"".join(line.data() for line in lines)))


def make(assure):
    seed = bytes.fromhex(KEY.read_text().strip())
    if forge.Key("host").seed != seed:
        sys.exit(f"{KEY} is not the host key of forge.py")
    with tempfile.TemporaryDirectory(prefix="assure-fixtures-") as top:
        stage = pathlib.Path(top)
        hosts = {name: Host(assure, stage, name) for name in ("good", "incomplete", "crashed")}
        run = hosts["good"].trace("good")
        with contextlib.closing(sqlite3.connect(run / "run.sqlite")) as db:
            schema, = db.execute("PRAGMA user_version").fetchone()
            records = [data for data, in db.execute("SELECT json FROM records ORDER BY seq")]
        folder = PLACE / f"schema-{schema}"
        folder.mkdir(parents=True, exist_ok=True)
        hosts["incomplete"].trace("incomplete", "assure-monitor")
        hosts["crashed"].trace("crashed", "assure-scribe")
        keep("crashed", hosts["crashed"].state, folder)
        hosts["crashed"].call("recover", "crashed")
        for name, of in (("good", "good"), ("incomplete", "incomplete"), ("recovered", "crashed")):
            hosts[of].call("export", of, "--output", str(stage / f"{name}.assure"))
            (folder / f"{name}.assure.gz").write_bytes(packed((stage / f"{name}.assure").read_bytes()))
        for name, of in BUNDLES.items():
            data = cases_real.BUNDLES[of][0]((stage / "good.assure").read_bytes())
            (folder / f"{name}.assure.gz").write_bytes(packed(data))
        make_signed_anew(hosts["good"], stage, folder)
        for name, of in REAL.items():
            state = stage / name
            shutil.copytree(hosts["good"].state, state, symlinks=True, ignore=shutil.ignore_patterns("*-shm"))
            cases_real.CASES[of][1](forge.Folder(state, run.name))
            keep(name, state, folder)
        for name, of in SIGNED.items():
            made = forge.Run(run.name, records)
            cases_signed.CASES[of][0](made)
            made.write(stage / name)
            keep(name, stage / name, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assure", type=pathlib.Path, required=True)
    parser.add_argument("--make", action="store_true", required=True)
    make(parser.parse_args().assure.resolve())


if __name__ == "__main__":
    main()
