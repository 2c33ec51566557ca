#!/usr/bin/python3
"""A container daemon is asked, by its own name, by a symbolic link and by a hard link with a name that says nothing."""
import os
import socket

FOLDER = os.environ["EV_OUTSIDE_DIR"]
REQUEST = (b'POST /containers/create HTTP/1.1\r\nHost: docker\r\nContent-Type: application/json\r\n'
           b'Content-Length: 18\r\n\r\n{"Image":"debian"}')


def ask(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(REQUEST)
        assert connection.recv(100)
    print(f"did connect {os.path.basename(path)}", flush=True)


ask(f"{FOLDER}/docker.sock")
ask(f"{FOLDER}/containerd/containerd.sock")
os.symlink(f"{FOLDER}/docker.sock", "friend")
ask("friend")
os.link(f"{FOLDER}/docker.sock", f"{FOLDER}/innocent")
ask(f"{FOLDER}/innocent")
