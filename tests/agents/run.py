#!/usr/bin/env python3
"""Run real agents against a scripted model, natively and under `assure trace`, and compare.

    run.py --assure BIN [--agents DIR] [--only AGENT] [--repeat N] [--basic] [--keep]

DIR (default: shared/agents beside the checkout) holds run-AGENT.sh and scenarios/AGENT-basic.json; the agents are in
$AGENTS_HOME/npm (default ~/.cache/assure-agents). What is not there is skipped, with the reason.

Each scenario runs natively twice, which shows whether the comparison can be trusted, and then traced, in variants: the
default N times, each lens, `--wait main`, and with hooks and a tool server where the agent takes them (--basic: the
default only). A traced run must have the native outcome: exit status, output on both streams, the workspace, what the
hooks were told; its effects must show each file that the scenario made, its shell command and the connection to the
model; and it must be complete. The last two hold the recorded changes against strace: of a separate run, in the
workspace; and of the same run, strace inside assure, for all of the run's folder.
"""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TIME_LIMIT = 180
COMMAND = "echo hi > out.txt && cat out.txt"
UNSEEN_KINDS = ("file.read", "file.map")  # of file.*: no change of a file
LET_GO_TYPES = ("char", "fifo", "block", "socket")

Agent = collections.namedtuple("Agent", "name program")
AGENTS = (
    Agent("claude", "_anthropic-ai_claude-code/node_modules/@anthropic-ai/claude-code/bin/claude.exe"),
    Agent("codex", "_openai_codex/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"),
    Agent("gemini", "_google_gemini-cli/node_modules/@google/gemini-cli/bundle/gemini.js"),
)
SERVER = "_modelcontextprotocol_server-filesystem/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"

Variant = collections.namedtuple("Variant", "name options", defaults=((),))
Outcome = collections.namedtuple("Outcome", "folder status wall parts")


class Skip(Exception):
    """Something that is needed is not there."""


# What differs from run to run without assure


VARYING_KEYS = frozenset((
    "duration_ms", "duration_api_ms", "ttft_ms", "ttft_stream_ms", "time_to_request_ms",  # Claude Code
    "session_id", "uuid", "prompt_id", "tool_use_id",
    "thread_id",  # Codex
    "totalLatencyMs", "totalDurationMs", "durationMs",  # Gemini CLI
))
VARYING_TEXT = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)?(ms|s)\b"), "DURATION"),
    (re.compile(r"tmp\.\d+\.[0-9a-f]+"), "tmp.RANDOM"),
    (re.compile(r"\.(tmp|lock)-?[0-9A-Za-z]{6,}$"), ".RANDOM"),
)
VARYING_LINES = ("[STARTUP]",)  # Gemini CLI, when it ends before it has measured itself


def steady_text(text, folder):
    """`text` without the run's own folder (also as Claude Code spells it in a file name), ids and times."""
    text = text.replace(str(folder), "@RUN@").replace(re.sub(r"[^0-9A-Za-z]", "-", str(folder)), "@RUN@")
    for pattern, word in VARYING_TEXT:
        text = pattern.sub(word, text)
    return text


def steady(value, folder):
    if isinstance(value, dict):
        return {key: "VARIES" if key in VARYING_KEYS else steady(item, folder) for key, item in value.items()}
    if isinstance(value, list):
        return [steady(item, folder) for item in value]
    return steady_text(value, folder) if isinstance(value, str) else value


def steady_output(text, folder):
    """JSON, JSON Lines or plain text, in a form that two runs can be compared in."""
    try:
        return [steady(json.loads(text), folder)]
    except ValueError:
        pass
    lines = []
    for line in text.splitlines():
        try:
            lines.append(steady(json.loads(line), folder))
        except ValueError:
            lines.append(steady_text(line, folder))
    return [line for line in lines if line != "" and not (isinstance(line, str) and line.startswith(VARYING_LINES))]


def workspace(folder):
    """Type, mode and content of all in work/; of .git only what a commit's time does not change."""
    work, found = folder / "work", {}
    for path in sorted(work.rglob("*")):
        name = path.relative_to(work)
        if name.parts[0] == ".git" and (len(name.parts) < 2 or name.parts[1] not in ("HEAD", "config", "description")):
            continue
        mode = path.lstat().st_mode
        content = os.readlink(path) if path.is_symlink() else ""
        if not content and path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(name)] = (oct(mode), content)
    return found


# Running


class Bench:
    """The folders of all runs, and how one of them is started."""

    def __init__(self, assure, scripts, home, keep):
        self.assure, self.scripts, self.keep, self.count = assure, scripts, keep, 0
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="assure-agents-")).resolve()
        (self.top / "bin").mkdir()
        (self.top / "bin" / "assure").symlink_to(assure)
        (self.top / "home").mkdir()
        (self.top / "home" / "npm").symlink_to(home / "npm")
        self.environment = dict(os.environ, AGENTS_HOME=str(self.top / "home"), ASSURE_HOME=str(self.top / "state"),
                                PATH=f"{self.top / 'bin'}:{os.environ['PATH']}")
        for name in ("WRAP", "SETTINGS", "MCPCONF", "IN_NETNS"):
            self.environment.pop(name, None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.keep:
            print(f"kept: {self.top}")
        else:
            shutil.rmtree(self.top, ignore_errors=True)

    def run(self, agent, name, scenario, wrap="", **settings):
        self.count += 1
        name = f"{name}-{self.count}"
        folder = self.top / "home" / "runs" / name
        environment = dict(self.environment, **settings)
        if wrap:
            environment["WRAP"] = wrap.replace("@NAME@", name)
        process = subprocess.Popen(["bash", self.scripts / f"run-{agent.name}.sh", scenario, name], env=environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            said, _ = process.communicate(timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            for pid in self.left(folder):
                os.kill(pid, 9)
            process.kill()
            process.communicate()
            raise RuntimeError(f"{name}: no end after {TIME_LIMIT} s") from None
        try:
            summary = (folder / "summary").read_text()
        except OSError:
            raise RuntimeError(f"{name}: the script said {said.decode(errors='replace').strip()!r}") from None
        wall = float(re.search(r"wall=([\d.]+)", summary)[1])
        parts = {"stdout": steady_output((folder / "stdout").read_text(errors="replace"), folder),
                 "stderr": steady_output((folder / "stderr").read_text(errors="replace"), folder),
                 "workspace": workspace(folder)}
        if (folder / "hooks.jsonl").exists():
            parts["hooks"] = steady_output((folder / "hooks.jsonl").read_text(errors="replace"), folder)
        return Outcome(folder, process.returncode, wall, parts)

    def left(self, folder):
        """Processes that have the run's HOME in their environment: what an agent started, and assure itself."""
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    environment = pathlib.Path("/proc", entry, "environ").read_bytes()
                except OSError:
                    continue
                if f"HOME={folder}/home".encode() in environment.split(b"\0"):
                    found.append(int(entry))
        return found

    def ask(self, *arguments):
        result = subprocess.run([self.assure, *arguments], env=self.environment, stdin=subprocess.DEVNULL,
                                capture_output=True, check=False, timeout=60)
        if result.returncode:
            raise RuntimeError(f"assure {' '.join(arguments)}: {result.stderr.decode(errors='replace').strip()}")
        return result.stdout.decode(errors="replace")

    def shown(self, run):
        """`show`, once the run is over: with --wait main it may still go on."""
        for _ in range(50):
            shown = json.loads(self.ask("show", run, "--json"))
            if shown["state"] != "running":
                break
            time.sleep(0.1)
        return shown

    def effects(self, run):
        return [json.loads(line) for line in self.ask("effects", run, "--json").splitlines()]


# Comparing


def first_difference(left, right):
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted(left.keys() | right.keys(), key=str):
            if left.get(key) != right.get(key):
                return f"{key}: {first_difference(left.get(key), right.get(key))}"
    if isinstance(left, list) and isinstance(right, list):
        for number, (one, other) in enumerate(zip(left, right)):
            if one != other:
                return f"[{number}] {first_difference(one, other)}"
        longer = left if len(left) > len(right) else right
        return f"{len(left)} entries, then {len(right)}: {str(longer[min(len(left), len(right))])[:200]}"
    return f"{str(left)[:200]!r}, then {str(right)[:200]!r}"


def differences(one, other):
    found = []
    if one.status != other.status:
        found.append(f"exit status {one.status}, then {other.status}")
    for part in sorted(one.parts.keys() | other.parts.keys()):
        if one.parts.get(part) != other.parts.get(part):
            found.append(f"{part}: {first_difference(one.parts.get(part), other.parts.get(part))}")
    return found


def changes_files(effect):
    kind = effect["kind"]
    return (kind.startswith(("file.", "dir.")) or kind == "node.create") and kind not in UNSEEN_KINDS


def is_ok(effect):
    return effect["result"]["state"] == "ok"


def is_unknown(effect):
    """Unknown though it need not be: opening a device, a terminal or a FIFO is let go, for it may block."""
    return changes_files(effect) and effect["result"]["state"] == "unknown" and effect.get("type") not in LET_GO_TYPES


def missing_effects(bench, run, outcome, made):
    """What the effects of a traced run do not show, though it must have happened."""
    found, effects = [], bench.effects(run)
    tree = {process["id"] for process in json.loads(bench.ask("tree", run, "--json"))["processes"]}
    strangers = {effect["process"]["id"] for effect in effects} - tree
    if strangers:
        found.append(f"effects of processes that `tree` does not know: {sorted(strangers)}")
    if not {"note.md", "out.txt"} <= set(made):
        found.append(f"the scenario made {made}")
    for name in made:
        path = str(outcome.folder / "work" / name)
        if not any(is_ok(effect) and (
                (effect["kind"] in ("file.create", "file.write") and effect.get("path") == path) or
                (effect["kind"] == "file.rename" and effect.get("to", {}).get("path") == path)) for effect in effects):
            found.append(f"nothing made {name}")
    execs = [effect for effect in effects if effect["kind"] == "proc.exec" and is_ok(effect)]
    if not any(any(COMMAND in str(argument) for argument in effect.get("argv", ())) for effect in execs):
        found.append(f"no proc.exec of a shell with {COMMAND!r}")
    if not any(effect.get("argv") == ["cat", "out.txt"] for effect in execs):
        found.append("no proc.exec of cat out.txt")
    port = int((outcome.folder / "port").read_text())
    if not any(effect["kind"] == "net.connect" and effect.get("peer", {}).get("address") == "127.0.0.1" and
               effect["peer"].get("port") == port for effect in effects):
        found.append(f"no net.connect to 127.0.0.1:{port}")
    # A call that its process did not live to see return (Codex ends with threads at work) has no result.
    last = {}
    for effect in effects:
        if effect["kind"] != "proc.exit":
            last[effect["process"]["tid"]] = effect["seq"]
    unknown = sorted({f"{effect['kind']} by {effect['syscall']} of {effect.get('path')}" for effect in effects
                      if is_unknown(effect) and effect["seq"] != last[effect["process"]["tid"]]})
    if unknown:
        found.append(f"changes of files with an unknown result: {', '.join(unknown[:4])}")
    return found


def incomplete(shown, status):
    found = []
    if shown["state"] != "complete" or shown["gaps"]:
        found.append(f"state {shown['state']}, gaps {shown['gaps']}")
    if shown.get("status") != {"code": status}:
        found.append(f"recorded status {shown.get('status')}, exit status {status}")
    if not shown["effects"]:
        found.append("no effects")
    return found


def figures(effects):
    changing = [effect for effect in effects if changes_files(effect)]
    unknown = sum(effect["result"]["state"] == "unknown" for effect in changing)
    avoidable = sum(map(is_unknown, changing))
    by_how = collections.Counter(effect["how"] for effect in effects)
    return (f"{len(effects)} effects ({', '.join(f'{count} {how}' for how, count in sorted(by_how.items()))}), "
            f"{len(changing)} change files, {unknown} of them unknown, {unknown - avoidable} of these on devices")


# strace as an oracle


# Call: where its paths are. f: a descriptor; p: a path; d: a directory's descriptor and a path; -: of no interest.
ORACLE = {
    "open": "p", "openat": "d", "openat2": "d", "creat": "p", "truncate": "p", "ftruncate": "f", "fallocate": "f",
    "rename": "pp", "renameat": "dd", "renameat2": "dd", "link": "pp", "linkat": "dd", "symlink": "-p",
    "symlinkat": "-d", "unlink": "p", "unlinkat": "d", "rmdir": "p", "mkdir": "p", "mkdirat": "d", "mknod": "p",
    "mknodat": "d", "chmod": "p", "fchmod": "f", "fchmodat": "d", "chown": "p", "lchown": "p", "fchown": "f",
    "fchownat": "d", "utime": "p", "utimes": "p", "futimesat": "d", "utimensat": "d", "setxattr": "p",
    "lsetxattr": "p", "fsetxattr": "f", "removexattr": "p", "lremovexattr": "p", "fremovexattr": "f",
}
TRACED = ",".join((*ORACLE, "chdir", "fchdir", "clone", "clone3", "fork", "vfork"))
ARGUMENT = re.compile(r'"((?:[^"\\]|\\.)*)"(?:\.\.\.)?|((?:AT_FDCWD|\d+)(?:<((?:[^<>\\]|\\.)*)>(?:\(deleted\))?)?)|'
                      r"([^,\s][^,]*)")
LINE = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+|\?)(?:<((?:[^<>\\]|\\.)*)>)?(?: (E\w+))?")


def unescaped(text):
    return text.encode("latin-1", "backslashreplace").decode("unicode_escape").encode("latin-1").decode(
        errors="surrogateescape")


def whole_lines(log):
    """The lines of strace -f, those that were interrupted put together again."""
    begun = {}
    for line in log.read_text(errors="surrogateescape").splitlines():
        pid, _, rest = line.partition(" ")
        rest = rest.lstrip()
        if rest.endswith("<unfinished ...>"):
            begun[pid] = rest.removesuffix("<unfinished ...>").rstrip()
            continue
        resumed = re.match(r"<\.\.\. \w+ resumed>", rest)
        if resumed:
            rest = begun.pop(pid, "") + rest[resumed.end():]
        yield f"{pid} {rest}"


class Folders:
    """The working directory of each process, for the calls of which strace does not print it."""

    def __init__(self, first, lines):
        self.first, self.known, self.parents = first, {}, {}
        for line in lines:
            match = LINE.match(line)
            if match and match[2] in ("clone", "clone3", "fork", "vfork") and match[4].isdigit():
                self.parents[match[4]] = (match[1], "CLONE_FS" in match[3])

    def of(self, pid):
        if pid not in self.known:
            parent, shared = self.parents.get(pid, (None, False))
            above = self.of(parent) if parent else [self.first]
            self.known[pid] = above if shared else list(above)
        return self.known[pid]


def oracle_paths(log, folder):
    """The paths below `folder` that strace saw changed, by calls that succeeded; and those that it saw tried."""
    lines = list(whole_lines(log))
    folders, done, tried = Folders(str(folder / "work"), lines), set(), set()
    for line in lines:
        match = LINE.match(line)
        if not match:
            continue
        succeeded = match[4].isdigit()
        pid, call, given, returned = match[1], match[2], match[3], match[5]
        arguments = list(ARGUMENT.finditer(given))
        here = folders.of(pid)
        if "O_TMPFILE" in match[3]:  # a file without a name
            continue
        if call in ("chdir", "fchdir"):
            if not succeeded:
                continue
            to = arguments[0][1] if call == "chdir" else arguments[0][3]
            here[0] = os.path.normpath(os.path.join(here[0], unescaped(to or "")))
            continue
        shape = ORACLE.get(call)
        if shape is None or (call.startswith("open") and
                             not re.search(r"O_(WRONLY|RDWR|CREAT|TRUNC)", re.sub(r'"(?:[^"\\]|\\.)*"', "", given))):
            continue
        if call.startswith(("open", "creat")) and returned:
            done.add(unescaped(returned))
        at = 0
        for letter in shape:
            start, name = "", None
            if letter in "df":
                start = arguments[at][3] or ""
                at += 1
            if letter in "dp-":
                name = arguments[at][1] if at < len(arguments) else None
                at += 1
            if letter == "-":
                continue
            path = os.path.join(here[0], unescaped(start), unescaped(name or "")).rstrip("/")
            if name:  # the last part itself is not followed
                path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
            tried.add(path)
            if succeeded and not (call.startswith("open") and returned):
                done.add(path)
    return below(done, folder), below(tried | done, folder)


def below(paths, folder):
    return {path.rstrip("/") for path in paths if path and path.startswith(f"{folder}/")}


def recorded_paths(effects, folder):
    """The same of what was recorded: changes that were made, and those of which the result is not known."""
    done, unknown = set(), set()
    for effect in effects:
        if changes_files(effect) and "O_TMPFILE" not in effect.get("flags", ()):
            state = effect["result"]["state"]
            paths = done if state == "ok" else unknown if state == "unknown" else set()
            paths.update((effect.get("path"), effect.get("to", {}).get("path")))
    log = {f"{folder}/strace"}
    return below(done, folder) - log, below(unknown, folder) - log


def set_difference(oracle, recorded):
    (done, tried), (made, unknown) = oracle, recorded
    found = []
    for who, paths in (("strace", done - made - unknown), ("assure", (made - done) | (unknown - tried))):
        if paths:
            found.append(f"only {who} saw {len(paths)}: {', '.join(sorted(paths)[:6])}")
    return found


# The tests


class Report:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def result(self, name, problems, note=""):
        if problems:
            self.failed += 1
            print(f"FAIL {name}", flush=True)
            for problem in problems:
                print(f"  {problem}", flush=True)
        else:
            self.passed += 1
            print(f"ok   {name}{': ' + note if note else ''}", flush=True)

    def skip(self, name, reason):
        self.skipped += 1
        print(f"skip: {name}: {reason}", flush=True)


def write_scenario(bench, agent, call):
    """What the basic scenario does, and one call of the tool server."""
    turns = json.loads((bench.scripts / "scenarios" / f"{agent.name}-basic.json").read_text())
    arguments = {"path": "{{CWD}}/tool.txt", "content": "by a tool server\n"}
    path = bench.top / f"{agent.name}-tools.json"
    path.write_text(json.dumps([*turns[:-1], [dict(call, args=arguments)], turns[-1]]))
    return path


def with_more(agent, bench):
    """Name, scenario and settings of the run with hooks and a tool server, or None."""
    server = bench.top / "home" / "npm" / SERVER
    if agent.name == "claude" and server.exists():
        scenario = write_scenario(bench, agent, {"tool": "mcp__fs__write_file"})
        return "hooks and tools", scenario, {"SETTINGS": str(bench.scripts / "settings-hooks.json"),
                                             "MCPCONF": str(bench.scripts / "mcp.json")}
    if agent.name == "codex" and server.exists():
        table = f'[mcp_servers.fs]\ncommand = "node"\nargs = ["{server}", "@RUN@/work"]'
        scenario = write_scenario(bench, agent, {"tool": "write_file", "namespace": "mcp__fs"})
        return "tools", scenario, {"CODEX_TOML": table}  # it runs no hooks that were not trusted by hand
    return None


def test_traced(bench, report, agent, variant, native, scenario, settings):
    """One traced run against the native one; its wall time, and its effects."""
    name = f"{agent.name} {variant.name}"
    options = " ".join(variant.options)
    try:
        outcome = bench.run(agent, f"{agent.name}-traced", scenario, f"assure trace --quiet --name @NAME@ {options} --",
                            **settings)
        run = outcome.folder.name
        shown = bench.shown(run)
        made = sorted(path for path in native.parts["workspace"]
                      if not path.startswith(".git") and path != "seed.txt")
        problems = differences(native, outcome) + incomplete(shown, outcome.status)
        problems += missing_effects(bench, run, outcome, made)
        left = bench.left(outcome.folder)
        if left:
            problems.append(f"still there: {left}")
        effects = bench.effects(run)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        report.result(name, [str(error)])
        return None
    report.result(name, problems, f"{outcome.wall:.2f} s (native {native.wall:.2f}), {figures(effects)}")
    return outcome


def native_pair(bench, report, agent, what, scenario, settings):
    """Two native runs, which must not differ by what is compared; the first, or None."""
    try:
        pair = [bench.run(agent, f"{agent.name}-native", scenario, **settings) for _ in range(2)]
    except RuntimeError as error:
        report.result(f"{agent.name} {what}", [str(error)])
        return None
    report.result(f"{agent.name} {what}", differences(*pair), f"exit status {pair[0].status}")
    return pair


def test_oracle(bench, report, agent, scenario, traced):
    strace = f"strace -f -y -s 4096 -o @RUN@/strace -e trace={TRACED}"
    try:
        outcome = bench.run(agent, f"{agent.name}-strace", scenario, strace)
        work = [{steady_text(path, outcome.folder) for path in below(paths, outcome.folder / "work")}
                for paths in oracle_paths(outcome.folder / "strace", outcome.folder)]
        recorded = [{steady_text(path, traced.folder) for path in below(paths, traced.folder / "work")}
                    for paths in recorded_paths(bench.effects(traced.folder.name), traced.folder)]
        problems = set_difference(work, recorded)
        if recorded[1]:
            problems.append(f"unknown results in work/: {', '.join(sorted(recorded[1]))}")
        report.result(f"{agent.name} strace of a separate run", problems, f"{len(work[0])} paths in work/")
        outcome = bench.run(agent, f"{agent.name}-both", scenario, f"assure trace --quiet --name @NAME@ -- {strace}")
        seen = oracle_paths(outcome.folder / "strace", outcome.folder)
        effects = bench.effects(outcome.folder.name)
        problems = set_difference(seen, recorded_paths(effects, outcome.folder))
        problems += incomplete(bench.shown(outcome.folder.name), outcome.status)
        report.result(f"{agent.name} strace of the same run", problems, f"{len(seen[0])} paths in its folder")
    except RuntimeError as error:
        report.result(f"{agent.name} strace", [str(error)])


def test_agent(bench, report, agent, options):
    scenario = bench.scripts / "scenarios" / f"{agent.name}-basic.json"
    for needed in (bench.scripts / f"run-{agent.name}.sh", scenario, bench.top / "home" / "npm" / agent.program):
        if not needed.exists():
            raise Skip(f"there is no {needed.name}")
    pair = native_pair(bench, report, agent, "native, twice", scenario, {})
    if not pair:
        return
    natives, walls, traced = [run.wall for run in pair], [], None
    for turn in range(options.repeat):
        if turn > 0:  # in turns, because what else the host does changes
            try:
                natives.append(bench.run(agent, f"{agent.name}-native", scenario).wall)
            except RuntimeError as error:
                report.result(f"{agent.name} native", [str(error)])
        outcome = test_traced(bench, report, agent, Variant("basic"), pair[0], scenario, {})
        if outcome:
            traced = outcome
            walls.append(outcome.wall)
    if not options.basic:
        for variant in (Variant("lens changes", ("--lens", "changes")), Variant("lens all", ("--lens", "all")),
                        Variant("wait main", ("--wait", "main"))):
            for _ in range(options.repeat):
                test_traced(bench, report, agent, variant, pair[0], scenario, {})
        more = with_more(agent, bench)
        if more:
            what, *how = more
            more_pair = native_pair(bench, report, agent, f"{what}, native, twice", *how)
            if more_pair:
                test_traced(bench, report, agent, Variant(what), more_pair[0], *how)
        else:
            report.skip(f"{agent.name} hooks and tools", "no settings for it")
    if not shutil.which("strace"):
        report.skip(f"{agent.name} strace", "there is no strace")
    elif traced:
        test_oracle(bench, report, agent, scenario, traced)
    if walls:
        native, ours = statistics.median(natives), statistics.median(walls)
        print(f"     {agent.name}: median wall time native {native:.2f} s, traced {ours:.2f} s, "
              f"ratio {ours / native:.2f}", flush=True)


def check_host(scripts, home):
    if not (scripts / "common.sh").exists():
        raise Skip("there are no scripts for agents (--agents)")
    if not (home / "npm").is_dir():
        raise Skip("no agents are installed in $AGENTS_HOME")
    for program in ("node", "ip", "unshare", "git"):
        if not shutil.which(program):
            raise Skip(f"there is no {program}")
    if subprocess.run(["unshare", "-n", "-m", "true"], capture_output=True, check=False).returncode:
        raise Skip("unshare -n -m is not allowed: it needs root")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assure", required=True, type=pathlib.Path)
    parser.add_argument("--agents", type=pathlib.Path, default=HERE.parents[2] / "shared" / "agents")
    parser.add_argument("--only", choices=[agent.name for agent in AGENTS])
    parser.add_argument("--repeat", type=int, default=1, help="traced runs of each variant")
    parser.add_argument("--basic", action="store_true", help="no variants")
    parser.add_argument("--keep", action="store_true", help="keep the folders of the runs")
    options = parser.parse_args()
    home = pathlib.Path(os.environ.get("AGENTS_HOME") or pathlib.Path.home() / ".cache" / "assure-agents")
    report = Report()
    try:
        check_host(options.agents, home)
        assure = options.assure.resolve(strict=True)
        with Bench(assure, options.agents.resolve(), home.resolve(), options.keep) as bench:
            for agent in AGENTS:
                if options.only in (None, agent.name):
                    try:
                        test_agent(bench, report, agent, options)
                    except Skip as reason:
                        report.skip(agent.name, reason)
    except Skip as reason:
        report.skip("agents", reason)
    print(f"{report.passed} passed, {report.failed} failed, {report.skipped} skipped")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
