"""What providers, clients and networks do on bad days."""
import gzip
import hashlib
import http.client
import json
import os
import socket
import ssl
import subprocess
import threading

from cases import REQUEST, ask, same
from upstream import Upstream, anthropic_stream, chunk, fixed, head, pieces, sse


def raw_request(target="/v1/messages", body=REQUEST):
    return b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (target.encode(), len(body), body)


def case_dead_upstream(bench):
    for prefix, path, check in (
            ("/dead", "/v1/messages", lambda x: x["type"] == "error" and x["error"]["type"] == "api_error"),
            ("/dead-openai", "/responses", lambda x: x["error"]["type"] == "server_error"),
            ("/dead-gemini", "/v1beta/models/m:generateContent", lambda x: x["error"]["status"] == "UNAVAILABLE")):
        for body in (REQUEST, b"x" * (1 << 20)):
            status, headers, data = ask(bench.witness.port, prefix + path, body=body)
            assert status == 502 and ("content-type", "application/json") in headers and check(json.loads(data)), data
    assert {x["state"] for x in bench.witness.exchanges(6)} == {"upstream_failed"}


def case_upstream_breaks_off(bench):
    def cut_chunks(connection, _request):
        connection.sendall(head(200, [("transfer-encoding", "chunked")]) + chunk(anthropic_stream()[:700]))
        return False

    def cut_length(connection, _request):
        connection.sendall(head(200, [("content-length", "5000")]) + b"x" * 100)
        return False
    for script in (cut_chunks, cut_length):
        bench.upstream.script = script
        assert ask(bench.witness.port, "/v1/messages") == ask(bench.upstream.port, "/v1/messages")
    bench.upstream.script = lambda connection, _request: False
    assert ask(bench.witness.port, "/v1/messages")[0] == 502
    assert {x["state"] for x in bench.witness.exchanges(3)} == {"upstream_failed"}


def wait_closed(connection):
    """Blocks until the other end is gone."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass


def case_client_goes(bench):
    """While nothing is said, before the answer and within it; and while much is said."""
    closed, began = threading.Event(), threading.Event()

    def silent(connection, _request):
        began.set()
        wait_closed(connection)
        closed.set()
        return False

    def stalls(connection, request):
        connection.sendall(head(200, [("transfer-encoding", "chunked")]) + chunk(b": x\n\n"))
        return silent(connection, request)

    def talks(connection, _request):
        began.set()
        connection.sendall(head(200, [("transfer-encoding", "chunked")]))
        try:
            while True:
                connection.sendall(chunk(b": x\n\n" * 1000))
        except OSError:
            closed.set()
        return False
    for count, script in enumerate((silent, stalls, talks), 1):
        closed.clear()
        began.clear()
        bench.upstream.script = script
        client = socket.create_connection(("127.0.0.1", bench.witness.port))
        client.sendall(raw_request())
        assert began.wait(30)
        client.close()
        assert closed.wait(30), f"the provider talks to nobody ({script.__name__})"
        assert bench.witness.exchanges(count)[-1]["state"] == "aborted"


def case_half_closed(bench):
    """Who has said all he has to say still listens."""
    answer, released = anthropic_stream(), threading.Event()
    bench.upstream.script = pieces([answer[:400], answer[400:]], between=lambda i: released.wait(30))
    with socket.create_connection(("127.0.0.1", bench.witness.port), timeout=30) as client:
        client.sendall(raw_request())
        client.shutdown(socket.SHUT_WR)
        stream = client.makefile("rb")
        assert b"200" in stream.readline()
        while stream.readline() != b"\r\n":
            pass
        size = int(stream.readline(), 16)
        got = stream.read(size)
        released.set()
        while size:
            stream.readline()
            size = int(stream.readline(), 16)
            got += stream.read(size)
    assert got == answer
    assert bench.witness.exchanges(1)[0]["state"] == "complete"


def case_malformed(bench):
    good = anthropic_stream()
    bodies = {
        "no json": b"data: {broken\n\n" + good,
        "no end": good[:-10],
        "no event": b"<html>this is no provider</html>",
        "nothing": b"",
        "zeros": bytes(4096),
        "deep": b"data: " + b"[" * 1000000 + b"\n\n" + good,
        "number": b"data: {\"index\":" + b"1" * 1000000 + b"}\n\n" + good,
        "carriage returns": b"\r\r\n\r" * 100,
        "other types": sse([{"type": "content_block_start", "index": "x", "content_block": [1]},
                            {"type": "content_block_delta", "index": -1, "delta": {"partial_json": {"a": []}}},
                            {"type": "message_delta", "delta": None, "usage": [1]}]),
    }
    for count, (name, body) in enumerate(bodies.items(), 1):
        bench.upstream.script = pieces([body[i:i + 65536] for i in range(0, len(body), 65536)])
        assert same(bench, "/v1/messages")[2] == body, name
        state = bench.witness.exchanges(count)[-1]["state"]
        assert state == "malformed", f"{name}: {state}"
    odd = b'data: {"' + b"x" * 1000000 + b'":1}\n\nretry: 1\nunknown\n\n' + good + b"data: {"
    bench.upstream.script = pieces([odd])
    assert same(bench, "/v1/messages")[2] == odd
    assert bench.witness.exchanges(count + 1)[-1]["state"] == "complete", "odd, and all that it says can be read"
    bench.upstream.script = fixed(b"{}")
    for body in (b"\xff\xfe{", b'{"model":', b"[" * 500000):
        assert same(bench, "/v1/messages", body=body)[2] == b"{}"


def case_bomb(bench):
    """What a few bytes stand for is read as far as anybody would."""
    packed = gzip.compress(bytes(900 << 20), 1)
    bench.upstream.script = fixed(packed, headers=[("content-encoding", "gzip")])
    assert ask(bench.witness.port, "/v1/messages")[2] == packed
    assert bench.witness.exchanges(1)[0]["state"] == "malformed"
    assert [x["code"] for x in bench.witness.told("loss")] == ["encoding_unread"]
    for encoding in ("gzip", "br", "zstd", "compress", "gzip, br"):
        bench.upstream.script = fixed(b"this is no such thing", headers=[("content-encoding", encoding)])
        assert same(bench, "/v1/messages")[2] == b"this is no such thing"
    assert bench.witness.memory() < 256 << 20


def case_large_arguments(bench):
    arguments = json.dumps({"content": "a\n" * (32 << 20)})
    answer = json.dumps({"id": "r", "model": "m", "status": "completed", "output": [
        {"type": "function_call", "call_id": "c", "name": "write", "arguments": arguments}]}).encode()
    bench.upstream.script = fixed(answer)
    assert ask(bench.witness.port, "/openai/responses")[2] == answer
    call = bench.witness.told("begin")[0]
    assert call["size"] == len(arguments) > 64 << 20
    assert call["sha256"] == hashlib.sha256(arguments.encode()).hexdigest()
    assert arguments.startswith(call["bytes"]) and len(call["bytes"]) == 1 << 20
    assert bench.witness.memory() < 96 << 20, bench.witness.memory()


def case_slow_reader(bench):
    """An agent that does not read holds the provider up, and nothing is piled up here."""
    body = os.urandom(1 << 20) * 128
    bench.upstream.script = fixed(body, headers=[("content-type", "application/octet-stream")])
    with socket.create_connection(("127.0.0.1", bench.witness.port), timeout=60) as client:
        client.sendall(raw_request("/v1/other"))
        client.recv(1)
        other = ask(bench.witness.port, "/v1/other")  # the others go on meanwhile
        assert other[2] == body
        assert bench.witness.memory() < 64 << 20, bench.witness.memory()
        digest, stream = hashlib.sha256(), client.makefile("rb")
        while stream.readline() != b"\r\n":
            pass
        left = len(body)
        while left:
            data = stream.read(min(left, 1 << 20))
            digest.update(data)
            left -= len(data)
    assert digest.digest() == hashlib.sha256(body).digest()


def case_many_streams(bench):
    """A thousand at once, each with a call, each held in its middle."""
    count = 990
    answer, released = anthropic_stream(), threading.Event()
    bench.upstream.script = pieces([answer[:600], answer[600:]], between=lambda i: released.wait(120))
    clients = []
    for _ in range(count):
        client = socket.create_connection(("127.0.0.1", bench.witness.port), timeout=120)
        client.sendall(raw_request())
        clients.append(client)
    for client in clients:
        assert client.recv(12, socket.MSG_WAITALL) == b"HTTP/1.1 200"
    assert len(bench.upstream.requests) == count
    released.set()
    for client in clients:
        data = b""
        while not data.endswith(b"0\r\n\r\n"):
            piece = client.recv(65536)
            assert piece
            data += piece
        client.close()
    assert len(bench.witness.exchanges(count)) == len(bench.witness.told("begin")) == count
    assert bench.witness.memory() < 320 << 20, bench.witness.memory()


def case_bad_requests(bench):
    """What is no request of ours: refused, and the witness goes on."""
    bench.upstream.script = fixed(b"{}")
    for data in (b"\0\1\2\3\r\n\r\n", b"GET http://elsewhere.invalid/ HTTP/1.1\r\nHost: x\r\n\r\n",
                 b"CONNECT elsewhere.invalid:443 HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /" + b"a" * 200000,
                 b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 100000, b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                 b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
        with socket.create_connection(("127.0.0.1", bench.witness.port), timeout=60) as client:
            try:
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
            except ConnectionError:
                pass
            wait_closed(client)
    assert ask(bench.witness.port, "/v1/x")[2] == b"{}"
    assert not any("elsewhere" in r.target for r in bench.upstream.requests)


def case_certificates(bench):
    """A provider that nobody vouches for is not talked to."""
    folder = bench.folder
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{folder}/key", "-out",
                    f"{folder}/certificate", "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost"], check=True, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/certificate", f"{folder}/key")
    upstream = Upstream(context)
    upstream.script = fixed(b"{}")
    for trusted, host, status in ((None, "localhost", 502), (f"{folder}/certificate", "localhost", 200),
                                  (f"{folder}/certificate", "127.0.0.1", 502)):
        environment = {k: v for k, v in os.environ.items() if k != "WITNESS_CA"}
        if trusted:
            environment["WITNESS_CA"] = trusted
        witness = bench.start([f"anthropic,,https://{host}:{upstream.port}"], environment)
        got = ask(witness.port, "/v1/messages")
        assert got[0] == status, (trusted, host, got)
        witness.stop()
    assert len(upstream.requests) == 1


def case_upstreams_refused(bench):
    for url in ("http://192.0.2.1", "http://localhost.example.invalid", "ftp://127.0.0.1/", "https://", "x", "https://h/?q",
                "http://127.0.0.1.example.invalid/"):
        result = subprocess.run([bench.program, f"{bench.folder}/x", f"anthropic,,{url}"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        assert result.returncode == 1 and result.stderr, url


def case_closed_while_idle(bench):
    """A provider may close a connection that rests: the next request takes a new one."""
    bench.upstream.script = lambda c, r: fixed(b"{}")(c, r) or False
    client = http.client.HTTPConnection("127.0.0.1", bench.witness.port, timeout=60)
    for _ in range(50):
        assert ask(0, "/v1/x", connection=client)[2] == b"{}"
