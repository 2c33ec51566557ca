#!/usr/bin/python3
"""A script in memory: the interpreter is a known one, and the file it reads has no name."""
import os

memory = os.memfd_create("notes")
os.set_inheritable(memory, True)
os.write(memory, b"#!/bin/sh\necho text >f\necho did create f\n")
print(f"did exec script ino~{os.fstat(memory).st_ino}", flush=True)
os.execv(f"/proc/self/fd/{memory}", ["harmless"])
