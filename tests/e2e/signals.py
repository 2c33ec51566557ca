#!/usr/bin/python3
"""Signals and job control: each scene is played natively first, which shows that the scene itself is right."""
# timeout: 180
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

ASSURE = os.environ["ASSURE"]
NATIVE, TRACED = [], [ASSURE, "trace", "--quiet", "--"]
LIMIT = 15.0


def fail(what):
    print(f"FAIL: {what}", file=sys.stderr)
    sys.exit(1)


def assert_eq(wanted, got, what):
    if wanted != got:
        fail(f"{what}: wanted {wanted!r}, got {got!r}")


def until_ready(process):
    line = process.stdout.readline()
    if line != b"ready\n":
        fail(f"the agent did not begin: {line!r} {process.stderr.read()!r}")


def sent(prefix, script, number):
    """(status, stdout) of a shell that gets a signal sent to the process that its parent knows."""
    process = subprocess.Popen([*prefix, "sh", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True)
    until_ready(process)
    os.kill(process.pid, number)
    output, _ = process.communicate(timeout=LIMIT)
    return process.returncode, output


def relayed():
    for name in ("TERM", "HUP", "INT", "QUIT", "USR1", "USR2", "ALRM"):
        number = getattr(signal, "SIG" + name)
        trapping = f"trap 'echo got {name}; exit 7' {name}; echo ready; while :; do sleep 0.05; done"
        for prefix in (NATIVE, TRACED):
            assert_eq((7, f"got {name}\n".encode()), sent(prefix, trapping, number),
                      f"{name} that the agent traps, {prefix}")
        if name in ("INT", "QUIT"):
            plain = "echo ready; exec sleep 20"
        else:
            plain = "echo ready; while :; do sleep 0.05; done"
        for prefix in (NATIVE, TRACED):
            assert_eq((-number, b""), sent(prefix, plain, number), f"{name} that nobody traps, {prefix}")
    ignoring = "trap '' TERM; echo ready; sleep 0.7; echo still here"
    for prefix in (NATIVE, TRACED):
        assert_eq((0, b"still here\n"), sent(prefix, ignoring, signal.SIGTERM), f"TERM that the agent ignores, {prefix}")


def stopped_from_outside():
    """A guardian that is sent SIGTSTP stops with its agent, and goes on with SIGCONT."""
    for prefix in (NATIVE, TRACED):
        process = subprocess.Popen([*prefix, "sh", "-c", "echo ready; sleep 0.6; echo done"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0) \
            if sys.version_info >= (3, 11) else None
        if process is None:
            print("skip: SIGTSTP from outside (Python is older than 3.11)")
            return
        until_ready(process)
        os.kill(process.pid, signal.SIGTSTP)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            fail(f"not stopped by SIGTSTP, {prefix}: {status:#x}")
        os.kill(process.pid, signal.SIGCONT)
        output, _ = process.communicate(timeout=LIMIT)
        assert_eq((0, b"done\n"), (process.returncode, output), f"after SIGCONT, {prefix}")


class Terminal:
    """A program on a pty of its own, with a session that the pty controls."""

    def __init__(self, command):
        self.seen = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["PS1"] = "$ "
            os.execvp(command[0], command)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

    def read(self, limit):
        if not select.select([self.fd], [], [], limit)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.seen += data
        return bool(data)

    def expect(self, pattern, what):
        """Waits for the pattern and forgets all up to its end."""
        end = time.monotonic() + LIMIT
        while True:
            match = re.search(pattern, self.seen)
            if match:
                self.seen = self.seen[match.end():]
                return match
            if time.monotonic() > end or not self.read(max(0.0, end - time.monotonic())):
                match = re.search(pattern, self.seen)
                if match:
                    continue
                fail(f"{what}: no {pattern!r} in {self.seen!r}")

    def say(self, data):
        os.write(self.fd, data)

    def close(self):
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)

    def end(self):
        """Its status, once it has ended by itself."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            self.read(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
        fail(f"did not end: {self.seen!r}")
        return None


def shell():
    terminal = Terminal(["bash", "--norc", "--noprofile", "-i"])
    terminal.expect(rb"\$ ", "prompt")
    terminal.say(b"bind 'set enable-bracketed-paste off'; stty -echo; PS1='%''> '\n")
    terminal.expect(rb"%> ", "prompt")
    return terminal


PYTHON = ("import os, signal, sys, time\n"
          "signal.signal(signal.SIGWINCH, lambda *_: os.write(1, b'size %d %d\\n' % os.get_terminal_size()))\n"
          "print('ready', flush=True)\n"
          "while sys.stdin.readline().strip() != 'end': pass\n")


def on_a_terminal(prefix):
    words = " ".join(prefix)

    terminal = Terminal([*prefix, "python3", "-c", PYTHON])
    terminal.expect(rb"ready", "start on a pty")
    fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
    terminal.expect(rb"size 101 33", f"SIGWINCH, {prefix}")
    terminal.say(b"end\n")
    assert_eq(0, terminal.end(), f"end after SIGWINCH, {prefix}")

    terminal = Terminal([*prefix, "sh", "-c", "echo ready; exec sleep 20"])
    terminal.expect(rb"ready", "start on a pty")
    terminal.say(b"\x03")
    assert_eq(-signal.SIGINT, terminal.end(), f"Ctrl-C, {prefix}")

    terminal = Terminal([*prefix, "sh", "-c",
                         "trap 'echo trapped; exit 5' INT; echo ready; while :; do sleep 0.05; done"])
    terminal.expect(rb"ready", "start on a pty")
    terminal.say(b"\x03")
    terminal.expect(rb"trapped", f"Ctrl-C that the agent traps, {prefix}")
    assert_eq(5, terminal.end(), f"status after a trapped Ctrl-C, {prefix}")

    terminal = Terminal([*prefix, "sh", "-c", "stty -echo raw; printf ready; head -c 3 | od -An -c; stty sane"])
    terminal.expect(rb"ready", "raw mode")
    terminal.say(b"\x03\x1a\x1c")
    terminal.expect(rb"003 +032 +034", f"control characters in raw mode, {prefix}")
    assert_eq(0, terminal.end(), f"raw mode, {prefix}")

    # A shell loop ends with Ctrl-C only when its command died of the signal.
    terminal = shell()
    terminal.say(f"for i in 1 2 3; do {words} sh -c 'echo round; exec sleep 20'; done; echo loop ended $?\n".encode())
    terminal.expect(rb"round", "the first round")
    terminal.say(b"\x03")
    terminal.expect(rb"%> ", f"prompt after Ctrl-C in a loop, {prefix}")
    terminal.say(b"echo alive\n")
    match = terminal.expect(rb"(?s)(.*)alive", "the shell after Ctrl-C")
    if b"round" in match.group(1):
        fail(f"Ctrl-C did not end the shell's loop, {prefix}")

    # Ctrl-Z, fg, and the state between them.
    terminal.say(f"{words} sh -c 'echo ready; while read -r l; do echo \"[$l]\"; done; echo over'\n".encode())
    terminal.expect(rb"ready", "start in a shell")
    terminal.say(b"one\n")
    terminal.expect(rb"\[one\]", "reading")
    terminal.say(b"\x1a")
    terminal.expect(rb"Stopped(?s:.*)%> ", f"Ctrl-Z, {prefix}")
    terminal.say(b"jobs\n")
    terminal.expect(rb"Stopped(?s:.*)%> ", f"jobs, {prefix}")
    terminal.say(b"fg\n")
    terminal.expect(rb"sh -c", "fg")
    terminal.say(b"two\n")
    terminal.expect(rb"\[two\]", f"reading after fg, {prefix}")
    terminal.say(b"\x1a")
    terminal.expect(rb"Stopped(?s:.*)%> ", f"Ctrl-Z again, {prefix}")
    terminal.say(b"bg\n")
    terminal.expect(rb"%> ", "bg")
    time.sleep(0.3)
    terminal.say(b"jobs\n")
    terminal.expect(rb"Stopped(?s:.*)%> ", f"a reader sent to the background stops again, {prefix}")
    terminal.say(b"fg\n")
    terminal.expect(rb"sh -c", "fg")
    terminal.say(b"three\n")
    terminal.expect(rb"\[three\]", f"reading after bg and fg, {prefix}")
    terminal.say(b"\x04")
    terminal.expect(rb"over(?s:.*)%> ", f"end of input, {prefix}")

    # Started in the background: it may write, and stops when it reads.
    terminal.say(f"{words} sh -c 'echo begun; read -r l; echo \"[$l]\"' &\n".encode())
    terminal.expect(rb"begun", f"a background job writes, {prefix}")
    time.sleep(0.5)
    terminal.say(b"\n")
    terminal.expect(rb"%> ", "prompt")
    terminal.say(b"jobs\n")
    terminal.expect(rb"Stopped", f"a background job that reads stops (SIGTTIN), {prefix}")
    terminal.expect(rb"%> ", "prompt")
    terminal.say(b"fg\n")
    terminal.expect(rb"sh -c", "fg")
    terminal.say(b"four\n")
    terminal.expect(rb"\[four\]", f"fg of a job that wanted to read, {prefix}")
    terminal.expect(rb"%> ", "prompt")

    # A pipeline: all of it gets Ctrl-C.
    terminal.say(f"{words} sh -c 'echo going >&2; exec sleep 20' | cat; echo \"${{PIPESTATUS[0]}}\"-\n".encode())
    terminal.expect(rb"going", "pipeline")
    terminal.say(b"\x03")
    terminal.expect(rb"%> ", f"Ctrl-C in a pipeline, {prefix}")
    terminal.say(b"exit\n")
    terminal.end()


def inner_job_control():
    """An interactive shell as the agent has job control of its own."""
    for prefix in (NATIVE, TRACED):
        terminal = Terminal([*prefix, "bash", "--norc", "--noprofile", "-i"])
        terminal.expect(rb"\$ ", "prompt")
        terminal.say(b"stty -echo; PS1='%''> '\n")
        terminal.expect(rb"%> ", "prompt")
        if b"no job control" in terminal.seen:
            fail(f"no job control in an inner shell, {prefix}")
        terminal.say(b"sleep 20\n")
        time.sleep(0.3)
        terminal.say(b"\x1a")
        terminal.expect(rb"Stopped(?s:.*)%> ", f"Ctrl-Z in an inner shell, {prefix}")
        terminal.say(b"kill %1; fg\n")
        terminal.expect(rb"%> ", "prompt")
        terminal.say(b"exit 3\n")
        assert_eq(3, terminal.end(), f"status of an inner shell, {prefix}")


def waiting_ends_with_ctrl_c():
    terminal = Terminal([ASSURE, "trace", "--", "sh", "-c", "sleep 20 & echo $!; exit 0"])
    pid = int(terminal.expect(rb"(\d+)\r\n", "the pid of what stays").group(1))
    terminal.expect(rb"sleep", "the note on who is still alive")
    terminal.say(b"\x03")
    terminal.end()
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def monitor_dies():
    """Without its monitor the tree ends, and so do we."""
    process = subprocess.Popen([*TRACED, "sh", "-c", "echo ready; while :; do sleep 0.05; done"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until_ready(process)
    children = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(process.pid)], stdout=subprocess.PIPE, text=True,
                              check=False).stdout.split("\n")
    monitor = [int(row.split()[0]) for row in children if re.search(r"assure\S*m", row)]
    if not monitor:
        fail(f"no monitor among the guardian's children: {children}")
    os.kill(monitor[0], signal.SIGKILL)
    output, errors = process.communicate(timeout=LIMIT)
    assert_eq(125, process.returncode, f"status when the monitor dies ({errors!r})")


def main():
    relayed()
    stopped_from_outside()
    on_a_terminal(NATIVE)
    on_a_terminal(TRACED)
    inner_job_control()
    waiting_ends_with_ctrl_c()
    monitor_dies()


main()
