"""What was too long for a record."""
import hashlib

from .encoding import count
from .faults import MOST_BLOB, require
from .store import limited

MOST_NAMES = 8


class Blobs:
    """Each that a record names is there, and each that is there came with the record that its row says."""

    def __init__(self, connection, present):
        self.connection, self.present, self.came = connection, present, 0

    def check(self, index, record):
        named = record.get("blobs", {})
        require(isinstance(named, dict) and (self.present or not named) and len(named) <= MOST_NAMES and
                ("blobs" not in record or self.present), "blob", f"record {index} names blobs that cannot be", index)
        came = set()
        for field, said in named.items():
            text = said.get("digest") if isinstance(said, dict) else None
            size = count(said.get("bytes")) if isinstance(said, dict) else None
            require(isinstance(text, str) and text.startswith("sha256:") and len(text) == 71 and size is not None and
                    set(text[7:]) <= set("0123456789abcdef"), "blob", f"record {index} names no blob as {field}", index)
            row = self.connection.execute(f"SELECT seq, {limited('bytes', MOST_BLOB)} FROM blobs WHERE digest=?",
                                          (bytes.fromhex(text[7:]),)).fetchone()
            require(row and row[1] is not None, "blob", f"the blob {field} of record {index} is missing", index)
            require(len(row[1]) == size and hashlib.sha256(row[1]).hexdigest() == text[7:], "blob",
                    f"the blob {field} of record {index} was changed", index)
            require(isinstance(row[0], int) and row[0] <= index, "blob",
                    f"the blob {field} of record {index} is a later one's", index)
            if row[0] == index:
                came.add(text)
        self.came += len(came)

    def check_all(self):
        if self.present:
            number, = self.connection.execute("SELECT count(*) FROM blobs").fetchone()
            require(number == self.came, "blob", f"{number - self.came} blobs are there that no record names")
