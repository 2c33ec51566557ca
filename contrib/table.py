#!/usr/bin/env python3
"""The documentation page of the system calls, from specs/syscalls.def and the tables beside it.

    contrib/table.py            print the page (specs/SYSCALLS.md is its output)
    contrib/table.py --write    write specs/SYSCALLS.md
    contrib/table.py --check    fail when the page is old, or when a row lost its test since the last commit
"""
import argparse
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
SPECS = TOP / "specs"
PAGE = SPECS / "SYSCALLS.md"


def without_comments(text):
    """Comments and preprocessor lines blanked; strings are kept."""
    text = re.sub(r'("(?:\\.|[^"\\])*")|/\*.*?\*/', lambda m: m.group(1) or " ", text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", "", text, flags=re.M)


def split(text):
    """The arguments of a macro call, split at commas outside of parentheses and strings."""
    parts, depth, start = [], 0, 0
    for match in re.finditer(r'"(?:\\.|[^"\\])*"|[(),]', text):
        token = match.group()
        if token == "(":
            depth += 1
        elif token == ")":
            depth -= 1
        elif token == "," and depth == 0:
            parts.append(text[start:match.start()])
            start = match.end()
    return [" ".join(part.split()) for part in [*parts, text[start:]]]


def calls(text, macro):
    """The argument lists of every MACRO(...) at the beginning of a line."""
    text = without_comments(text)
    for match in re.finditer(rf"^{macro}\(", text, re.M):
        depth = 1
        for token in re.finditer(r'"(?:\\.|[^"\\])*"|[()]', text[match.end():]):
            depth += {"(": 1, ")": -1}.get(token.group(), 0)
            if depth == 0:
                yield split(text[match.end():match.end() + token.start()])
                break
        else:
            raise SystemExit(f"table: a {macro} without its closing parenthesis")


def string(text):
    return "".join(re.findall(r'"((?:\\.|[^"\\])*)"', text)).replace('\\"', '"')


def read(name, macro):
    return list(calls((SPECS / name).read_text(), macro))


class Row:
    def __init__(self, fields):
        (self.name, self.x86_64, self.aarch64, self.effect, self.handling, self.lens, self.when, self.special,
         self.status, self.test) = fields[:10]
        self.arguments = [re.fullmatch(r"ARG\((\w+), (\w+)\)", field).groups() for field in fields[10:]]


def rows_of(text):
    return [Row(fields) for fields in calls(text, "SYSCALL")]


def cell(text):
    return text.replace("|", "\\|")


def table(head, lines):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for line in lines:
        yield "| " + " | ".join(cell(str(field)) for field in line) + " |"


def page():
    rows = rows_of((SPECS / "syscalls.def").read_text())
    effects = {fields[0]: string(fields[1]) for fields in read("effects.def", "EFFECT")}
    handlings = {fields[0]: string(fields[1]) for fields in read("handlings.def", "HANDLING")}
    conditions = {fields[0]: string(fields[1]) for fields in read("conditions.def", "WHEN")}
    specials = {fields[0]: string(fields[1]) for fields in read("specials.def", "SPECIAL")}
    variants = read("variants.def", "VARIANT")
    reasons = {}
    for name, _, because in read("no-effect.def", "NO_EFFECT"):
        reasons.setdefault(string(because), []).append(name)

    yield "# System calls"
    yield ""
    yield "Made by `contrib/table.py` from the tables in `specs/`; not edited by hand."
    yield ""
    yield (f"Of {len(rows) + sum(map(len, reasons.values()))} calls of Linux 6.18 on x86-64, {len(rows)} can have an "
           "effect and are stopped under the condition given here; the rest run at native speed, for the reasons given "
           "below. Calls of 32-bit programs, x32 calls and unknown numbers are refused and recorded.")
    yield ""
    yield "## Calls that can have an effect"
    yield ""
    yield ("*Attempt* in the last column: the test makes the attempt only, because success would change the machine or "
           "needs what the test host's kernel lacks.")
    yield ""

    def kinds(row):
        found = [effects[row.effect]]
        for variant in variants:
            if variant[0] == row.name and effects[variant[4]] not in found:
                found.append(effects[variant[4]])
        return "no effect" if row.special in ("mark", "state") else ", ".join(found)

    yield from table(
        ["call", "x86-64", "aarch64", "effect", "answered by", "stops on", "tested"],
        [[f"`{row.name}({', '.join(name for _, name in row.arguments)})`", row.x86_64,
          "" if row.aarch64 == "-1" else row.aarch64, kinds(row), handlings[row.handling], conditions[row.when],
          {"tested": "yes", "attempt": "attempt"}[row.status]] for row in rows])
    yield ""
    yield "## What the columns cannot say"
    yield ""
    for name, meaning in specials.items():
        users = ", ".join(f"`{row.name}`" for row in rows if row.special == name)
        if name != "none":
            yield f"- **{name}** ({users}): {meaning}."
    yield ""
    yield "## Effects by the value of an argument"
    yield ""
    yield "The first line of a call that fits is taken. For `fcntl`, `ioctl` and `prctl` no other value stops."
    yield ""
    arguments = {row.name: row.arguments for row in rows}
    yield from table(
        ["call", "argument", "value", "effect", "answered by"],
        [[f"`{call}`", f"`{arguments[call][int(index)][1]}`",
          f"`{value}`" + ("" if mask == "WHOLE" or mask == value else f" under `{mask}`"), effects[effect],
          handlings[handling]] for call, index, mask, value, effect, handling in variants])
    yield ""
    yield "## Calls without an effect"
    yield ""
    yield from table(["calls", "because"],
                     [[", ".join(f"`{name}`" for name in names), because] for because, names in reasons.items()])


def lost_tests(old, new):
    """A row that was tested stays, and stays tested under the same name."""
    now = {row.name: row for row in new}
    for row in old:
        if row.name not in now:
            yield f"{row.name}: the row is gone"
        elif row.status == "tested" and now[row.name].status != "tested":
            yield f"{row.name}: was tested, is {now[row.name].status}"
        elif row.test and row.test != now[row.name].test:
            yield f"{row.name}: its test was {row.test}, is {now[row.name].test or 'none'}"


def check(text):
    complaints = []
    if not PAGE.exists() or PAGE.read_text() != text:
        complaints.append("specs/SYSCALLS.md is not what the tables say: contrib/table.py --write")
    shown = subprocess.run(["git", "-C", TOP, "show", "HEAD:./specs/syscalls.def"], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, check=False)
    if shown.returncode == 0:
        complaints += lost_tests(rows_of(shown.stdout.decode()), rows_of((SPECS / "syscalls.def").read_text()))
    for complaint in complaints:
        print(f"table: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true")
    what.add_argument("--write", action="store_true")
    options = parser.parse_args()
    text = "\n".join(page()) + "\n"
    if options.check:
        return check(text)
    if options.write:
        PAGE.write_text(text)
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
