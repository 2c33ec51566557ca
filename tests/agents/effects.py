"""Recorded effects, in the words in which strace's are put, and the comparison of both."""

import collections
import os
import pathlib
import re
from typing import NamedTuple

import strace
from outcome import steady_text
from strace import Event

UNSEEN_KINDS = ("file.read", "file.map")  # of file.*: no change of a file
LET_GO_TYPES = ("char", "fifo", "block", "socket")
EXPLANATIONS = pathlib.Path(__file__).resolve().parent / "explanations.txt"
SIDES = ("any", "strace", "assure")
SHOWN = 12  # differences of one comparison

# Kind of record: the word for it. What is not here is named after its call.
WORDS = {"file.delete": "delete", "dir.delete": "rmdir", "dir.create": "mkdir", "node.create": "mknod",
         "file.link": "link", "file.owner": "chown", "file.times": "times", "file.truncate": "truncate",
         "file.xattr": "xattr", "file.map": "map"}
DESCRIPTORS = {"ipc.pass_fd": "pass descriptors", "ipc.receive_fd": "receive descriptors"}
NOT_COMPARED = ("proc.exit", "ipc.send")
CALLS_NOT_COMPARED = ("ptrace", "landlock_create_ruleset")  # of strace itself; does nothing yet

# What two runs do not have in common, beside what outcome.py says: numbers of processes and what is made of them,
# random names, and ports.
NAMES = (
    (re.compile(r"/proc/(self|thread-self|\d+)\b"), "/proc/PID"),
    (re.compile(r"/proc/PID/task/\d+"), "/proc/PID/task/TID"),
    (re.compile(r"(/proc/PID(?:/task/TID)?|/dev)/fd/\d+"), r"\1/fd/FD"),
    (re.compile(r"(pipe|socket):\[\d+\]"), r"\1:[INODE]"),
    (re.compile(r"/objects/[0-9a-f]{2}(/[0-9a-f]{38})?(?![0-9a-z])"), "/objects/OBJECT"),
    (re.compile(r"^(connect|send) inet 127\.0\.0\.1 (?!53$)\d+"), r"\1 inet 127.0.0.1 PORT"),
    # Claude Code
    (re.compile(r"claude-[0-9a-f]{4}-cwd"), "claude-RANDOM-cwd"),
    (re.compile(r"(\bsrt\\*:)[0-9a-f]{32}"), r"\1SECRET"),
    (re.compile(r"(_PROXY_(?:PASSWORD|PORT)(?:', '| ))[0-9a-f]+"), r"\1SECRET"),
    (re.compile(r"(/claude-empty-)\w{6}\b"), r"\1RANDOM"),
    (re.compile(r"TCP:localhost:\d+"), "TCP:localhost:PORT"),
    (re.compile(r"(/claude-(?:http|socks)-|/srt-mux-|/claude-\d+/cwd-)[0-9a-f]+"), r"\1RANDOM"),
    (re.compile(r"snapshot-bash-\d+-\w{6}"), "snapshot-bash-RANDOM"),
    (re.compile(r"PATH_END_[0-9a-z]+"), "PATH_END_RANDOM"),
    (re.compile(r"\.claude\.json\.backup\.\d+"), ".claude.json.backup.MOMENT"),
    (re.compile(r"/sessions/\d+\.json"), "/sessions/PID.json"),
    (re.compile(r"/tasks/[0-9a-z]+\.output"), "/tasks/ID.output"),
    (re.compile(r"/mcp-logs-fs/TIME-\d+Z"), "/mcp-logs-fs/TIME"),
    # Codex
    (re.compile(r"(marketplace-linux-|plugins-clone-|codex-arg0|/\.tmp)\w{6}\b"), r"\1RANDOM"),
    (re.compile(r"/shell_snapshots/UUID\.(tmp-)?\d+"), r"/shell_snapshots/UUID.\1MOMENT"),
    (re.compile(r"(--codex-run-as-process-setup)', '\d+', '\d+'"), r"\1', 'FD', 'PID'"),
    (re.compile(r"(/codex-bwrap-synthetic-mount-targets-\d+/)[0-9a-f]{16}(/\d+)?"), r"\1RANDOM"),
    # Gemini CLI
    (re.compile(r"gemini-shell-\w{6}"), "gemini-shell-RANDOM"),
    (re.compile(r"/background-processes/background-\d+\.log"), "/background-processes/background-PID.log"),
    (re.compile(r"/session-TIME[-0-9a-f]*"), "/session-TIME-RANDOM"),
)


def changes_files(effect):
    kind = effect["kind"]
    return (kind.startswith(("file.", "dir.")) or kind == "node.create") and kind not in UNSEEN_KINDS


def is_ok(effect):
    return effect["result"]["state"] == "ok"


def is_unknown(effect):
    """Unknown though it need not be: opening a device, a terminal or a FIFO is let go, for it may block."""
    return changes_files(effect) and effect["result"]["state"] == "unknown" and effect.get("type") not in LET_GO_TYPES


def result_of(effect):
    result = effect["result"]
    returned = effect.get("args", {}).get("returned")
    if returned:
        return str(returned)
    if effect["kind"] == "proc.exec" and is_ok(effect):
        return f"ok, {effect.get('image', {}).get('path')}"
    return {"ok": "ok", "unknown": "?"}.get(result["state"], str(result.get("errno")))


def address_of(peer):
    if peer.get("family", "").startswith("inet"):
        return f"inet {peer.get('address')} {peer.get('port')}"
    if peer.get("family") == "netlink":
        return "netlink"
    return f"unix {peer['path']}" if peer.get("family") == "unix" and "path" in peer else None


def open_text(effect):
    flags = effect.get("flags", ())
    if effect.get("syscall") == "creat":
        flags = ("O_CREAT", "O_TRUNC")
    if "O_TMPFILE" in flags:
        path = str(effect.get("path"))  # of the file, where it was made
        return f"open unnamed {os.path.dirname(path) if '/#' in path else path}"
    return f"open {'|'.join(flag for flag in strace.OPEN_FLAGS if flag in flags) or '-'} {effect.get('path')}"


def exec_text(effect):
    return f"exec {effect.get('path')} {[str(argument) for argument in effect.get('argv', ())]}"


def target_text(effect):
    target, process = effect.get("target", {}), effect["process"]
    if target.get("id", process["id"] if target.get("pid") == process["pid"] else None) == process["id"]:
        return None
    return f"signal {effect.get('args', {}).get('sig')}"


def text_of(effect):
    """The event's words, or None for what strace is not asked for."""
    kind, call, path = effect["kind"], effect.get("syscall", ""), effect.get("path")
    if kind in NOT_COMPARED or call in CALLS_NOT_COMPARED:
        return None
    if kind == "net.accept":
        return None if result_of(effect) == "EAGAIN" else "accept"
    if kind in DESCRIPTORS:
        return DESCRIPTORS[kind]
    if call in strace.OPENS:
        return f"read {path}" if kind == "file.read" else open_text(effect)
    if call == "ioctl":
        return f"ioctl {path}"
    if kind == "file.rename":
        return f"rename {path} -> {effect.get('to', {}).get('path')}"
    if kind == "file.link":
        return f"link {path} -> {effect.get('to', {}).get('path')}"
    if kind == "file.symlink":
        return f"symlink {path} -> {effect.get('to', {}).get('text')}"
    if call in strace.HAVE_MODE:
        return f"{'chmod' if kind == 'file.mode' else 'mkdir'} {path} {effect.get('mode')}"
    if call in strace.FILE_CALLS and kind in WORDS:
        return f"{WORDS[kind]} {path}"
    if kind == "file.map":
        return f"map {path}"
    if kind == "proc.exec":
        return exec_text(effect)
    if call in ("connect", "bind", "sendto", "sendmsg", "sendmmsg"):
        address = address_of(effect.get("local" if call == "bind" else "peer", {}))
        return f"{'send' if call.startswith('send') else call} {address}" if address else None
    if kind == "proc.signal":
        return target_text(effect)
    if kind == "priv.namespace" and call in ("", "clone"):
        return "namespace"
    if call == "prctl":
        return f"prctl {effect.get('args', {}).get('op')}"
    return call if call in (*strace.PLAIN, "seccomp", "socket") else f"{kind} {call}"


def recorded(effects):
    found = []
    for effect in effects:
        text = text_of(effect)
        if text:
            found.append(Event(text, "?" if text.startswith("read ") else result_of(effect)))
    return found


# Comparing


def steady_events(events, folder):
    """Results by text, without what varies. Reads are not counted: they are recorded once a process and file."""
    found = collections.defaultdict(list)
    for text, result in events:
        text, result = steady_text(text, folder), steady_text(result, folder)
        for pattern, word in NAMES:
            text = pattern.sub(word, text)
        if not (text.startswith("read ") and text in found):
            found[text].append(result)
    return found


def only_one_saw(one, other):
    """What is left of both when equal results, and then unknown ones with anything, were taken away in pairs."""
    left = {}
    for text in one.keys() | other.keys():
        rest = [collections.Counter(one.get(text, ())), collections.Counter(other.get(text, ()))]
        both = rest[0] & rest[1]
        rest = [list((side - both).elements()) for side in rest]
        for side, opposite in (rest, rest[::-1]):
            while "?" in side and opposite:
                side.remove("?")
                opposite.pop()
        if rest[0] or rest[1]:
            left[text] = rest
    return left


class Explanation(NamedTuple):
    agent: str
    side: str
    maximum: int
    pattern: re.Pattern
    reason: str


def read_explanations(path=EXPLANATIONS):
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 5 or fields[1] not in SIDES or not fields[2].isdigit() or not fields[4]:
            raise ValueError(f"{path.name}:{number}: not agent, side, maximum, pattern, reason, with tabs between")
        found.append(Explanation(fields[0], fields[1], int(fields[2]), re.compile(fields[3], re.S), fields[4]))
    return found


class Comparison:
    """Two views of the same scenario: what only one of them has, and which explanation takes it."""

    def __init__(self, agent, explanations, native=False):
        self.agent = agent
        # What differs between two native runs is all that may explain a difference of two native runs.
        self.rows = [row for row in explanations
                     if row.agent in (agent, "all") and (row.side == "any" or not native)]
        self.used = collections.Counter()
        self.unexplained = []

    def explain(self, side, event):
        for row in self.rows:
            if row.side in ("any", side) and row.pattern.fullmatch(event) and self.used[row] < row.maximum:
                self.used[row] += 1
                return
        self.unexplained.append(f"only {side} saw {event}")

    def compare(self, sides, one, other):
        for text, rest in sorted(only_one_saw(one, other).items()):
            for side, results in zip(sides, rest):
                for result in results:
                    self.explain(side, f"{text} = {result}")
        return self

    def explainable(self, text, results):
        return any(row.pattern.fullmatch(f"{text} = {result}") for row in self.rows for result in results)

    def unnoticed(self, sides, one, other):
        """Kinds of events of which a side could lack one and nobody would notice, though no row explains it."""
        found = []
        for number, view in enumerate((one, other)):
            chosen = {text.split(" ", 1)[0]: text for text in view.keys() & (one, other)[1 - number].keys()
                      if not self.explainable(text, {"?", *one[text], *other[text]})}
            for kind, text in sorted(chosen.items()):
                views = [dict(one), dict(other)]
                views[number][text] = views[number][text][1:]
                again = Comparison(self.agent, self.rows).compare(sides, *views)
                if len(again.unexplained) <= len(self.unexplained):
                    found.append(f"a missing {kind} of {sides[number]} would not be noticed: {text[:200]}")
        return found

    def problems(self):
        if not self.unexplained:
            return []
        more = len(self.unexplained) - SHOWN
        return [f"unexplained: {len(self.unexplained)}", *(line[:400] for line in self.unexplained[:SHOWN]),
                *([f"and {more} more"] if more > 0 else [])]

    def note(self, one, other):
        counts = [sum(map(len, view.values())) for view in (one, other)]
        return f"{counts[0]} and {counts[1]} events, unexplained 0, explained {sum(self.used.values())}"
