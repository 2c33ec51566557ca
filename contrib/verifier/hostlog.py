"""The host log, and the part of it in a bundle."""
import base64

from .encoding import document, fingerprint, from_base64
from .faults import MOST_NOTE, MOST_RECORD, require
from .note import Note, host_name
from .store import database, limited
from .tree import Tree, leaf_of, root_by_proof


def log_entry(data, tree):
    entry = document(data or b"")
    require(entry and entry.get("schema") == "assure.log/1" and entry.get("seq") == tree.size, "log",
            f"entry {tree.size} of the host log is none", tree.size)
    return entry


def read_log(path, run):
    """The keys that the host log knows, and its entries of a run."""
    tree, keys, entries, current = Tree(), {}, [], None
    with database(path, "log") as db:
        notes = db.execute(f"SELECT size, {limited('note', MOST_NOTE)}, {limited('parts', 2048)} FROM checkpoints "
                           "ORDER BY size")
        for seq, of, event, data, leaf in db.execute(
                f"SELECT seq, run, event, {limited('json', MOST_RECORD)}, leaf FROM entries ORDER BY seq"):
            entry = log_entry(data, tree)
            require((seq, of, event, leaf) == (tree.size, entry.get("run"), entry.get("event"), leaf_of(data)) and
                    from_base64(entry.get("previous")) == tree.root(), "log", f"entry {seq} of the log was changed")
            signer = current
            if event == "key":
                key = from_base64(entry.get("public_key"), 32)
                require(key and entry.get("fingerprint") == fingerprint(key) and
                        entry.get("replaces") == (current and fingerprint(current)), "log", f"entry {seq} is no key")
                signer, current, keys[fingerprint(key)] = current or key, key, key
            require(signer, "log", "the host log does not begin with a key")
            tree.append(leaf)
            size, data, parts = notes.fetchone() or (0, b"", b"")
            note = Note(data, "log")
            note.check(host_name(signer), host_name(signer), signer, "log")
            require((size, note.size, note.root, note.more, parts) ==
                    (tree.size, tree.size, tree.root(), [], b"".join(tree.parts)), "log",
                    f"the host log to entry {seq} is not what its checkpoint says")
            if of == run:
                require(len(entries) < 16, "log", "the host log has too many entries of this run")
                entries.append(entry)
        require(not notes.fetchone(), "log", "a checkpoint of the host log covers entries that are not there")
    return keys, entries


def read_extract(data, run, host, given):
    """The entries of a run in a bundle; each is proven to be in the host log."""
    extract = document(data)
    require(extract and set(extract) == {"checkpoint", "entries", "proofs", "schema"} and
            all(isinstance(extract[name], list) for name in ("entries", "proofs")) and
            len(extract["entries"]) == len(extract["proofs"]) and isinstance(extract["checkpoint"], str), "log",
            "the bundle's part of the host log has not its form")
    note, entries, before = Note(extract["checkpoint"].encode(), "log"), [], -1
    signer = next((key for key in [host, *filter(None, given.values())] if host_name(key) == note.name), host)
    note.check(host_name(signer), host_name(signer), signer, "log")
    for text, proof in zip(extract["entries"], extract["proofs"]):
        require(isinstance(text, str) and isinstance(proof, dict) and set(proof) == {"index", "proof"} and
                isinstance(proof["proof"], list) and type(proof["index"]) is int and
                before < proof["index"] < note.size, "log", "an entry of the bundle without its proof")
        entry, nodes = document(text.encode("utf-8", "replace")), [from_base64(one, 32) for one in proof["proof"]]
        require(entry and None not in nodes and entry.get("schema") == "assure.log/1" and entry.get("run") == run and
                entry.get("seq") == proof["index"] and root_by_proof(
                    leaf_of(text.encode()), proof["index"], note.size, nodes) == note.root, "log",
                "an entry of the bundle is not in the host log")
        before = proof["index"]
        entries.append(entry)
    return entries


def check_logged(run, entries):
    events = [entry.get("event") for entry in entries]
    end = "seal" if run.recovered is None else "recovery"
    require(events.count("start") == 1 and events[0] == "start", "log", "the host log has not one start of this run")
    require(events.count("seal") < 2, "two-seals", "the host log has two seals of this run")
    require(events[1:] == [end] * bool(run.seal), "log",
            f"the host log says of this run: {', '.join(events)}; its folder has {'a' if run.seal else 'no'} seal")
    require(entries[0].get("keys") == run.keys and entries[0].get("certificates") == run.certificates, "log",
            "the host log has other keys of this run")
    if run.seal:
        said = [entries[1].get(name) for name in ("size", "root", "store")]
        require(said == [run.seal.size, base64.b64encode(run.seal.root).decode(), run.digest and run.digest[1]] and
                (end == "recovery" or entries[1].get("complete") is run.complete), "log",
                "the host log has another seal of this run")
