"""A provider on loopback that answers exactly what a test says, byte for byte, and keeps what it was asked."""
import json
import socket
import ssl
import threading

KEY = "sk-throw-away-0000-not-a-key"


class Request:
    def __init__(self, line, headers, body, raw_body):
        self.method, self.target, self.version = line.split(" ", 2)
        self.headers, self.body, self.raw_body = headers, body, raw_body

    def header(self, name):
        return next((v for n, v in self.headers if n.lower() == name), None)


def read_line(stream):
    line = stream.readline(1 << 20)
    if not line.endswith(b"\n"):
        raise ConnectionError("no line")
    return line.rstrip(b"\r\n")


def read_body(stream, headers):
    fields = {n.lower(): v for n, v in headers}
    if fields.get("transfer-encoding", "").lower() == "chunked":
        body = b""
        while True:
            size = int(read_line(stream).split(b";")[0], 16)
            body += stream.read(size)
            read_line(stream)
            if size == 0:
                return body, True
    size = int(fields.get("content-length", "0"))
    body = stream.read(size)
    if len(body) != size:
        raise ConnectionError("a body that was cut")
    return body, False


class Upstream:
    """Answers each request by `script(connection, request)`, which writes to a socket."""

    def __init__(self, context=None):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1200)
        self.port = self.listener.getsockname()[1]
        self.context = context
        self.script = lambda connection, request: None
        self.requests, self.lock = [], threading.Lock()
        self.connections = 0
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def url(self):
        return f"{'https' if self.context else 'http'}://127.0.0.1:{self.port}"

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self.context:
                    connection = self.context.wrap_socket(connection, server_side=True)
                with self.lock:
                    self.connections += 1
                stream = connection.makefile("rb")
                while self.exchange(connection, stream):
                    pass
        except (ConnectionError, OSError, ssl.SSLError, ValueError):
            pass

    def exchange(self, connection, stream):
        line = read_line(stream).decode("latin-1")
        headers = []
        while True:
            field = read_line(stream).decode("latin-1")
            if not field:
                break
            name, _, value = field.partition(":")
            headers.append((name, value.strip()))
        if any(n.lower() == "expect" for n, _ in headers):
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        body, chunked = read_body(stream, headers)
        request = Request(line, headers, body, chunked)
        with self.lock:
            self.requests.append(request)
        return self.script(connection, request) is not False

    def close(self):
        self.listener.close()


# --- scripts --------------------------------------------------------------------------------------------------------

def head(status=200, headers=(), reason="OK"):
    return (f"HTTP/1.1 {status} {reason}\r\n" + "".join(f"{n}: {v}\r\n" for n, v in headers) + "\r\n").encode("latin-1")


def fixed(body, status=200, headers=(("content-type", "application/json"),), reason="OK"):
    """An answer with its length."""
    def script(connection, request):
        data = b"" if request.method == "HEAD" else body
        connection.sendall(head(status, [*headers, ("Content-Length", len(body))], reason) + data)
    return script


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def pieces(parts, headers=(("content-type", "text/event-stream"),), between=None, end=b"0\r\n\r\n"):
    """An answer in chunks; `between(i)` is called before each but the first."""
    def script(connection, _request):
        connection.sendall(head(200, [*headers, ("Transfer-Encoding", "chunked")]))
        for i, part in enumerate(parts):
            if i and between:
                between(i)
            connection.sendall(chunk(part))
        connection.sendall(end)
        return bool(end)
    return script


# --- recorded exchanges ---------------------------------------------------------------------------------------------

ARGUMENTS = json.dumps({"command": "printf '%s\\n' \"gr\u00fc\u00df \U0001f600\" && exit 3", "n": 1}, ensure_ascii=False)


def sse(events, names=True):
    text = ""
    for event in events:
        if isinstance(event, str):
            text += event
            continue
        if names:
            text += f"event: {event['type']}\n"
        text += "data: " + json.dumps(event) + "\n\n"
    return text.encode()


def cut(text, size):
    return [text[i:i + size] for i in range(0, len(text), size)]


def anthropic_stream(arguments=ARGUMENTS, step=11):
    return sse([
        {"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1",
                                              "content": [], "stop_reason": None,
                                              "usage": {"input_tokens": 10, "output_tokens": 1}}},
        ": a comment\n\n",
        {"type": "ping"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hm."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1,
         "content_block": {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}},
        *({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": part}}
          for part in cut(arguments, step)),
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}},
        {"type": "message_stop"}])


def anthropic_whole():
    return json.dumps({"id": "msg_2", "type": "message", "role": "assistant", "model": "m-1", "stop_reason": "tool_use",
                       "content": [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": "@"}],
                       "usage": {"input_tokens": 1}}).replace('"@"', ARGUMENTS).encode()


def responses_stream():
    item = {"type": "function_call", "id": "fc_1", "call_id": "toolu_1", "name": "Bash"}
    done = {**item, "arguments": ARGUMENTS}
    return sse([
        {"type": "response.created", "response": {"id": "resp_1", "model": "m-1", "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}},
        *({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": part}
          for part in cut(ARGUMENTS, 7)),
        {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": ARGUMENTS},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": {"id": "resp_1", "model": "m-1", "status": "completed",
                                                    "output": [done], "usage": {"input_tokens": 4}}}])


def responses_whole():
    return json.dumps({"id": "resp_1", "model": "m-1", "status": "completed", "error": None, "output": [
        {"type": "function_call", "call_id": "toolu_1", "name": "Bash", "arguments": ARGUMENTS}]}).encode()


def chat_stream():
    def event(delta, finish=None):
        return {"id": "c_1", "model": "m-1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return sse([event({"role": "assistant", "content": ""}),
                event({"tool_calls": [{"index": 0, "id": "toolu_1", "type": "function",
                                       "function": {"name": "Bash", "arguments": ""}}]}),
                *(event({"tool_calls": [{"index": 0, "function": {"arguments": part}}]}) for part in cut(ARGUMENTS, 9)),
                event({}, "tool_calls"), "data: [DONE]\n\n"], names=False)


def chat_whole():
    return json.dumps({"id": "c_1", "model": "m-1", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": None, "tool_calls": [
            {"id": "toolu_1", "type": "function", "function": {"name": "Bash", "arguments": ARGUMENTS}}]}}]}).encode()


def gemini_object():
    return json.dumps({"candidates": [{"content": {"role": "model", "parts": [
        {"functionCall": {"name": "Bash", "args": "@", "id": "toolu_1"}}]}, "finishReason": "STOP"}],
        "modelVersion": "m-1", "responseId": "r_1", "usageMetadata": {"totalTokenCount": 3}}).replace('"@"', ARGUMENTS)


# Name, target, answer, is it a stream, the dialect that is told.
RECORDED = [
    ("anthropic stream", "/v1/messages?beta=true", anthropic_stream(), True, "anthropic-messages"),
    ("anthropic", "/v1/messages", anthropic_whole(), False, "anthropic-messages"),
    ("responses stream", "/openai/responses", responses_stream(), True, "openai-responses"),
    ("responses", "/openai/responses", responses_whole(), False, "openai-responses"),
    ("chat stream", "/openai/chat/completions", chat_stream(), True, "openai-chat"),
    ("chat", "/openai/chat/completions", chat_whole(), False, "openai-chat"),
    ("gemini stream", "/gemini/v1beta/models/m-1:streamGenerateContent?alt=sse",
     b"data: " + gemini_object().encode() + b"\r\n\r\n", True, "gemini"),
    ("gemini array", "/gemini/v1beta/models/m-1:streamGenerateContent", b"[" + gemini_object().encode() + b"\n]\n",
     False, "gemini"),
    ("gemini", "/gemini/v1beta/models/m-1:generateContent", gemini_object().encode(), False, "gemini"),
]
