"""Makes whole runs with keys of its own, in which one thing is wrong and everything else fits.

A copy of a real run that was changed is always given away by the seal's digest over the store, too. In a run that is
signed anew, each check of a verifier is the only one that can find its fault.
"""
import base64
import contextlib
import hashlib
import pathlib
import sqlite3
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "contrib"))
import verify  # noqa: E402, F401
from verifier import ed25519  # noqa: E402
from verifier.certificate import FIELDS, USES  # noqa: E402, F401
from verifier.encoding import canonical, digest, document, fingerprint  # noqa: E402
from verifier.note import host_name, key_id  # noqa: E402
from verifier.run import columns  # noqa: E402
from verifier.store import database, file_digest  # noqa: E402, F401
from verifier.tree import Tree, leaf_of  # noqa: E402

TIME = "2026-01-01T00:00:00.000000000Z"
TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE records(seq INTEGER PRIMARY KEY, type TEXT NOT NULL, kind TEXT, how TEXT, state TEXT, process INTEGER,
	pid INTEGER, json BLOB NOT NULL, leaf BLOB NOT NULL);
CREATE TABLE checkpoints(size INTEGER PRIMARY KEY, note BLOB NOT NULL);
CREATE TABLE documents(name TEXT PRIMARY KEY, bytes BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE blobs(digest BLOB PRIMARY KEY, seq INTEGER NOT NULL, bytes BLOB NOT NULL) WITHOUT ROWID;
PRAGMA user_version=3;
"""
LOG_TABLES = """
CREATE TABLE entries(seq INTEGER PRIMARY KEY, run TEXT, event TEXT NOT NULL, json BLOB NOT NULL, leaf BLOB NOT NULL);
CREATE INDEX by_run ON entries(run);
CREATE TABLE checkpoints(size INTEGER PRIMARY KEY, note BLOB NOT NULL, parts BLOB NOT NULL);
"""


def dump(value):
    return canonical(value).encode()


def load(data):
    return document(data)


def text64(data):
    return base64.b64encode(data).decode()


def root_of(leaves):
    tree = Tree()
    for leaf in leaves:
        tree.append(leaf)
    return tree.root()


class Folder:
    """A copy of one run, with the log of its host, to be forged."""

    def __init__(self, state, run, others=None):
        self.state, self.run, self.others, self.path = state, run, others or {}, state / "runs" / run
        self.store, self.seal, self.log = self.path / "run.sqlite", self.path / "seal", state / "log.sqlite"

    def file(self, name):
        return self.path / name

    def drop_log(self):
        for end in ("", "-wal", "-shm"):
            self.log.with_name(f"log.sqlite{end}").unlink(missing_ok=True)


def descendants(pid):
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        with contextlib.suppress(OSError):
            children = [int(one) for task in pathlib.Path(f"/proc/{parent}/task").iterdir()
                        for one in (task / "children").read_text().split()]
            found, waiting = found + children, waiting + children
    return found


class Key:
    """A signing key; the same word makes the same one."""

    def __init__(self, word):
        self.seed = hashlib.sha256(word.encode()).digest()
        state = hashlib.sha512(self.seed).digest()
        self.scalar = int.from_bytes(state[:32], "little") & ((1 << 254) - 8) | 1 << 254
        self.prefix, self.public = state[32:], self.times(self.scalar)
        self.fingerprint = fingerprint(self.public)

    @staticmethod
    def times(scalar):
        return ed25519.encoded(ed25519.accumulate(ed25519.NEUTRAL, ed25519.base_table(), scalar))

    def sign(self, message):
        r = int.from_bytes(hashlib.sha512(self.prefix + message).digest(), "little") % ed25519.L
        start = self.times(r)
        k = int.from_bytes(hashlib.sha512(start + self.public + message).digest(), "little") % ed25519.L
        return start + ((r + k * self.scalar) % ed25519.L).to_bytes(32, "little")


class Malleable(Key):
    """Its scalars are beyond the order of the group."""

    def sign(self, message):
        whole = super().sign(message)
        return whole[:32] + (int.from_bytes(whole[32:], "little") + ed25519.L).to_bytes(32, "little")


class SmallOrder(Key):
    """Its public key is the neutral element, for which every signature can be made without a secret."""

    def __init__(self, word):
        super().__init__(word)
        self.public = (1).to_bytes(32, "little")
        self.fingerprint = fingerprint(self.public)

    def sign(self, message):
        return self.times(5) + (5).to_bytes(32, "little")


def note(lines, name, key):
    text = "".join(f"{line}\n" for line in lines)
    return f"{text}\n— {name} {text64(key_id(name, key.public) + key.sign(text.encode()))}\n".encode()


def checkpoint(origin, size, root, key, *more, name=None):
    return note([origin, size, text64(root), *more], name or origin, key)


class Run:
    """What a run is made of. A case changes some of it, and write() signs the rest so that it fits."""

    def __init__(self, run, records):
        self.run, self.origin = run, f"assure.run/{run}"
        self.host, self.other = Key("host"), Key("other host")
        self.keys = {use: Key(use) for use in USES}
        self.records = [load(record) for record in records]
        self.data = {}  # index: bytes in the stead of a record
        self.columns = {}  # index: the six columns in the stead of what the record says
        self.first = {}  # fields of the first record in the stead of the right ones
        self.payloads, self.envelopes, self.signers = {use: {} for use in USES}, {use: {} for use in USES}, {}
        self.certificates, self.documents = {}, {}
        self.sizes, self.notes = [len(records) // 2, len(records)], {}
        self.seal_key, self.seal_lines, self.seal_name, self.store_line = None, None, None, True
        self.meta, self.sql, self.log_sql, self.seal_root = {}, [], [], None
        self.blobs = []  # (index of the record that brings it, bytes)
        self.start, self.end, self.log, self.log_key = {}, {}, None, None

    def sealing(self):
        return self.records[-1]

    def renumber(self):
        for index, record in enumerate(self.records):
            record["seq"] = index

    def certificate(self, use):
        payload = {"host": "forge", "payloadType": "run-key", "publicKey": text64(self.keys[use].public),
                   "runId": self.run, "startedAt": TIME, "use": use, **self.payloads[use]}
        signer = self.signers.get(use, self.host)
        meta = {"algorithm": "Ed25519", "publicKeyFingerprint": signer.fingerprint, "signedAt": TIME,
                "signedFields": sorted(payload), **self.envelopes[use]}
        signature = signer.sign(dump({"_meta": meta, "_payload": payload}))
        return self.certificates.get(use) or dump({**meta, "payload": payload, "signature": text64(signature)})

    def write(self, state):
        folder = state / "runs" / self.run
        folder.mkdir(parents=True, mode=0o700)
        state.chmod(0o700)
        prints = {use: key.fingerprint for use, key in self.keys.items()}
        self.records[0].update({"run": self.run, "keys": prints, "host_key": self.host.fingerprint, **self.first})
        data = [self.data.get(index) or dump(record) for index, record in enumerate(self.records)]
        leaves = [leaf_of(one) for one in data]
        certificates = {use: self.certificate(use) for use in USES}
        documents = {f"certificate/{use}": certificates[use] for use in USES}
        documents["host-key"] = text64(self.host.public).encode()
        documents.update(self.documents)
        notes = {size: checkpoint(self.origin, size, root_of(leaves[:size]), self.keys["ledger"])
                 for size in self.sizes}
        notes.update({size: make(leaves) for size, make in self.notes.items()})
        last = self.sealing()
        meta = {"run": self.run, "name": self.records[0].get("name"), "started_ns": 1, "ended_ns": 2, "reason": "",
                "complete": int(last.get("complete", False)), "records": len(data),
                "effects": sum(one["schema"] == "assure.effect/1" for one in self.records), **self.meta}
        with sqlite3.connect(folder / "run.sqlite") as db:
            db.executescript(TABLES)
            db.executemany("INSERT INTO meta VALUES(?,?)", [one for one in meta.items() if one[1] is not None])
            db.executemany("INSERT INTO records VALUES(?,?,?,?,?,?,?,?,?)", [
                (index, *self.columns.get(index, columns(record)), data[index], leaves[index])
                for index, record in enumerate(self.records)])
            db.executemany("INSERT INTO checkpoints VALUES(?,?)", notes.items())
            db.executemany("INSERT INTO documents VALUES(?,?)", documents.items())
            db.executemany("INSERT INTO blobs VALUES(?,?,?)", [
                (hashlib.sha256(content).digest(), index, content) for index, content in self.blobs])
            for statement in self.sql:
                db.execute(statement)
        db.close()
        root = self.seal_root or root_of(leaves)
        store = file_digest(folder / "run.sqlite")
        lines = list(self.seal_lines or ["seal"])
        if self.store_line:
            lines.append(f"store {(folder / 'run.sqlite').stat().st_size} {store}")
        (folder / "seal").write_bytes(
            checkpoint(self.origin, len(data), root, self.seal_key or self.keys["ledger"], *lines, name=self.seal_name))
        start = {"event": "start", "run": self.run, "keys": prints,
                 "certificates": {use: digest(one) for use, one in certificates.items()}, **self.start}
        end = {"event": "seal", "run": self.run, "size": len(data), "root": text64(root),
               "complete": bool(last.get("complete")), **({"store": store} if self.store_line else {}), **self.end}
        if self.log is not False:
            self.write_log(state, self.log(start, end) if self.log else [start, end])

    def write_log(self, state, entries):
        tree, signer = Tree(), self.log_key or self.host
        entries = [{"event": "key", "fingerprint": signer.fingerprint, "public_key": text64(signer.public)}, *entries]
        with sqlite3.connect(state / "log.sqlite") as db:
            db.executescript(LOG_TABLES)
            for index, entry in enumerate(entries):
                signer = entry.pop("signer", signer)
                data = dump({"previous": text64(tree.root()), "schema": "assure.log/1", "seq": index, "time": TIME,
                             **entry})
                tree.append(leaf_of(data))
                name = host_name(signer.public)
                db.execute("INSERT INTO entries VALUES(?,?,?,?,?)",
                           (index, entry.get("run"), entry["event"], data, leaf_of(data)))
                db.execute("INSERT INTO checkpoints VALUES(?,?,?)", (
                    index + 1, checkpoint(name, index + 1, tree.root(), signer), b"".join(tree.parts)))
            for statement in self.log_sql:
                db.execute(statement)
        db.close()
