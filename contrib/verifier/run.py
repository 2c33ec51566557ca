"""One run: its keys, records, checkpoints and seal."""
import sqlite3

from .blobs import Blobs
from .certificate import USES, certified
from .encoding import count, digest, document, fingerprint, from_base64
from .faults import MOST_NOTE, MOST_RECORD, Fault, Unreadable, require
from .note import Note, host_name, store_line
from .redaction import Redaction
from .store import beside, database, file_digest, limited
from .tree import Tree, leaf_of


def columns(record):
    """What the columns beside a record have to say."""
    schema, of = record["schema"], record
    kind, how, state = None, None, None
    if schema == "assure.effect/1":
        kind, how, state = record.get("kind"), record.get("how"), (record.get("result") or {}).get("state")
        of = record.get("process") or {}
    known = schema in ("assure.effect/1", "assure.process/1", "assure.reads/1", "assure.gap/1")
    name = "id" if schema in ("assure.effect/1", "assure.process/1") else "process"
    return (schema, kind, how, state, of.get(name) if known else None, of.get("pid") if known else None)


class Run:
    def __init__(self, store, seal, run, redaction=None):
        self.said, self.redaction = redaction, None
        self.store, self.run, self.origin = store, run, f"assure.run/{run}"
        self.seal = seal and Note(seal, "seal")
        self.recovered, self.digest, self.effects, self.first, self.last = None, None, 0, None, None
        if self.seal:
            self.recovered, self.digest = store_line(self.seal)
            require(self.seal.origin == self.origin, "swapped", f"the seal is of {self.seal.origin}")
            require(self.digest is None or not any(beside(store, end) for end in ("-wal", "-journal")), "behind",
                    "a log of SQLite lies beside a store that was sealed at rest")

    def check(self):
        try:
            with database(self.store, "run") as self.db:
                self.check_keys()
                self.check_records()
                self.check_closing()
        except sqlite3.Error:
            self.check_bytes()
            raise
        self.check_bytes()

    def check_bytes(self):
        if self.said is not None and not self.redaction:
            return  # nobody has said yet what they should be
        wanted = self.redaction.store if self.redaction else self.digest
        require(wanted in (None, (self.store.stat().st_size, file_digest(self.store))), "store",
                "the bytes of the store are not what was signed")

    def check_keys(self):
        version, = self.db.execute("PRAGMA user_version").fetchone()
        if version not in (2, 3):
            raise Unreadable(f"schema version {version}")
        self.blobs = Blobs(self.db, version >= 3)
        documents = dict(self.db.execute(f"SELECT name, {limited('bytes', MOST_NOTE)} FROM documents LIMIT 6"))
        names = {use: f"certificate/{use}" for use in USES}
        require(set(documents) == {"host-key", *names.values()}, "certificate", "the documents are not the five")
        self.host = from_base64((documents["host-key"] or b"").decode("latin-1"), 32)
        require(self.host, "certificate", "the host's key is none")
        row = self.db.execute(f"SELECT {limited('json', MOST_RECORD)}, leaf FROM records WHERE seq=0").fetchone()
        self.first = document(row[0] or b"") if row else None
        require(self.first and (leaf_of(row[0]) == row[1] or self.said is not None), "changed" if row else "missing",
                "the first record", 0)
        require(self.first.get("schema") == "assure.run/1", "changed", "the first record is not one", 0)
        require(self.first.get("run") == self.run, "swapped", f"the records are of the run {self.first.get('run')}", 0)
        found = {use: certified(documents[name] or b"", self.run, use, self.host) for use, name in names.items()}
        self.keys = {use: fingerprint(key) for use, (key, _) in found.items()}
        require(self.first.get("keys") == self.keys, "foreign-key", "the first record names other keys")
        require(self.first.get("host_key") == fingerprint(self.host), "foreign-key",
                "the first record names another host key")
        self.hosts = {host for _, host in found.values()}
        self.certificates = {use: digest(documents[name]) for use, name in names.items()}
        self.ledger = found["ledger"][0]
        if self.seal and self.recovered is None:
            self.seal.check(self.origin, self.origin, self.ledger, "seal")
        elif self.seal:
            self.seal.check(self.origin, host_name(self.host), self.host, "seal")

        if self.said is not None:
            self.redaction = Redaction(self.said, self.run, self.seal, self.host)

    def diagnosis(self, index, data, record, base):
        """Why the record at an index is not the one that was there."""
        stored = Tree()
        for leaf, in self.db.execute("SELECT leaf FROM records ORDER BY seq LIMIT ?", (base.size if base else 0,)):
            stored.append(leaf if isinstance(leaf, bytes) else b"")
        one = f"SELECT seq, {limited('json', MOST_RECORD)}, leaf FROM records WHERE "
        if base and stored.root() == base.root:
            twin = self.db.execute(one + "leaf=? AND seq<>?", (leaf_of(data), index)).fetchone()
            own = self.db.execute(one + "seq=?", (index,)).fetchone()[2]
            if leaf_of(data) == own:
                return Fault("malformed", f"record {index} is not canonical or has another number", index)
            what = "changed" if not twin else "exchanged" if leaf_of(twin[1] or b"") == own else "duplicated"
            return Fault(what, f"record {index} is {what}" + (f" with {twin[0]}" if twin else ""), index)
        claimed = record.get("seq") if record else None
        what = "changed"
        if isinstance(claimed, int) and claimed != index and abs(claimed) < 1 << 62:
            twin = self.db.execute(one + "seq=?", (claimed,)).fetchone()
            if twin and (document(twin[1] or b"") or {}).get("seq") == index:
                what = "exchanged"
            elif claimed > index:
                what = "missing"
            else:
                what = "duplicated" if twin and twin[1] == data else "added"
        return Fault(what, f"record {index} is {what}", index)

    def check_records(self):
        notes = self.db.execute(f"SELECT size, {limited('note', MOST_NOTE)} FROM checkpoints ORDER BY size")
        final = self.db.execute(f"SELECT {limited('note', MOST_NOTE)} FROM checkpoints ORDER BY size DESC").fetchone()
        base = self.seal or (Note(final[0], "checkpoint") if final else None)
        self.tree, self.covered, self.covered_root, due, before = Tree(), 0, None, notes.fetchone(), None
        for row in self.db.execute(f"SELECT seq, type, kind, how, state, process, pid, {limited('json', MOST_RECORD)}, "
                                   "leaf FROM records ORDER BY seq"):
            index, data, leaf = self.tree.size, row[7], row[8]
            require(row[0] >= index, "added", f"a record numbered {row[0]}", row[0])
            require(row[0] == index, "missing", f"record {index} is missing", index)
            require(not self.seal or index < self.seal.size, "behind", f"record {index} stands behind the seal", index)
            require(data is not None, "changed", f"record {index} is none", index)
            record = document(data)
            shown = leaf_of(data)
            if self.redaction:
                self.redaction.take(index, shown, leaf)
            if record is None or record.get("seq") != index or record["seq"] is True or \
                    (shown != leaf and not self.redaction):
                raise self.diagnosis(index, data, record, base)
            require(all(name in record for name in ("schema", "time", "mono_ns", "lane", "class")) and
                    row[1:7] == columns(record), "columns", f"record {index}: its columns say something else", index)
            require(before != "assure.recovery/1" and
                    (before != "assure.seal/1" or record["schema"] == "assure.recovery/1"), "behind",
                    f"record {index} stands behind the last one", index)
            self.blobs.check(index, record)
            before, self.last = record["schema"], record
            self.effects += before == "assure.effect/1"
            self.tree.append(leaf)
            if due and due[0] == self.tree.size:
                note = Note(due[1], "checkpoint")
                note.check(self.origin, self.origin, self.ledger, "checkpoint")
                require(note.size == due[0] and not note.more, "checkpoint", f"the checkpoint {due[0]} is another's")
                require(note.root == self.tree.root(), "changed",
                        f"a record from {self.covered} to {index} is not what was signed", self.covered)
                self.covered, self.covered_root, due = note.size, note.root, notes.fetchone()
        size = max(due[0] if due else 0, self.seal.size if self.seal else 0)
        require(size <= self.tree.size, "cut", f"{size} records were signed, and {self.tree.size} are there",
                self.tree.size)
        require(due is None, "checkpoint", "a checkpoint out of its order")
        require(not self.seal or self.tree.root() == self.seal.root, "changed",
                f"a record from {self.covered} is not what was sealed",
                self.covered if self.covered < self.tree.size else None)
        self.blobs.check_all()
        if self.redaction:
            self.redaction.check()

    def check_closing(self):
        meta = dict(self.db.execute("SELECT key, CASE WHEN length(value)<=65535 THEN value END FROM meta LIMIT 9"))
        names = {"run", "name", "started_ns", "ended_ns", "complete", "reason", "records", "effects"}
        require(set(meta) <= names and meta.get("run") == self.run, "meta", "meta is not of this run")
        require(meta.get("name") == self.first.get("name"), "meta", "meta has another name")
        self.complete = False
        if not self.seal:
            return
        last, schema = self.last, "assure.seal/1" if self.recovered is None else "assure.recovery/1"
        require(last["schema"] == schema, "seal", f"the last record is not {schema}")
        if self.recovered is not None:
            require(self.recovered == count(last.get("covered")) == self.covered, "seal",
                    "the recovery does not say what the last checkpoint covered")
        else:
            self.complete = last.get("complete")
            require(count(last.get("records")) == self.tree.size and count(last.get("effects")) == self.effects and
                    count(last.get("lost")) is not None and isinstance(self.complete, bool), "seal",
                    "the last record does not say what was counted")
        said = (meta.get("records"), meta.get("effects"), meta.get("complete"), meta.get("reason", ""))
        require(said == (self.tree.size, self.effects, int(self.complete), last.get("reason", "")), "meta",
                "meta does not say what the last record says")
