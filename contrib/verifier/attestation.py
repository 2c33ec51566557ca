"""What a host states of a run, without the records: in-toto statements in DSSE envelopes (specs/INTOTO.md)."""
import base64

from .certificate import certified
from .dsse import MOST_ENVELOPE, envelope, signer
from .encoding import count, document, fingerprint
from .faults import INCOMPLETE, INTACT, MOST_NOTE, RUN_NAME, UNNAMED, require
from .note import Note, host_name, store_line

MEDIA, STATEMENT = "application/vnd.in-toto+json", "https://in-toto.io/Statement/v1"
TRACE, EVIDENCE = "https://in-toto.io/attestation/runtime-trace/v0.1", "assure:evidence/v1"


def is_attestation(path):
    with open(path, "rb") as file:
        return file.read(12) == b'{"payload":"'


def check_evidence(predicate, host, subjects):
    run, counts = predicate.get("run"), predicate.get("counts")
    require(predicate.get("schema") == "assure.evidence/1" and isinstance(run, str) and RUN_NAME.fullmatch(run) and
            predicate.get("host_key") == fingerprint(host) and isinstance(counts, dict) and
            all(isinstance(predicate.get(name), str) for name in ("certificate", "seal")) and
            isinstance(predicate.get("complete"), bool) and isinstance(predicate.get("recovered"), bool) and
            isinstance(predicate.get("key_exposed", ""), str), "form", "not the form of the statement")
    key, name = certified(predicate["certificate"].encode(), run, "ledger", host)
    seal, origin = Note(predicate["seal"].encode()[:MOST_NOTE + 1], "seal"), f"assure.run/{run}"
    recovered, store = store_line(seal)
    if recovered is None:
        seal.check(origin, origin, key, "seal")
    else:
        seal.check(origin, host_name(host), host, "seal")
    wanted = [{"digest": {"rfc6962_sha256": seal.root.hex()}, "name": origin}]
    if store:
        wanted.append({"digest": {"sha256": store[1].removeprefix("sha256:")}, "name": "run.sqlite"})
    require(subjects[:len(wanted)] == wanted, "subjects", "the first subjects are not what was sealed")
    require(predicate["recovered"] is (recovered is not None) and count(counts.get("records")) == seal.size and
            not (predicate["complete"] and predicate["recovered"]), "seal", "what was sealed is something else")
    return run, {"host": name, "records": seal.size, "effects": count(counts.get("effects")), "covered": seal.size,
                 "complete": predicate["complete"], "sealed": True, "recovered": recovered is not None,
                 "store_covered": store is not None, "key_exposed": predicate.get("key_exposed"),
                 "root": base64.b64encode(seal.root).decode(), "files": len(subjects) - len(wanted)}


def check_trace(predicate):
    run = (predicate.get("monitoredProcess") or {}).get("event")
    policy = (predicate.get("monitor") or {}).get("tracePolicy") or {}
    require(isinstance(run, str) and RUN_NAME.fullmatch(run) and isinstance(policy.get("class"), str), "form",
            "not the form of the statement")
    return run, {"class": policy["class"]}


def verify_attestation(path, known, given):
    """`known`: fingerprints that are believed when none is given."""
    report, seen, before, key = {"attestation": True}, set(), None, None
    with open(path, "rb") as file:
        while line := file.readline(MOST_ENVELOPE + 2):
            require(line.endswith(b"\n") and len(line) <= MOST_ENVELOPE + 1, "envelope", "a line without its end")
            kind, payload, signature = envelope(line[:-1])
            host = signer(signature, kind, payload)
            require(key in (None, host), "signature", "its statements are signed by two hosts")
            require(kind == MEDIA, "envelope", f"a payload of the kind {kind}")
            statement = document(payload)
            require(statement and statement.get("_type") == STATEMENT and
                    statement.get("predicateType") in {TRACE, EVIDENCE} - seen and
                    isinstance(statement.get("predicate"), dict) and isinstance(statement.get("subject"), list) and
                    statement["subject"], "form", "no statement of these kinds, or one twice")
            require(before in (None, statement["subject"]), "subjects", "its statements have other subjects")
            if statement["predicateType"] == TRACE:
                run, found = check_trace(statement["predicate"])
            else:
                run, found = check_evidence(statement["predicate"], host, statement["subject"])
            require(report.get("run") in (None, run), "swapped", "its statements are of two runs")
            key, before = host, statement["subject"]
            seen.add(statement["predicateType"])
            report.update({"run": run, "host_key": fingerprint(host), **found})
    require(seen, "envelope", "no statement")
    status = INTACT if report.get("complete") else INCOMPLETE
    return UNNAMED if fingerprint(key) not in (given or known) else status, report
