"""Mixed traffic against a running server: load.py URL MODEL SECONDS [PID].

Sixty-four connections: answers of every dialect, streams that are left, slow readers, bodies that are
too large, malformed JSON, broken HTTP, deep schemas. Every request must be answered as its kind is;
with the server's process id its memory is compared, after a third of the time and at the end.
"""

import http.client
import json
import random
import socket
import sys
import threading
import time
import urllib.parse

URL, MODEL, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
PID = sys.argv[4] if len(sys.argv) > 4 else None
place = urllib.parse.urlsplit(URL)
end = time.time() + SECONDS
counts, failures = {}, []
lock = threading.Lock()
SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}, "n": {"type": "integer", "maximum": 99}},
          "required": ["a", "n"], "additionalProperties": False}
HOST = f"localhost:{place.port}"


def post(path, body, read=True):
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=120)
    connection.request("POST", path, body=body if isinstance(body, (str, bytes)) else json.dumps(body), headers={"Host": HOST, "Content-Type": "application/json", "Authorization": "Bearer local"})
    response = connection.getresponse()
    return (response, connection) if not read else (response.status, response.read().decode())


def answered(path, body, text):
    status, reply = post(path, body)
    if status in (429, 529):
        return "full"
    assert status == 200, (status, reply[:200])
    value = json.loads(text(json.loads(reply)))
    assert set(value) == {"a", "n"}, value
    return "answered"


def chat(r):
    return answered("/v1/chat/completions", {"model": MODEL, "temperature": 1.2, "seed": r.randrange(99), "max_tokens": 60, "messages": [{"role": "user", "content": str(r.random())}],
                    "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}}, lambda b: b["choices"][0]["message"]["content"])


def messages(r):
    return answered("/v1/messages", {"model": MODEL, "temperature": 1.2, "max_tokens": 60, "messages": [{"role": "user", "content": str(r.random())}],
                    "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}, lambda b: b["content"][0]["text"])


def ollama(r):
    return answered("/api/chat", {"model": MODEL, "stream": False, "format": SCHEMA, "options": {"temperature": 1.2}, "messages": [{"role": "user", "content": str(r.random())}]},
                    lambda b: b["message"]["content"])


def left(r):
    response, connection = post("/v1/chat/completions", {"model": MODEL, "stream": True, "temperature": 1.5, "guided_json": {"type": "string", "minLength": 800, "maxLength": 800}, "messages": [{"role": "user", "content": "x"}]}, read=False)
    if response.status == 200:
        response.read(r.randrange(1, 2000))
    connection.close()
    return "left"


def slow(r):
    response, connection = post("/v1/chat/completions", {"model": MODEL, "stream": True, "temperature": 1.5, "max_tokens": 40, "messages": [{"role": "user", "content": "x"}]}, read=False)
    while response.read(200):
        time.sleep(0.05)
    connection.close()
    return "slow"


def large(r):
    status, _ = post("/v1/chat/completions", b" " * (5 << 20))
    assert status == 413, status
    return "too large"


def malformed(r):
    status, _ = post("/v1/chat/completions", r.choice(['{"model"', "[" * 1000, "\x00", '{"model": 3}', "{}", '{"a": "\ud83d"}'.encode("utf-8", "surrogatepass")]))
    assert status == 400, status
    return "malformed"


def broken(r):
    stream = socket.create_connection((place.hostname, place.port), timeout=60)
    stream.sendall(r.choice([b"\x16\x03\x01", b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x",
                             b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nContent-Length: 8\r\n\r\n123456789"]))
    stream.shutdown(socket.SHUT_WR)
    reply = b""
    while True:
        more = stream.recv(4096)
        if not more:
            break
        reply += more
    assert b" 200 OK" not in reply, reply
    return "broken"


def deep(r):
    schema = "{}"
    for _ in range(r.randrange(1, 400)):
        schema = '{"type": "array", "items": ' + schema + "}"
    status, reply = post("/v1/chat/completions", '{"model": "%s", "max_tokens": 30, "messages": [{"role": "user", "content": "x"}], "guided_json": %s}' % (MODEL, schema))
    assert status in (200, 400, 429), (status, reply[:200])
    return "deep"


KINDS = [chat, chat, messages, ollama, left, slow, large, malformed, broken, deep]


def work(seed):
    r = random.Random(seed)
    while time.time() < end:
        kind = r.choice(KINDS)
        try:
            outcome = kind(r)
            if outcome == "full":
                time.sleep(0.2)
        except Exception as error:
            outcome = "FAILED"
            with lock:
                failures.append(f"{kind.__name__}: {type(error).__name__} {str(error)[:200]}")
        with lock:
            counts[outcome] = counts.get(outcome, 0) + 1


def memory():
    if PID is None:
        return None
    with open(f"/proc/{PID}/status") as status:
        return int([line for line in status if line.startswith("VmRSS")][0].split()[1])


threads = [threading.Thread(target=work, args=(seed,)) for seed in range(64)]
for thread in threads:
    thread.start()
time.sleep(SECONDS / 3)
before = memory()
for thread in threads:
    thread.join()
after = memory()
print(counts, "memory kB", before, after)
for failure in failures[:10]:
    print("FAILED", failure)
sys.exit(1 if failures else 0)
