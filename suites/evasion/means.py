"""What a row of this suite is: one means of escape, and the records that are owed for it.

Every value in a row is compared as text (true, false and numbers as JSON writes them), after its placeholders are
filled in: {dir} is the program's folder, {place} the folder around it, {outside}, {outside_pid}, {outside_tcp},
{outside_udp} and {outside_dir} belong to the helper that stands outside the tree (outside.py), and every `name=value`
and `name~value` of the program's `did` lines is {name}.
"""
import dataclasses
import fnmatch
import json
import re

OUTCOMES = ("recorded", "refused+recorded", "gap")

# The kind is what stands behind a means: a change of the product that closes one kind closes all of its rows.
KINDS = {
    "argument race": "another thread or process changes what a call means while it is made",
    "foreign ABI": "the kernel is entered by another table of system calls",
    "ring": "effects are made by a queue that the kernel reads, without a call each",
    "image disguise": "what runs is not what is named",
    "injection": "another process is made to act",
    "no libc": "no code runs that a library or an environment variable could watch",
    "lineage": "who acted is no longer connected to who was started",
    "descriptor passing": "what is named and what is written are in different processes",
    "delegate": "a service outside the tree is asked to act",
    "hidden path": "the name that is given is not the name of what is changed",
    "other namespace": "names, numbers and ids mean something else for the process",
    "no call": "the change itself needs no system call",
    "address by the side": "a peer is named in another call than connect",
    "kernel service": "the kernel keeps or carries data for the process",
    "size": "more than a buffer, a path or a queue holds",
    "transparency": "the program must work as it does alone",
    "identity": "ids, names or visibility of the process are changed",
    "own filter": "the program filters or catches its own calls",
    "attack": "what watches is attacked",
    "interpreter": "an effect is in the data of a program, not in its arguments",
    "kernel helper": "the kernel is told to start programs of its own",
    "kernel code": "code is loaded into the kernel",
    "device": "an object below the file system is changed",
    "file system": "a file system whose contents the tree decides",
    "exhaustion": "what watches is left without means",
    "side channel": "information goes where nothing is changed",
}


@dataclasses.dataclass(frozen=True)
class Like:
    """A value of this glob pattern."""
    glob: str


@dataclasses.dataclass(frozen=True)
class Match:
    """A value that this regular expression matches as a whole."""
    regex: str


@dataclasses.dataclass(frozen=True)
class Has:
    """A list in which every one of these is."""
    items: tuple

    def __init__(self, *items):
        object.__setattr__(self, "items", items)


@dataclasses.dataclass(frozen=True)
class Effect:
    """Effect records that are owed: as many as `count` says, or at least one.

    `where` maps a dotted field (path, args.sig, flags, process.pid, argv.0) to its value, a list of values of which it
    is one, a Like, a Match, a Has, None (the field is absent) or True (it is there, with any value). `results` are the
    states that each of the found records may have; with a state that is not among them a record counts as missed.
    """
    kind: str
    where: dict = dataclasses.field(default_factory=dict)
    count: object = None
    results: tuple = ("ok",)
    how: tuple = ()


@dataclasses.dataclass(frozen=True)
class Gap:
    """A gap record with this code, as often as `count` says, or at least once."""
    code: str
    count: object = None


@dataclasses.dataclass(frozen=True)
class Start:
    """A descriptor that the command inherited, in the record of the run's start."""
    where: dict


@dataclasses.dataclass(frozen=True)
class State:
    """What `assure show --json` says of the run, by dotted field."""
    where: dict


@dataclasses.dataclass(frozen=True)
class Distinct:
    """So many different values of a field among the effects that `of` describes."""
    of: Effect
    field: str
    count: object


@dataclasses.dataclass(frozen=True)
class AnyOf:
    """One of these is enough (the row's outcome is still one)."""
    choices: tuple

    def __init__(self, *choices):
        object.__setattr__(self, "choices", choices)


@dataclasses.dataclass(frozen=True)
class Means:
    """One row. `absent` lists Effects and Gaps of which there must be none."""
    number: int
    name: str
    kind: str
    outcome: str
    expects: tuple
    absent: tuple = ()
    identity: str = "any"            # root, user, or any
    lens: str = "changes"            # the least lens under which `expects` can be met
    options: tuple = ()              # further options of `assure trace`
    races: tuple = ()                # names of counts in `did` lines: each must be above 0, alone and traced
    outside: bool = False            # start outside.py; the program finds it by EV_OUTSIDE and its relatives
    outside_paths: tuple = ()        # names below {outside_dir} where it also listens
    inherit: tuple = ()              # (descriptor, "file" or "tcp"): handed in, opened outside the tree
    arguments: tuple = ()
    stdin: str = ""                  # text for the program's standard input
    folder_differs: str = ""         # why the folder may differ between alone and traced
    status: object = 0               # alone; traced it must be the same
    limit: int = 60
    note: str = ""
    program: str = ""                # when it is not called like the row

    def check(self):
        assert self.outcome in OUTCOMES, (self.number, self.outcome)
        assert self.kind in KINDS, (self.number, self.kind)
        assert self.identity in ("any", "root", "user"), self.number
        assert self.expects, self.number


ABSENT = object()


def field(record, path):
    value = record
    for step in path.split("."):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.lstrip("-").isdigit() and -len(value) <= int(step) < len(value):
            value = value[int(step)]
        else:
            return ABSENT
    return value


def text_of(value):
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


class Facts(dict):
    """What placeholders stand for. An unknown one is a fault of the row, not a record that is missed."""

    def fill(self, text):
        if not isinstance(text, str):
            return text_of(text)
        return re.sub(r"\{(\w+)\}", lambda found: str(self[found.group(1)]), text)

    def number(self, count):
        return count if isinstance(count, int) else int(self.fill(count))


def holds(record, path, wanted, facts):
    value = field(record, path)
    if wanted is None:
        return value is ABSENT
    if value is ABSENT:
        return False
    if wanted is True:
        return True
    if isinstance(wanted, (list, tuple)):
        return any(text_of(value) == facts.fill(one) for one in wanted)
    if isinstance(wanted, Like):
        return fnmatch.fnmatchcase(text_of(value), facts.fill(wanted.glob))
    if isinstance(wanted, Match):
        return re.fullmatch(facts.fill(wanted.regex), text_of(value), re.S) is not None
    if isinstance(wanted, Has):
        items = [text_of(item) for item in value] if isinstance(value, list) else []
        return all(facts.fill(item) in items for item in wanted.items)
    return text_of(value) == facts.fill(wanted)


class Records:
    """All that was recorded of one run."""

    def __init__(self, effects, shown, start):
        self.effects, self.shown, self.start = effects, shown, start

    def found(self, wanted, facts):
        return [e for e in self.effects if e["kind"] == wanted.kind and
                all(holds(e, path, value, facts) for path, value in wanted.where.items())]

    def nearest(self, wanted, facts):
        """The effect that comes nearest to what was wanted, and what it misses."""
        def misses(effect):
            return [p for p, v in wanted.where.items() if not holds(effect, p, v, facts)] + \
                (["kind"] if effect["kind"] != wanted.kind else [])
        ranked = sorted(self.effects, key=lambda e: (len(misses(e)), e["kind"] != wanted.kind))
        if not ranked:
            return "there are no effects"
        return f"nearest ({', '.join(misses(ranked[0]))} differ): {brief(ranked[0])}"

    def miss(self, wanted, facts):
        """("", records that were found) or (why not, [])."""
        return getattr(self, "miss_" + type(wanted).__name__.lower())(wanted, facts)

    def miss_effect(self, wanted, facts):
        found = self.found(wanted, facts)
        bad = [e for e in found if e["result"]["state"] not in wanted.results or
               (wanted.how and e["how"] not in wanted.how)]
        if bad:
            return f"{said(wanted, facts)}: the result must be {'/'.join(wanted.results)}" + \
                (f" and {'/'.join(wanted.how)}" if wanted.how else "") + f": {brief(bad[0])}", []
        if wanted.count is None:
            return ("", found) if found else (f"{said(wanted, facts)}: no record; {self.nearest(wanted, facts)}", [])
        count = facts.number(wanted.count)
        if len(found) == count:
            return "", found
        near = "" if found else f"; {self.nearest(wanted, facts)}"
        return f"{said(wanted, facts)}: {len(found)} records, owed are {count}{near}", []

    def miss_gap(self, wanted, facts):
        amount = sum(gap.get("count", 1) for gap in self.shown["gaps"] if gap["code"] == wanted.code)
        good = amount >= 1 if wanted.count is None else amount == facts.number(wanted.count)
        return ("", [wanted]) if good else (f"gap {wanted.code}: {amount} of them", [])

    def miss_start(self, wanted, facts):
        rows = self.start.get("descriptors", [])
        if any(all(holds(row, p, v, facts) for p, v in wanted.where.items()) for row in rows):
            return "", [wanted]
        return f"inherited descriptor {shown_where(wanted.where, facts)}: not among {json.dumps(rows)}", []

    def miss_state(self, wanted, facts):
        bad = [p for p, v in wanted.where.items() if not holds(self.shown, p, v, facts)]
        seen = {p: text_of(field(self.shown, p)) if field(self.shown, p) is not ABSENT else None for p in bad}
        return (f"show: {shown_where(wanted.where, facts)}: is {json.dumps(seen)}", []) if bad else ("", [wanted])

    def miss_distinct(self, wanted, facts):
        values = {text_of(field(e, wanted.field)) for e in self.found(wanted.of, facts)}
        if len(values) == facts.number(wanted.count):
            return "", []
        return f"{said(wanted.of, facts)}: {len(values)} different {wanted.field}, owed are " \
            f"{facts.number(wanted.count)}", []

    def miss_anyof(self, wanted, facts):
        reasons = []
        for choice in wanted.choices:
            reason, found = self.miss(choice, facts)
            if not reason:
                return "", found
            reasons.append(reason)
        return " | or ".join(reasons), []


def brief(effect):
    keys = ("seq", "kind", "syscall", "how", "path", "host_path", "as_given", "to", "peer", "local", "image", "target",
            "delegated", "flags", "mode", "args", "result", "note")
    row = {k: effect[k] for k in keys if k in effect}
    if "env_names" in row.get("args", {}):
        row["args"] = {k: v for k, v in row["args"].items() if k != "env_names"}
    text = json.dumps(row, ensure_ascii=False)
    return text if len(text) < 700 else text[:700] + "…"


def shown_where(where, facts):
    parts = []
    for path, value in where.items():
        if isinstance(value, (Like, Match, Has)):
            shown = facts.fill(repr(value))
        else:
            shown = {None: "(absent)", True: "(any)"}.get(value) if value is None or value is True else \
                "/".join(facts.fill(one) for one in value) if isinstance(value, (list, tuple)) else facts.fill(value)
        parts.append(f"{path}={shown[:200]}")
    return " ".join(parts)


def said(wanted, facts):
    return f"{wanted.kind} {shown_where(wanted.where, facts)}".strip()


def outcome_of(found):
    """Which of the three outcomes these records are: a refusal, a loss that was declared, or a record.

    `found` are pairs of what a row wanted and what was there. That somebody else was asked is a loss where it is what
    the row rests on.
    """
    if any(isinstance(one, dict) and one["result"]["state"] == "refused" for _, one in found):
        return "refused+recorded"
    if any(isinstance(one, Gap) or "delegated" in getattr(wanted, "where", {}) for wanted, one in found):
        return "gap"
    return "recorded"
