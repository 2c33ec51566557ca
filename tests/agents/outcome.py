"""One run of an agent: how it is started, what it leaves behind, and in which form two runs can be compared."""

import collections
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

TIME_LIMIT = 180
ENDS_LATER = 20  # seconds in which what an agent left running has to end

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
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d[:-]\d\d([:-]\d\d)?(\.\d+)?Z?"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)?(ms|s| seconds)\b"), "DURATION"),
    (re.compile(r"tmp\.\d+\.[0-9a-f]+"), "tmp.RANDOM"),
    (re.compile(r"\.(tmp|lock)-?[0-9A-Za-z]{6,}$"), ".RANDOM"),
)
# In what a model is told of its tools.
TOLD_TEXT = (
    (re.compile(r"\b(Chunk ID: |session ID |PGID: |PID: |with ID: )[0-9a-z]+"), r"\1ID"),
    (re.compile(r"(Background PIDs: )[\d, ]+"), r"\1ID"),
    (re.compile(r"/tasks/[0-9a-z]+\.output"), "/tasks/ID.output"),
)
VARYING_LINES = ("[STARTUP]",)  # Gemini CLI, when it ends before it has measured itself
TOLD_TYPES = ("tool_result", "function_call_output", "custom_tool_call_output")


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


def tool_results(value):
    """What a request says that tools gave: Anthropic's, OpenAI's and Gemini's form."""
    if isinstance(value, dict):
        if value.get("type") in TOLD_TYPES:
            yield value.get("content", value.get("output"))
        elif "functionResponse" in value:
            yield value["functionResponse"].get("response")
        else:
            for item in value.values():
                yield from tool_results(item)
    elif isinstance(value, list):
        for item in value:
            yield from tool_results(item)


def told(folder):
    """The results of all tools, as the last request of the conversation has them."""
    found = []
    for line in (folder / "requests.jsonl").read_text(errors="replace").splitlines():
        request = json.loads(line)
        if request.get("kind") == "main":
            found = list(tool_results(request.get("body")))
    text = [json.dumps(steady(result, folder)) for result in found]
    for pattern, word in TOLD_TEXT:
        text = [pattern.sub(word, line) for line in text]
    return text


# Running


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


def agents_home():
    return pathlib.Path(os.environ.get("AGENTS_HOME") or pathlib.Path.home() / ".cache" / "assure-agents")


class Bench:
    """The folders of all runs, and how one of them is started."""

    def __init__(self, assure, scripts, home, keep, place=None):
        self.assure, self.scripts, self.keep, self.count = assure, scripts, keep, 0
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="assure-agents-", dir=place)).resolve()
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

    def start(self, agent, name, scenario, wrap, settings):
        """Run the agent's script; the run's folder and the script's exit status."""
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
        if not (folder / "summary").exists():
            raise RuntimeError(f"{name}: the script said {said.decode(errors='replace').strip()!r}")
        return folder, process.returncode

    def run(self, agent, name, scenario, wrap="", **settings):
        folder, status = self.start(agent, name, scenario, wrap, settings)
        deadline = time.monotonic() + ENDS_LATER
        while self.left(folder) and time.monotonic() < deadline:
            time.sleep(0.1)
        wall = float(re.search(r"wall=([\d.]+)", (folder / "summary").read_text())[1])
        parts = {"stdout": steady_output((folder / "stdout").read_text(errors="replace"), folder),
                 "stderr": steady_output((folder / "stderr").read_text(errors="replace"), folder),
                 "told": told(folder),
                 "workspace": workspace(folder)}
        if (folder / "hooks.jsonl").exists():
            parts["hooks"] = steady_output((folder / "hooks.jsonl").read_text(errors="replace"), folder)
        return Outcome(folder, status, wall, parts)

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
        deadline = time.monotonic() + ENDS_LATER
        while True:
            shown = json.loads(self.ask("show", run, "--json"))
            if shown["state"] != "running" or time.monotonic() > deadline:
                return shown
            time.sleep(0.1)

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


def in_no_order(part):
    """Events of calls that ran side by side, whose numbers say only which was first."""
    if not isinstance(part, list):
        return part
    return sorted(re.sub(r'"id": "item_\d+"', '"id": "item"', json.dumps(line, sort_keys=True)) for line in part)


def differences(one, other, ordered=True):
    found = []
    if one.status != other.status:
        found.append(f"exit status {one.status}, then {other.status}")
    for part in sorted(one.parts.keys() | other.parts.keys()):
        left, right = one.parts.get(part), other.parts.get(part)
        if not ordered:
            left, right = in_no_order(left), in_no_order(right)
        if left != right:
            found.append(f"{part}: {first_difference(left, right)}")
    return found
