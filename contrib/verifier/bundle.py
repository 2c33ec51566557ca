"""A run in one file."""
import hashlib
import pathlib

from .encoding import count, document
from .faults import MOST_NOTE, Unreadable, require

NAMES = ["run.sqlite", "seal"]


def bundle_parts(path, stage):
    """The parts of a bundle: the store as a file, the others as bytes."""
    with open(path, "rb") as file:
        header = document(file.readline(MOST_NOTE).removesuffix(b"\n"))
        if not header or header.get("schema") != "assure.bundle/1" or not isinstance(header.get("parts"), list):
            raise Unreadable("no bundle")
        parts, names = {}, [part.get("name") if isinstance(part, dict) else None for part in header["parts"]]
        require(set(header) == {"parts", "run", "schema"} and
                names[:2] == NAMES[:2] and
                names[2:] in ([], ["log"], ["redaction"], ["log", "redaction"]), "bundle", "not the parts of a bundle")
        for part in header["parts"]:
            size = count(part.get("size"))
            require(set(part) == {"name", "sha256", "size"} and size is not None, "bundle", "a part without its form")
            target, state = pathlib.Path(stage, part["name"]), hashlib.sha256()
            with open(target, "wb") as out:
                while size and (block := file.read(min(size, 1 << 20))):
                    state.update(block)
                    out.write(block)
                    size -= len(block)
            require(size == 0, "cut", "the bundle ends early")
            require(part["sha256"] == "sha256:" + state.hexdigest(), "bundle", f"{part['name']} was changed")
            parts[part["name"]] = target
        require(not file.read(1), "behind", "something stands behind the bundle's last part")
    return header["run"], parts
