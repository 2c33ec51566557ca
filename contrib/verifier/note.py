"""Checkpoints: signed notes."""
import hashlib
import re

from .ed25519 import signed
from .encoding import NUMBER, fingerprint, from_base64
from .faults import MOST_NOTE, Fault, require


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
        require(self.key_id == key_id(name, key), what, "a checkpoint signed by another key")
        require(signed(key, self.signature, self.text.encode()), what, "a checkpoint whose signature is wrong")


def host_name(key):
    return f"assure.host/{fingerprint(key)[:16]}"


def key_id(name, key):
    return hashlib.sha256(name.encode() + b"\n\1" + key).digest()[:4]


def store_line(seal):
    """Of a seal's lines: how much of a recovered run its own key had covered, and the size and digest of the store."""
    lines = list(seal.more)
    kind = re.fullmatch(r"seal|recovered (0|[1-9][0-9]{0,17})", lines.pop(0) if lines else "")
    require(kind, "seal", "the seal does not say that it is one")
    line = re.fullmatch(r"store (0|[1-9][0-9]{0,17}) (sha256:[0-9a-f]{64})", lines[0]) if lines else None
    require(len(lines) == (line is not None), "seal", "the seal has a line that is none of its own")
    return kind.group(1) and int(kind.group(1)), line and (int(line.group(1)), line.group(2))
