"""What a provider and its clients do on good days: it has to be the same with the witness as without."""
import gzip
import hashlib
import http.client
import json
import socket
import subprocess
import threading
import zlib

from upstream import ARGUMENTS, KEY, RECORDED, anthropic_stream, fixed, head, pieces

HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}
REQUEST = json.dumps({"model": "m-1", "stream": True, "max_tokens": 9, "tools": [{"name": "Bash"}], "messages": [
    {"role": "user", "content": "gr\u00fc\u00df dich"}]}, ensure_ascii=False).encode()
HEADERS = {"content-type": "application/json", "x-api-key": KEY, "Authorization": f"Bearer {KEY}",
           "anthropic-version": "2023-06-01", "anthropic-beta": "a-2025-01-01,b", "Anthropic-Unknown-Thing": "x; y=\"z\"",
           "Accept-Encoding": "gzip, br", "X-Empty": "", "User-Agent": "agent/1"}


def ask(port, target, method="POST", body=REQUEST, headers=None, connection=None):
    """Status, headers that count, body as it came."""
    client = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    client.request(method, target, body=body, headers=HEADERS if headers is None else headers)
    answer = client.getresponse()
    try:
        data = answer.read()
    except http.client.IncompleteRead as cut:
        data = (cut.partial, "cut")
    shown = sorted((n.lower(), v) for n, v in answer.getheaders() if n.lower() not in HOP)
    if not connection:
        client.close()
    return answer.status, shown, data


def asked(request, prefix=""):
    shown = sorted((n.lower(), v) for n, v in request.headers if n.lower() not in HOP)
    return request.method, request.target.removeprefix(prefix), shown, request.body


def same(bench, target, direct=None, **how):
    """The same answer, to the same request. Returns the answer."""
    first = len(bench.upstream.requests)
    expected = ask(bench.upstream.port, direct or target, **how)
    got = ask(bench.witness.port, target, **how)
    assert got == expected, f"{target}: {got!r}, without the witness {expected!r}"
    plain, passed = bench.upstream.requests[first], bench.upstream.requests[-1]
    assert asked(plain) == asked(passed), f"{target}: asked {asked(passed)}, without the witness {asked(plain)}"
    return got


def real_target(target):
    """What a provider is asked for."""
    for prefix, instead in (("/openai", "/v1"), ("/gemini", "")):
        if target.startswith(prefix + "/"):
            return instead + target.removeprefix(prefix)
    return target


def check_call(bench, answer, dialect, count=1):
    exchange = bench.witness.exchanges(count)[-1]
    call = bench.witness.told("begin")[-1]
    assert (exchange["dialect"], exchange["state"], exchange["calls"]) == (dialect, "complete", 1), exchange
    assert exchange["model"] == exchange["asked"] == "m-1" and exchange["test_upstream"], exchange
    assert exchange["response"] == {"sha256": hashlib.sha256(answer).hexdigest(), "size": len(answer)}, exchange
    assert exchange["request"] == {"sha256": hashlib.sha256(REQUEST).hexdigest(), "size": len(REQUEST)}, exchange
    assert (call["id"], call["tool"], call["bytes"]) == ("toolu_1", "Bash", ARGUMENTS), call
    assert call["sha256"] == hashlib.sha256(ARGUMENTS.encode()).hexdigest(), call
    assert call["exchange"] == exchange["number"] and call["is_command"], call


def case_dialects(bench):
    for count, (_, target, answer, stream, dialect) in enumerate(RECORDED, 1):
        bench.upstream.script = pieces([answer]) if stream else fixed(answer)
        same(bench, target, real_target(target))
        check_call(bench, answer, dialect, count)


def case_every_cut(bench):
    answer = anthropic_stream("{\"command\":\"a \\\\ b\"}")
    client = http.client.HTTPConnection("127.0.0.1", bench.witness.port, timeout=60)
    for at in range(1, len(answer)):
        bench.upstream.script = pieces([answer[:at], answer[at:]])
        status, _, data = ask(0, "/v1/messages", connection=client)
        assert (status, data) == (200, answer), (at, data)
    bench.upstream.script = pieces([answer[i:i + 1] for i in range(len(answer))])
    assert ask(0, "/v1/messages", connection=client)[2] == answer
    exchanges = bench.witness.exchanges(len(answer))
    assert {(x["state"], x["calls"]) for x in exchanges} == {("complete", 1)}
    assert {x["bytes"] for x in bench.witness.told("begin")} == {"{\"command\":\"a \\\\ b\"}"}


def case_unbuffered(bench):
    """The provider says the next piece only after the client has had the one before."""
    answer = anthropic_stream()
    parts = [answer[i:i + 200] for i in range(0, len(answer), 200)]
    had = [threading.Event() for _ in parts]
    bench.upstream.script = pieces(parts, between=lambda i: had[i - 1].wait(30) or bench.upstream.close())
    client = http.client.HTTPConnection("127.0.0.1", bench.witness.port, timeout=30)
    client.request("POST", "/v1/messages", body=REQUEST)
    response, got = client.getresponse(), b""
    for i, part in enumerate(parts):
        while len(got) < sum(map(len, parts[:i + 1])):
            got += response.read1(len(part))
        had[i].set()
    assert got == answer


def case_told_first(bench):
    """Whoever has the bytes that complete a call finds it told."""
    answer = anthropic_stream()
    bench.upstream.script = pieces([answer[i:i + 16] for i in range(0, len(answer), 16)])
    client = http.client.HTTPConnection("127.0.0.1", bench.witness.port, timeout=30)
    for count in range(1, 50):
        client.request("POST", "/v1/messages", body=REQUEST)
        response, got = client.getresponse(), b""
        while b'"type": "content_block_stop", "index": 1}\n\n' not in got:
            got += response.read1(16)
        assert len(bench.witness.told("begin")) == count
        response.read()


def case_compressed(bench):
    answer = anthropic_stream()
    encode = "process.stdout.write(require('zlib').brotliCompressSync(require('fs').readFileSync(0)))"
    bodies = {
        "gzip": gzip.compress(answer[:300]) + gzip.compress(answer[300:]),
        "deflate": zlib.compress(answer),
        "br": subprocess.run(["node", "-e", encode], input=answer, stdout=subprocess.PIPE, check=True).stdout,
        "identity": answer,
    }
    try:
        bodies["zstd"] = subprocess.run(["zstd", "-qc"], input=answer, stdout=subprocess.PIPE, check=True).stdout
    except FileNotFoundError:
        print("skip: zstd (no such program)")
    for count, (encoding, body) in enumerate(bodies.items(), 1):
        parts = [body[i:i + 50] for i in range(0, len(body), 50)]
        bench.upstream.script = pieces(parts, [("content-type", "text/event-stream"), ("content-encoding", encoding)])
        assert same(bench, "/v1/messages")[2] == body
        check_call(bench, body, "anthropic-messages", count)
    # A stream that is flushed after each event can be read after each.
    packer = zlib.compressobj(wbits=31)
    parts = [packer.compress(answer[i:i + 99]) + packer.flush(zlib.Z_SYNC_FLUSH) for i in range(0, len(answer), 99)]
    bench.upstream.script = pieces(parts, [("content-encoding", "gzip")])
    same(bench, "/v1/messages")
    assert len(bench.witness.told("begin")) == len(bodies) + 1 and not bench.witness.told("loss")


def case_statuses(bench):
    error = b'{"type":"error","error":{"type":"overloaded_error","message":"later"}}'
    for status, reason in ((200, "OK"), (201, "Created"), (400, "Bad"), (401, "No"), (404, "None"), (413, "Big"),
                           (429, "Later"), (500, "Broken"), (502, "Gone"), (529, "Overloaded"), (302, "Found"), (307, "There")):
        bench.upstream.script = fixed(error, status, [("content-type", "application/json"), ("retry-after", "7"),
                                                      ("location", "https://elsewhere.invalid/"), ("set-cookie", "a=1"),
                                                      ("set-cookie", "b=2"), ("x-request-id", "req_1"), ("Date", "now")], reason)
        assert same(bench, "/v1/messages")[0] == status
    for status in (204, 304):
        bench.upstream.script = lambda c, r, status=status: c.sendall(head(status, [("etag", "x")]))
        assert same(bench, "/v1/messages")[2] == b""
    states = {x["status"]: x["state"] for x in bench.witness.exchanges(14)}
    assert states[529] == states[401] == "upstream_failed", states
    assert not bench.witness.told("begin")


def case_unwitnessed(bench):
    bench.upstream.script = fixed(b'{"input_tokens":4}')
    for method, target in (("POST", "/v1/messages/count_tokens?beta=true"), ("GET", "/v1/models?limit=1000&a=%2F../%41"),
                           ("GET", "//odd/../path/./x"), ("DELETE", "/v1/files/f_1"), ("PUT", "/x"), ("PATCH", "/x"),
                           ("OPTIONS", "/x"), ("HEAD", "/api/hello"), ("GET", "/?q"), ("GET", "/")):
        same(bench, target, method=method, body=REQUEST if method in ("POST", "PUT", "PATCH") else None)
    same(bench, "/base/x?y", "/a/b/x?y", method="GET", body=None)
    same(bench, "/base", "/a/b", method="GET", body=None)
    told = bench.witness.exchanges(12)
    assert {x["dialect"] for x in told} == {"unwitnessed"} and {x["state"] for x in told} == {"complete"}, told
    assert told[1]["path"] == "/v1/models", "a query may hold a key"


def case_uploads(bench):
    bench.upstream.script = lambda c, r: fixed(hashlib.sha256(r.body).hexdigest().encode())(c, r)
    large = json.dumps({"model": "m-1", "messages": [{"role": "user", "content": "x" * (64 << 20)}]}).encode()
    for body in (b"", b"x", large):
        assert same(bench, "/v1/messages", body=body)[2] == hashlib.sha256(body).hexdigest().encode()

    def parts():
        yield from (large[i:i + 99999] for i in range(0, 1 << 22, 99999))
    for port in (bench.upstream.port, bench.witness.port):
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        client.request("POST", "/v1/messages", body=parts(), encode_chunked=True, headers={"Transfer-Encoding": "chunked"})
        assert client.getresponse().read() == hashlib.sha256(b"".join(parts())).hexdigest().encode()
        assert bench.upstream.requests[-1].raw_body, "in pieces, as it was sent"
        client.close()
    with open(f"{bench.folder}/body", "wb") as file:
        file.write(large)
    for extra in ([], ["-H", "Expect: 100-continue"]):
        result = subprocess.run(["curl", "-sS", "--noproxy", "*", *extra, "--data-binary", f"@{bench.folder}/body",
                                 f"http://127.0.0.1:{bench.witness.port}/v1/messages"],
                                stdout=subprocess.PIPE, check=True)
        assert result.stdout == hashlib.sha256(large).hexdigest().encode()
    told = bench.witness.exchanges(6)
    assert told[2]["request"] == {"sha256": hashlib.sha256(large).hexdigest(), "size": len(large)}


def case_early_answer(bench):
    """A provider that refuses before it has read all."""
    def script(connection, _request):
        connection.sendall(head(413, [("content-length", "3"), ("connection", "close")]) + b"big")
        return False
    bench.upstream.script = script
    status, _, data = ask(bench.witness.port, "/v1/messages", body=b"x" * (8 << 20))
    assert (status, data) == (413, b"big")


def case_results(bench):
    """What the agent sends back is told once, with its exit code."""
    bench.upstream.script = fixed(b"{}")
    results = [{"type": "tool_result", "tool_use_id": f"toolu_{i}", "is_error": i == 2,
                "content": "Exit code 2\nno" if i == 2 else [{"type": "text", "text": f"out {i}"}]} for i in range(5)]
    for count in range(1, 6):
        body = {"model": "m-1", "messages": [{"role": "user", "content": results[:count]}]}
        ask(bench.witness.port, "/v1/messages", body=json.dumps(body).encode())
    ends = bench.witness.told("end")
    assert [x["id"] for x in ends] == [f"toolu_{i}" for i in range(5)], ends
    assert ends[2]["failed"] and ends[2]["exit"] == 2 and not ends[1]["failed"], ends
    assert ends[1]["sha256"] == hashlib.sha256(b"out 1").hexdigest()
    gemini = {"contents": [{"parts": [{"functionResponse": {"name": "run", "response": {"output": "same"}}}] * 2}]}
    for _ in range(2):
        ask(bench.witness.port, "/gemini/v1beta/models/m:generateContent", body=json.dumps(gemini).encode())
    assert len(bench.witness.told("end")) == 7, "without ids, by place and content"


def case_keep_alive(bench):
    bench.upstream.script = fixed(b"{}")
    client = http.client.HTTPConnection("127.0.0.1", bench.witness.port, timeout=60)
    ports = set()
    for count in range(1, 30):
        assert ask(0, "/v1/x", connection=client)[2] == b"{}"
        ports.add(bench.witness.exchanges(count)[-1]["peer"])
    assert ports == {client.sock.getsockname()[1]}, "one connection, and the one that the agent has"
    assert bench.upstream.connections == 1, "and one to the provider"
    # Several requests at once on one connection are answered in order.
    bench.upstream.script = lambda c, r: fixed(r.target.encode())(c, r)
    with socket.create_connection(("127.0.0.1", bench.witness.port), timeout=60) as raw:
        raw.sendall(b"".join(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % i for i in range(5)))
        data = b""
        while data.count(b"HTTP/1.1 200") < 5 or not data.endswith(b"/4"):
            data += raw.recv(65536)
        assert [data.index(b"\r\n\r\n/%d" % i) for i in range(5)] == sorted(data.index(b"\r\n\r\n/%d" % i) for i in range(5))


def case_secrets(bench):
    bench.upstream.script = fixed(b"{}")
    for target in ("/v1/messages", f"/gemini/v1beta/models/m-1:generateContent?key={KEY}", f"/v1/other?key={KEY}"):
        ask(bench.witness.port, target)
    assert bench.upstream.requests[0].header("x-api-key") == KEY
    assert KEY in bench.upstream.requests[2].target
    bench.witness.exchanges(3)
    assert KEY not in bench.witness.told_file.read_text()
