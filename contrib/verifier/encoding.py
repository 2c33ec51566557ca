"""Fingerprints, digests, Base64, and canonical JSON (RFC 8785)."""
import base64
import binascii
import hashlib
import json
import re

NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")


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
