"""Forgeries of copies of real runs. A case gets a Folder: the state, the run, and the other runs to take from."""
import json
import shutil
import sqlite3

from forge import USES, Key, digest, dump, file_digest, leaf_of, load, note, root_of, text64

CASES = {}
SOURCES = ("long", "watched")  # sealed at rest; sealed while somebody read, so without a digest over the store


RECORDS = (*SOURCES, "recovered")  # closed by the host's key


def case(name, *statuses, sources=SOURCES, what=None):
    def add(function):
        for source in sources:
            CASES[f"{source}-{name}"] = (source, function, set(statuses or (1,)), what)
        return function
    return add


class Rows:
    """The records of a store, to be changed and written back."""

    def __init__(self, folder):
        self.db = sqlite3.connect(folder.store)
        self.rows = [list(row) for row in self.db.execute("SELECT * FROM records ORDER BY seq")]
        self.at = len(self.rows) // 3

    def write(self, columns=True, inside=False, leaves=False):
        """Numbered anew: in the column, in the JSON, and with the leaves that follow."""
        for index, row in enumerate(self.rows):
            if columns:
                row[0] = index
            if inside:
                row[7] = dump({**load(row[7]), "seq": index})
            if leaves:
                row[8] = leaf_of(row[7])
        with self.db:
            self.db.execute("DELETE FROM records")
            self.db.executemany("INSERT INTO records VALUES(?,?,?,?,?,?,?,?,?)", self.rows)
        self.db.close()

    def change(self, index, **values):
        self.rows[index][7] = dump({**load(self.rows[index][7]), **values})


def sql(folder, *statements, log=False):
    with sqlite3.connect(folder.log if log else folder.store) as db:
        for statement in statements:
            db.execute(*statement if isinstance(statement, tuple) else (statement,))
    db.close()


HOW = {"": {}, "-numbered": {"inside": True}, "-hashed": {"leaves": True},
       "-numbered-hashed": {"inside": True, "leaves": True}}


def changed(folder, index, **how):
    rows = Rows(folder)
    rows.change(index if index is not None else rows.at, time="2001-01-01T00:00:00.000000000Z")
    rows.write(**how)


def removed(folder, **how):
    rows = Rows(folder)
    del rows.rows[rows.at]
    rows.write(**how)


def added(folder, **how):
    rows = Rows(folder)
    rows.rows.insert(rows.at, list(rows.rows[2]))
    rows.change(rows.at, time="2001-01-01T00:00:00.000000000Z")
    rows.write(**how)


def duplicated(folder, **how):
    rows = Rows(folder)
    rows.rows.insert(rows.at, list(rows.rows[rows.at]))
    rows.write(**how)


def exchanged(folder, **how):
    rows = Rows(folder)
    one, other = rows.rows[rows.at], rows.rows[rows.at + 3]
    rows.rows[rows.at], rows.rows[rows.at + 3] = other, one
    rows.write(**how)


def json_exchanged(folder, **how):
    rows = Rows(folder)
    one, other = rows.rows[rows.at], rows.rows[rows.at + 3]
    one[7], other[7] = other[7], one[7]
    rows.write(**how)


for suffix, how in HOW.items():
    case(f"changed{suffix}", sources=RECORDS, what="changed")(lambda folder, how=how: changed(folder, None, **how))
    case(f"first-changed{suffix}", sources=RECORDS, what="changed")(lambda folder, how=how: changed(folder, 0, **how))
    case(f"last-changed{suffix}", sources=RECORDS, what="changed")(lambda folder, how=how: changed(folder, -1, **how))
    # Numbered and hashed anew, nothing tells what was done; only that the root is another.
    whole = "numbered" in suffix
    case(f"removed{suffix}", sources=RECORDS, what=None if whole else "missing")(
        lambda folder, how=how: removed(folder, **how))
    case(f"added{suffix}", sources=RECORDS, what=None)(lambda folder, how=how: added(folder, **how))
    case(f"duplicated{suffix}", sources=RECORDS, what=None if whole else "duplicated")(
        lambda folder, how=how: duplicated(folder, **how))
    case(f"exchanged{suffix}", sources=RECORDS, what=None if whole else "exchanged")(
        lambda folder, how=how: exchanged(folder, **how))
    case(f"json-exchanged{suffix}", sources=RECORDS, what=None if whole else "exchanged")(
        lambda folder, how=how: json_exchanged(folder, **how))
case("hole", what="missing")(lambda folder: sql(folder, "DELETE FROM records WHERE seq=7"))


@case("added-behind", sources=RECORDS, what="behind")
def added_behind(folder):
    rows = Rows(folder)
    rows.rows.append(list(rows.rows[2]))
    rows.change(-1, seq=len(rows.rows) - 1)
    rows.write(leaves=True)


@case("tail-cut")
def tail_cut(folder):
    sql(folder, "DELETE FROM records WHERE seq>=(SELECT max(seq)-5 FROM records)")


@case("tail-cut-with-checkpoints", sources=RECORDS, what="cut")
def tail_cut_checkpoints(folder):
    sql(folder, "DELETE FROM records WHERE seq>=(SELECT max(seq)-5 FROM records)",
        "DELETE FROM checkpoints WHERE size>(SELECT count(*) FROM records)")


@case("tail-cut-without-seal", sources=RECORDS)
def tail_cut_unsealed(folder):
    tail_cut_checkpoints(folder)
    folder.seal.unlink()


@case("cut-to-a-checkpoint-without-seal", what="log")
def tail_cut_to_checkpoint(folder):
    sql(folder, "DELETE FROM checkpoints WHERE size>(SELECT min(size) FROM checkpoints)",
        "DELETE FROM records WHERE seq>=(SELECT max(size) FROM checkpoints)")
    folder.seal.unlink()


@case("seal-removed", sources=RECORDS, what="log")
def seal_removed(folder):
    folder.seal.unlink()


@case("seal-removed-without-log", 2, 4)
def seal_removed_without_log(folder):
    """As after a crash, on a host of which nothing is known."""
    folder.seal.unlink()
    folder.drop_log()


@case("everything-removed")
def everything(folder):
    sql(folder, "DELETE FROM records", "DELETE FROM checkpoints")


@case("tree-recomputed-without-signing")
def recomputed(folder):
    rows = Rows(folder)
    rows.change(rows.at, time="2001-01-01T00:00:00.000000000Z")
    rows.write(leaves=True)
    leaves = [row[8] for row in rows.rows]
    with sqlite3.connect(folder.store) as db:
        for size, data in db.execute("SELECT size, note FROM checkpoints").fetchall():
            lines = data.split(b"\n")
            lines[2] = text64(root_of(leaves[:size])).encode()
            db.execute("UPDATE checkpoints SET note=? WHERE size=?", (b"\n".join(lines), size))
    db.close()
    lines = folder.seal.read_bytes().split(b"\n")
    lines[2] = text64(root_of(leaves)).encode()
    if lines[4]:
        lines[4] = f"store {folder.store.stat().st_size} {file_digest(folder.store)}".encode()
    folder.seal.write_bytes(b"\n".join(lines))


def take(name, *what):
    def apply(folder):
        other = folder.others[name]
        if "seal" in what:
            shutil.copyfile(other / "seal", folder.seal)
        if "store" in what:
            for end in ("-wal", "-shm"):
                folder.store.with_name(f"run.sqlite{end}").unlink(missing_ok=True)
            shutil.copyfile(other / "run.sqlite", folder.store)
        if "documents" in what:
            sql(folder, ("ATTACH ? AS other", (str(other / "run.sqlite"),)), "DELETE FROM main.documents",
                "INSERT INTO main.documents SELECT * FROM other.documents")
        if "certificate" in what:
            sql(folder, ("ATTACH ? AS other", (str(other / "run.sqlite"),)), "INSERT OR REPLACE INTO main.documents "
                "SELECT * FROM other.documents WHERE name='certificate/ledger'")
        if "checkpoints" in what:
            sql(folder, ("ATTACH ? AS other", (str(other / "run.sqlite"),)), "DELETE FROM main.checkpoints",
                "INSERT INTO main.checkpoints SELECT * FROM other.checkpoints")
    return apply


for name in ("small", "foreign"):
    for what in (("seal",), ("store",), ("documents",), ("certificate",), ("checkpoints",), ("store", "seal"),
                 ("documents", "seal"), ("documents", "seal", "checkpoints")):
        case(f"{'-'.join(what)}-of-{name}")(take(name, *what))


# Certificates, checkpoints, and other rows


def certificate(use, change):
    def apply(folder):
        with sqlite3.connect(folder.store) as db:
            data, = db.execute("SELECT bytes FROM documents WHERE name=?", (f"certificate/{use}",)).fetchone()
            db.execute("UPDATE documents SET bytes=? WHERE name=?", (change(data), f"certificate/{use}"))
        db.close()
    return apply


for use in USES:
    case(f"certificate-{use}-host", what="certificate")(certificate(
        use, lambda data: data.replace(b'"host":"', b'"host":"x')))
    case(f"certificate-{use}-signature", what="certificate")(certificate(
        use, lambda data: dump({**load(data), "signature": text64(bytes(64))})))
    case(f"certificate-{use}-removed")(lambda folder, use=use: sql(
        folder, f"DELETE FROM documents WHERE name='certificate/{use}'"))
    case(f"certificate-{use}-renamed")(lambda folder, use=use: sql(
        folder, f"UPDATE documents SET name='certificate/x' WHERE name='certificate/{use}'"))
case("certificates-exchanged", what="key-use")(lambda folder: sql(
    folder, "UPDATE documents SET name='x' WHERE name='certificate/ledger'",
    "UPDATE documents SET name='certificate/ledger' WHERE name='certificate/witness'",
    "UPDATE documents SET name='certificate/witness' WHERE name='x'"))


@case("resigned-by-another-host")
def resigned(folder):
    """A record is changed, and everything is signed anew, by keys of the forger's own."""
    rows, host, ledger = Rows(folder), Key("forger"), Key("forger's ledger")
    rows.change(rows.at, time="2001-01-01T00:00:00.000000000Z")
    first = load(rows.rows[0][7])
    rows.change(0, host_key=host.fingerprint, keys={**first["keys"], "ledger": ledger.fingerprint})
    sizes = [size for size, in rows.db.execute("SELECT size FROM checkpoints")]
    documents = dict(rows.db.execute("SELECT * FROM documents"))
    rows.write(leaves=True)
    leaves, origin = [row[8] for row in rows.rows], f"assure.run/{folder.run}"
    documents["host-key"] = text64(host.public).encode()
    for use in USES:
        envelope = load(documents[f"certificate/{use}"])
        envelope["publicKeyFingerprint"] = host.fingerprint
        if use == "ledger":
            envelope["payload"]["publicKey"] = text64(ledger.public)
        payload, _ = envelope.pop("payload"), envelope.pop("signature")
        signature = host.sign(dump({"_meta": envelope, "_payload": payload}))
        documents[f"certificate/{use}"] = dump({**envelope, "payload": payload, "signature": text64(signature)})
    sql(folder, *[("UPDATE documents SET bytes=? WHERE name=?", (data, name)) for name, data in documents.items()],
        *[("UPDATE checkpoints SET note=? WHERE size=?", (
            note([origin, size, text64(root_of(leaves[:size]))], origin, ledger), size)) for size in sizes])
    lines = [origin, len(leaves), text64(root_of(leaves)), "seal"]
    if b"\nstore " in folder.seal.read_bytes():
        lines.append(f"store {folder.store.stat().st_size} {file_digest(folder.store)}")
    folder.seal.write_bytes(note(lines, origin, ledger))


@case("resigned-by-another-host-without-log", 4)
def resigned_without_log(folder):
    resigned(folder)
    folder.drop_log()


# In a run without a digest over the store nothing shows that a checkpoint in the middle is gone.
case("checkpoint-removed", sources=("long",))(lambda folder: sql(
    folder, "DELETE FROM checkpoints WHERE size=(SELECT min(size) FROM checkpoints)"))
for name, old, new in (("origin", b"assure.run/", b"assure.ruN/"), ("line-end", b"\n\n", b"\r\n\n"),
                       ("signature", b"=\n", b"A=\n")):
    case(f"checkpoint-{name}")(lambda folder, old=old, new=new: sql(folder, (
        "UPDATE checkpoints SET note=CAST(replace(note,?,?) AS BLOB) WHERE size=(SELECT min(size) FROM checkpoints)",
        (old.decode(), new.decode()))))
case("checkpoint-moved")(lambda folder: sql(folder, "UPDATE checkpoints SET size=size-1"))
case("checkpoint-repeated")(lambda folder: sql(
    folder, "INSERT INTO checkpoints SELECT min(size)-1, note FROM checkpoints"))
case("checkpoint-beyond")(lambda folder: sql(
    folder, "INSERT INTO checkpoints SELECT max(size)+1, note FROM checkpoints"))
case("document-more")(lambda folder: sql(folder, "INSERT INTO documents VALUES('x', x'00')"))
case("meta-more")(lambda folder: sql(folder, "INSERT INTO meta VALUES('x', 1)"))
case("meta-complete")(lambda folder: sql(folder, "UPDATE meta SET value=0 WHERE key='complete'"))
case("meta-name")(lambda folder: sql(folder, "UPDATE meta SET value='other' WHERE key='name'"))
case("meta-effects")(lambda folder: sql(folder, "UPDATE meta SET value=0 WHERE key='effects'"))
case("meta-ended", sources=("long",))(lambda folder: sql(folder, "UPDATE meta SET value=0 WHERE key='ended_ns'"))
case("table-more")(lambda folder: sql(folder, "CREATE TABLE other(x)"))
case("kind-column")(lambda folder: sql(folder, "UPDATE records SET kind='file.read' WHERE kind='file.create'"))
case("state-column")(lambda folder: sql(folder, "UPDATE records SET state='failed' WHERE state='ok'"))
case("type-column")(lambda folder: sql(folder, "UPDATE records SET type='x' WHERE type='assure.effect/1'"))
case("process-column")(lambda folder: sql(folder, "UPDATE records SET process=77 WHERE process=1"))


# The seal's file


def seal(change, *statuses):
    return lambda folder: folder.seal.write_bytes(change(folder.seal.read_bytes()))


for name, change in {
        "empty": lambda data: b"", "half": lambda data: data[:len(data) // 2], "line-more": lambda data: data + b"\n",
        "line-end-absent": lambda data: data[:-1], "text-behind": lambda data: data + b"more\n",
        "crlf": lambda data: data.replace(b"\n", b"\r\n"), "mark": lambda data: b"\xef\xbb\xbf" + data,
        "size": lambda data: data.replace(b"\n", b"\n0", 1), "not-utf-8": lambda data: data + b"\xff\n",
        "recovered": lambda data: data.replace(b"\nseal\n", b"\nrecovered 10\n"),
        "word-absent": lambda data: data.replace(b"\nseal\n", b"\n"),
        "word-twice": lambda data: data.replace(b"\nseal\n", b"\nseal\nseal\n"),
        "blank": lambda data: data.replace(b"\nseal\n", b"\nseal \n"),
        "store": lambda data: data.replace(b"\nseal\n", b"\nseal\nstore 1 sha256:" + b"0" * 64 + b"\n"),
        "signature-absent": lambda data: data.partition(b"\n\n")[0] + b"\n\n",
        "padding": lambda data: data[:-2] + b"\n", "zero": lambda data: bytes(len(data)),
        "long": lambda data: data + b"x" * (1 << 20)}.items():
    case(f"seal-{name}", 1, 3)(seal(change))
# A note may have signatures of others, which the page neither asks for nor excludes.
case("seal-signature-more", 0, 1)(seal(lambda data: data + "— other AAAAAA==\n".encode()))
case("seal-store-line-removed", sources=("long",))(seal(
    lambda data: b"\n".join(line for line in data.split(b"\n") if not line.startswith(b"store "))))
case("seal-is-a-folder", 1, 3)(lambda folder: (folder.seal.unlink(), folder.seal.mkdir()))


# Files


def cut(folder, part):
    with open(folder.store, "r+b") as file:
        file.truncate(int(folder.store.stat().st_size * part))


def append(path, data):
    with open(path, "ab") as file:
        file.write(data)


case("store-absent", 1, 3)(lambda folder: folder.store.unlink())
case("store-empty", 1, 3, sources=("long",))(lambda folder: cut(folder, 0))
case("store-half", 1, 3, sources=("long",))(lambda folder: cut(folder, 0.5))
case("store-behind", 1, 3, sources=("long",))(lambda folder: append(folder.store, b"x"))
case("store-page-behind", 1, 3, sources=("long",))(lambda folder: append(folder.store, bytes(4096)))
case("wal-beside", 1, 3, sources=("long",))(lambda folder: append(folder.file("run.sqlite-wal"), b"x" * 4096))
case("journal-beside", 1, 3, sources=("long",))(lambda folder: append(folder.file("run.sqlite-journal"), b"x" * 4096))
case("wal-removed", 1, 3, sources=("watched",))(lambda folder: folder.file("run.sqlite-wal").unlink())
# The page says nothing about other files; nobody reads them.
case("file-more", 0, 1)(lambda folder: append(folder.file("more"), b"x"))


@case("wal-that-says-more", sources=("long",))
def wal_with_changes(folder):
    """What a reader of the write-ahead log would see is another run; the store's own bytes are as they were."""
    copy = folder.state / "copy.sqlite"
    shutil.copyfile(folder.store, copy)
    db = sqlite3.connect(copy)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA wal_autocheckpoint=0")
    with db:
        db.execute("DELETE FROM records WHERE kind='file.create'")
    shutil.copyfile(f"{copy}-wal", folder.file("run.sqlite-wal"))
    db.close()


# The host log


def log(name, *statements, statuses=(1,)):
    case(f"log-{name}", *statuses, sources=("long",))(lambda folder: sql(
        folder, *[statement.replace("RUN", f"'{folder.run}'") for statement in statements], log=True))


OWN = "(SELECT seq FROM entries WHERE run=RUN AND event='seal')"
log("entry-changed", f"UPDATE entries SET json=CAST(replace(json,'true','false') AS BLOB) WHERE seq={OWN}")
log("entry-removed", f"DELETE FROM entries WHERE seq={OWN}")
log("start-removed", "DELETE FROM entries WHERE run=RUN AND event='start'")
log("run-removed", "DELETE FROM entries WHERE run=RUN")
log("entry-hidden", f"UPDATE entries SET run=NULL WHERE seq={OWN}")
log("second-seal", "INSERT INTO entries SELECT (SELECT max(seq)+1 FROM entries),run,event,json,leaf FROM entries "
    f"WHERE seq={OWN}")
log("tail-removed", f"DELETE FROM checkpoints WHERE size>{OWN}", f"DELETE FROM entries WHERE seq>={OWN}")
log("run-cut-off", "DELETE FROM checkpoints WHERE size>(SELECT min(seq) FROM entries WHERE run=RUN)",
    "DELETE FROM entries WHERE seq>=(SELECT min(seq) FROM entries WHERE run=RUN)")
log("head-removed", "DELETE FROM checkpoints WHERE size=(SELECT max(size) FROM checkpoints)")
log("heads-removed", "DELETE FROM checkpoints")
log("head-changed", "UPDATE checkpoints SET note=(SELECT note FROM checkpoints WHERE size=1) WHERE size>2")
# A log that names no key: the run is of a host that is not known.
log("all-removed", "DELETE FROM checkpoints", "DELETE FROM entries", statuses=(1, 4))
log("key-changed", "UPDATE entries SET json=CAST(replace(json,'public_key\":\"','public_key\":\"A') AS BLOB) "
    "WHERE seq=0")
log("table-more", "CREATE TABLE other(x)")
case("log-absent", 4, sources=("long",))(lambda folder: folder.drop_log())
case("log-empty", 1, 3, 4, sources=("long",))(lambda folder: (folder.drop_log(), folder.log.write_bytes(b"")))
case("log-garbage", 1, 3, sources=("long",))(
    lambda folder: (folder.drop_log(), folder.log.write_bytes(b"garbage" * 1000)))


@case("log-of-another-host", 1, 4, sources=("long",))
def log_of_another(folder):
    folder.drop_log()
    for end in ("", "-wal"):
        other = folder.others["foreign"].parents[1] / f"log.sqlite{end}"
        if other.exists():
            shutil.copyfile(other, folder.log.with_name(other.name))


# Bundles: bytes in, bytes out


BUNDLES = {}


def bundle(name, *statuses):
    def add(function):
        BUNDLES[name] = (function, set(statuses or (1, 3)))
        return function
    return add


def opened(data):
    header, _, rest = data.partition(b"\n")
    header, parts = json.loads(header), []
    for part in header["parts"]:
        parts.append((part["name"], rest[:part["size"]]))
        rest = rest[part["size"]:]
    return header["run"], parts


def closed(parts, **header):
    header = {"parts": [{"name": name, "sha256": digest(data), "size": len(data)} for name, data in parts],
              "schema": "assure.bundle/1", **header}
    return dump(header) + b"\n" + b"".join(data for _, data in parts)


def with_parts(change, **header):
    def apply(data):
        run, parts = opened(data)
        return closed(change(parts), **{"run": run, **header})
    return apply


def with_log(change):
    def apply(parts):
        extract = json.loads(parts[2][1])
        change(extract)
        return [*parts[:2], ("log", dump(extract))]
    return with_parts(apply)


bundle("same", 0)(with_parts(lambda parts: parts))
bundle("byte-behind")(lambda data: data + b"x")
bundle("byte-less")(lambda data: data[:-1])
bundle("half")(lambda data: data[:len(data) // 2])
bundle("empty")(lambda data: b"")
bundle("header-only")(lambda data: data.partition(b"\n")[0] + b"\n")
bundle("header-blank")(lambda data: data.replace(b'":', b'": ', 1))
bundle("header-more")(with_parts(lambda parts: parts, other=1))
bundle("schema")(with_parts(lambda parts: parts, schema="assure.bundle/2"))
bundle("other-run")(with_parts(lambda parts: parts, run="0" * 26))
bundle("run-path")(with_parts(lambda parts: parts, run="../../x"))
bundle("order")(with_parts(lambda parts: [parts[1], parts[0], *parts[2:]]))
bundle("part-twice")(with_parts(lambda parts: [*parts, parts[-1]]))
bundle("part-more")(with_parts(lambda parts: [*parts, ("more", b"x")]))
bundle("part-path")(with_parts(lambda parts: [*parts, ("../more", b"x")]))
bundle("seal-absent")(with_parts(lambda parts: [parts[0], *parts[2:]]))
bundle("store-absent")(with_parts(lambda parts: parts[1:]))
bundle("store-byte")(with_parts(lambda parts: [(parts[0][0], parts[0][1][:-1] + b"x"), *parts[1:]]))
bundle("seal-byte")(with_parts(lambda parts: [parts[0], (parts[1][0], parts[1][1].replace(b"A", b"B")), *parts[2:]]))
# The header is not signed: that the host had a log is not known without it.
bundle("log-absent", 0, 1)(with_parts(lambda parts: parts[:2]))
bundle("log-empty")(with_parts(lambda parts: [*parts[:2], ("log", b"")]))
bundle("log-no-entries")(with_log(lambda log: log.update(entries=[], proofs=[])))
bundle("log-no-seal")(with_log(lambda log: (log["entries"].pop(), log["proofs"].pop())))
bundle("log-no-start")(with_log(lambda log: (log["entries"].pop(0), log["proofs"].pop(0))))
bundle("log-entry-twice")(with_log(lambda log: (
    log["entries"].append(log["entries"][-1]), log["proofs"].append(log["proofs"][-1]))))
bundle("log-entry")(with_log(lambda log: log["entries"].append(log["entries"].pop().replace("true", "false"))))
bundle("log-proof")(with_log(lambda log: log["proofs"][0]["proof"].pop()))
bundle("log-proof-more")(with_log(lambda log: log["proofs"][0]["proof"].append(text64(bytes(32)))))
bundle("log-index")(with_log(lambda log: log["proofs"][0].update(index=0)))
bundle("log-index-huge")(with_log(lambda log: log["proofs"][0].update(index=2 ** 53 - 1)))
bundle("log-checkpoint")(with_log(lambda log: log.update(checkpoint=log["checkpoint"].replace("\n", "\n1", 1))))
bundle("log-more")(with_log(lambda log: log.update(more=1)))
