"""Forgeries of redacted bundles. A case gets a Bundle: the parts that `assure export --redact` wrote, with the throw-away
host key; it changes the store or what the host says of it, and the rest is signed again so that it fits, unless the case
says no.
"""
import base64
import contextlib
import json
import pathlib
import sqlite3
import tempfile

from cases_real import closed, opened
from forge import Key, digest, dump, leaf_of, load, root_of, text64

CASES = {}
TYPE = "application/vnd.assure.redaction+json"


def case(name, *statuses):
    def add(function):
        CASES[name] = (function, set(statuses or (1,)))
        return function
    return add


def simple(name, function, *statuses):
    case(name, *statuses)(lambda bundle: function(bundle) and None)


class Bundle:
    def __init__(self, data, plain):
        self.run, parts = opened(data)
        self.plain = dict(opened(plain)[1])  # the same run, as it was sealed
        self.parts = dict(parts)
        self.envelope = json.loads(self.parts["redaction"])
        self.said = json.loads(base64.b64decode(self.envelope["payload"]))
        self.key, self.kind, self.sign, self.follow, self.raw = Key("host"), TYPE, True, False, None

    def listed(self):
        return [seq for first, last in self.said["records"] for seq in range(first, last + 1)]

    def rows(self):
        return self.sql("SELECT seq, json, leaf FROM records ORDER BY seq")

    def sql(self, *statements, part="run.sqlite", values=()):
        """Done to the store; what the last one finds is given back."""
        with tempfile.TemporaryDirectory() as top:
            path = pathlib.Path(top) / "run.sqlite"
            path.write_bytes((self.plain if part == "plain" else self.parts)["run.sqlite"])
            with contextlib.closing(sqlite3.connect(path)) as db, db:
                for statement in statements:
                    found = db.execute(statement, values).fetchall()
            if part != "plain":
                self.parts["run.sqlite"] = path.read_bytes()
        return found

    def put(self, seq, data):
        """Other bytes in the stead of a record; what the host says of them follows."""
        self.sql("UPDATE records SET json = ? WHERE seq = ?", values=(data, seq))
        self.follow = True

    def edit(self, seq, change):
        record = load(self.rows()[seq][1])
        change(record)
        self.put(seq, dump(record))

    def data(self):
        if self.follow:
            store = self.parts["run.sqlite"]
            self.said.update(store=digest(store), store_size=len(store),
                             shown=text64(root_of([leaf_of(row[1]) for row in self.rows()])))
        if self.sign:
            payload = dump(self.said)
            message = b"DSSEv1 %d %s %d %s" % (len(self.kind), self.kind.encode(), len(payload), payload)
            self.envelope = {"payload": text64(payload), "payloadType": self.kind,
                             "signatures": [{"sig": text64(self.key.sign(message))}]}
        if "redaction" in self.parts:
            self.parts["redaction"] = dump(self.envelope) + b"\n" if self.raw is None else self.raw
        return closed(list(self.parts.items()), run=self.run)


def says(**values):
    return lambda bundle: bundle.said.update(values)


def other_record(bundle):
    return next(seq for seq, data, _ in bundle.rows() if seq not in bundle.listed() and b'"path":"/' in data)


def unsigned(bundle):
    bundle.sign = False


simple("same", unsigned, 0)
simple("signed-anew", lambda bundle: None, 0)
# By whom
simple("by-another-host", lambda bundle: setattr(bundle, "key", Key("other host")))
simple("type-other", lambda bundle: setattr(bundle, "kind", "application/vnd.in-toto+json"))
simple("signature-changed", lambda bundle: (unsigned(bundle), bundle.envelope["signatures"][0].update(
    sig=text64(bytes(64)))))
simple("signature-twice", lambda bundle: (unsigned(bundle), bundle.envelope["signatures"].append(
    bundle.envelope["signatures"][0])))
simple("said-otherwise-unsigned", lambda bundle: (unsigned(bundle), bundle.envelope.update(
    payload=text64(dump({**bundle.said, "count": 0})))))
# What it says
simple("run-other", says(run="0" * 26))
simple("schema-other", says(schema="assure.redaction/2"))
simple("root-other", says(root=text64(bytes(32))))
simple("size-other", lambda bundle: bundle.said.update(size=bundle.said["size"] + 1))
simple("shown-other", says(shown=text64(bytes(32))))
simple("shown-the-root", lambda bundle: bundle.said.update(shown=bundle.said["root"]))
simple("shown-short", says(shown=text64(bytes(31))))
simple("store-other", says(store="sha256:" + "0" * 64))
simple("store-size-other", says(store_size=1))
simple("count-other", lambda bundle: bundle.said.update(count=bundle.said["count"] + 1))
simple("count-absent", lambda bundle: bundle.said.pop("count"))
simple("more", says(more=1), 0)
# Which records
simple("list-empty", says(records=[], count=0))
simple("list-shorter", lambda bundle: (bundle.said["records"].pop(), bundle.said.update(
    count=len(bundle.listed()))))
simple("list-longer", lambda bundle: (bundle.said["records"].append([bundle.said["size"] - 1] * 2), bundle.said.update(
    count=len(bundle.listed()))))
simple("list-beyond", lambda bundle: (bundle.said["records"].append([bundle.said["size"]] * 2), bundle.said.update(
    count=len(bundle.listed()))))
simple("list-all", lambda bundle: bundle.said.update(records=[[0, bundle.said["size"] - 1]], count=bundle.said["size"]))
simple("list-backwards", lambda bundle: bundle.said["records"].reverse())
simple("list-twice", lambda bundle: bundle.said["records"].insert(0, bundle.said["records"][0]))
simple("list-divided", lambda bundle: bundle.said.update(records=[[one] * 2 for one in (*bundle.listed(), 10 ** 6)]))
simple("list-turned", lambda bundle: bundle.said["records"].insert(0, [1, 0]))
simple("list-of-three", lambda bundle: bundle.said["records"][0].append(1))
simple("list-of-text", says(records=[["0", "1"]]))
simple("list-of-numbers", lambda bundle: bundle.said.update(records=bundle.listed()))
simple("list-absent", lambda bundle: bundle.said.pop("records"))


# What is shown
@case("redacted-otherwise", 0)
def redacted_otherwise(bundle):
    """The host may show less, as long as it says so; that it shows no lie nobody can see."""
    bundle.edit(bundle.listed()[0], lambda record: record.update(cwd="[withheld]"))


@case("redacted-otherwise-unsigned")
def redacted_unsigned(bundle):
    redacted_otherwise(bundle)
    bundle.follow = False


@case("another-record-changed")
def another_changed(bundle):
    bundle.edit(other_record(bundle), lambda record: record.update(path="/other"))


@case("another-record-changed-and-hashed")
def another_hashed(bundle):
    seq = other_record(bundle)
    another_changed(bundle)
    bundle.sql("UPDATE records SET leaf = ? WHERE seq = ?", values=(leaf_of(bundle.rows()[seq][1]), seq))


@case("another-record-changed-and-listed", 0)
def another_listed(bundle):
    """Then it is one of those for which the host alone stands, and that is said."""
    another_changed(bundle)
    listed = sorted([*bundle.listed(), other_record(bundle)])
    stretches = []
    for seq in listed:
        if stretches and stretches[-1][1] == seq - 1:
            stretches[-1][1] = seq
        else:
            stretches.append([seq, seq])
    bundle.said.update(records=stretches, count=len(listed))


@case("listed-record-as-it-was")
def restored(bundle):
    seq = bundle.listed()[0]
    row, = bundle.sql(f"SELECT json FROM records WHERE seq = {seq}", part="plain")
    bundle.put(seq, row[0])


@case("everything-as-it-was", 0)
def all_restored(bundle):
    bundle.parts["run.sqlite"] = bundle.plain["run.sqlite"]
    bundle.said.update(records=[], count=0)
    bundle.follow = True


@case("redacted-leaf-changed")
def leaf_changed(bundle):
    seq = bundle.listed()[0]
    bundle.sql("UPDATE records SET leaf = ? WHERE seq = ?", values=(leaf_of(bundle.rows()[seq][1]), seq))
    bundle.follow = True


@case("redacted-not-canonical")
def not_canonical(bundle):
    seq = bundle.listed()[0]
    bundle.put(seq, bundle.rows()[seq][1].replace(b":", b": ", 1))


@case("redacted-other-number")
def other_number(bundle):
    bundle.edit(bundle.listed()[-1], lambda record: record.update(seq=1))


@case("redacted-other-kind")
def other_kind(bundle):
    bundle.edit(next(seq for seq in bundle.listed() if b'"kind":"' in bundle.rows()[seq][1]),
                lambda record: record.update(kind="file.read" if record["kind"] != "file.read" else "file.delete"))


@case("redacted-first-of-another-run")
def other_first(bundle):
    bundle.edit(0, lambda record: record.update(run="0" * 26))


@case("record-removed")
def removed(bundle):
    bundle.sql("DELETE FROM records WHERE seq = 3")
    bundle.follow = True


@case("meta-other")
def meta_other(bundle):
    bundle.sql("UPDATE meta SET value = 1 WHERE key = 'records'")
    bundle.follow = True


@case("table-more")
def table_more(bundle):
    bundle.sql("CREATE TABLE more(x)")
    bundle.follow = True


# The parts
simple("part-absent", lambda bundle: bundle.parts.pop("redaction"))
simple("part-empty", lambda bundle: setattr(bundle, "raw", b""))
simple("part-blank", lambda bundle: setattr(bundle, "raw", b"\n"))
simple("part-without-end", lambda bundle: setattr(bundle, "raw", dump(bundle.envelope)))
simple("part-two-lines", lambda bundle: setattr(bundle, "raw", 2 * (dump(bundle.envelope) + b"\n")))
simple("part-before-the-log", lambda bundle: bundle.parts.update(log=bundle.parts.pop("log")))
simple("log-absent", lambda bundle: bundle.parts.pop("log"), 0)
simple("store-as-it-was", lambda bundle: (unsigned(bundle), bundle.parts.update(
    {"run.sqlite": bundle.plain["run.sqlite"]})))
