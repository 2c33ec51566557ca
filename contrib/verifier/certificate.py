"""What the host's key says of a run's."""
from .ed25519 import signed
from .encoding import canonical, document, fingerprint, from_base64
from .faults import require

USES = ("issuer", "ledger", "tool-executor", "witness")
FIELDS = ["host", "payloadType", "publicKey", "runId", "startedAt", "use"]


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
