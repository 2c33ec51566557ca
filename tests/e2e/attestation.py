#!/usr/bin/python3
"""`assure export --format intoto`: what is signed is what is said, to somebody who knows DSSE and in-toto and not us; the
digest of a file is stated when, and only when, it has been left as the run left it; every other one is counted.

Signatures are checked by openssl over an encoding that is made here. Forged attestations are in tests/ledger.
"""
# timeout: 180
import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

try:
    import jsonschema
except ImportError:
    jsonschema = None

ASSURE = os.environ["ASSURE"]
SCHEMA = pathlib.Path(__file__).resolve().parent / "schemas" / "evidence-1.json"
TRACE, EVIDENCE = "https://in-toto.io/attestation/runtime-trace/v0.1", "assure:evidence/v1"
HERE = pathlib.Path.cwd()
failures = []


def expect(condition, what):
    if not condition:
        failures.append(what)
        print(f"FAIL {what}")


def assure(*words, status=0):
    done = subprocess.run([ASSURE, *words], stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
    expect(done.returncode == status, f"{words}: status {done.returncode}, wanted {status}: {done.stderr.decode()}")
    return done.stdout.decode()


def trace(name, script):
    assure("trace", "--quiet", "--name", name, "--", "sh", "-c", script)


def openssl_verifies(key, message, signature):
    """Another implementation than ours; the key is raw, so that its frame is ours to make."""
    pathlib.Path("key.der").write_bytes(bytes.fromhex("302a300506032b6570032100") + key)
    pathlib.Path("message").write_bytes(message)
    pathlib.Path("signature").write_bytes(signature)
    return subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", "key.der", "-rawin",
                           "-in", "message", "-sigfile", "signature"], capture_output=True, check=False).returncode == 0


def read(path):
    """The statements by their predicate; signed by the host, as openssl says."""
    fingerprint, found = json.loads(assure("keys", "show", "--json"))["fingerprint"], {}
    for line in pathlib.Path(path).read_text().splitlines():
        envelope = json.loads(line)
        signature, = envelope["signatures"]
        payload = base64.b64decode(envelope["payload"], validate=True)
        key = base64.b64decode(signature["keyid"].split("+", 2)[2], validate=True)[1:]
        expect(hashlib.sha256(bytes.fromhex("302a300506032b6570032100") + key).hexdigest() == fingerprint, "the key")
        kind = envelope["payloadType"]
        expect(kind == "application/vnd.in-toto+json", "the payload's type")
        encoded = f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload
        if shutil.which("openssl"):
            expect(openssl_verifies(key, encoded, base64.b64decode(signature["sig"])), "the signature, by openssl")
            expect(not openssl_verifies(key, encoded + b" ", base64.b64decode(signature["sig"])), "openssl says all")
        statement = json.loads(payload)
        expect(statement["_type"] == "https://in-toto.io/Statement/v1", "the statement's type")
        expect(all(subject["digest"] for subject in statement["subject"]), "a digest for each subject")
        names = [subject.get("name") for subject in statement["subject"] if "name" in subject]
        expect(len(names) == len(set(names)), "each name once")
        found[statement["predicateType"]] = statement
    expect(set(found) == {TRACE, EVIDENCE}, f"two statements: {set(found)}")
    expect(found[TRACE]["subject"] == found[EVIDENCE]["subject"], "the same subjects")
    if jsonschema:
        jsonschema.validate(found[EVIDENCE]["predicate"], json.loads(SCHEMA.read_text()))
    return found


def path_of(subject):
    return base64.b64decode(subject["name_b64"]) if "name_b64" in subject else os.fsencode(subject["name"])


def test_files():
    trace("files", "mkdir d; for n in kept changed touched replaced removed linked fifo first/ cut; do "
                   "case $n in first/) mkdir first; echo first >first/moved;; *) echo $n >$n;; esac; done; "
                   "mv first second; mv second/moved moved; "
                   "mkdir old; echo below >old/below; mv old new; "
                   "echo odd >\"$(printf 'odd\\377 name')\"; truncate -s 2 cut; sleep 0.1")
    time.sleep(0.1)
    pathlib.Path("changed").write_text("other!\n")
    os.utime("touched", ns=(1, 1))
    pathlib.Path("copy").write_text("replaced\n")
    os.rename("copy", "replaced")
    os.remove("removed")
    os.rename("linked", "elsewhere")
    os.symlink("elsewhere", "linked")
    os.remove("fifo")
    os.mkfifo("fifo")
    assure("export", "files", "--format", "intoto", "--output", "files.intoto.jsonl")
    found = read("files.intoto.jsonl")
    if found[EVIDENCE]["predicate"]["files"]["unprovable"]:
        print("skip: digests of files (the file system here is none whose times prove something)")
        return
    subjects = {path_of(one): one["digest"]["sha256"] for one in found[EVIDENCE]["subject"][2:]}
    wanted = {os.fsencode(HERE / name): hashlib.sha256(text).hexdigest() for name, text in (
        ("kept", b"kept\n"), ("moved", b"first\n"), ("new/below", b"below\n"), ("odd\udcff name", b"odd\n"),
        ("cut", b"cu"))}
    expect(subjects == wanted, f"the subjects are {subjects}, wanted {wanted}")
    files = found[EVIDENCE]["predicate"]["files"]
    expect(files == {"changed": 2, "gone": 4, "hashed": 5, "over_limit": 0, "unprovable": 0, "unreadable": 0,
                     "written": 11}, f"the others are counted: {files}")
    for subject in found[EVIDENCE]["subject"][2:]:
        expect(re.fullmatch("verifiable|telemetry", subject["annotations"]["class"]), "the class of a digest")
        expect("\xff" not in subject["uri"], "a URI is ASCII")
    report = json.loads(assure("verify", "files.intoto.jsonl", "--json"))
    expect(report["attestation"] is True and report["files"] == 5 and report["verdict"] == "intact", f"verify: {report}")
    screen = assure("verify", "files.intoto.jsonl")
    for text in ("re-signed by host key", "records are not in it"):
        expect(text in screen, f"verify says: {text}")


def test_statements():
    """What is claimed has its class, and what is not claimed is said."""
    trace("claims", "true; python3 -c 'import socket; socket.socket().connect_ex((\"127.0.0.1\", 9))'")
    assure("export", "claims", "--format", "intoto", "--output", "claims.intoto.jsonl")
    found = read("claims.intoto.jsonl")
    evidence, trace_of = found[EVIDENCE]["predicate"], found[TRACE]["predicate"]
    report = json.loads(assure("verify", "claims", "--json"))
    expect(evidence["counts"]["records"] == report["records"], "counts")
    expect(evidence.get("key_exposed") == report.get("key_exposed"), "the stamp")
    expect(base64.b64decode(report["root"]).hex() == found[TRACE]["subject"][0]["digest"]["rfc6962_sha256"], "the root")
    store = pathlib.Path(os.environ["ASSURE_HOME"], "runs", report["run"], "run.sqlite").read_bytes()
    expect(found[TRACE]["subject"][1]["digest"]["sha256"] == hashlib.sha256(store).hexdigest(), "the store")
    limit = report["class"]
    for claim in evidence["claims"]:
        expect(claim["class"] in ("telemetry", "verifiable", limit), f"no claim above the run's class: {claim}")
    expect({"file", "seal"} <= {claim["claim"] for claim in evidence["claims"]}, "claims")
    expect(evidence["not_proven"] and evidence["signed"] == "re-signed by host key", "what is not proven")
    expect(trace_of["monitor"]["tracePolicy"]["signed"] == "re-signed by host key", "the other line says it too")
    log = trace_of["monitorLog"]
    expect(all(entry["class"] for entry in log["process"] + log["network"]) and
           all(entry["annotations"]["class"] and entry["uri"] for entry in log["fileAccess"]), "a class for each entry")
    expect([entry["event"] for entry in log["process"]][:2] == ["start", "exec"], "processes")
    connect = [entry for entry in log["network"] if entry["kind"] == "net.connect"]
    expect(connect and connect[0]["ip"] == "127.0.0.1" and connect[0]["port"] == 9 and connect[0]["protocol"] == "tcp",
           f"network: {connect}")
    expect("argv" not in json.dumps(log) and "env_names" not in json.dumps(log), "arguments stay in the records")


def test_keys():
    """By the key that certified the run, whichever the host has now; and by nobody else."""
    trace("before", "true")
    assure("keys", "rotate")
    assure("export", "before", "--format", "intoto", "--output", "before.intoto.jsonl")
    assure("verify", "before.intoto.jsonl")
    assure("verify", "before.intoto.jsonl", "--key", json.loads(assure("keys", "show", "--json"))["fingerprint"],
           status=4)
    assure("export", "before", "--output", "before.assure")
    assure("export", "before.assure", "--format", "intoto", "--output", "again.intoto.jsonl")
    assure("verify", "again.intoto.jsonl")
    home = os.environ["ASSURE_HOME"]
    os.environ["ASSURE_HOME"] = str(HERE / "elsewhere-state")
    trace("other", "true")
    assure("export", "before.assure", "--format", "intoto", "--output", "foreign.intoto.jsonl", status=1)
    expect(not os.path.exists("foreign.intoto.jsonl"), "nothing is left of an export that failed")
    assure("verify", "before.intoto.jsonl", status=4)
    os.environ["ASSURE_HOME"] = home


def test_refusals():
    trace("changed-run", "true")
    run = json.loads(assure("verify", "changed-run", "--json"))["run"]
    store = pathlib.Path(os.environ["ASSURE_HOME"], "runs", run, "run.sqlite")
    data = bytearray(store.read_bytes())
    data[-1] ^= 1
    store.write_bytes(data)
    assure("export", "changed-run", "--format", "intoto", "--output", "no.intoto.jsonl", status=1)
    assure("export", "files", "--format", "other", "--output", "no.intoto.jsonl", status=64)
    pathlib.Path("there.intoto.jsonl").touch()
    assure("export", "files", "--format", "intoto", "--output", "there.intoto.jsonl", status=1)
    expect(not pathlib.Path("there.intoto.jsonl").read_bytes(), "what is there stays")


def main():
    test_files()
    test_statements()
    test_refusals()
    test_keys()
    if not shutil.which("openssl"):
        print("skip: openssl is not there; signatures were checked by ours alone")
    if not jsonschema:
        print("skip: the module jsonschema (python3-jsonschema) is not there; the schema was not held")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
