"""Forgeries in runs that are signed anew: each has one fault that only one check can find."""
from forge import (FIELDS, USES, Key, Malleable, SmallOrder, checkpoint, columns, digest,
                   dump, host_name, leaf_of, root_of, text64)

CASES = {}
MIDDLE = 5


def case(name, *statuses, what=None):
    def add(function):
        CASES[name] = (function, set(statuses or (1,)), what)
        return function
    return add


def simple(name, function, *statuses, what=None):
    case(name, *statuses, what=what)(function)


@case("good", 0)
def good(run):
    """That the forging itself is right: nothing is wrong here."""


@case("good-without-store-line", 0)
def unlined(run):
    run.store_line = False


@case("good-incomplete", 2)
def incomplete(run):
    run.sealing().update({"complete": False, "reason": "something was lost"})
    run.meta["reason"] = "something was lost"


@case("good-rotated-log", 0)
def rotated(run):
    new = {"event": "key", "fingerprint": run.other.fingerprint, "public_key": text64(run.other.public),
           "replaces": run.host.fingerprint}
    run.log = lambda start, end: [start, new, {**end, "signer": run.other}]


@case("good-recovered", 2)
def recovered(run):
    """Closed by the host's key, behind what the run's own had signed."""
    last, covered = run.records.pop(), run.sizes[0]
    run.records.append({**{name: last[name] for name in ("class", "lane", "mono_ns", "seq", "time")},
                        "schema": "assure.recovery/1", "covered": covered, "reason": "crash"})
    run.sizes, run.seal_lines, run.seal_key = [covered], [f"recovered {covered}"], run.host
    run.seal_name, run.meta["reason"] = host_name(run.host.public), "crash"
    run.end.update(event="recovery", reason="crash")


def after_recovery(name, change):
    simple(f"recovered-{name}", lambda run: (recovered(run), change(run)))


after_recovery("by-ledger", lambda run: (setattr(run, "seal_key", run.keys["ledger"]),
                                         setattr(run, "seal_name", run.origin)))
after_recovery("by-another-host", lambda run: (setattr(run, "seal_key", run.other),
                                               setattr(run, "seal_name", host_name(run.other.public))))
after_recovery("with-the-run's-name", lambda run: setattr(run, "seal_name", run.origin))
after_recovery("other-line", lambda run: setattr(run, "seal_lines", [f"recovered {run.sizes[0] + 1}"]))
after_recovery("other-record", lambda run: run.records[-1].update(covered=run.sizes[0] + 1))
after_recovery("other-checkpoint", lambda run: setattr(run, "sizes", [run.sizes[0] - 1]))
after_recovery("other-end-in-log", lambda run: run.end.update(event="seal", complete=False))
after_recovery("said-to-be-a-seal", lambda run: setattr(run, "seal_lines", ["seal"]))
after_recovery("complete", lambda run: run.meta.update(complete=1))


# Records


def edited(index, change):
    def apply(run):
        record = run.records[index]
        run.data[index] = change(dump(record))
    return apply


FORMS = {
    "blank": lambda data: data.replace(b'":', b'": ', 1),
    "line-end": lambda data: data + b"\n",
    "mark": lambda data: b"\xef\xbb\xbf" + data,
    "order": lambda data: b'{"zz":1,' + data[1:],
    "twice": lambda data: data.replace(b'"class":', b'"class":"telemetry","class":', 1),
    "fraction": lambda data: data[:-1] + b',"z":1.0}',
    "exponent": lambda data: data[:-1] + b',"z":1e2}',
    "minus-zero": lambda data: data[:-1] + b',"z":-0}',
    "big-number": lambda data: data[:-1] + b',"z":9007199254740993}',
    "huge-number": lambda data: data[:-1] + b',"z":1e999}',
    "nan": lambda data: data[:-1] + b',"z":NaN}',
    "escape": lambda data: data[:-1] + b',"z":"\\u0041"}',
    "slash": lambda data: data[:-1] + b',"z":"\\/"}',
    "upper-hex": lambda data: data[:-1] + b',"z":"\\u001F"}',
    "surrogate": lambda data: data[:-1] + b',"z":"\\ud800"}',
    "utf-8": lambda data: data[:-1] + b',"z":"\xff"}',
    "utf-8-long": lambda data: data[:-1] + b',"z":"\xc0\xaf"}',
    "utf-8-surrogate": lambda data: data[:-1] + b',"z":"\xed\xa0\x80"}',
    "control": lambda data: data[:-1] + b',"z":"\x01"}',
    "open": lambda data: data[:-1],
    "list": lambda data: b"[" + data + b"]",
    "two": lambda data: data + data,
    "empty": lambda data: b"{}",
    "too-long": lambda data: data[:-1] + b',"z":"' + b"z" * 65536 + b'"}',
    "deep": lambda data: data[:-1] + b',"z":' + b"[" * 30000 + b"]" * 30000 + b"}",
}
for form, function in FORMS.items():
    # A nesting that deep is canonical; a reader that has a limit calls it unreadable or malformed.
    simple(f"record-{form}", edited(MIDDLE, function), *((1, 3) if form == "deep" else ()),
           what="changed" if form == "too-long" else "malformed")


def fields(index, **values):
    return lambda run: run.records[index].update(values)


def without(index, name):
    return lambda run: run.records[index].pop(name)


simple("seq-hole", lambda run: run.records.pop(MIDDLE) and None)
simple("seq-text", fields(MIDDLE, seq=str(MIDDLE)))
simple("seq-true", fields(1, seq=True))
simple("seq-absent", without(MIDDLE, "seq"))
simple("absent-lane", without(MIDDLE, "lane"))
simple("absent-class", without(MIDDLE, "class"))
simple("absent-time", without(MIDDLE, "time"))
simple("absent-mono", without(MIDDLE, "mono_ns"))


@case("seq-twice")
def seq_twice(run):
    run.records.insert(MIDDLE, dict(run.records[MIDDLE]))
    for record in run.records[MIDDLE + 2:]:
        record["seq"] += 1
    run.records[-1]["records"] += 1


@case("seq-exchanged")
def seq_exchanged(run):
    one, other = run.records[MIDDLE], run.records[MIDDLE + 1]
    run.records[MIDDLE:MIDDLE + 2] = [other, one]


@case("seq-from-one")
def seq_from_one(run):
    for record in run.records:
        record["seq"] += 1


@case("column-kind")
def column_kind(run):
    index = next(i for i, record in enumerate(run.records) if record["schema"] == "assure.effect/1")
    said = list(columns(run.records[index]))
    said[1] = "file.read" if said[1] != "file.read" else "file.delete"
    run.columns[index] = said


@case("column-type-hides-an-effect")
def column_type(run):
    index = next(i for i, record in enumerate(run.records) if record["schema"] == "assure.effect/1")
    run.columns[index] = ["assure.process/1", *columns(run.records[index])[1:]]


@case("column-process")
def column_process(run):
    index = next(i for i, record in enumerate(run.records) if record["schema"] == "assure.effect/1")
    said = list(columns(run.records[index]))
    said[4] += 1000
    run.columns[index] = said


simple("leaf-column", lambda run: run.sql.append("UPDATE records SET leaf=zeroblob(32) WHERE seq=5"))
# The same bytes, only of another type: what is hashed is what it was.
simple("json-of-text", lambda run: run.sql.append("UPDATE records SET json=CAST(json AS TEXT) WHERE seq=5"), 0, 1)
simple("record-number-below-zero", lambda run: run.sql.append(
    "INSERT INTO records SELECT -1,type,kind,how,state,process,pid,json,leaf FROM records WHERE seq=1"))
simple("behind-the-seal", lambda run: run.sql.append(
    "INSERT INTO records SELECT (SELECT max(seq)+1 FROM records),type,kind,how,state,process,pid,json,leaf "
    "FROM records WHERE seq=1"))
simple("behind-the-seal-far", lambda run: run.sql.append(
    "INSERT INTO records SELECT 1000000,type,kind,how,state,process,pid,json,leaf FROM records WHERE seq=1"))


# What the last record says


@case("behind-the-seal-signed")
def behind(run):
    run.records.append({**run.records[-2], "seq": len(run.records)})
    run.sizes.append(len(run.records))
    run.sealing = lambda: run.records[-2]


@case("seal-record-in-the-middle")
def seal_inside(run):
    run.records.insert(MIDDLE, dict(run.records[-1]))
    run.renumber()
    run.records[-1]["records"] = len(run.records)


@case("seal-record-absent")
def seal_absent(run):
    run.records.pop()
    run.sizes = [len(run.records)]
    run.meta["complete"] = 1
    run.end["complete"] = True


simple("seal-record-count", lambda run: run.records[-1].update(records=run.records[-1]["records"] - 1))
simple("seal-effects-count", lambda run: run.records[-1].update(effects=run.records[-1]["effects"] - 1))
simple("seal-count-text", lambda run: run.records[-1].update(records="many"))
simple("seal-complete-number", lambda run: run.records[-1].update(complete=1), 1, 2)
simple("first-record-other-run", lambda run: run.first.update(run="0" * 26))
simple("first-record-other-key", lambda run: run.first.update(keys={use: Key("x").fingerprint for use in run.keys}))
simple("first-record-three-keys", lambda run: run.first.update(
    keys={use: key.fingerprint for use, key in run.keys.items() if use != "witness"}))
simple("first-record-other-host", lambda run: run.first.update(host_key=run.other.fingerprint))
simple("first-record-other-schema", lambda run: run.first.update(schema="assure.gap/1"))
simple("meta-complete", lambda run: run.meta.update(complete=0))
simple("meta-records", lambda run: run.meta.update(records=3))
simple("meta-effects", lambda run: run.meta.update(effects=0))
simple("meta-run", lambda run: run.meta.update(run="0" * 26))
simple("meta-name", lambda run: run.meta.update(name="another"))
simple("meta-more", lambda run: run.meta.update(other="x"))


# Checkpoints and the seal's note


def middle(run, key=None, origin=None, size=None, root=None, more=(), name=None):
    at = run.sizes[0]
    run.notes[at] = lambda leaves: checkpoint(
        origin or run.origin, size or at, root or root_of(leaves[:at]), key or run.keys["ledger"], *more, name=name)


for use in ("witness", "issuer", "tool-executor"):
    simple(f"checkpoint-by-{use}", lambda run, use=use: middle(run, key=run.keys[use]))
    simple(f"seal-by-{use}", lambda run, use=use: setattr(run, "seal_key", run.keys[use]))
simple("checkpoint-by-host", lambda run: middle(run, key=run.host))
simple("checkpoint-by-unknown", lambda run: middle(run, key=Key("unknown")))
simple("checkpoint-other-origin", lambda run: middle(run, origin="assure.run/" + "0" * 26, name=run.origin))
simple("checkpoint-other-name", lambda run: middle(run, name="assure.run/" + "0" * 26))
simple("checkpoint-other-root", lambda run: middle(run, root=leaf_of(b"")))
simple("checkpoint-other-size", lambda run: middle(run, size=run.sizes[0] - 1))
simple("checkpoint-beyond-the-seal", lambda run: run.notes.update({len(run.records) + 1: lambda leaves: checkpoint(
    run.origin, len(leaves) + 1, root_of([*leaves, leaf_of(b"x")]), run.keys["ledger"])}))
simple("checkpoint-malleable", lambda run: middle(run, key=Malleable("ledger")))
simple("seal-malleable", lambda run: setattr(run, "seal_key", Malleable("ledger")))
simple("seal-by-host", lambda run: setattr(run, "seal_key", run.host))
simple("seal-by-host-name", lambda run: (
    setattr(run, "seal_key", run.host), setattr(run, "seal_name", host_name(run.host.public))))
simple("seal-other-name", lambda run: setattr(run, "seal_name", "assure.run/" + "0" * 26))
simple("seal-other-origin", lambda run: (
    setattr(run, "origin", "assure.run/" + "0" * 26), setattr(run, "sizes", [])))
simple("seal-other-root", lambda run: setattr(run, "seal_root", leaf_of(b"")))
simple("seal-line-more", lambda run: setattr(run, "seal_lines", ["seal", "more"]))
simple("seal-line-other", lambda run: setattr(run, "seal_lines", ["sealed"]))
simple("seal-line-absent", lambda run: (setattr(run, "store_line", False), setattr(run, "seal_lines", ["none"])))
simple("seal-recovered", lambda run: setattr(run, "seal_lines", [f"recovered {run.sizes[0]}"]))
simple("seal-recovered-by-host", lambda run: (
    setattr(run, "seal_lines", [f"recovered {len(run.records)}"]), setattr(run, "seal_key", run.host),
    setattr(run, "seal_name", host_name(run.host.public)), run.end.update(event="recovery", reason="none")))
simple("two-store-lines", lambda run: setattr(run, "seal_lines", ["seal", "store 1 sha256:" + "0" * 64]))


# Certificates


def small_order(run):
    run.keys["ledger"] = SmallOrder("ledger")


def small_order_host(run):
    run.host = SmallOrder("host")


simple("ledger-key-of-small-order", small_order)
simple("host-key-of-small-order", small_order_host, 1, 4)
for use in USES:
    other = "witness" if use != "witness" else "ledger"
    simple(f"certificate-{use}-other-use", lambda run, u=use, o=other: run.payloads[u].update(use=o))
    simple(f"certificate-{use}-other-run", lambda run, u=use: run.payloads[u].update(runId="0" * 26))
    simple(f"certificate-{use}-other-host", lambda run, u=use: run.signers.update({u: run.other}))
    simple(f"certificate-{use}-other-host-named", lambda run, u=use: (
        run.signers.update({u: run.other}), run.envelopes[u].update(publicKeyFingerprint=run.host.fingerprint)))
    simple(f"certificate-{use}-malleable", lambda run, u=use: run.signers.update({u: Malleable("host")}))
    simple(f"certificate-{use}-other-key", lambda run, u=use: run.payloads[u].update(
        publicKey=text64(Key("unknown").public)))
simple("certificate-other-type", lambda run: run.payloads["ledger"].update(payloadType="other"))
simple("certificate-more", lambda run: run.payloads["ledger"].update(zz="1"))
simple("certificate-order", lambda run: run.envelopes["ledger"].update(signedFields=FIELDS[::-1]))
simple("certificate-fewer-fields", lambda run: run.envelopes["ledger"].update(signedFields=FIELDS[1:]))
simple("certificate-algorithm", lambda run: run.envelopes["ledger"].update(algorithm="none"))
simple("certificate-envelope-more", lambda run: run.envelopes["witness"].update(zz="1"))
simple("certificate-key-short", lambda run: run.payloads["issuer"].update(publicKey=text64(b"x" * 31)))
simple("certificate-blank", lambda run: run.certificates.update(
    witness=run.certificate("witness").replace(b'":', b'": ', 1)))
simple("certificate-extra", lambda run: run.documents.update({"certificate/other": run.certificate("witness")}))
simple("certificate-absent", lambda run: run.sql.append("DELETE FROM documents WHERE name='certificate/issuer'"))
simple("document-extra", lambda run: run.documents.update({"x": b"x"}))
simple("host-key-other", lambda run: run.documents.update({"host-key": text64(run.other.public).encode()}))
simple("host-key-absent", lambda run: run.sql.append("DELETE FROM documents WHERE name='host-key'"))


# Tables


simple("table-more", lambda run: run.sql.append("CREATE TABLE other(x)"))
simple("view-more", lambda run: run.sql.append("CREATE VIEW other AS SELECT 1"))
simple("trigger-more", lambda run: run.sql.append(
    "CREATE TRIGGER other AFTER INSERT ON records BEGIN DELETE FROM records; END"))
simple("column-more", lambda run: run.sql.append("ALTER TABLE records ADD COLUMN x"))
simple("version-newer", lambda run: run.sql.append("PRAGMA user_version=4"), 3)
simple("version-older", lambda run: run.sql.append("PRAGMA user_version=1"), 1, 2, 3)


# The host log


def log_is(name, function, *statuses):
    simple(f"log-{name}", lambda run: setattr(run, "log", lambda start, end: function(run, start, end)), *statuses)


log_is("no-start", lambda run, start, end: [end])
log_is("two-starts", lambda run, start, end: [start, dict(start), end])
log_is("no-seal", lambda run, start, end: [start])
log_is("two-seals", lambda run, start, end: [start, end, {**end, "root": text64(leaf_of(b""))}])
log_is("two-equal-seals", lambda run, start, end: [start, end, dict(end)])
# The page gives entries of one run no order.
log_is("seal-first", lambda run, start, end: [end, start], 0, 1)
log_is("unknown", lambda run, start, end: [])
log_is("other-run", lambda run, start, end: [{**start, "run": "0" * 26}, {**end, "run": "0" * 26}])
log_is("recovery-too", lambda run, start, end: [start, end, {**end, "event": "recovery", "reason": "x"}])
# The page does not know this event.
log_is("discarded", lambda run, start, end: [start, {"event": "discard", "run": run.run}, end], 0, 1)
log_is("previous", lambda run, start, end: [start, {**end, "previous": text64(b"x" * 32)}])
log_is("seq", lambda run, start, end: [start, {**end, "seq": 7}])
log_is("schema", lambda run, start, end: [start, {**end, "schema": "assure.log/2"}], 1, 3)
log_is("other-size", lambda run, start, end: [start, {**end, "size": end["size"] + 1}])
log_is("other-root", lambda run, start, end: [start, {**end, "root": text64(leaf_of(b""))}])
log_is("other-complete", lambda run, start, end: [start, {**end, "complete": not end["complete"]}])
log_is("other-store", lambda run, start, end: [start, {**end, "store": "sha256:" + "0" * 64}])
log_is("no-store", lambda run, start, end: [start, {k: v for k, v in end.items() if k != "store"}])
log_is("other-keys", lambda run, start, end: [
    {**start, "keys": {**start["keys"], "witness": run.other.fingerprint}}, end])
log_is("other-certificates", lambda run, start, end: [
    {**start, "certificates": {**start["certificates"], "witness": digest(b"")}}, end])
log_is("replaced-by-itself", lambda run, start, end: [
    start, {"event": "key", "fingerprint": run.other.fingerprint, "public_key": text64(run.other.public),
            "replaces": run.host.fingerprint, "signer": run.other}, end])
log_is("replaces-another", lambda run, start, end: [
    start, {"event": "key", "fingerprint": run.other.fingerprint, "public_key": text64(run.other.public),
            "replaces": Key("x").fingerprint}, {**end, "signer": run.other}])
log_is("old-key-after-it-was-replaced", lambda run, start, end: [
    start, {"event": "key", "fingerprint": run.other.fingerprint, "public_key": text64(run.other.public),
            "replaces": run.host.fingerprint}, end])
log_is("key-of-another-name", lambda run, start, end: [
    start, {"event": "key", "fingerprint": Key("x").fingerprint, "public_key": text64(run.other.public),
            "replaces": run.host.fingerprint}, {**end, "signer": run.other}])
simple("log-of-another-host", lambda run: setattr(run, "log_key", run.other))
simple("log-none", lambda run: setattr(run, "log", False), 0)
for what, statement in {
        "leaf": "UPDATE entries SET leaf=zeroblob(32) WHERE seq=1", "run": "UPDATE entries SET run=NULL WHERE seq=2",
        "event": "UPDATE entries SET event='start' WHERE seq=2", "hole": "DELETE FROM entries WHERE seq=0",
        "tail": "DELETE FROM entries WHERE seq=2", "note": "DELETE FROM checkpoints WHERE size=3",
        "note-inner": "DELETE FROM checkpoints WHERE size=2", "table": "CREATE TABLE other(x)",
        "parts": "UPDATE checkpoints SET parts=zeroblob(32) WHERE size=2",
        "head-parts": "UPDATE checkpoints SET parts=zeroblob(64) WHERE size=3",
        "row": "INSERT INTO entries SELECT 3,run,event,json,leaf FROM entries WHERE seq=2"}.items():
    simple(f"log-row-{what}", lambda run, statement=statement: run.log_sql.append(statement))


# Blobs

CONTENT = b"what was too long for a record\0" * 3000


def named(content=CONTENT, size=None):
    return {"bytes": len(content) if size is None else size, "digest": digest(content)}


def with_blob(change):
    def make(run):
        run.records[MIDDLE]["blobs"] = {"argv": named()}
        run.blobs.append((MIDDLE, CONTENT))
        change(run)
    return make


def blob_case(name, change, *statuses):
    simple(f"blob-{name}", with_blob(change), *statuses)


blob_case("good", lambda run: None, 0)
blob_case("good-named-twice", lambda run: run.records[MIDDLE + 1].update(blobs={"argv": named(), "path": named()}), 0)
blob_case("good-two-fields", lambda run: run.records[MIDDLE].update(blobs={"argv": named(), "args.list": named()}), 0)
blob_case("good-empty", lambda run: (run.records[MIDDLE]["blobs"].update(path=named(b"")),
                                     run.blobs.append((MIDDLE, b""))), 0)
blob_case("changed", lambda run: run.sql.append("UPDATE blobs SET bytes=zeroblob(length(bytes))"))
blob_case("missing", lambda run: run.sql.append("DELETE FROM blobs"))
blob_case("missing-second", lambda run: run.records[MIDDLE]["blobs"].update(path=named(b"other")))
blob_case("more", lambda run: run.blobs.append((MIDDLE, b"nobody's")))
blob_case("more-of-no-record", lambda run: run.blobs.append((1 << 40, b"nobody's")))
blob_case("other-size", lambda run: run.records[MIDDLE]["blobs"].update(argv=named(size=5)))
blob_case("size-of-text", lambda run: run.records[MIDDLE]["blobs"].update(argv=named(size="5")))
blob_case("earlier-record", lambda run: run.sql.append("UPDATE blobs SET seq=seq-1"))
blob_case("later-record", lambda run: run.sql.append("UPDATE blobs SET seq=seq+1"))
blob_case("digest-of-text", lambda run: run.sql.append("UPDATE blobs SET digest=hex(digest)"))
blob_case("of-text", lambda run: run.sql.append("UPDATE blobs SET bytes=CAST(bytes AS TEXT)"))
blob_case("no-digest", lambda run: run.records[MIDDLE]["blobs"].update(argv={"bytes": 5}))
blob_case("digest-short", lambda run: run.records[MIDDLE]["blobs"].update(argv={"bytes": 5, "digest": "sha256:00"}))
blob_case("list", lambda run: run.records[MIDDLE].update(blobs=[named()]))
blob_case("null", lambda run: run.records[MIDDLE].update(blobs=None))
blob_case("too-many", lambda run: run.records[MIDDLE]["blobs"].update({f"path{i}": named() for i in range(9)}))
blob_case("too-long", lambda run: (run.blobs.append((MIDDLE, bytes(3 << 20))),
                                   run.records[MIDDLE]["blobs"].update(path=named(bytes(3 << 20)))))
simple("blob-table-absent", lambda run: run.sql.append("DROP TABLE blobs"))
simple("blob-table-in-an-old-schema", lambda run: run.sql.append("PRAGMA user_version=2"))
