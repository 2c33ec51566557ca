"""Runs tests of others natively and under a supervisor, and compares the verdicts, case by case.

A test is a command whose exit status and output a reader turns into a dictionary: case -> verdict, the case "exit" among
them. Whatever differs is run again, often enough to tell chance from a difference.
"""

import collections
import concurrent.futures
import ctypes
import dataclasses
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

AGAIN = 3
PR_SET_CHILD_SUBREAPER = 36
LIMIT = "time limit"
# Under assure, for tests that leave a process behind: a test has its verdict when its first process has ended.
LEAVING = "assure, leaving"
SHOWN_CASES = 6
SHOWN_LENGTH = 240
MOST_OUTPUT = 16 << 20
STATES = ("same", "expected", "differs", "sometimes", "flaky natively")


def read_status(status, output):
    del output
    return {"exit": status}


def read_tap(status, output):
    """Test anything protocol; the numbers in a description may be process ids, so they do not count."""
    cases = {"exit": status}
    for verdict, number, text, skip in re.findall(
            r"^(?:# )?(ok|not ok) (\d+) (.*?)(?:# *(SKIP|XFAIL).*)?$", output, flags=re.MULTILINE):
        cases[f"{number} {re.sub(r'[0-9]+', 'N', text).strip()[:80]}"] = skip or verdict
    return cases


@dataclasses.dataclass(frozen=True)
class Test:
    name: str
    command: list
    user: str | None = None  # the account that the command changes to
    read: object = read_status
    limit: float | None = None  # seconds, natively
    environment: dict = dataclasses.field(default_factory=dict)


# Running one


def become_reaper():
    """Whatever a test leaves behind becomes a child of this process, which ends it, and nothing else."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def children_of(pid):
    try:
        return [int(child) for path in pathlib.Path(f"/proc/{pid}/task").iterdir()
                for child in (path / "children").read_text(encoding="ascii").split()]
    except OSError:
        return []


def describe_tree(pid, depth=0):
    """Who is there and what each waits in, for who looks into a test that does not end."""
    lines = []
    for child in children_of(pid):
        try:
            base = pathlib.Path(f"/proc/{child}")
            name = (base / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:100]
            state = (base / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
            lines.append(f"{'  ' * depth}{child} {state} {(base / 'wchan').read_text()} {name}")
        except OSError:
            continue
        lines += describe_tree(child, depth + 1)
    return lines


def end_children():
    """Whether there were any that had not ended by themselves."""
    found = False
    for _ in range(100):
        children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
        if not children:
            break
        for pid in map(int, children):
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                found = True
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    return found


def remove(folder):
    """Tests leave what cannot be removed at once: folders without permissions, immutable files, mounts."""
    for line in reversed(pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()):
        where = line.split()[1].encode().decode("unicode_escape")
        if where.startswith(f"{folder}/"):
            subprocess.run(["umount", "-l", where], stderr=subprocess.DEVNULL, check=False)
    shutil.rmtree(folder, ignore_errors=True)
    if os.path.lexists(folder):
        subprocess.run(["chattr", "-R", "-ia", folder], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(folder, ignore_errors=True)


@dataclasses.dataclass
class Setting:
    base: str
    wrappers: dict
    limit: float
    # What supervision costs is no verdict, so there is more time for it.
    slower: float
    undecided: object  # of the runs: whether there have to be more of them
    account: str | None = None  # who runs everything, the supervisor too; None: who we are

    def identity(self):
        if not self.account:
            return {}
        entry = pwd.getpwnam(self.account)
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}

    def folders(self, test):
        place = tempfile.mkdtemp(prefix="test-", dir=self.base)
        os.chmod(place, 0o755)
        work, temporary = os.path.join(place, "work"), os.path.join(place, "tmp")
        os.mkdir(work, 0o755)
        os.mkdir(temporary)
        os.chmod(temporary, 0o1777)
        if self.account:
            shutil.chown(place, self.account)
        if self.account or test.user:
            entry = pwd.getpwnam(self.account or test.user)
            os.chown(work, entry.pw_uid, entry.pw_gid)
        return place, work, temporary

    def run(self, test, column):
        """The verdict of one run in a fresh folder, what was printed, the time, and whether it left processes."""
        place, work, temporary = self.folders(test)
        command = test.command
        if test.user and not self.account:
            user = pwd.getpwnam(test.user)
            command = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--", *command]
        who = self.account or test.user or pwd.getpwuid(os.geteuid()).pw_name
        environment = {"PATH": os.defpath + ":/usr/sbin:/sbin", "HOME": work, "TMPDIR": temporary, "LC_ALL": "C",
                       "ASSURE_HOME": os.path.join(place, "assure"), "USER": who, "LOGNAME": who, "SHELL": "/bin/sh",
                       **test.environment}
        limit = test.limit or self.limit
        try:
            with open(os.path.join(place, "output"), "w+b") as output:
                started = time.monotonic()
                process = subprocess.Popen([*self.wrappers[column], *command], cwd=work, env=environment,
                                           stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                           start_new_session=True, umask=0o022, **self.identity())
                tree = []
                try:
                    status = process.wait(limit if column == "native" else limit * self.slower)
                except subprocess.TimeoutExpired:
                    tree = describe_tree(os.getpid())
                    process.kill()
                    process.wait()
                    status = None
                seconds = time.monotonic() - started
                leaves = end_children()
                output.seek(0)
                text = output.read(MOST_OUTPUT).decode(errors="replace").replace(place, "@PLACE@")
        finally:
            remove(place)
        if status is None:
            return {"exit": LIMIT}, "\n".join([text, "at the time limit there were:", *tree]), seconds, False
        return test.read(str(status if status >= 0 else 128 - status), text), text, seconds, leaves


SETTING = None


def start_worker(setting):
    global SETTING  # pylint: disable=global-statement
    SETTING = setting
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    become_reaper()


def look_at(test):
    """Natively and under assure; where they differ, often enough to tell chance from a difference.

    Returns the name, the different verdicts and the last output of each by column, the seconds and the verdict of each
    run.
    """
    runs = {column: [] for column in SETTING.wrappers if column != LEAVING}
    texts = {}
    spent = collections.defaultdict(list)
    leaving = False

    def once(column):
        nonlocal leaving
        how = LEAVING if leaving and column == "assure" else column
        verdict, text, seconds, leaves = SETTING.run(test, how)
        leaving = leaving or leaves and column == "native"
        spent[column].append(seconds)
        if column not in texts or verdict not in runs[column]:
            texts[column] = text
        runs[column].append(verdict)
    once("native")
    once("assure")
    if runs["native"] != runs["assure"]:
        for _ in range(AGAIN):
            once("native")
            # What is not the same twice natively says nothing.
            if not SETTING.undecided(runs):
                break
            once("assure")
        if "control" in runs and state_of(distinct(runs)) != "flaky natively":
            for _ in range(AGAIN):
                once("control")
    return test.name, distinct(runs), texts, dict(spent), runs


# What follows from verdicts


def distinct(runs):
    return {column: [verdict for number, verdict in enumerate(verdicts) if verdict not in verdicts[:number]]
            for column, verdicts in runs.items()}


def state_of(seen):
    """Of a test as a whole."""
    native, assure = seen["native"], seen["assure"]
    if native == assure and len(native) == 1:
        return "same"
    if len(native) > 1:
        return "flaky natively"
    return "sometimes" if native[0] in assure else "differs"


def differs(runs):
    """What was the same once differs only by chance."""
    return state_of(distinct(runs)) == "differs"


def states_of_cases(runs):
    """Of each case by itself, so that one that is flaky does not hide the others. Where a run reached its time limit, its
    cases are not known, and only its exit counts. "sometimes": it differed once, and in all other runs it did not."""
    def verdicts(column, case):
        return [verdict.get(case, "none") for verdict in runs[column] if case == "exit" or verdict["exit"] != LIMIT]
    cases = {case: None for column in ("native", "assure") for verdict in runs[column] for case in verdict}
    states = {}
    for case in cases:
        native, assure = verdicts("native", case), verdicts("assure", case)
        unlike = sum(verdict not in native for verdict in assure)
        if len(set(native)) > 1:
            states[case] = "flaky natively"
        elif not native or not unlike:
            states[case] = "same"
        else:
            states[case] = "sometimes" if unlike == 1 and len(assure) > 2 else "differs"
    return states


def any_case_differs(runs):
    return not {"differs", "sometimes"}.isdisjoint(states_of_cases(runs).values())


def shorten(text):
    text = str(text)
    return text if len(text) <= SHOWN_LENGTH else text[:SHOWN_LENGTH] + "…"


def describe(verdict, other):
    """Only the cases in which it is unlike the other."""
    if LIMIT in (verdict["exit"], other["exit"]):
        return f"exit: {verdict['exit']}"
    unlike = [key for key in {**verdict, **other} if verdict.get(key) != other.get(key)]
    # The verdict of the whole follows from the cases.
    keys = [key for key in unlike if key != "exit"][:SHOWN_CASES] or unlike or ["exit"]
    parts = [f"{key}: {shorten(verdict.get(key, 'none'))}" for key in keys]
    if len(unlike) > len(keys) + ("exit" in unlike):
        parts.append("…")
    return "; ".join(parts)


# Running all


def isolate(mark, script, *namespaces):
    """Run again in namespaces of our own, so that what tests mount, name or listen on ends with us."""
    if os.environ.get(mark):
        return
    os.environ[mark] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--uts", "--ipc", *namespaces, "--propagation", "private", "--",
                          sys.executable, os.path.abspath(script), *sys.argv[1:]])


def wrappers(base, assure, results=None, control=None):
    """What comes before a test's command, by column. No build replaces these programs while the tests run."""
    copy = shutil.copy(assure, os.path.join(base, "assure"))
    trace = [copy, "trace", "--quiet"]
    if results:
        trace += ["--results", results]
    # Natively too as somebody's child: the first process of a session is treated differently.
    columns = {"native": ["sh", "-c", "\"$@\"; exit $?", "sh"], "assure": [*trace, "--"],
               LEAVING: [*trace, "--wait", "main", "--"]}
    if control:
        columns["control"] = [shutil.copy(control, os.path.join(base, "control")), "--lens", "reads", "--"]
    return columns


def run_all(tests, setting, jobs, tell):
    """What look_at() says of each, told at once, for who waits."""
    results = []
    with concurrent.futures.ProcessPoolExecutor(jobs, initializer=start_worker, initargs=(setting,)) as pool:
        try:
            for result in pool.map(look_at, tests):
                results.append(result)
                tell(result)
        finally:
            pool.shutdown(cancel_futures=True)
    return results


class Base:
    """A folder for one run of all, removed at the end, also when ended from outside."""

    def __init__(self, prefix):
        self.prefix = prefix

    def __enter__(self):
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
        # Whoever runs us in the background has them ignored, and tests are about what they do.
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            if signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        self.path = os.path.realpath(tempfile.mkdtemp(prefix=self.prefix))
        os.chmod(self.path, 0o755)
        return self.path

    def __exit__(self, *exception):
        remove(self.path)
