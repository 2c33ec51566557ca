#!/usr/bin/env python3
"""Run the programs of this folder under `assure trace` and compare what was recorded with what they saw themselves.

    run.py --assure BIN --programs DIR [--only NAME] [--keep]

Each program row_* runs once as root and once as an ordinary user, in a fresh folder, with descriptor 3 open for its
expectations (row.h), and once more without assure: it must behave the same. Every row of specs/syscalls.def must be
covered by an expectation of success and one of failure, over all programs and both users.
"""

import argparse
import collections
import json
import os
import platform
import pwd
import re
import shutil
import stat
import subprocess
import sys
import tempfile

SPECS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "specs")
USER = "assure-test"
TIME_LIMIT = 120
NEAR_MISSES = 1
# With these the kernel makes the call and nobody looks at what becomes of it.
UNSEEN = ("let_go", "connect", "receive", "accept")

Row = collections.namedtuple("Row", "name handling special status")
Variant = collections.namedtuple("Variant", "mask value kind handling")
Who = collections.namedtuple("Who", "name uid gid home")


# The tables


def without_comments(name):
    with open(os.path.join(SPECS, name), encoding="utf-8") as file:
        return re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)


def entries(name, macro):
    """The arguments of every use of a macro at the start of a line, split at commas."""
    text = without_comments(name)
    for match in re.finditer(rf"^{macro}\(", text, flags=re.MULTILINE):
        depth, end = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        yield [part.strip() for part in text[match.end():end - 1].split(",")]


def read_rows():
    """Rows by name; those that this machine's architecture lacks are left out."""
    column = 2 if platform.machine() == "aarch64" else 1
    return {entry[0]: Row(entry[0], entry[4], entry[7], entry[8])
            for entry in entries("syscalls.def", "SYSCALL") if entry[column] != "-1"}


def read_variants():
    kinds = {entry[0]: entry[1].strip('"') for entry in entries("effects.def", "EFFECT")}
    variants = collections.defaultdict(list)
    for syscall, _, mask, value, effect, handling in entries("variants.def", "VARIANT"):
        variants[syscall].append(Variant(mask, value, kinds[effect], handling))
    return variants


def to_number(text):
    try:
        return int(str(text).rstrip("uU"), 0)
    except ValueError:
        return None


def variant_applies(variant, effect):
    """By the kind, and where the call has a command by that, which is recorded by name or else by number."""
    if variant.kind != effect.get("kind"):
        return False
    command = effect.get("args", {}).get("op")
    if command is None or command == variant.value:
        return True
    numbers = [to_number(part) for part in (command, variant.mask, variant.value)]
    return None not in numbers and numbers[0] & numbers[1] == numbers[2]


def result_unseen(rows, variants, expectation, effect):
    """Whether a record may say that it does not know the result."""
    row = rows[expectation["row"]]
    if expectation.get("waits") or row.handling in UNSEEN:
        return True
    # Opens for reading are let go, whatever their row says: there are too many of them.
    if effect.get("kind") == "file.read":
        return True
    return any(variant.handling in UNSEEN and variant_applies(variant, effect) for variant in variants[row.name])


# Comparison


MISSING = object()


def look_up(effect, path):
    value = effect
    for part in path.split("."):
        if not isinstance(value, dict) or part not in value:
            return MISSING
        value = value[part]
    return value


def equal(left, right):
    """As JSON sees it: true is no number."""
    return type(left) is type(right) and left == right


def differences(context, expectation, effect):
    """What is not as expected: (key, expected, recorded)."""
    found = [(key, wanted, look_up(effect, key)) for key, wanted in expectation["effect"].items()
             if not equal(look_up(effect, key), wanted)]
    state, errno = look_up(effect, "result.state"), look_up(effect, "result.errno")
    outcome = expectation["outcome"]
    if state == "unknown" and result_unseen(*context, expectation, effect):
        return found
    wanted_state = outcome if outcome in ("ok", "refused") else "failed"
    if state != wanted_state:
        found.append(("result.state", wanted_state, state))
    if wanted_state == "failed" and errno != outcome:
        found.append(("result.errno", outcome, errno))
    return found


def assign(candidates):
    """Give every expectation a record of its own where that is possible: augmenting paths."""
    owner = {}

    def place(expectation, seen):
        for record in candidates[expectation]:
            if record in seen:
                continue
            seen.add(record)
            if record not in owner or place(owner[record], seen):
                owner[record] = expectation
                return True
        return False

    for expectation in range(len(candidates)):
        place(expectation, set())
    return {expectation: record for record, expectation in owner.items()}


def show(value):
    return "(absent)" if value is MISSING else json.dumps(value, ensure_ascii=False)


def near_misses(context, expectation, effects, used):
    """The records that come closest, and what is different about them."""
    syscall = expectation["effect"].get("syscall")
    ranked = []
    for index, effect in enumerate(effects):
        if index in used or effect.get("syscall") != syscall:
            continue
        found = differences(context, expectation, effect)
        ranked.append((len(found), index, found))
    lines = []
    for _, index, found in sorted(ranked, key=lambda entry: entry[:2])[:NEAR_MISSES]:
        lines.append(f"      closest: seq {effects[index].get('seq', '?')}")
        lines += [f"        {key}: expected {show(wanted)}, recorded {show(got)}" for key, wanted, got in found]
    return lines or [f"      no unused record of {syscall}"]


# Running


def as_user(who):
    """Arguments of subprocess that make it this user's."""
    if who.uid == os.geteuid():
        return {}
    return {"user": who.uid, "group": who.gid, "extra_groups": []}


def environment(who):
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "HOME": who.home,
            "ASSURE_HOME": os.path.join(who.home, "assure")}


def make_folder(path, who):
    os.mkdir(path, 0o755)
    os.chmod(path, 0o755)
    if os.geteuid() == 0:
        os.chown(path, who.uid, who.gid)
    return path


def parse(line):
    """One expectation; a line that is none, as that of a program that was killed, is of a row that does not exist."""
    try:
        value = json.loads(line)
    except ValueError:
        value = None
    return value if isinstance(value, dict) and "row" in value else {"row": f"(unreadable line: {line.strip()[:80]})"}


def execute(command, who, folder):
    """Run in a fresh folder. Returns exit status or a reason, the expectations, and what was printed."""
    make_folder(folder, who)
    work = make_folder(os.path.join(folder, "work"), who)
    lines = os.path.join(folder, "expectations")
    script = 'exec 3>"$1"; shift; exec "$@"'
    try:
        done = subprocess.run(["/bin/sh", "-c", script, "sh", lines, *command], cwd=work, env=environment(who),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=TIME_LIMIT, check=False, **as_user(who))
        status, output = done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as error:
        status, output = f"not done after {TIME_LIMIT} s", (error.stdout or b"").decode(errors="replace")
    expectations = []
    if os.path.exists(lines):
        with open(lines, encoding="utf-8", errors="replace") as file:
            expectations = [parse(line) for line in file if line.strip()]
    return status, expectations, output


def recorded_effects(assure, who, name):
    done = subprocess.run([assure, "effects", name, "--json"], env=environment(who), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIME_LIMIT, check=False,
                          **as_user(who))
    if done.returncode != 0:
        return None, done.stderr.decode(errors="replace")
    return [json.loads(line) for line in done.stdout.decode().splitlines() if line.strip()], ""


def blur(value, work):
    """What may be another one every time: numbers, and the folder."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return "#"
    if isinstance(value, str):
        return re.sub(r"0x[0-9a-f]+|\d+", "#", value.replace(work, "<work>"))
    if isinstance(value, list):
        return [blur(item, work) for item in value]
    if isinstance(value, dict):
        return {key: blur(item, work) for key, item in value.items()}
    return value


def inherent(rows, line):
    """What must differ under assure: refused calls, and filters where there is one already, with no_new_privs."""
    if line["row"] not in rows or rows[line["row"]].handling == "refuse":
        return True
    if line["row"] not in ("seccomp", "prctl", "landlock_restrict_self"):
        return False
    return line.get("effect", {}).get("kind", "priv.filter") in ("priv.filter", "priv.landlock")


def blurred(rows, expectations, folder):
    """For the comparison of two runs."""
    work = os.path.join(folder, "work")
    return [blur(line, work) for line in expectations if not inherent(rows, line)]


# The report


class Report:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, 0, 0
        self.problems = []
        self.outcomes = collections.defaultdict(set)
        self.reasons = collections.defaultdict(set)

    def count(self, good, text, details=()):
        if good:
            self.passed += 1
        else:
            self.failed += 1
            self.problems += [f"  FAIL {text}", *details]

    def flush(self):
        print("\n".join(self.problems), end="\n" if self.problems else "", flush=True)
        self.problems = []


def check_expectations(context, report, expectations, effects):
    """Returns how many results were not seen."""
    wanted = [line for line in expectations if "effect" in line]
    candidates = [[index for index, effect in enumerate(effects)
                   if effect.get("syscall") == line["effect"].get("syscall")
                   and not differences(context, line, effect)] for line in wanted]
    owned = assign(candidates)
    used = set(owned.values())
    unknown = 0
    for index, line in enumerate(wanted):
        text = f"{line['row']} ({line['outcome']}): {json.dumps(line['effect'], ensure_ascii=False)}"
        details = [] if index in owned else near_misses(context, line, effects, used)
        report.count(index in owned, text, details)
        if index in owned and look_up(effects[owned[index]], "result.state") == "unknown":
            unknown += 1
    for line in expectations:
        if "absent" not in line:
            continue
        there = [effect for effect in effects
                 if all(equal(look_up(effect, key), value) for key, value in line["absent"].items())]
        report.count(not there, f"{line['row']}: recorded, and must not be: {json.dumps(line['absent'])}",
                     [f"      {json.dumps(effect, ensure_ascii=False)}" for effect in there[:NEAR_MISSES]])
    return unknown


def check_native(rows, report, program, who, folder, traced):
    """The program must do and see the same when nobody watches."""
    status, lines, output = execute([program], who, os.path.join(folder, "native"))
    report.count(status == 0, f"without assure: exit status {status}", [f"      {output.strip()}"] if output else [])
    alone = blurred(rows, lines, os.path.join(folder, "native"))
    watched = blurred(rows, traced, os.path.join(folder, "traced"))
    details = [f"      {len(alone)} lines alone, {len(watched)} under assure"]
    for left, right in zip(alone, watched):
        if left != right:
            details += [f"      alone:        {json.dumps(left)}", f"      under assure: {json.dumps(right)}"]
            break
    report.count(alone == watched, "it behaves differently under assure", details)


def note_rows(report, who, expectations):
    """What the rows' coverage rests on. Returns the rows that were touched and the reasons for skips."""
    skips = []
    for line in expectations:
        if "skip" in line:
            report.reasons[line["row"]].add(line["skip"])
            skips.append((line["row"], line["skip"]))
        else:
            report.outcomes[line["row"]].add(line.get("outcome", "absent"))
    report.skipped += len(skips)
    return {line["row"] for line in expectations}, [f"  skip {row} ({who.name}): {reason}" for row, reason in skips]


def run_program(context, report, assure, program, who):
    rows = context[0]
    name = os.path.basename(program)
    folder = make_folder(os.path.join(who.home, name), who)
    run = f"{name}.{who.name}"
    command = [assure, "trace", "--lens", "all", "--quiet", "--name", run, "--", program]
    status, lines, output = execute(command, who, os.path.join(folder, "traced"))
    failed_before = report.failed
    report.count(status == 0, f"exit status {status}", [f"      {output.strip()}"] if output else [])
    strangers = {line["row"] for line in lines} - set(rows)
    report.count(not strangers, f"no such rows: {', '.join(sorted(strangers))}")
    told, lines = lines, [line for line in lines if line["row"] in rows]
    touched, skips = note_rows(report, who, lines)
    effects, error = recorded_effects(assure, who, run)
    report.count(effects is not None, f"the run cannot be read: {error.strip()}")
    unknown = check_expectations(context, report, lines, effects or [])
    check_native(rows, report, program, who, folder, told)
    count = sum("effect" in line or "absent" in line for line in lines)
    print(f"{name} ({who.name}): {len(touched)} rows, {count} expectations, {unknown} unknown results, "
          f"{len(skips)} skips, {report.failed - failed_before} failures")
    print("\n".join(skips), end="\n" if skips else "")
    report.flush()


def halves_missing(row, outcomes):
    """Of success and failure, what no program has expected of a row."""
    good, bad = outcomes & {"ok", "refused"}, outcomes - {"ok", "refused", "absent"}
    if row.special in ("mark", "state"):  # never recorded, so all that can be said is that it is not
        return [] if "absent" in outcomes else ["absence"]
    if row.handling == "refuse":  # there is but one way that it ends
        bad = good
    return [half for half, there in (("success", good), ("failure", bad)) if not there]


def check_coverage(rows, report):
    for row in rows.values():
        outcomes, reasons = report.outcomes[row.name], "; ".join(sorted(report.reasons[row.name]))
        missing = halves_missing(row, outcomes)
        if not missing or not outcomes or not reasons:
            why = "only attempted, without a reason" if row.status == "attempt" and outcomes else "no expectation"
            report.count(not missing, f"row {row.name}: {why} of {' or '.join(missing)}")
        elif row.status == "attempt":
            report.count(True, "")
            print(f"row {row.name}: only attempted: {reasons}")
        else:
            report.skipped += 1
            print(f"skip row {row.name}: {' and '.join(missing)} not tested: {reasons}")
    report.flush()


# Users


def ordinary_user():
    """The account that is not root, made when it is not there; a reason when it cannot be."""
    try:
        return pwd.getpwnam(USER), ""
    except KeyError:
        pass
    tool = shutil.which("useradd") or shutil.which("useradd", path="/usr/sbin:/sbin")
    if not tool:
        return None, "there is no useradd"
    done = subprocess.run([tool, "--system", "--no-create-home", "--shell", "/bin/false", USER], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        return None, done.stdout.decode(errors="replace").strip()
    return pwd.getpwnam(USER), ""


def users(base, report):
    own = pwd.getpwuid(os.geteuid())
    accounts = [own]
    if own.pw_uid == 0:
        account, reason = ordinary_user()
        if account:
            accounts.append(account)
        else:
            report.skipped += 1
            print(f"skip: nothing is run as an ordinary user: {reason}")
    else:
        report.skipped += 1
        print(f"skip: only run as {own.pw_name}: being root is needed to run as root too")
    found = [Who(account.pw_name, account.pw_uid, account.pw_gid, os.path.join(base, account.pw_name))
             for account in accounts]
    for who in found:
        make_folder(who.home, who)
    return found


def remove(base):
    """Programs make folders that even their owner may not change."""
    for folder, _, _ in os.walk(base):
        if not os.path.islink(folder) and os.access(folder, os.X_OK) and os.stat(folder).st_uid == os.geteuid():
            os.chmod(folder, 0o755)
    shutil.rmtree(base, ignore_errors=True)


def copy_programs(folder, base, only):
    """Into a place that every user can reach."""
    found = []
    into = os.path.join(base, "programs")
    os.mkdir(into, 0o755)
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if not re.fullmatch(r"row_\w+", name) or not os.path.isfile(path) or not os.access(path, os.X_OK):
            continue
        if only and name not in only:
            continue
        found.append(shutil.copy(path, os.path.join(into, name)))
        os.chmod(found[-1], stat.S_IRWXU | 0o055)
    return found


def copy_assure(assure, base):
    """Where every user can reach it, and no build replaces it meanwhile."""
    copy = shutil.copy(assure, os.path.join(base, "assure"))
    os.chmod(copy, 0o755)
    return copy


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assure", required=True, help="the program under test")
    parser.add_argument("--programs", required=True, help="folder of the programs row_*")
    parser.add_argument("--only", action="append", help="run this program only; rows are not counted then")
    parser.add_argument("--keep", action="store_true", help="keep the folders of the runs, and say where")
    parser.add_argument("--backend", help="taken for the sake of other suites; these programs are the same for all")
    options = parser.parse_args()
    context = (read_rows(), read_variants())
    report = Report()
    base = os.path.realpath(tempfile.mkdtemp(prefix="assure-rows-"))
    os.chmod(base, 0o755)
    try:
        programs = copy_programs(options.programs, base, options.only)
        report.count(programs, f"no programs row_* in {options.programs}")
        assure = copy_assure(options.assure, base)
        for who in users(base, report):
            for program in programs:
                run_program(context, report, assure, program, who)
        if not options.only:
            check_coverage(context[0], report)
        report.flush()
    finally:
        if options.keep:
            print(f"kept: {base}")
        else:
            remove(base)
    print(f"{report.passed} passed, {report.failed} failed, {report.skipped} skipped")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
