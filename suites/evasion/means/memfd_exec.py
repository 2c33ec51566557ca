#!/usr/bin/python3
"""A copy of a shell in memory is executed; no file on disk ever is."""
import hashlib
import os

content = open("/bin/sh", "rb").read()
memory = os.memfd_create("kworker")
os.write(memory, content)
print(f"did exec memfd sha={hashlib.sha256(content).hexdigest()}", flush=True)
os.execve(memory, ["[kworker/0:1]", "-c", "echo text >f; echo did create f"], os.environ)
