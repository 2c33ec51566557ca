#!/usr/bin/env python3
"""A second verifier of sealed runs, written from specs/LEDGER.md alone: it shares no code with assure.

    contrib/verify.py RUNFOLDER [--log LOG.sqlite] [--key FINGERPRINT|FILE]... [--json]
    contrib/verify.py FILE.assure [--key FINGERPRINT|FILE]... [--json]

RUNFOLDER is <state>/runs/<RUN>; the host log is the log.sqlite of <state>, when there is one. Without --key the keys of
the host log are believed.

Exit status: 0 intact and complete, 1 tampered with, 2 intact but incomplete or recovered, 3 unreadable, 4 intact but
signed by a key that was not named.
"""
import argparse
import base64
import binascii
import contextlib
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import struct
import sys
import tempfile

INTACT, TAMPERED, INCOMPLETE, UNREADABLE, UNNAMED = range(5)
VERDICTS = ("intact", "tampered", "incomplete", "unreadable", "unnamed")
MOST_RECORD, MOST_NOTE, MOST_DOCUMENT, MOST_EXTRACT = 65535, 4096, 65536, 1 << 26
USES = ("issuer", "ledger", "tool-executor", "witness")
FIELDS = ["host", "payloadType", "publicKey", "runId", "startedAt", "use"]
RUN_NAME = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
FINGERPRINT = re.compile(r"[0-9a-f]{64}")
NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")
TABLES = {
    "run": {
        "meta": ("key", "value"),
        "records": ("seq", "type", "kind", "how", "state", "process", "pid", "json", "leaf"),
        "checkpoints": ("size", "note"),
        "documents": ("name", "bytes"),
    },
    "log": {"entries": ("seq", "run", "event", "json", "leaf"), "checkpoints": ("size", "note", "parts")},
}


class Fault(Exception):
    """Something is not what was signed. `what` is one word; `seq` the record, where it is one."""

    def __init__(self, what, message, seq=None):
        super().__init__(message)
        self.what, self.seq = what, seq


class Unreadable(Exception):
    pass


def require(condition, what, message, seq=None):
    if not condition:
        raise Fault(what, message, seq)


# Ed25519 (RFC 8032), strict


P = 2 ** 255 - 19
L = 2 ** 252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)
NEUTRAL = (0, 1, 1, 0)


def add(a, b):
    x1, y1, z1, t1 = a
    x2, y2, z2, t2 = b
    m, n, o, q = (y1 - x1) * (y2 - x2) % P, (y1 + x1) * (y2 + x2) % P, 2 * t1 * t2 * D % P, 2 * z1 * z2 % P
    e, f, g, h = n - m, q - o, q + o, n + m
    return e * f % P, g * h % P, f * g % P, e * h % P


def point(data):
    """The point that 32 bytes encode, or None. Another encoding of a point is none."""
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & (1 << 255) - 1
    if len(data) != 32 or y >= P:
        return None
    u, v = (y * y - 1) % P, (D * y * y + 1) % P
    x = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    if v * x * x % P != u:
        x = x * ROOT % P
    if v * x * x % P != u or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


def encoded(p):
    inverse = pow(p[2], P - 2, P)
    x, y = p[0] * inverse % P, p[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def small_order(p):
    for _ in range(3):
        p = add(p, p)
    return p[0] % P == 0 and (p[1] - p[2]) % P == 0


def multiples(p):
    """For each of 64 hexadecimal digits of a scalar, the multiples of p that it can stand for."""
    table = []
    for _ in range(64):
        row = [NEUTRAL]
        for _ in range(15):
            row.append(add(row[-1], p))
        table.append(row)
        p = add(row[-1], p)
    return table


def accumulate(total, table, scalar):
    for row in table:
        if scalar & 15:
            total = add(total, row[scalar & 15])
        scalar >>= 4
    return total


@functools.lru_cache(maxsize=8)
def key_table(key):
    """The multiples of a key's opposite; None when the key is none."""
    p = point(key)
    return None if p is None or small_order(p) else multiples((P - p[0], p[1], 1, P - p[3]))


@functools.lru_cache(maxsize=1)
def base_table():
    return multiples(point((4 * pow(5, P - 2, P) % P).to_bytes(32, "little")))


def signed(key, signature, message):
    table, r, s = key_table(key), signature[:32], int.from_bytes(signature[32:], "little")
    start = point(r)
    if len(signature) != 64 or table is None or s >= L or start is None or small_order(start):
        return False
    k = int.from_bytes(hashlib.sha512(r + key + message).digest(), "little") % L
    return encoded(accumulate(accumulate(NEUTRAL, base_table(), s), table, k)) == r


# Encodings


def fingerprint(key):
    return hashlib.sha256(bytes.fromhex("302a300506032b6570032100") + key).hexdigest()


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def from_base64(text, size=None):
    """None when it is not the one padded encoding of so many bytes."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (AttributeError, UnicodeEncodeError, binascii.Error):
        return None
    return data if base64.b64encode(data).decode() == text and size in (None, len(data)) else None


def canonical_number(value):
    value = float(value)
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("no number")
    if value == 0:
        return "0"
    sign, text = "-" if value < 0 else "", repr(abs(value))
    mantissa, _, exponent = text.partition("e")
    whole, _, part = mantissa.partition(".")
    digits = (whole + part).lstrip("0")
    places = len(whole) + int(exponent or 0) - (len(whole + part) - len(digits))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= places <= 21:
        return sign + digits + "0" * (places - count)
    if 0 < places <= 21:
        return f"{sign}{digits[:places]}.{digits[places:]}"
    if -6 < places <= 0:
        return f"{sign}0.{'0' * -places}{digits}"
    tail = f".{digits[1:]}" if count > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if places > 0 else '-'}{abs(places - 1)}"


def canonical(value):
    """Any document in the form of RFC 8785."""
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(f"{canonical(key)}:{canonical(value[key])}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return canonical_number(value)
    return json.dumps(value, ensure_ascii=False)


def unique(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name twice")
    return found


def refuse(text):
    raise ValueError(text)


def document(data):
    """The object that canonical JSON stands for, or None."""
    try:
        value = json.loads(data.decode(), object_pairs_hook=unique, parse_constant=refuse)
        return value if isinstance(value, dict) and canonical(value).encode() == data else None
    except (ValueError, OverflowError, RecursionError):
        return None


def count(value):
    """A number as records have it: a decimal string beyond 2**53 - 1."""
    if isinstance(value, str) and NUMBER.fullmatch(value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


# Tree and notes


class Tree:
    """The head of a growing Merkle tree: the roots of its full parts, largest first."""

    def __init__(self):
        self.size, self.parts = 0, []

    def append(self, leaf):
        position, self.size = self.size, self.size + 1
        while position & 1:
            leaf = hashlib.sha256(b"\1" + self.parts.pop() + leaf).digest()
            position >>= 1
        self.parts.append(leaf)

    def root(self):
        if not self.parts:
            return hashlib.sha256(b"").digest()
        return functools.reduce(lambda right, left: hashlib.sha256(b"\1" + left + right).digest(), self.parts[::-1])


def leaf_of(data):
    return hashlib.sha256(b"\0" + data).digest()


def root_by_proof(leaf, index, size, proof):
    """RFC 9162 section 2.1.3.2; None when the proof has not the length for it."""
    last, here = size - 1, leaf
    for other in proof:
        if last == 0:
            return None
        if index & 1 or index == last:
            here = hashlib.sha256(b"\1" + other + here).digest()
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            here = hashlib.sha256(b"\1" + here + other).digest()
        index, last = index >> 1, last >> 1
    return here if last == 0 else None


class Note:
    """A checkpoint: its lines, and by which name it says that it is signed."""

    def __init__(self, data, what):
        require(isinstance(data, bytes) and len(data) <= MOST_NOTE, what, "a checkpoint that is no note")
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise Fault(what, "a checkpoint that is not text") from None
        form = re.fullmatch(r"([^\n]+\n(?:[^\n]+\n)*)\n— ([^ \n+]+) ([A-Za-z0-9+/=]+)\n", text)
        require(form, what, "a checkpoint that is not a note with one signature")
        self.text, self.name, blob = form.group(1), form.group(2), from_base64(form.group(3), 68)
        lines = self.text.split("\n")[:-1]
        require(len(lines) >= 3 and NUMBER.fullmatch(lines[1]) and blob, what, "a checkpoint without its form")
        self.origin, self.size, self.root, self.more = lines[0], int(lines[1]), from_base64(lines[2], 32), lines[3:]
        require(self.root is not None, what, "a checkpoint whose root is none")
        self.key_id, self.signature = blob[:4], blob[4:]

    def check(self, origin, name, key, what):
        require(self.origin == origin, what, f"a checkpoint of {self.origin}, not of {origin}")
        require(self.name == name, what, f"a checkpoint signed as {self.name}, not as {name}")
        require(self.key_id == hashlib.sha256(name.encode() + b"\n\1" + key).digest()[:4], what,
                "a checkpoint signed by another key")
        require(signed(key, self.signature, self.text.encode()), what, "a checkpoint whose signature is wrong")


def host_name(key):
    return f"assure.host/{fingerprint(key)[:16]}"


# Stores


def beside(path, suffix):
    other = pathlib.Path(f"{path}{suffix}")
    return other if other.exists() and other.stat().st_size else None


@contextlib.contextmanager
def database(path, kind):
    """The store, with nothing changed in its folder; one with a write-ahead log that nobody has open, in a copy."""
    with tempfile.TemporaryDirectory(prefix="verify-") as stage, contextlib.ExitStack() as stack:
        mode = "mode=ro&immutable=1"
        if beside(path, "-wal"):
            mode = "mode=ro"
            if not beside(path, "-shm") or not os.access(path.parent, os.W_OK):
                shutil.copyfile(path, f"{stage}/copy")
                shutil.copyfile(f"{path}-wal", f"{stage}/copy-wal")
                path, mode = pathlib.Path(stage, "copy"), "mode=rw"
        uri = path.resolve().as_uri()
        connection = stack.enter_context(contextlib.closing(sqlite3.connect(f"{uri}?{mode}", uri=True)))
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        connection.execute("PRAGMA trusted_schema=OFF")
        found = dict(connection.execute("SELECT name, type FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"))
        found.pop("by_run" if kind == "log" else "", None)
        require(found == dict.fromkeys(TABLES[kind], "table"), "schema", f"{path.name} has not the tables of a {kind}")
        for table, columns in TABLES[kind].items():
            names = tuple(row[1] for row in connection.execute(f"PRAGMA table_xinfo({table})"))
            require(names == columns, "schema", f"the table {table} has not its columns")
        yield connection


def limited(column, most):
    return f"CASE WHEN typeof({column})='blob' AND length({column})<={most} THEN {column} END"


def file_digest(path):
    state = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            state.update(block)
    return "sha256:" + state.hexdigest()


# One run


def certified(data, run, use, host):
    """The key of a certificate, and whose host's it is."""
    envelope = document(data)
    names = {"algorithm", "publicKeyFingerprint", "signedAt", "signedFields"}
    require(envelope and set(envelope) == names | {"payload", "signature"}, "certificate", f"{use}: no envelope")
    payload, signature = envelope["payload"], from_base64(envelope["signature"], 64)
    require(isinstance(payload, dict) and sorted(payload) == FIELDS and envelope["signedFields"] == FIELDS and
            all(isinstance(value, str) for value in [*payload.values(), envelope["signedAt"]]) and
            envelope["algorithm"] == "Ed25519" and payload["payloadType"] == "run-key", "certificate",
            f"{use}: not the form of a run key's certificate")
    require(envelope["publicKeyFingerprint"] == fingerprint(host), "certificate", f"{use}: of another host key")
    message = canonical({"_meta": {name: envelope[name] for name in names}, "_payload": payload}).encode()
    require(signature and signed(host, signature, message), "certificate", f"{use}: the signature is wrong")
    require(payload["runId"] == run, "swapped", f"the certificate of {use} is of the run {payload['runId']}")
    require(payload["use"] == use, "key-use", f"the certificate of {use} is one for {payload['use']}")
    key = from_base64(payload["publicKey"], 32)
    require(key, "certificate", f"{use}: no key")
    return key, payload["host"]


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
    def __init__(self, store, seal, run):
        self.store, self.run, self.origin = store, run, f"assure.run/{run}"
        self.seal = seal and Note(seal, "seal")
        self.recovered, self.digest, self.effects, self.first, self.last = None, None, 0, None, None
        if self.seal:
            lines = list(self.seal.more)
            kind = re.fullmatch(r"seal|recovered (0|[1-9][0-9]{0,17})", lines.pop(0) if lines else "")
            require(kind, "seal", "the seal does not say that it is one")
            self.recovered = kind.group(1) and int(kind.group(1))
            line = re.fullmatch(r"store (0|[1-9][0-9]{0,17}) (sha256:[0-9a-f]{64})", lines[0]) if lines else None
            require(len(lines) == (line is not None), "seal", "the seal has a line that is none of its own")
            self.digest = line and (int(line.group(1)), line.group(2))
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
        require(self.digest in (None, (self.store.stat().st_size, file_digest(self.store))), "store",
                "the bytes of the store are not what the seal covers")

    def check_keys(self):
        version, = self.db.execute("PRAGMA user_version").fetchone()
        if version != 2:
            raise Unreadable(f"schema version {version}")
        documents = dict(self.db.execute(f"SELECT name, {limited('bytes', MOST_NOTE)} FROM documents LIMIT 6"))
        names = {use: f"certificate/{use}" for use in USES}
        require(set(documents) == {"host-key", *names.values()}, "certificate", "the documents are not the five")
        self.host = from_base64((documents["host-key"] or b"").decode("latin-1"), 32)
        require(self.host, "certificate", "the host's key is none")
        row = self.db.execute(f"SELECT {limited('json', MOST_RECORD)}, leaf FROM records WHERE seq=0").fetchone()
        self.first = document(row[0] or b"") if row else None
        require(self.first and leaf_of(row[0]) == row[1], "changed" if row else "missing", "the first record", 0)
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
            if record is None or record.get("seq") != index or record["seq"] is True or leaf_of(data) != leaf:
                raise self.diagnosis(index, data, record, base)
            require(all(name in record for name in ("schema", "time", "mono_ns", "lane", "class")) and
                    row[1:7] == columns(record), "columns", f"record {index}: its columns say something else", index)
            require(before != "assure.recovery/1" and
                    (before != "assure.seal/1" or record["schema"] == "assure.recovery/1"), "behind",
                    f"record {index} stands behind the last one", index)
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
                f"a record from {self.covered} is not what was sealed", self.covered)

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


# The host log


def log_entry(data, tree):
    entry = document(data or b"")
    require(entry and entry.get("schema") == "assure.log/1" and entry.get("seq") == tree.size, "log",
            f"entry {tree.size} of the host log is none", tree.size)
    return entry


def read_log(path, run):
    """The keys that the host log knows, and its entries of a run."""
    tree, keys, entries, current = Tree(), {}, [], None
    with database(path, "log") as db:
        notes = db.execute(f"SELECT size, {limited('note', MOST_NOTE)}, {limited('parts', 2048)} FROM checkpoints "
                           "ORDER BY size")
        for seq, of, event, data, leaf in db.execute(
                f"SELECT seq, run, event, {limited('json', MOST_RECORD)}, leaf FROM entries ORDER BY seq"):
            entry = log_entry(data, tree)
            require((seq, of, event, leaf) == (tree.size, entry.get("run"), entry.get("event"), leaf_of(data)) and
                    from_base64(entry.get("previous")) == tree.root(), "log", f"entry {seq} of the log was changed")
            signer = current
            if event == "key":
                key = from_base64(entry.get("public_key"), 32)
                require(key and entry.get("fingerprint") == fingerprint(key) and
                        entry.get("replaces") == (current and fingerprint(current)), "log", f"entry {seq} is no key")
                signer, current, keys[fingerprint(key)] = current or key, key, key
            require(signer, "log", "the host log does not begin with a key")
            tree.append(leaf)
            size, data, parts = notes.fetchone() or (0, b"", b"")
            note = Note(data, "log")
            note.check(host_name(signer), host_name(signer), signer, "log")
            require((size, note.size, note.root, note.more, parts) ==
                    (tree.size, tree.size, tree.root(), [], b"".join(tree.parts)), "log",
                    f"the host log to entry {seq} is not what its checkpoint says")
            if of == run:
                require(len(entries) < 16, "log", "the host log has too many entries of this run")
                entries.append(entry)
        require(not notes.fetchone(), "log", "a checkpoint of the host log covers entries that are not there")
    return keys, entries


def read_extract(data, run, host, given):
    """The entries of a run in a bundle; each is proven to be in the host log."""
    extract = document(data)
    require(extract and set(extract) == {"checkpoint", "entries", "proofs", "schema"} and
            all(isinstance(extract[name], list) for name in ("entries", "proofs")) and
            len(extract["entries"]) == len(extract["proofs"]) and isinstance(extract["checkpoint"], str), "log",
            "the bundle's part of the host log has not its form")
    note, entries, before = Note(extract["checkpoint"].encode(), "log"), [], -1
    signer = next((key for key in [host, *filter(None, given.values())] if host_name(key) == note.name), host)
    note.check(host_name(signer), host_name(signer), signer, "log")
    for text, proof in zip(extract["entries"], extract["proofs"]):
        require(isinstance(text, str) and isinstance(proof, dict) and set(proof) == {"index", "proof"} and
                isinstance(proof["proof"], list) and type(proof["index"]) is int and
                before < proof["index"] < note.size, "log", "an entry of the bundle without its proof")
        entry, nodes = document(text.encode("utf-8", "replace")), [from_base64(one, 32) for one in proof["proof"]]
        require(entry and None not in nodes and entry.get("schema") == "assure.log/1" and entry.get("run") == run and
                entry.get("seq") == proof["index"] and root_by_proof(
                    leaf_of(text.encode()), proof["index"], note.size, nodes) == note.root, "log",
                "an entry of the bundle is not in the host log")
        before = proof["index"]
        entries.append(entry)
    return entries


def check_logged(run, entries):
    events = [entry.get("event") for entry in entries]
    end = "seal" if run.recovered is None else "recovery"
    require(events.count("start") == 1 and events[0] == "start", "log", "the host log has not one start of this run")
    require(events.count("seal") < 2, "two-seals", "the host log has two seals of this run")
    require(events[1:] == [end] * bool(run.seal), "log",
            f"the host log says of this run: {', '.join(events)}; its folder has {'a' if run.seal else 'no'} seal")
    require(entries[0].get("keys") == run.keys and entries[0].get("certificates") == run.certificates, "log",
            "the host log has other keys of this run")
    if run.seal:
        said = [entries[1].get(name) for name in ("size", "root", "store")]
        require(said == [run.seal.size, base64.b64encode(run.seal.root).decode(), run.digest and run.digest[1]] and
                (end == "recovery" or entries[1].get("complete") is run.complete), "log",
                "the host log has another seal of this run")


# What was asked


def bundle_parts(path, stage):
    """The parts of a bundle: the store as a file, the others as bytes."""
    with open(path, "rb") as file:
        header = document(file.readline(MOST_NOTE).removesuffix(b"\n"))
        if not header or header.get("schema") != "assure.bundle/1" or not isinstance(header.get("parts"), list):
            raise Unreadable("no bundle")
        parts, names = {}, [part.get("name") if isinstance(part, dict) else None for part in header["parts"]]
        require(set(header) == {"parts", "run", "schema"} and
                names in (["run.sqlite", "seal"], ["run.sqlite", "seal", "log"]), "bundle", "not the parts of a bundle")
        for part in header["parts"]:
            size = count(part.get("size"))
            require(set(part) == {"name", "sha256", "size"} and size is not None, "bundle", "a part without its form")
            target, state = pathlib.Path(stage, part["name"]), hashlib.sha256()
            with open(target, "wb") as out:
                while size and (block := file.read(min(size, 1 << 20))):
                    state.update(block)
                    out.write(block)
                    size -= len(block)
            require(size == 0, "cut", "the bundle ends early")
            require(part["sha256"] == "sha256:" + state.hexdigest(), "bundle", f"{part['name']} was changed")
            parts[part["name"]] = target
        require(not file.read(1), "behind", "something stands behind the bundle's last part")
    return header["run"], parts


def small(path, most):
    with open(path, "rb") as file:
        return file.read(most + 1)


def verify(path, log, given):
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
        run = Run(store, small(seal, MOST_NOTE) if os.path.lexists(seal) else None, name)
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
        "recovered": run.recovered is not None, "in_log": bool(entries), "store_covered": run.digest is not None,
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
