#!/usr/bin/python3
"""Servers of a user's session that start programs or sign with keys for whoever asks."""
import os
import socket
import sys

FOLDER = os.environ["EV_OUTSIDE_DIR"]

for path in sys.argv[1:]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(f"{FOLDER}/{path}")
        connection.sendall(b"\0\0\0\1\x0b")
        assert connection.recv(100)
    print(f"did connect {path}", flush=True)
