"""What can be found, and the limits of what is read."""
import re

INTACT, TAMPERED, INCOMPLETE, UNREADABLE, UNNAMED = range(5)
VERDICTS = ("intact", "tampered", "incomplete", "unreadable", "unnamed")
MOST_RECORD, MOST_NOTE, MOST_DOCUMENT, MOST_EXTRACT, MOST_BLOB = 65535, 4096, 65536, 1 << 26, 1 << 21
RUN_NAME = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
FINGERPRINT = re.compile(r"[0-9a-f]{64}")


class Fault(Exception):
    """Something is not what was signed. `what` is one word; `seq` the record, where it is one."""

    def __init__(self, what, message, seq=None):
        super().__init__(message)
        self.what, self.seq = what, seq


class Unreadable(Exception):
    pass


def require(condition, what, message, seq=None):
    if not condition:
        raise Fault(what, message, seq)
