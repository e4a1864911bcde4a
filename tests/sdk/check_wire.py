"""Sends every captured request of the SDKs to a running server: check_wire.py URL FOLDER.

The server must answer to the model names of the captures (--alias). Each answer must have the
dialect's form and, where a schema was sent, be an instance of it.
"""

import http.client
import json
import pathlib
import sys
import urllib.parse

import jsonschema

URL, FOLDER = sys.argv[1:3]
place = urllib.parse.urlsplit(URL)
counts = {}
failures = []


def send(method, path, headers, body):
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=300)
    kept = {k: v for k, v in headers.items() if k.lower() not in ("host", "content-length", "accept-encoding", "connection")}
    data = None if body is None else json.dumps(body).encode()
    connection.request(method, path, body=data, headers=kept)
    response = connection.getresponse()
    return response.status, dict(response.getheaders()), response.read().decode()


def events(text):
    found = []
    for block in text.split("\n\n"):
        lines = block.splitlines()
        data = [line[6:] for line in lines if line.startswith("data: ")]
        name = [line[7:] for line in lines if line.startswith("event: ")]
        if data and data[0] != "[DONE]":
            found.append((name[0] if name else None, json.loads(data[0])))
    return found


def valid(schema, value):
    jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)(schema).validate(value)


def text_and_calls(path, body, text):
    """The text of an answer and its calls, whatever the dialect."""
    stream = body.get("stream", path.startswith("/api/"))
    if path.startswith("/v1/chat"):
        if not stream:
            message = json.loads(text)["choices"][0]["message"]
            return message["content"] or "", [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in message.get("tool_calls", [])]
        content, calls = "", {}
        for name, event in events(text):
            assert name is None and "error" not in event, event
            for choice in event["choices"]:
                content += choice["delta"].get("content") or ""
                for call in choice["delta"].get("tool_calls", []):
                    entry = calls.setdefault(call["index"], ["", ""])
                    entry[0] += call["function"].get("name", "")
                    entry[1] += call["function"].get("arguments", "")
        assert text.endswith("data: [DONE]\n\n")
        return content, [(name, json.loads(arguments)) for name, arguments in calls.values()]
    if path.startswith("/v1/responses"):
        response = json.loads(text) if not stream else events(text)[-1][1]["response"]
        parts = [part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"]]
        return "".join(parts), [(i["name"], json.loads(i["arguments"])) for i in response["output"] if i["type"] == "function_call"]
    if path.startswith("/v1/messages"):
        if not stream:
            content = json.loads(text)["content"]
            return "".join(b.get("text", "") for b in content), [(b["name"], b["input"]) for b in content if b["type"] == "tool_use"]
        content, calls = "", []
        for name, event in events(text):
            assert name == event["type"] and name != "error", event
            if name == "content_block_start" and event["content_block"]["type"] == "tool_use":
                calls.append([event["content_block"]["name"], ""])
            if name == "content_block_delta":
                content += event["delta"].get("text", "")
                if "partial_json" in event["delta"]:
                    calls[-1][1] += event["delta"]["partial_json"]
        return content, [(name, json.loads(arguments)) for name, arguments in calls]
    if path.startswith("/api/"):
        lines = [json.loads(line) for line in text.splitlines()]
        assert lines[-1]["done"] is True
        content = "".join(line.get("response", line.get("message", {}).get("content", "")) for line in lines)
        calls = [(c["function"]["name"], c["function"]["arguments"]) for line in lines for c in line.get("message", {}).get("tool_calls", [])]
        return content, calls
    return None, []


def schema_of(body):
    for way in (("response_format", "json_schema", "schema"), ("text", "format", "schema"), ("output_config", "format", "schema"),
                ("output_format", "schema"), ("format",)):
        value = body
        for key in way:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, dict) and not (way == ("format",) and value.get("type") == "json_schema"):
            return value
    return None


def tool_schemas(body):
    found = {}
    for tool in body.get("tools") or []:
        function = tool.get("function", tool)
        found[function["name"]] = function.get("parameters", function.get("input_schema", {}))
    return found


def check(name, request):
    path, body = request["path"], request["body"]
    status, headers, text = send(request["method"], path, request["headers"], body)
    counts[status] = counts.get(status, 0) + 1
    if path.startswith("/v1/responses/"):
        assert status == 404, (status, text)
        return
    if path.startswith("/api/embed"):
        assert status == 501 and "error" in json.loads(text)
        return
    if body and body.get("model") == "foo":
        assert status == 404, (status, text)
        return
    if status == 400 and "the shortest valid answer has" in text:
        # A capture of a cut answer: here it is refused before anything is written.
        return
    assert status == 200, (status, text[:500])
    assert headers.get("x-request-id") and headers.get("request-id")
    if not body or "count_tokens" in path or path in ("/api/show", "/v1/complete", "/v1/completions"):
        json.loads(text)
        return
    content, calls = text_and_calls(path, body, text)
    schema = schema_of(body)
    if schema is not None and not calls:
        valid(schema, json.loads(content))
    tools = tool_schemas(body)
    for tool, arguments in calls:
        valid(tools[tool], arguments)


for file in sorted(pathlib.Path(FOLDER).glob("*.request.json")):
    requests = json.loads(file.read_text())["request"]
    for request in requests if isinstance(requests, list) else [requests]:
        if not request:
            continue
        try:
            check(file.name, request)
        except Exception as error:
            failures.append(file.name)
            print("FAILED", file.name, type(error).__name__, str(error)[:300], flush=True)
print(counts, len(failures), "failed")
sys.exit(1 if failures else 0)
