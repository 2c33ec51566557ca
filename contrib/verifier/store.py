"""The files of SQLite, read without a change."""
import contextlib
import hashlib
import os
import pathlib
import shutil
import sqlite3
import tempfile

from .faults import require

TABLES = {
    "run": {
        "meta": ("key", "value"),
        "records": ("seq", "type", "kind", "how", "state", "process", "pid", "json", "leaf"),
        "checkpoints": ("size", "note"),
        "documents": ("name", "bytes"),
    },
    "blobs": {"blobs": ("digest", "seq", "bytes")},  # of a run from schema 3 on
    "log": {"entries": ("seq", "run", "event", "json", "leaf"), "checkpoints": ("size", "note", "parts")},
}


def beside(path, suffix):
    other = pathlib.Path(f"{path}{suffix}")
    return other if other.exists() and other.stat().st_size else None


@contextlib.contextmanager
def database(path, kind):
    """The store, with nothing changed in its folder; one with a write-ahead log that nobody has open, in a copy."""
    with tempfile.TemporaryDirectory(prefix="verify-") as stage, contextlib.ExitStack() as stack:
        mode = "mode=ro&immutable=1"
        if beside(path, "-wal"):
            mode = "mode=ro"
            if not beside(path, "-shm") or not os.access(path.parent, os.W_OK):
                shutil.copyfile(path, f"{stage}/copy")
                shutil.copyfile(f"{path}-wal", f"{stage}/copy-wal")
                path, mode = pathlib.Path(stage, "copy"), "mode=rw"
        uri = path.resolve().as_uri()
        connection = stack.enter_context(contextlib.closing(sqlite3.connect(f"{uri}?{mode}", uri=True)))
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        connection.execute("PRAGMA trusted_schema=OFF")
        found = dict(connection.execute("SELECT name, type FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"))
        found.pop("by_run" if kind == "log" else "", None)
        wanted = dict(TABLES[kind])
        if kind == "run" and connection.execute("PRAGMA user_version").fetchone()[0] >= 3:
            wanted.update(TABLES["blobs"])
        require(found == dict.fromkeys(wanted, "table"), "schema", f"{path.name} has not the tables of a {kind}")
        for table, columns in wanted.items():
            names = tuple(row[1] for row in connection.execute(f"PRAGMA table_xinfo({table})"))
            require(names == columns, "schema", f"the table {table} has not its columns")
        yield connection


def limited(column, most):
    return f"CASE WHEN typeof({column})='blob' AND length({column})<={most} THEN {column} END"


def file_digest(path):
    state = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            state.update(block)
    return "sha256:" + state.hexdigest()


def small(path, most):
    """The bytes of a file, one more than there may be when there are too many."""
    with open(path, "rb") as file:
        return file.read(most + 1)
