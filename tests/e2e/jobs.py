#!/usr/bin/python3
"""An interactive shell, full-screen programs and background jobs on a terminal, played natively and traced."""
# timeout: 180
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

ASSURE = os.environ["ASSURE"]
NATIVE, TRACED = [], [ASSURE, "trace", "--quiet", "--"]
LIMIT = 20.0


def fail(what):
    print(f"FAIL: {what}", file=sys.stderr)
    sys.exit(1)


class Terminal:
    """A program on a pty of its own, with a session that the pty controls."""

    def __init__(self, command):
        self.seen = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["PS1"] = "$ "
            os.execvp(command[0], command)
        self.size(24, 80)

    def size(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def settings(self):
        return termios.tcgetattr(self.fd)

    def read(self, limit):
        if not select.select([self.fd], [], [], limit)[0]:
            return
        with contextlib.suppress(OSError):
            self.seen += os.read(self.fd, 65536)

    def expect(self, pattern, what):
        """Waits for the pattern and forgets all up to its end."""
        end = time.monotonic() + LIMIT
        while True:
            match = re.search(pattern, self.seen)
            if match:
                self.seen = self.seen[match.end():]
                return match
            if time.monotonic() > end:
                fail(f"{what}: no {pattern!r} in {self.seen!r}")
            self.read(0.1)

    def say(self, text):
        os.write(self.fd, text if isinstance(text, bytes) else text.encode())

    def suspend(self):
        """Ctrl-Z, once the shell has put the job into the foreground."""
        time.sleep(0.4)
        self.say(b"\x1a")

    def end(self):
        """Its status, once it has ended by itself."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            self.read(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        fail(f"did not end: {self.seen!r}")
        return None


def shell(prefix):
    terminal = Terminal([*prefix, "bash", "--norc", "--noprofile", "-i"])
    terminal.expect(rb"\$ ", "prompt")
    terminal.say("bind 'set enable-bracketed-paste off'; stty -echo; PS1='%''> '\n")
    terminal.expect(rb"%> ", "prompt")
    return terminal


def is_alive(pid):
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rsplit(b") ", 1)[1][:1] not in b"ZX"
    return False


def inner_shell(prefix):
    """Jobs of a traced shell: stop, continue in both ways, their statuses, and whose the terminal is."""
    terminal = shell(prefix)
    for number, wanted in ((b"\x03", b"130"), (b"\x1c", b"131")):
        terminal.say("sh -c 'echo begun; exec sleep 30'\n")
        terminal.expect(rb"begun", "start")
        terminal.say(number)
        terminal.expect(rb"%> ", f"prompt after {number!r}, {prefix}")
        terminal.say("echo =$?=\n")
        terminal.expect(rb"=" + wanted + rb"=", f"status after {number!r}, {prefix}")
        terminal.expect(rb"%> ", "prompt")
    terminal.say("sh -c 'echo begun; read -r l; echo \"[$l]\"; exit 42'\n")
    for command in ("fg", "fg", "bg; sleep 0.3; fg"):
        terminal.expect(rb"begun|sh -c[^\n]*\n", "the job runs")
        terminal.suspend()
        terminal.expect(rb"Stopped(?s:.*)%> ", f"Ctrl-Z, {prefix}")
        terminal.say(command + "\n")
    terminal.expect(rb"sh -c", "fg")
    terminal.say("line\n")
    terminal.expect(rb"\[line\](?s:.*)%> ", f"reading after fg, {prefix}")
    terminal.say("echo =$?=\n")
    terminal.expect(rb"=42=", f"status of a job after Ctrl-Z and fg, {prefix}")

    # Many jobs that stop themselves, and are continued by their shell.
    terminal.say("p=; for i in 1 2 3; do sh -c 'kill -STOP $$; echo =$((2+3))=' & p=\"$p $!\"; done; sleep 0.5; kill -CONT $p\n")
    for _ in range(3):
        terminal.expect(rb"=5=", f"jobs that stop themselves, {prefix}")
    terminal.say("sh -c 'stty size; echo tpgid $(ps -o tpgid= -p $$) pgid $(ps -o pgid= -p $$)'\n")
    match = terminal.expect(rb"24 80(?s:.*?)tpgid +(\d+) pgid +(\d+)", "whose terminal")
    if match.group(1) != match.group(2):
        fail(f"the terminal is not the foreground job's, {prefix}: {match.group(0)!r}")
    terminal.say("(exec sh -c 'exit 9'); exit $?\n")
    if terminal.end() != 9:
        fail(f"the status of the shell, {prefix}")


FULL_SCREEN = r"""
import os, signal, sys, termios, tty
before = termios.tcgetattr(0)
def sized(*_):
    os.write(1, b"size %d %d\r\n" % os.get_terminal_size())
def resumed(*_):
    tty.setraw(0)
    os.write(1, b"resumed\r\n")
signal.signal(signal.SIGWINCH, sized)
signal.signal(signal.SIGCONT, resumed)
tty.setraw(0)
os.write(1, b"\x1b[?1049hready\r\n")
while True:
    key = os.read(0, 1)
    if key == b"\x1a":
        termios.tcsetattr(0, termios.TCSADRAIN, before)
        os.write(1, b"bye\n")
        os.kill(0, signal.SIGTSTP)
    elif key == b"q":
        break
    else:
        os.write(1, b"key %d\r\n" % key[0])
os.write(1, b"\x1b[?1049l")
termios.tcsetattr(0, termios.TCSADRAIN, before)
"""


def full_screen(prefix):
    """A program in raw mode that stops itself as editors do, inside and outside of its own shell."""
    with open("screen.py", "w", encoding="ascii") as file:
        file.write(FULL_SCREEN)
    terminal = shell(NATIVE)
    before = terminal.settings()
    terminal.say(" ".join([*prefix, "/usr/bin/python3", "-I", "screen.py"]) + "\n")
    terminal.expect(rb"\x1b\[\?1049hready", f"start, {prefix}")
    if terminal.settings()[3] & (termios.ICANON | termios.ISIG):
        fail(f"no raw mode, {prefix}")
    terminal.say(b"\x03")
    terminal.expect(rb"key 3", f"Ctrl-C in raw mode, {prefix}")
    for rows, columns in ((30, 90), (31, 91)):
        terminal.size(rows, columns)
        terminal.expect(b"size %d %d" % (columns, rows), f"SIGWINCH, {prefix}")
    for _ in range(2):
        terminal.suspend()
        terminal.expect(rb"bye(?s:.*)Stopped(?s:.*)%> ", f"a program that stops its own group, {prefix}")
        # A shell restores its own settings; ours must not have touched them.
        if not terminal.settings()[3] & termios.ISIG:
            fail(f"the shell's terminal is still raw, {prefix}")
        terminal.size(40, 100)
        terminal.say("fg\n")
        terminal.expect(rb"resumed", f"fg, {prefix}")
        terminal.say(b"k")
        terminal.expect(rb"key 107", f"a key after fg, {prefix}")
    terminal.say(b"q")
    terminal.expect(rb"%> ", f"end, {prefix}")
    if terminal.settings()[3] != before[3]:
        fail(f"terminal settings are not as they were, {prefix}")
    terminal.say("exit 0\n")
    terminal.end()


def background(prefix):
    """In the background: reading stops it (SIGTTIN), stty too (SIGTTOU), and fg goes on with both."""
    words = " ".join(prefix)
    terminal = shell(NATIVE)
    terminal.say(f"{words} sh -c 'read -r l; echo \"[$l]\"; exit 3' &\n")
    terminal.expect(rb"%> ", "prompt")
    terminal.say("sleep 1; jobs\n")
    terminal.expect(rb"Stopped", f"a background reader stops, {prefix}")
    terminal.expect(rb"%> ", "prompt")
    terminal.say("fg; echo =$?=\n")
    terminal.expect(rb"sh -c", "fg")
    terminal.say("text\n")
    terminal.expect(rb"\[text\](?s:.*)=3=", f"a background reader goes on with fg, {prefix}")
    terminal.expect(rb"%> ", "prompt")
    terminal.say(f"{words} sh -c 'stty sane -echo; echo set; exit 4' & sleep 1; jobs\n")
    terminal.expect(rb"Stopped", f"stty in the background stops, {prefix}")
    terminal.expect(rb"%> ", "prompt")
    terminal.say("fg; echo =$?=\n")
    terminal.expect(rb"set(?s:.*)=4=", f"stty goes on with fg, {prefix}")
    terminal.expect(rb"%> ", "prompt")
    # Ended by a signal while it is stopped: the shell still hears how.
    terminal.say(f"{words} sh -c 'echo up; exec sleep 30'\n")
    terminal.expect(rb"up", "start")
    terminal.suspend()
    terminal.expect(rb"Stopped(?s:.*)%> ", f"Ctrl-Z, {prefix}")
    terminal.say("kill %%; fg; echo =$?=\n")
    terminal.expect(rb"=143=", f"kill of a stopped job, {prefix}")
    # The terminal goes away: the job ends with it.
    terminal.say(f"{words} sh -c 'echo $$ is there; exec sleep 30'\n")
    pid = int(terminal.expect(rb"(\d+) is there", "start").group(1))
    os.close(terminal.fd)
    os.waitpid(terminal.pid, 0)
    end = time.monotonic() + LIMIT
    while is_alive(pid):
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            fail(f"a job outlives the hang-up of its terminal, {prefix}")
        time.sleep(0.02)


def main():
    for scene in (inner_shell, full_screen, background):
        for prefix in (NATIVE, TRACED):
            scene(prefix)


main()
