"""The Merkle tree (RFC 6962)."""
import functools
import hashlib


class Tree:
    """The head of a growing Merkle tree: the roots of its full parts, largest first."""

    def __init__(self):
        self.size, self.parts = 0, []

    def append(self, leaf):
        position, self.size = self.size, self.size + 1
        while position & 1:
            leaf = hashlib.sha256(b"\1" + self.parts.pop() + leaf).digest()
            position >>= 1
        self.parts.append(leaf)

    def root(self):
        if not self.parts:
            return hashlib.sha256(b"").digest()
        return functools.reduce(lambda right, left: hashlib.sha256(b"\1" + left + right).digest(), self.parts[::-1])


def leaf_of(data):
    return hashlib.sha256(b"\0" + data).digest()


def root_by_proof(leaf, index, size, proof):
    """RFC 9162 section 2.1.3.2; None when the proof has not the length for it."""
    last, here = size - 1, leaf
    for other in proof:
        if last == 0:
            return None
        if index & 1 or index == last:
            here = hashlib.sha256(b"\1" + other + here).digest()
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            here = hashlib.sha256(b"\1" + here + other).digest()
        index, last = index >> 1, last >> 1
    return here if last == 0 else None
