#!/usr/bin/env python3
"""Forges sealed runs in every way that is listed in cases_real.py and cases_signed.py, and asks the verifiers.

    run.py --assure BIN [--only NAME]... [--full] [--verifiers c,python] [--seed N] [--flips N] [--table] [--keep]

The runs are made by the real program. A forged one must give status 1, or 3 where it cannot be read, or what its case
says (2 and 4 are for what nobody can see without the host's log); a good one its own status. No verifier may end in
another way. Then single bits are changed all over the files of runs and bundles: 300, or 10 000 with --full.
`c` is `assure verify`, `python` is contrib/verify.py. --only takes the beginning of a name.
"""
import argparse
import collections
import contextlib
import io
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cases_attestation  # noqa: E402
import cases_real  # noqa: E402
import cases_redacted  # noqa: E402
import cases_signed  # noqa: E402
import fixtures  # noqa: E402
import forge  # noqa: E402

LIMIT = 120
SCRIPTS = {
    "small": "echo a >a; mkdir d; rmdir d; true",
    "long": "i=0; while [ $i -lt 1300 ]; do : >f$i; i=$((i+1)); done; rm -rf d",
    "watched": ": >start; until [ -e go ]; do sleep 0.05; done; "
               "i=0; while [ $i -lt 1300 ]; do : >f$i; i=$((i+1)); done",
    "crashed": "i=0; while [ $i -lt 1300 ]; do : >f$i; i=$((i+1)); done; : >start; sleep 2; : >f; sleep 60",
}
GOOD = {"small": 0, "long": 0, "watched": 0, "crashed": 2, "recovered": 2, "rotated": 0}
CHANGEABLE = ("small", "long", "recovered")  # whose every byte is covered
# Not sealed, or sealed without a digest over the store: a changed byte may be one that nobody uses, or end the log of
# SQLite before what was not signed yet.
LOOSE = {"watched": {0, 1, 3}, "crashed": {1, 2, 3}}

Answer = collections.namedtuple("Answer", "status record why")


# The verifiers


def ask_c(arguments, state, words):
    done = subprocess.run([arguments.assure, "verify", "--json", *map(str, words)], stdin=subprocess.DEVNULL,
                          env={**os.environ, "ASSURE_HOME": str(state)}, capture_output=True, timeout=LIMIT,
                          check=False)
    error = done.stderr.decode("utf-8", "replace")
    if done.returncode not in range(5) or "Sanitizer" in error:
        return Answer(f"ended with {done.returncode}", None, error.strip()[-300:])
    try:
        report = json.loads(done.stdout)
    except ValueError:
        report = {"why": error.strip()} if done.returncode == 3 else {"why": "no JSON"}
    return Answer(done.returncode, report.get("first_bad"), report.get("why", ""))


def ask_python(arguments, state, words):
    """In this process: starting it ten thousand times would take most of the time."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            status = forge.verify.main([*map(str, words), "--json"])
    except (Exception, SystemExit):
        return Answer("traceback", None, traceback.format_exc().strip()[-600:])
    report = json.loads(out.getvalue())
    return Answer(status, report.get("record"), f"{report.get('what', '')}: {report.get('message', '')}")


VERIFIERS = {"c": ask_c, "python": ask_python}


# The runs


class Host:
    """A state folder of the real program."""

    def __init__(self, arguments, stage, name):
        self.assure, self.work, self.state, self.runs = arguments.assure, stage / f"{name}.work", stage / name, {}
        self.environment = {**os.environ, "ASSURE_HOME": str(self.state)}

    def call(self, *words):
        done = subprocess.run([self.assure, *words], env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=LIMIT, check=False)
        if done.returncode:
            sys.exit(f"assure {' '.join(words)}: status {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def folder(self, name):
        return self.state / "runs" / os.readlink(self.state / "names" / name)

    def trace(self, name, beside=None):
        work = self.work / name
        work.mkdir(parents=True)
        with subprocess.Popen([self.assure, "trace", "--quiet", "--name", name, "--", "sh", "-c",
                               SCRIPTS.get(name, SCRIPTS["small"])], cwd=work, env=self.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as tracer:
            try:
                if beside:
                    until(lambda: (work / "start").exists())
                    beside(tracer, work)
                error = tracer.communicate(timeout=LIMIT)[1]
            except subprocess.TimeoutExpired:
                tracer.kill()
                raise
        self.runs[name] = self.folder(name)
        if tracer.returncode and name != "crashed":
            sys.exit(f"trace of {name}: status {tracer.returncode}: {error.decode()}")

    def watch(self, tracer, work):
        """Somebody reads the store when it is to come to rest."""
        db = sqlite3.connect(f"{(self.folder('watched') / 'run.sqlite').as_uri()}?mode=ro", uri=True,
                             isolation_level=None)
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM records").fetchone()
        (work / "go").touch()
        tracer.wait(LIMIT)
        db.close()

    def crash(self, tracer, work):
        time.sleep(2)  # in which a checkpoint is made
        for pid in forge.descendants(tracer.pid):
            with contextlib.suppress(OSError):
                if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "assure-scribe":
                    os.kill(pid, signal.SIGKILL)
        try:
            tracer.wait(10)
        except subprocess.TimeoutExpired:
            for pid in forge.descendants(tracer.pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)


def until(condition):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            sys.exit("the traced program did not begin")
        time.sleep(0.02)


def copy(state, run, target):
    target.mkdir(mode=0o700)
    for file in state.glob("log.sqlite*"):
        if not file.name.endswith("-shm"):
            shutil.copy2(file, target)
    (target / "runs").mkdir(mode=0o700)
    shutil.copytree(state / "runs" / run, target / "runs" / run, ignore=shutil.ignore_patterns("*-shm"))


class Tests:
    def __init__(self, arguments, stage):
        self.arguments, self.stage = arguments, stage
        self.failures, self.results, self.differences = [], collections.Counter(), []
        self.seconds, self.asked = collections.Counter(), collections.Counter()
        self.make()

    def make(self):
        self.host, self.foreign = Host(self.arguments, self.stage, "host"), Host(self.arguments, self.stage, "foreign")
        for name, beside in (("small", None), ("long", None), ("watched", self.host.watch),
                             ("crashed", self.host.crash)):
            self.host.trace(name, beside)
        self.foreign.trace("foreign")
        self.kept, others = {}, {"small": self.host.runs["small"], "foreign": self.foreign.runs["foreign"]}
        for name in ("small", "long", "watched", "crashed"):
            self.keep(name, name)
        self.host.call("recover", "crashed")
        self.keep("recovered", "crashed")
        for name in ("small", "recovered"):
            self.host.call("export", "crashed" if name == "recovered" else name,
                           "--output", str(self.stage / f"{name}.assure"))
        self.key = json.loads(self.host.call("keys", "show", "--json"))["fingerprint"]
        self.host.call("keys", "rotate")
        self.host.trace("rotated")
        self.keep("rotated", "rotated")
        self.others = others
        if b"\nstore " in (self.kept["watched"][0] / "runs" / self.kept["watched"][1] / "seal").read_bytes():
            sys.exit("the watched run was sealed at rest: no run without a digest over the store")

    def keep(self, name, of):
        state, run = self.stage / f"kept-{name}", self.host.runs[of].name
        copy(self.host.state, run, state)
        self.kept[name] = (state, run)

    def wanted(self, name):
        return not self.arguments.only or any(name.startswith(one) for one in self.arguments.only)

    @contextlib.contextmanager
    def forged(self, name):
        with tempfile.TemporaryDirectory(dir=self.stage) as top:
            state, run = self.kept[name]
            copy(state, run, pathlib.Path(top) / "state")
            yield forge.Folder(pathlib.Path(top) / "state", run, self.others)

    def ask(self, name, wanted, state, words, what=None, record=None):
        answers = {}
        for verifier in self.arguments.verifiers:
            began = time.monotonic()
            try:
                answers[verifier] = answer = VERIFIERS[verifier](self.arguments, state, words)
            except subprocess.TimeoutExpired:
                answers[verifier] = answer = Answer("no end", None, "")
            self.seconds[verifier] += time.monotonic() - began
            self.asked[verifier] += 1
            self.results[verifier, answer.status] += 1
            named = verifier != "python" or not what or answer.why.startswith(f"{what}:")
            if answer.status not in wanted or not named or (record is not None and answer.record != record):
                self.failures.append(f"{name}: {verifier} says {answer.status} @{answer.record} ({answer.why}), wanted "
                                     f"{' or '.join(map(str, sorted(wanted)))}{f', {what}' if what else ''}"
                                     f"{'' if record is None else f' @{record}'}")
                print(f"FAIL {self.failures[-1]}", flush=True)
        if len({answer.status for answer in answers.values()}) > 1 or \
                len({answer.record for answer in answers.values() if answer.record is not None}) > 1:
            self.differences.append((name, answers))
        if self.arguments.table:
            print(f"{name:44} " + "   ".join(
                f"{verifier} {answer.status}{'' if answer.record is None else f' @{answer.record}'} {answer.why}"
                for verifier, answer in answers.items()), flush=True)

    def good(self):
        for name, status in GOOD.items():
            if self.wanted(f"good-{name}"):
                with self.forged(name) as folder:
                    self.ask(f"good-{name}", {status}, folder.state, [folder.path])
                    self.ask(f"good-{name}-named", {4}, folder.state, [folder.path, "--key", "0" * 64])

    def real(self):
        for name, (source, function, wanted, what) in cases_real.CASES.items():
            if self.wanted(name):
                with self.forged(source) as folder:
                    function(folder)
                    self.ask(name, wanted, folder.state, [folder.path], what)

    def signed(self):
        state, run = self.kept["small"]
        with forge.database(state / "runs" / run / "run.sqlite", "run") as db:
            records = [data for data, in db.execute("SELECT json FROM records ORDER BY seq")]
        for name, (function, wanted, what) in cases_signed.CASES.items():
            if self.wanted(f"signed-{name}"):
                with tempfile.TemporaryDirectory(dir=self.stage) as top:
                    made = forge.Run(run, records)
                    function(made)
                    made.write(pathlib.Path(top) / "state")
                    folder = forge.Folder(pathlib.Path(top) / "state", run)
                    self.ask(f"signed-{name}", wanted, folder.state,
                             [folder.path, "--key", made.host.fingerprint], what)

    def bundles(self):
        data = (self.stage / "small.assure").read_bytes()
        with tempfile.TemporaryDirectory(dir=self.stage) as top:
            path, state = pathlib.Path(top) / "b.assure", pathlib.Path(top) / "state"
            state.mkdir(mode=0o700)
            for name, (function, wanted) in cases_real.BUNDLES.items():
                if self.wanted(f"bundle-{name}"):
                    path.write_bytes(function(data))
                    self.ask(f"bundle-{name}", wanted, state, [path, "--key", self.key])
            if self.wanted("bundle-unnamed"):
                path.write_bytes(data)
                self.ask("bundle-unnamed", {4}, state, [path])
            if self.wanted("bundle-recovered"):
                self.ask("bundle-recovered", {2}, state, [self.stage / "recovered.assure", "--key", self.key])

    def kept_ones(self):
        """Those of fixtures/ledgers, also of older schemas."""
        for folder, rows in fixtures.tables():
            names = {file.name.split(".")[0] for file in folder.glob("*.gz")}
            if names != {name for name, *_ in rows}:
                self.failures.append(f"{folder}: the table and the files differ: {names ^ {row[0] for row in rows}}")
            for name, status, record, what in rows:
                if self.wanted(f"{folder.name}-{name}"):
                    with fixtures.unpacked(folder, name, self.stage) as (state, path):
                        self.ask(f"{folder.name}-{name}", {status}, state,
                                 [path, "--key", forge.Key("host").fingerprint], what, record)

    def handed_on(self):
        """What the host signs for others, with a key that is here too."""
        if not self.wanted("attestation") and not self.wanted("redacted"):
            return
        host = fixtures.Host(self.arguments.assure, self.stage, "exporting")
        host.trace("good")
        fresh = self.stage / "no-log"
        fresh.mkdir(mode=0o700)
        self.attestations(host, fresh)
        self.redacted(host, fresh)

    def redacted(self, host, fresh):
        for name, words in (("plain", ()), ("shown", ("--redact", "exit 0"))):
            host.call("export", "good", "--output", str(self.stage / f"{name}.assure"), *words)
        plain, data = ((self.stage / f"{name}.assure").read_bytes() for name in ("plain", "shown"))
        path, key = self.stage / "forged.assure", ["--key", forge.Key("host").fingerprint]
        for name, (function, wanted) in cases_redacted.CASES.items():
            if self.wanted(f"redacted-{name}"):
                bundle = cases_redacted.Bundle(data, plain)
                function(bundle)
                path.write_bytes(bundle.data())
                self.ask(f"redacted-{name}", wanted, fresh, [path, *key])
        path.write_bytes(data)
        self.ask("redacted-unnamed", {4}, fresh, [path])
        self.some_flips("redacted", path, fresh, key)

    def some_flips(self, name, path, state, words):
        if not self.wanted(f"{name}-flip"):
            return
        chance, size = random.Random(self.arguments.seed), path.stat().st_size
        for _ in range(self.arguments.flips // 4):
            offset, bit = chance.randrange(size), chance.randrange(8)
            flip(path, offset, bit)
            self.ask(f"{name}-flip byte {offset} bit {bit}", {1, 3}, state, [path, *words])
            flip(path, offset, bit)

    def attestations(self, host, fresh):
        host.call("export", "good", "--format", "intoto", "--output", str(self.stage / "good.intoto.jsonl"))
        data = (self.stage / "good.intoto.jsonl").read_bytes()
        path, key = self.stage / "forged.intoto.jsonl", ["--key", forge.Key("host").fingerprint]
        for name, (function, wanted) in cases_attestation.CASES.items():
            if self.wanted(f"attestation-{name}"):
                lines = [cases_attestation.Line(line) for line in data.splitlines()]
                function(lines)
                path.write_bytes(b"".join(line.data() for line in lines))
                self.ask(f"attestation-{name}", wanted, fresh, [path, *key])
        path.write_bytes(data)
        self.ask("attestation-unnamed", {4}, fresh, [path])
        self.ask("attestation-other-named", {4}, fresh, [path, "--key", "0" * 64])
        self.some_flips("attestation", path, fresh, key)

    def flips(self):
        if not self.wanted("flip"):
            return
        chance = random.Random(self.arguments.seed)
        with contextlib.ExitStack() as stack:
            files = []
            for name in CHANGEABLE:
                folder = stack.enter_context(self.forged(name))
                files += [(f"{name}/{file.name}", file, folder.state, [folder.path], {1, 3})
                          for file in (folder.store, folder.seal)]
            for name, wanted in LOOSE.items():
                folder = stack.enter_context(self.forged(name))
                files += [(f"{name}/{file}", folder.file(file), folder.state, [folder.path], wanted)
                          for file in ("run.sqlite", "run.sqlite-wal")]
            for name in ("small", "recovered"):
                path = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir=self.stage))) / f"{name}.assure"
                shutil.copyfile(self.stage / path.name, path)
                files.append((path.name, path, path.parent, [path, "--key", self.key], {1, 3}))
            state, run = self.kept["watched"]
            watched = content(state / "runs" / run / "run.sqlite", self.stage)
            for index in range(self.arguments.flips):
                name, file, state, words, wanted = files[index % len(files)]
                offset, bit = chance.randrange(file.stat().st_size), chance.randrange(8)
                flip(file, offset, bit)
                if name.startswith("watched") and content(file.with_name("run.sqlite"), self.stage) != watched:
                    wanted = {1, 3}
                self.ask(f"flip {name} byte {offset} bit {bit}", wanted, state, words)
                flip(file, offset, bit)


def content(store, stage):
    """What a reader finds in a store, or None when it cannot read it."""
    with tempfile.TemporaryDirectory(dir=stage) as top:
        for file in store.parent.glob("run.sqlite*"):
            if not file.name.endswith("-shm"):
                shutil.copyfile(file, pathlib.Path(top) / file.name)
        with contextlib.closing(sqlite3.connect(pathlib.Path(top) / "run.sqlite")) as db:
            db.text_factory = bytes
            try:
                return [db.execute(f"SELECT * FROM {table}").fetchall()
                        for table in ("sqlite_master", "meta", "records", "checkpoints", "documents")]
            except sqlite3.Error:
                return None


def flip(path, offset, bit):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1 << bit]))


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assure", type=pathlib.Path, required=True)
    parser.add_argument("--only", action="append")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--verifiers", default="c,python", type=lambda text: text.split(","))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--flips", type=int)
    parser.add_argument("--table", action="store_true", help="print what each verifier said of each case")
    parser.add_argument("--keep", action="store_true", help="keep the folder of the runs, and say where")
    arguments = parser.parse_args()
    arguments.assure = arguments.assure.resolve()
    if not arguments.assure.is_file():
        sys.exit(f"{arguments.assure}: not there; build first")
    if not set(arguments.verifiers) <= set(VERIFIERS):
        sys.exit(f"verifiers are {', '.join(VERIFIERS)}")
    if arguments.flips is None:
        arguments.flips = 10000 if arguments.full else 300
    if "c" in arguments.verifiers and subprocess.run(
            [arguments.assure, "verify", "--help"], capture_output=True, check=False).returncode:
        print("skip: this assure has no verify")
        arguments.verifiers.remove("c")
    return arguments


def main():
    arguments = parse()
    stage = pathlib.Path(tempfile.mkdtemp(prefix="assure-ledger-"))
    try:
        tests = Tests(arguments, stage)
        for part in (tests.good, tests.kept_ones, tests.real, tests.signed, tests.bundles,
                     tests.handed_on, tests.flips):
            part()
    finally:
        if arguments.keep:
            print(f"kept in {stage}")
        else:
            shutil.rmtree(stage, ignore_errors=True)
    for name, answers in tests.differences:
        print(f"DIFFER {name}: " + "; ".join(
            f"{verifier} {answer.status} @{answer.record} {answer.why}" for verifier, answer in answers.items()))
    for verifier in arguments.verifiers:
        counted = ", ".join(f"{status}: {count}" for (of, status), count in sorted(tests.results.items(), key=str)
                            if of == verifier)
        print(f"{verifier}: {tests.asked[verifier]} asked in {tests.seconds[verifier]:.1f} s; by status {counted}")
    print(f"{len(tests.failures)} failures, {len(tests.differences)} answers that differ")
    return 1 if tests.failures else 0


if __name__ == "__main__":
    sys.exit(main())
