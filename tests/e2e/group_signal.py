#!/usr/bin/env python3
"""A signal reaches the agent as often as it would without us, whether it was sent to the job's leader or to the job; and
a caller that ignores SIGCHLD gets the exit status all the same, as does the command that inherits this."""
import os
import signal
import subprocess
import sys
import time

ASSURE = [os.environ["ASSURE"], "trace", "--quiet", "--"]

COUNT = """
import signal, time
heard = 0
def hear(*_):
    global heard
    heard += 1
signal.signal(signal.SIGINT, hear)
print("ready", flush=True)
end = time.monotonic() + 1.5
while time.monotonic() < end:
    time.sleep(0.02)
print(heard)
"""


def fail(why):
    print("FAIL:", why)
    sys.exit(1)


def heard(prefix, send):
    process = subprocess.Popen([*prefix, sys.executable, "-c", COUNT], stdout=subprocess.PIPE, start_new_session=True)
    process.stdout.readline()
    send(process.pid, signal.SIGINT)
    count = process.stdout.read().strip()
    return count, process.wait()


for name, send in (("leader", os.kill), ("job", os.killpg)):
    natively, traced = heard([], send), heard(ASSURE, send)
    if natively != (b"1", 0) or traced != natively:
        fail(f"SIGINT to the {name}: natively {natively}, traced {traced}")

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
command = ["grep", "-q", "^SigIgn:.*1[0-9a-f]\\{4\\}$", "/proc/self/status"]
pid = os.spawnvp(os.P_NOWAIT, ASSURE[0], [*ASSURE, *command])
for _ in range(500):
    if not os.path.exists(f"/proc/{pid}"):
        break
    time.sleep(0.02)
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
shown = subprocess.run([ASSURE[0], "show", "last"], capture_output=True, text=True, check=True).stdout
if "exit 0" not in shown:
    fail(f"the command's end under an ignored SIGCHLD: {shown}")
