#!/usr/bin/env python3
"""Stands outside the traced tree and does what it is asked to: a daemon, as programs inside find them on a machine.

    outside.py NAME DIR [PATH...]

Listens on the abstract Unix name NAME, on the Unix sockets PATH below DIR, on a TCP and a UDP port of 127.0.0.1, and
prints a line of JSON with these when it is ready. On a Unix socket every message is one order, and has one answer:

    create PATH       make a file                         done
    open PATH         open it for writing                 done, with the descriptor
    write             write to the descriptor that came   done
    connect PORT      connect to 127.0.0.1:PORT           done, when the connection stands
    datagrams         what came by UDP so far             a line of hexadecimal each, or none
    connections       how many came by TCP so far         a number
    anything else     (what a foreign protocol says)      ok
"""
import array
import json
import os
import selectors
import socket
import sys

LIMIT = 65536


class Outside:
    def __init__(self, name, folder, paths):
        self.selector = selectors.DefaultSelector()
        self.name, self.folder = name, folder
        self.datagrams, self.connections = [], 0
        self.kept = []
        self.tcp = self.listen(socket.AF_INET, ("127.0.0.1", 0), self.take_tcp)
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.selector.register(self.udp, selectors.EVENT_READ, self.take_datagram)
        self.listen(socket.AF_UNIX, "\0" + name, self.take_unix)
        for path in paths:
            where = os.path.join(folder, path)
            os.makedirs(os.path.dirname(where), exist_ok=True)
            self.listen(socket.AF_UNIX, where, self.take_unix)

    def listen(self, family, address, act):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.bind(address)
        listener.listen(64)
        self.selector.register(listener, selectors.EVENT_READ, act)
        return listener

    def take_tcp(self, listener):
        connection, _ = listener.accept()
        self.connections += 1
        self.selector.register(connection, selectors.EVENT_READ, self.drain)

    def drain(self, connection):
        try:
            data = connection.recv(LIMIT)
        except OSError:
            data = b""
        if not data:
            self.forget(connection)

    def take_datagram(self, listener):
        self.datagrams.append(listener.recv(LIMIT))

    def take_unix(self, listener):
        connection, _ = listener.accept()
        self.selector.register(connection, selectors.EVENT_READ, self.answer)

    def forget(self, connection):
        self.selector.unregister(connection)
        connection.close()

    def answer(self, connection):
        try:
            data, ancillary, _, _ = connection.recvmsg(LIMIT, socket.CMSG_SPACE(4))
        except OSError:
            data, ancillary = b"", []
        if not data:
            self.forget(connection)
            return
        received = array.array("i")
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                received.frombytes(content[:len(content) // 4 * 4])
        word, _, rest = data.decode(errors="replace").strip().partition(" ")
        reply, sent = "ok", []
        try:
            reply, sent = self.order(word, rest, list(received))
        except OSError as problem:
            reply = f"failed {problem.strerror}"
        finally:
            for descriptor in received:
                os.close(descriptor)
        try:
            connection.sendmsg([reply.encode() + b"\n"],
                               [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", sent))] if sent else [])
        except OSError:
            self.forget(connection)
        for descriptor in sent:
            os.close(descriptor)

    def order(self, word, rest, received):
        if word == "create":
            os.close(os.open(rest, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
            return "done", []
        if word == "open":
            return "done", [os.open(rest, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)]
        if word == "write" and received:
            os.write(received[0], b"written outside\n")
            return "done", []
        if word == "connect":
            self.kept.append(socket.create_connection(("127.0.0.1", int(rest)), timeout=5))
            return "done", []
        if word == "datagrams":
            while self.pending():
                self.take_datagram(self.udp)
            return "\n".join(datagram.hex() for datagram in self.datagrams) or "none", []
        if word == "connections":
            return str(self.connections), []
        return "ok", []

    def pending(self):
        with selectors.DefaultSelector() as one:
            one.register(self.udp, selectors.EVENT_READ)
            return bool(one.select(0))

    def serve(self):
        facts = {"outside": "@" + self.name, "outside_pid": os.getpid(), "outside_dir": self.folder,
                 "outside_tcp": self.tcp.getsockname()[1], "outside_udp": self.udp.getsockname()[1]}
        print(json.dumps(facts), flush=True)
        while True:
            for key, _ in self.selector.select():
                key.data(key.fileobj)


if __name__ == "__main__":
    Outside(sys.argv[1], sys.argv[2], sys.argv[3:]).serve()
