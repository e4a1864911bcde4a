"""Sends every captured request of the SDKs to a running server: check_wire.py URL FOLDER KEY.

The server must have the API key KEY and answer to the model names of the captures (--alias). Each
answer must have the dialect's form and, where a schema was sent, be an instance of it. Captures of
errors that a request alone can bring about must get that error.
"""

import concurrent.futures
import http.client
import json
import pathlib
import sys
import urllib.parse

import jsonschema

URL, FOLDER, KEY = sys.argv[1:4]
place = urllib.parse.urlsplit(URL)
counts = {}
failures = []


def send(method, path, headers, body):
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=300)
    kept = {k: v for k, v in headers.items() if k.lower() not in ("content-length", "accept-encoding", "connection")}
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
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


def with_key(headers, key):
    """The headers of a capture, for this server."""
    kept = {k: v for k, v in headers.items() if k.lower() not in ("host", "authorization", "x-api-key")}
    return {**kept, "Host": place.netloc, "Authorization": "Bearer " + key}


def provoked(kind, headers, body):
    """Headers and body that bring an error about; None where a request alone cannot."""
    unknown = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(a)\\1"}}}
    if kind == "401":
        return with_key(headers, KEY + "x"), body
    if kind == "403":
        return {**headers, "Host": "evil.example"}, body
    if kind == "413":
        return headers, json.dumps({**body, "messages": [{"role": "user", "content": "a" * (5 << 20)}]}).encode()
    if kind in ("400_context", "400_prompt_too_long"):
        return headers, {**body, "messages": [{"role": "user", "content": "uno dos tres " * 20000}]}
    if kind in ("400", "400_schema"):
        field = {"output_config": {"format": {"type": "json_schema", "schema": unknown}}} if "max_tokens" in body else {"format": unknown}
        if kind == "400_schema":
            field = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": unknown}}}
        return headers, {**body, **field}
    return (headers, {**body, "model": "foo"}) if kind in ("404", "404_model") else None


def check_error(name, kind, request):
    """Whether the capture was of an error that could be provoked."""
    found = provoked(kind, with_key(request["headers"], KEY), request["body"])
    if found is None:
        return False
    status, headers, text = send(request["method"], request["path"], *found)
    expected = json.loads((pathlib.Path(FOLDER) / f"{name}.response.json").read_text())["response"]
    assert status == expected["status"], (status, text[:300])
    body, form = json.loads(text), expected["body"]
    assert set(form) <= set(body), (body, form)
    if isinstance(form["error"], dict):
        assert set(form["error"]) == set(body["error"]), body
        if "request_id" in form:
            assert body["error"]["type"] == form["error"]["type"] and body["request_id"] == headers["request-id"], body
        if form["error"].get("code"):
            assert body["error"]["code"] == form["error"]["code"], body
    counts["provoked"] = counts.get("provoked", 0) + 1
    return True


def check(name, request):
    if "_error_" in name and check_error(name, name.split("_error_")[1], request):
        return
    path, body = request["path"], request["body"]
    status, headers, text = send(request["method"], path, with_key(request["headers"], KEY), body)
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


def check_file(file):
    requests = json.loads(file.read_text())["request"]
    for request in requests if isinstance(requests, list) else [requests]:
        if not request:
            continue
        try:
            check(file.name.removesuffix(".request.json"), request)
        except Exception as error:
            failures.append(file.name)
            print("FAILED", file.name, type(error).__name__, str(error)[:300], flush=True)

with concurrent.futures.ThreadPoolExecutor(4) as pool:
    # A list, so that what nobody expected is raised.
    list(pool.map(check_file, sorted(pathlib.Path(FOLDER).glob("*.request.json"))))
print(counts, len(failures), "failed")
sys.exit(1 if failures else 0)
