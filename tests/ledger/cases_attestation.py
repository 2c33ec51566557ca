"""Forgeries of attestations: of the two lines that `assure export --format intoto` wrote with the throw-away host key.

A case gets the lines, as Line, and changes them. Most are signed again by that key, so that their one fault is in what
they say.
"""
import base64
import json

from forge import Key, checkpoint, dump, key_id, root_of, text64

CASES = {}
TYPE = "application/vnd.in-toto+json"


def case(name, *statuses):
    def add(function):
        CASES[name] = (function, set(statuses or (1,)))
        return function
    return add


def simple(name, function, *statuses):
    case(name, *statuses)(lambda lines: function(lines) and None)


class Line:
    def __init__(self, data):
        self.envelope = json.loads(data)
        self.payload = base64.b64decode(self.envelope["payload"])
        self.statement = json.loads(self.payload)
        self.kind, self.raw, self.resign, self.key, self.key_id = TYPE, None, False, Key("host"), None

    @property
    def predicate(self):
        return self.statement["predicate"]

    def change(self, function):
        function(self.statement)
        self.payload, self.resign = dump(self.statement), True

    def data(self):
        if self.raw is not None:
            return self.raw
        if not self.resign:
            return dump(self.envelope) + b"\n"
        message = b"DSSEv1 %d %s %d %s" % (len(self.kind), self.kind.encode(), len(self.payload), self.payload)
        return dump({"payload": text64(self.payload), "payloadType": self.kind, "signatures": [{
            "keyid": self.key_id or verifier_key(self.key), "sig": text64(self.key.sign(message))}]}) + b"\n"


def verifier_key(key, name=None):
    name = name or f"assure.host/{key.fingerprint[:16]}"
    return f"{name}+{key_id(name, key.public).hex()}+{text64(bytes([1]) + key.public)}"


def both(change):
    return lambda lines: [line.change(change) for line in lines]


def trace(change):
    return lambda lines: lines[0].change(change)


def evidence(change):
    return lambda lines: lines[1].change(change)


def predicate(**values):
    return evidence(lambda statement: statement["predicate"].update(values))


def resigned(**values):
    def apply(lines):
        for line in lines:
            line.resign = True
            for name, value in values.items():
                setattr(line, name, value)
    return apply


def in_envelope(change):
    return lambda lines: change(lines[1].envelope)


simple("same", lambda lines: None, 0)
simple("signed-anew", resigned(), 0)
simple("other-order", lambda lines: lines.reverse(), 0)
simple("trace-alone", lambda lines: lines.pop(), 2)
simple("evidence-alone", lambda lines: lines.pop(0), 0)
simple("trace-twice", lambda lines: lines.append(lines[0]))
simple("evidence-twice", lambda lines: lines.append(lines[1]))
# Who signed it
simple("by-another-host", resigned(key=Key("other host"), key_id=verifier_key(Key("host"))))
simple("by-another-host-named", resigned(key=Key("other host")))
simple("trace-by-another-host", lambda lines: resigned(key=Key("other host"))(lines[:1]))
simple("trace-alone-by-another-host", lambda lines: (lines.pop(), resigned(key=Key("other host"))(lines)), 4)
simple("key-of-another-name", resigned(key_id=verifier_key(Key("host"), "assure.host/0123456789abcdef")))
simple("key-id-absent", in_envelope(lambda one: one["signatures"][0].pop("keyid")))
simple("key-id-fingerprint", resigned(key_id=Key("host").fingerprint))
simple("key-id-other", resigned(key_id=verifier_key(Key("host")).replace("+", "+0", 1)))
simple("signature-changed", in_envelope(lambda one: one["signatures"][0].update(sig=text64(bytes(64)))))
simple("signature-short", in_envelope(lambda one: one["signatures"][0].update(sig=text64(bytes(63)))))
simple("signatures-none", in_envelope(lambda one: one.update(signatures=[])))
simple("signature-twice", in_envelope(lambda one: one["signatures"].append(one["signatures"][0])))
simple("type-changed", in_envelope(lambda one: one.update(payloadType="application/json")))
simple("type-signed", resigned(kind="application/json"))
simple("payload-changed", in_envelope(lambda one: one.update(payload=text64(
    base64.b64decode(one["payload"]).replace(b'"effects":', b'"effects":1')))))
# Both alphabets of Base64 are read, but not both at once.
simple("base64-of-urls", in_envelope(lambda one: one.update(payload=one["payload"].translate(
    str.maketrans("+/", "-_")))), 0)
simple("base64-of-both", in_envelope(lambda one: one.update(payload="+-" + one["payload"])))
simple("base64-unpadded", in_envelope(lambda one: one["signatures"][0].update(
    sig=one["signatures"][0]["sig"].rstrip("="))))
simple("envelope-more", in_envelope(lambda one: one.update(more=1)), 0)
# What it says
simple("subjects-differ", trace(lambda one: one["subject"].pop()))
simple("subjects-none", both(lambda one: one.update(subject=[])))
simple("root-other", both(lambda one: one["subject"][0]["digest"].update(rfc6962_sha256=root_of([]).hex())))
simple("root-renamed", both(lambda one: one["subject"][0].update(name="assure.run/" + "0" * 26)))
simple("root-absent", both(lambda one: one["subject"].pop(0)))
simple("store-other", both(lambda one: one["subject"][1]["digest"].update(sha256="0" * 64)))
simple("store-absent", both(lambda one: one["subject"].pop(1)))
simple("statement-type", evidence(lambda one: one.update(_type="https://in-toto.io/Statement/v0.1")))
simple("predicate-type", evidence(lambda one: one.update(predicateType="https://slsa.dev/provenance/v1")))
simple("predicate-none", evidence(lambda one: one.update(predicate={})))
simple("predicate-schema", predicate(schema="assure.evidence/2"))
simple("predicate-more", predicate(more=1), 0)
simple("not-canonical", lambda lines: (setattr(lines[1], "payload", lines[1].payload.replace(b":", b": ", 1)),
                                       setattr(lines[1], "resign", True)))
simple("run-other", predicate(run="0" * 26))
simple("run-no-name", predicate(run="../../../../../../etc/x"))
simple("trace-of-another-run", trace(lambda one: one["predicate"]["monitoredProcess"].update(event="0" * 26)))
simple("trace-run-no-name", trace(lambda one: one["predicate"]["monitoredProcess"].update(event="\x1b[31m")))
simple("host-key-other", predicate(host_key=Key("other host").fingerprint))
simple("records-other", evidence(lambda one: one["predicate"]["counts"].update(records=3)))
simple("incomplete-said", predicate(complete=False, reason="not so"), 2)
simple("complete-number", predicate(complete=1))
simple("recovered-said", predicate(recovered=True))
simple("recovered-absent", evidence(lambda one: one["predicate"].pop("recovered")))
simple("seal-changed", evidence(lambda one: one["predicate"].update(
    seal=one["predicate"]["seal"].replace("\n", "\n1", 1))))
simple("seal-absent", evidence(lambda one: one["predicate"].pop("seal")))
simple("certificate-absent", evidence(lambda one: one["predicate"].pop("certificate")))
simple("certificate-changed", evidence(lambda one: one["predicate"].update(
    certificate=one["predicate"]["certificate"].replace("ledger", "issuer"))))


@case("seal-by-the-host")
def sealed_by_host(lines):
    """A seal that the host key made itself: it may only recover."""
    def change(statement):
        run, seal = statement["predicate"]["run"], statement["predicate"]["seal"].split("\n")
        statement["predicate"]["seal"] = checkpoint(
            f"assure.run/{run}", int(seal[1]), base64.b64decode(seal[2]), Key("host"), *seal[3:5]).decode()
    lines[1].change(change)


@case("recovered-by-the-host", 2)
def recovered_by_host(lines):
    """It may, and then the run is never complete."""
    def change(statement):
        run, seal = statement["predicate"]["run"], statement["predicate"]["seal"].split("\n")
        statement["predicate"].update(complete=False, recovered=True, seal=checkpoint(
            f"assure.run/{run}", int(seal[1]), base64.b64decode(seal[2]), Key("host"), "recovered 1", seal[4],
            name=f"assure.host/{Key('host').fingerprint[:16]}").decode())
    lines[1].change(change)


@case("recovered-and-complete")
def recovered_complete(lines):
    recovered_by_host(lines)
    lines[1].change(lambda statement: statement["predicate"].update(complete=True))


# The file
simple("no-line-end", lambda lines: setattr(lines[1], "raw", lines[1].data()[:-1]))
simple("line-empty", lambda lines: setattr(lines[1], "raw", b"\n"))
simple("line-of-another", lambda lines: setattr(lines[1], "raw", b"{}\n"))
simple("line-blank", lambda lines: setattr(lines[1], "raw", b" " + lines[1].data()), 0)
simple("half", lambda lines: setattr(lines[1], "raw", lines[1].data()[:200] + b"\n"))
