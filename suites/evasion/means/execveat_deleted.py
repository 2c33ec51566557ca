#!/usr/bin/python3
"""A program that no longer has a name is executed, under a name that was never its own."""
import hashlib
import os

content = open("/bin/sh", "rb").read()
with open("tmpbin", "wb") as file:
    file.write(content)
os.chmod("tmpbin", 0o755)
program = os.open("tmpbin", os.O_PATH)
os.unlink("tmpbin")
print(f"did exec tmpbin sha={hashlib.sha256(content).hexdigest()} ino~{os.fstat(program).st_ino}", flush=True)
os.execve(program, ["[kworker/0:1]", "-c", "echo text >f; echo did create f"], os.environ)
