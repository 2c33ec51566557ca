"""DSSE envelopes with one signature by a host (specs/INTOTO.md section 1)."""
import base64
import binascii
import json
import re

from .ed25519 import signed
from .encoding import from_base64, refuse, unique
from .faults import require
from .note import host_name, key_id

MOST_ENVELOPE = 1 << 23


def either_base64(text):
    """Base64 of one of the two alphabets, padded."""
    require(isinstance(text, str) and not (set(text) & set("-_") and set(text) & set("+/")), "envelope", "not Base64")
    try:
        data = text.translate(str.maketrans("-_", "+/"))
        decoded = base64.b64decode(data.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        decoded, data = b"", None
    require(base64.b64encode(decoded).decode() == data, "envelope", "not Base64")
    return decoded


def envelope(line):
    try:
        found = json.loads(line.decode(), object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError):
        found = None
    require(isinstance(found, dict) and isinstance(found.get("payloadType"), str) and
            isinstance(found.get("signatures"), list) and len(found["signatures"]) == 1 and
            isinstance(found["signatures"][0], dict), "envelope", "no envelope with one signature")
    return found["payloadType"], either_base64(found.get("payload")), found["signatures"][0]


def signer(signature, kind, payload):
    """The host's key, by whose own name it is called, once its signature holds."""
    hint = signature.get("keyid")
    form = re.fullmatch(r"([^ +]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)", hint if isinstance(hint, str) else "")
    key = from_base64(form.group(3), 33) if form else None
    require(key and key[0] == 1 and form.group(1) == host_name(key[1:]) and
            form.group(2) == key_id(form.group(1), key[1:]).hex(), "signature", "it names no key of a host")
    check_signature(key[1:], signature, kind, payload)
    return key[1:]


def check_signature(key, signature, kind, payload):
    message = b"DSSEv1 %d %s %d %s" % (len(kind.encode()), kind.encode(), len(payload), payload)
    require(signed(key, either_base64(signature.get("sig")), message), "signature",
            "the host's signature does not hold")
