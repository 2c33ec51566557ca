"""The laws of the tree that a compiler does not hold: floors, sizes, who may print, unfinished words, machine paths."""
import os
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent

# Folder, floor, and what it may include besides itself. The longest folder that holds a file is the file's room.
# Rooms on one floor may include each other only as said here, and never in a circle.
ROOMS = {
    "specs": (0, set()),
    "base": (1, {"specs"}),
    "policy": (2, {"specs", "base"}),
    "ledger": (2, {"specs", "base"}),
    "ledger/scribe": (2, {"specs", "base", "ledger"}),
    "tracer/os": (3, {"specs", "base", "ledger"}),
    "tracer/decode": (3, {"specs", "base", "ledger", "tracer/os"}),
    "tracer/act": (3, {"specs", "base", "ledger", "policy", "tracer/os", "tracer/decode"}),
    "tracer/monitor": (3, {"specs", "base", "ledger", "policy", "tracer/os", "tracer/decode", "tracer/act"}),
    "tracer/guardian": (3, {"specs", "base", "ledger", "ledger/scribe", "tracer/os", "tracer/monitor"}),
    "gateway": (3, {"specs", "base", "ledger", "policy"}),
    "preload": (3, {"specs"}),
    "cli": (4, None),  # all
}
LIMIT = 500
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)
# Data goes to a terminal through the escaper, and only from cli/.
PRINTS = re.compile(
    r"(?<![\w>.])(?:(?:v?printf|puts|putchar|perror|psignal|herror|warnx?|vwarnx?|errx?|verrx?)\s*\("
    r"|(?:v?fprintf|fputs|fputc|putc|fwrite|v?dprintf)\s*\([^;]*?\b(?:stdout|stderr|STDOUT_FILENO|STDERR_FILENO)\b)")
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
# Home folders and this tree's own place: a path that exists only on the machine of whoever wrote it.
MACHINE = re.compile(r"/(?:home|Users)/(?!user\b|agent\b|you\b|me\b)[a-z][\w-]*/")


def files():
    listed = subprocess.run(["git", "-C", TOP, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if listed.returncode == 0:
        names = [os.fsdecode(n) for n in listed.stdout.split(b"\0") if n]
    else:
        names = [str(p.relative_to(TOP)) for p in TOP.rglob("*")
                 if "build" not in p.relative_to(TOP).parts and ".git" not in p.parts]
    return sorted(n for n in set(names) if (TOP / n).is_file() and not (TOP / n).is_symlink())


def room_of(name):
    parts = name.split("/")
    for length in range(len(parts) - 1, 0, -1):
        folder = "/".join(parts[:length])
        if folder in ROOMS:
            return folder
    return None


def without_comments(text):
    """Comments blanked; lines and strings kept."""
    def blank(match):
        token = match.group(0)
        return token if token[0] in "\"'" else re.sub(r"[^\n]", " ", token)
    return re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', blank, text, flags=re.S)


def resolve(name, included, known):
    """The project file that an include means: beside the file, in specs/, or in some room's include folder."""
    candidates = [os.path.normpath(os.path.join(os.path.dirname(name), included)), f"specs/{included}"]
    candidates += [f"{room}/include/{included}" for room in ROOMS]
    candidates += [f"{room}/{included}" for room in ROOMS]
    return next((c for c in candidates if c in known), None)


def circle(edges):
    """One circle among the rooms, or None."""
    state = {}

    def visit(room, path):
        state[room] = 1
        for other in sorted(edges.get(room, ())):
            if state.get(other) == 1:
                return path[path.index(other):] + [other] if other in path else [room, other]
            if other not in state:
                found = visit(other, path + [other])
                if found:
                    return found
        state[room] = 2
        return None

    for room in sorted(edges):
        if room not in state:
            found = visit(room, [room])
            if found:
                return found
    return None


def check_code(name, text, known, edges, complain):
    room = room_of(name)
    code = without_comments(text)
    lines = text.count("\n")
    if lines > LIMIT:
        complain(name, 0, f"{lines} lines; at most {LIMIT} (split it by what it does, or make it a table)")
    if room is None:
        return
    floor, allowed = ROOMS[room]
    for match in INCLUDE.finditer(code):
        line = code.count("\n", 0, match.start()) + 1
        target = resolve(name, match.group(1), known)
        other = room_of(target) if target else None
        if other is None or other == room:
            continue
        edges.setdefault(room, set()).add(other)
        if ROOMS[other][0] > floor:
            complain(name, line, f'"{match.group(1)}" is on floor {ROOMS[other][0]} ({other}), this is floor {floor}')
        elif allowed is not None and other not in allowed:
            complain(name, line, f'{room} may not include {other} ("{match.group(1)}")')
        elif "/include/" not in target and other != "specs":
            complain(name, line, f'"{match.group(1)}" is private to {other}')
    if room not in ("cli", "preload"):
        calls = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', code)
        for match in PRINTS.finditer(calls):
            line = calls.count("\n", 0, match.start()) + 1
            complain(name, line, "prints; only cli/ does, through the escaper")


def main():
    problems = []

    def complain(name, line, what):
        problems.append(f"{name}:{line}: {what}" if line else f"{name}: {what}")

    names = files()
    known, edges = set(names), {}
    own_place = str(TOP) + "/"
    for name in names:
        try:
            text = (TOP / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if name.endswith((".c", ".h")):
            check_code(name, text, known, edges, complain)
        if name != "LICENSE":
            for number, line in enumerate(text.split("\n"), 1):
                if UNFINISHED.search(line):
                    complain(name, number, "a word of unfinished work")
                if own_place in line or MACHINE.search(line):
                    complain(name, number, "a path of one machine")
    found = circle(edges)
    if found:
        problems.append("rooms include each other in a circle: " + " -> ".join(found))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
