"""A bundle in which values are withheld: what its host says of that (specs/LEDGER.md section 9, Redacted)."""
from .dsse import MOST_ENVELOPE, check_signature, envelope
from .encoding import count, document, from_base64
from .faults import require
from .tree import Tree

MEDIA = "application/vnd.assure.redaction+json"


class Redaction:
    """The records that differ from their leaves are those that it lists, and what is shown is what it was made over."""

    def __init__(self, data, run, seal, host):
        require(len(data) <= MOST_ENVELOPE and data.endswith(b"\n"), "redaction", "no line of an envelope")
        kind, payload, signature = envelope(data[:-1])
        check_signature(host, signature, kind, payload)
        require(kind == MEDIA, "redaction", f"a payload of the kind {kind}")
        said = document(payload) or {}
        self.root, self.count = from_base64(said.get("shown"), 32), count(said.get("count"))
        self.store, records = (count(said.get("store_size")), said.get("store")), said.get("records")
        require(said.get("schema") == "assure.redaction/1" and self.root and self.count is not None and
                self.store[0] is not None and isinstance(records, list), "redaction", "not the form of a redaction")
        require(seal and said.get("run") == run and count(said.get("size")) == seal.size and
                from_base64(said.get("root"), 32) == seal.root, "swapped", "the redaction is one of another run")
        self.records, before = set(), -2
        for one in records:
            stretch = [count(value) for value in one] if isinstance(one, list) else []
            require(len(stretch) == 2 and None not in stretch and before + 1 < stretch[0] <= stretch[1] < seal.size,
                    "redaction", "the list of redacted records is none")
            self.records.update(range(stretch[0], stretch[1] + 1))
            before = stretch[1]
        self.tree, self.seen = Tree(), 0

    def take(self, seq, shown, leaf):
        listed, differs = seq in self.records, shown != leaf
        require(not listed or differs, "redaction", f"record {seq} is listed as redacted, and is not", seq)
        require(listed or not differs, "changed", f"record {seq} is changed", seq)
        self.tree.append(shown)
        self.seen += listed

    def check(self):
        require(self.tree.root() == self.root and self.seen == self.count == len(self.records), "redaction",
                "what is shown is not what the host redacted")
