//! What is refused and how, in each dialect; keys, hosts, limits and ends.
#![allow(clippy::unwrap_used, reason = "a test that fails panics")]

mod support;

use std::io::Write as _;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use molde_infer::tiny::TinyModel;
use serde_json::{Value, json};
use support::{Running, read_reply, start, start_model};

fn chat() -> Value {
    json!({"model": "tiny", "messages": [{"role": "user", "content": "hola"}], "max_tokens": 8})
}

fn with(mut body: Value, field: &str, value: Value) -> Value {
    body[field] = value;
    body
}

fn schema_format(schema: &Value) -> Value {
    json!({"type": "json_schema", "json_schema": {"name": "s", "schema": schema}})
}

#[test]
fn a_schema_that_cannot_be_enforced_is_refused_with_its_place_in_every_dialect() {
    let server = start(|_| ());
    let bad =
        json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "(a)\\1"}}});
    let messages = json!([{"role": "user", "content": "hola"}]);
    let cases = [
        ("/v1/chat/completions", with(chat(), "response_format", schema_format(&bad))),
        ("/v1/chat/completions", with(chat(), "guided_json", bad.clone())),
        (
            "/v1/responses",
            json!({"model": "tiny", "input": "a", "text": {"format":
            {"type": "json_schema", "name": "s", "schema": bad}}}),
        ),
        (
            "/v1/messages",
            json!({"model": "tiny", "max_tokens": 9, "messages": messages,
            "output_config": {"format": {"type": "json_schema", "schema": bad}}}),
        ),
        ("/api/chat", json!({"model": "tiny", "messages": messages, "format": bad})),
        ("/api/generate", json!({"model": "tiny", "prompt": "a", "format": bad})),
    ];
    for (path, body) in cases {
        let reply = server.post(path, &body);
        assert_eq!(reply.status, 400, "{path}: {}", reply.body);
        let json = reply.json();
        let message = match path {
            "/v1/messages" => {
                assert_eq!(json["type"], "error");
                assert_eq!(json["error"]["type"], "invalid_request_error");
                assert_eq!(json["request_id"], reply.header("request-id").unwrap());
                &json["error"]["message"]
            }
            path if path.starts_with("/api/") => &json["error"],
            _ => {
                assert_eq!(json["error"]["code"], "invalid_schema");
                assert!(reply.header("x-request-id").is_some());
                &json["error"]["message"]
            }
        };
        assert!(message.as_str().unwrap().contains("/properties/a/pattern"), "{message}");
        assert_eq!(json["molde"]["offenders"][0]["keyword"], "pattern");
        assert_eq!(reply.header("x-should-retry"), Some("false"));
    }
}

#[test]
fn one_bad_tool_is_named() {
    let server = start(|_| ());
    let tool = |name: &str, parameters: Value| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    for bad in [
        json!({"type": "string"}),
        json!({"type": "object", "properties": {"a": {"pattern": "("}}}),
    ] {
        let tools = json!([tool("good", json!({"type": "object"})), tool("bad_one", bad)]);
        let reply = server.post("/v1/chat/completions", &with(chat(), "tools", tools));
        assert_eq!(reply.status, 400);
        let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("bad_one") && !message.contains("good\""), "{message}");
    }
}

#[test]
fn requests_that_mean_nothing_are_400_and_name_the_field() {
    let server = start(|_| ());
    let user = |content: Value| json!([{"role": "user", "content": content}]);
    for (body, expected) in [
        (json!({"model": "tiny"}), "messages"),
        (json!({"messages": []}), "model"),
        (with(chat(), "messages", json!([])), "message"),
        (
            with(
                chat(),
                "messages",
                user(json!([{"type": "image_url", "image_url": {"url": "x"}}])),
            ),
            "image_url",
        ),
        (with(chat(), "messages", user(json!([{"type": "input_audio"}]))), "input_audio"),
        (with(chat(), "messages", user(Value::Null)), "content"),
        (with(chat(), "messages", json!([{"role": "robot", "content": "a"}])), "robot"),
        (with(chat(), "temperature", json!(-1)), "temperature"),
        (with(chat(), "top_p", json!(2)), "top_p"),
        (with(chat(), "max_tokens", json!(0)), "max_tokens"),
        (with(chat(), "n", json!(0)), "n"),
        (with(chat(), "n", json!(1000)), "n"),
        (with(chat(), "top_logprobs", json!(2)), "logprobs"),
        (with(chat(), "tool_choice", json!("required")), "tools"),
        (with(chat(), "tool_choice", json!({"type": "function", "function": {"name": "x"}})), "x"),
        (with(chat(), "guided_grammar", json!("root ::= a")), "guided_grammar"),
        (with(chat(), "structured_outputs", json!({"grammar": "a"})), "grammar"),
        (with(chat(), "structured_outputs", json!({"regex": "a", "choice": ["b"]})), "several"),
        (with(chat(), "guided_regex", json!("(")), "pattern"),
        (with(chat(), "guided_choice", json!([])), "choices"),
        (with(chat(), "response_format", json!({"type": "yaml"})), "yaml"),
        (with(chat(), "response_format", json!({"type": "json_schema"})), "schema"),
        (with(chat(), "stop", json!([""])), "stop"),
        (with(chat(), "molde", json!({"closed": true})), "closed"),
    ] {
        let reply = server.post("/v1/chat/completions", &body);
        assert_eq!(reply.status, 400, "{body}: {}", reply.body);
        let error = reply.json()["error"].clone();
        assert_eq!(error["type"], "invalid_request_error");
        assert!(error["message"].as_str().unwrap().contains(expected), "{error}");
    }
    for text in ["", "{", "[]", "null", "\u{0}", r#"{"model": "tiny", "model": "tiny"}"#] {
        assert_eq!(server.request("POST", "/v1/chat/completions", &[], text).status, 400, "{text}");
    }
    // Nesting is no problem of the parser's.
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    let body = format!(r#"{{"model": "tiny", "messages": [], "guided_json": {deep}}}"#);
    assert_eq!(server.request("POST", "/v1/chat/completions", &[], &body).status, 400);
}

#[test]
fn unknown_models_and_paths_are_404_and_other_names_can_be_given() {
    let server = start(|config| config.aliases.push("gpt-9".to_owned()));
    let other = with(chat(), "model", json!("other"));
    let reply = server.post("/v1/chat/completions", &other);
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (404, &json!("model_not_found")));
    let messages =
        json!({"model": "x", "max_tokens": 5, "messages": [{"role": "user", "content": "a"}]});
    assert_eq!(server.post("/v1/messages", &messages).json()["error"]["type"], "not_found_error");
    let ollama = json!({"model": "foo", "messages": [{"role": "user", "content": "a"}]});
    assert_eq!(server.post("/api/chat", &ollama).json(), json!({"error": "model 'foo' not found"}));
    assert_eq!(
        server.post("/v1/chat/completions", &with(chat(), "model", json!("gpt-9"))).status,
        200
    );
    assert_eq!(
        server.post("/v1/chat/completions", &with(chat(), "model", json!("tiny:latest"))).status,
        200
    );
    assert_eq!(server.get("/v1/models/gpt-9").ok()["id"], "gpt-9");
    assert_eq!(server.get("/v1/models/nope").status, 404);
    let ids = server.get("/v1/models").ok()["data"].clone();
    assert_eq!((&ids[0]["id"], &ids[1]["id"]), (&json!("tiny"), &json!("gpt-9")));
    assert_eq!(server.get("/nowhere").status, 404);
    assert_eq!(server.get("/v1/chat/completions").status, 405);
    assert_eq!(server.post("/api/embed", &json!({})).status, 501);
    assert_eq!(server.get("/health").ok()["status"], "ok");
    assert_eq!(server.get("/api/tags").ok()["models"][1]["name"], "gpt-9");
    assert_eq!(
        server.post("/api/show", &json!({"model": "tiny"})).ok()["details"]["family"],
        "qwen2"
    );
    assert!(server.get("/metrics").body.contains("molde_responses_total{route=\"/v1/models\""));
}

#[test]
fn a_key_is_needed_where_there_is_one() {
    let server = start(|config| config.api_key = Some("secret".to_owned()));
    let body = chat().to_string();
    let ask = |headers: &[(&str, &str)]| {
        server.request("POST", "/v1/chat/completions", headers, &body).status
    };
    assert_eq!(ask(&[]), 401);
    assert_eq!(ask(&[("Authorization", "Bearer wrong")]), 401);
    assert_eq!(ask(&[("Authorization", "secret")]), 401);
    assert_eq!(ask(&[("x-api-key", "secretx")]), 401);
    assert_eq!(ask(&[("Authorization", "Bearer secret")]), 200);
    assert_eq!(ask(&[("authorization", "bearer secret")]), 200);
    assert_eq!(ask(&[("X-Api-Key", "secret")]), 200);
    assert_eq!(server.get("/v1/models").status, 401);
    assert_eq!(server.get("/health").status, 200);
    let reply = server.post("/v1/messages", &json!({}));
    assert_eq!(reply.json()["error"]["type"], "authentication_error");
}

#[test]
fn foreign_hosts_and_origins_are_refused() {
    let server = start(|config| {
        config.hosts.push("box.lan".to_owned());
        config.origins.push("http://app.example".to_owned());
    });
    let host = |host: &str| server.request("GET", "/v1/models", &[("Host", host)], "").status;
    for ours in ["localhost", "LOCALHOST:1", "127.0.0.1:8080", "[::1]:80", "box.lan:99"] {
        assert_eq!(host(ours), 200, "{ours}");
    }
    for foreign in ["evil.example", "localhost.evil.example", "10.0.0.1", "", "box.lan.evil", "::1"]
    {
        assert_eq!(host(foreign), 403, "{foreign}");
    }
    let own = format!("http://localhost:{}", server.address.port());
    let origin = |origin: &str| server.request("GET", "/v1/models", &[("Origin", origin)], "");
    assert_eq!(origin(&own).status, 200);
    let named = origin("http://app.example");
    assert_eq!(named.header("access-control-allow-origin"), Some("http://app.example"));
    assert_eq!(origin("http://evil.example").status, 403);
    assert_eq!(origin("null").status, 403);
}

#[test]
fn limits_are_kept() {
    let server = start(|config| {
        config.limits.body_bytes = 20_000;
        config.limits.schema_bytes = 1000;
        config.limits.reading = Duration::from_millis(300);
    });
    let long = with(chat(), "messages", json!([{"role": "user", "content": "a".repeat(20_000)}]));
    let reply = server.post("/v1/chat/completions", &long);
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (413, &json!("request_too_large")));
    let schema = json!({"description": "a".repeat(1000)});
    let reply = server.post("/v1/chat/completions", &with(chat(), "guided_json", schema));
    assert_eq!(reply.status, 400);
    // The prompt does not fit into 4,096 tokens: both numbers are said.
    let prompt = with(chat(), "messages", json!([{"role": "user", "content": "% ".repeat(5000)}]));
    let reply = server.post("/v1/chat/completions", &prompt);
    assert_eq!(reply.json()["error"]["code"], "context_length_exceeded");
    let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("4096") && message.contains("prompt is too long: "), "{message}");
    // A body that does not come.
    let mut stream = server.connect();
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{{"
    )
    .unwrap();
    assert_eq!(read_reply(stream).status, 408);
}

#[test]
fn an_answer_that_cannot_be_short_enough_is_refused_and_a_closed_one_is_no_success() {
    let server = start(|_| ());
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 1, "maxLength": 400},
        "b": {"type": "array", "items": {"type": "integer"}}},
        "required": ["a", "b"], "additionalProperties": false});
    let ask = |tokens: u64, close: bool| {
        let body = json!({"model": "tiny", "messages": [{"role": "user", "content": "x"}],
            "max_tokens": tokens, "temperature": 1.5, "seed": 3,
            "response_format": schema_format(&schema), "molde": {"close": close}});
        server.post("/v1/chat/completions", &body)
    };
    let reply = ask(2, false);
    assert_eq!(
        (reply.status, &reply.json()["error"]["code"]),
        (400, &json!("max_tokens_too_small"))
    );
    let cut = ask(30, false).ok();
    assert_eq!(cut["choices"][0]["finish_reason"], "length");
    assert_eq!(cut["choices"][0]["molde"]["limit"], "max_tokens");
    assert!(!cut["choices"][0]["molde"]["closed_by_budget"].as_array().unwrap().is_empty());
    let closed = ask(30, true).ok();
    assert_eq!(closed["choices"][0]["finish_reason"], "stop");
    assert_eq!(
        closed["choices"][0]["molde"]["closed_by_budget"],
        cut["choices"][0]["molde"]["closed_by_budget"]
    );
    assert_eq!(closed["choices"][0]["message"], cut["choices"][0]["message"]);
    assert!(cut["usage"]["completion_tokens"].as_u64().unwrap() <= 30);
}

#[test]
fn stops_end_free_text_and_never_a_value() {
    let server = start(|_| ());
    let free = with(with(chat(), "temperature", json!(1.5)), "seed", json!(1));
    let free = with(free, "max_tokens", json!(40));
    let whole = server.post("/v1/chat/completions", &free).ok();
    let whole = whole["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    let stop: String = whole.chars().skip(3).take(2).collect();
    let expected = &whole[..whole.find(&stop).unwrap()];
    let reply = server.post("/v1/chat/completions", &with(free.clone(), "stop", json!(stop))).ok();
    assert_eq!(reply["choices"][0]["message"]["content"], expected);
    assert_eq!(reply["choices"][0]["finish_reason"], "stop");
    let constrained =
        with(with(free, "guided_choice", json!(["one stop two"])), "stop", json!(" stop"));
    let reply = server.post("/v1/chat/completions", &constrained).ok();
    assert_eq!(reply["choices"][0]["message"]["content"], "one stop two");
    assert_eq!(reply["choices"][0]["molde"]["stop_ignored"], true);
}

#[test]
fn the_beginning_of_an_answer_goes_through_the_matcher() {
    let server = start(|_| ());
    let schema = json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}},
        "required": ["name"], "additionalProperties": false});
    let ask = |prefill: &str| {
        server.post("/v1/messages", &json!({"model": "tiny", "max_tokens": 60, "temperature": 1.0,
            "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": prefill}],
            "output_config": {"format": {"type": "json_schema", "schema": schema}}}))
    };
    for prefill in ["{", "{\"na", "{\"name\": \"A"] {
        let reply = ask(prefill).ok();
        let text = format!("{prefill}{}", reply["content"][0]["text"].as_str().unwrap());
        let value: Value = serde_json::from_str(&text).unwrap();
        assert!(value["name"].as_str().unwrap().chars().count() <= 5, "{text}");
    }
    for prefill in ["[", "{\"nam3", "{\"name\": 1", " x"] {
        assert_eq!(ask(prefill).status, 400, "{prefill}");
    }
}

#[test]
fn tool_choice_auto_is_text_or_calls() {
    let server = start(|_| ());
    let tools = json!([{"type": "function", "function": {"name": "a", "parameters": {"type": "object",
        "properties": {"n": {"type": "integer", "maximum": 9, "minimum": 0}}, "required": ["n"],
        "additionalProperties": false}}}]);
    let mut calls = 0;
    for seed in 0..60 {
        let body = json!({"model": "tiny", "max_tokens": 60, "temperature": 2.0, "seed": seed,
            "tools": tools, "messages": [{"role": "user", "content": "x"}]});
        let reply = server.post("/v1/chat/completions", &body).ok();
        let message = &reply["choices"][0]["message"];
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            calls += 1;
            assert_eq!(call["function"]["name"], "a");
            let arguments = call["function"]["arguments"].as_str().unwrap();
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            assert!((0..=9).contains(&arguments["n"].as_i64().unwrap()), "{call}");
        }
        assert!(message["content"].is_string() || !message["tool_calls"].is_null());
    }
    // Of some hundred tokens at a high temperature, one is the marker again and again.
    assert!(calls > 0);
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_mins(1), "{what} did not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A model that takes its time for thousands of tokens.
fn slow_model() -> TinyModel {
    TinyModel { layers: 12, hidden_size: 256, intermediate_size: 512, ..TinyModel::default() }
}

/// Whether the model has begun with one request.
fn has_started(server: &Running) -> bool {
    server.get("/metrics").body.contains("molde_queue_wait_seconds_count 1\n")
}

#[test]
fn the_queue_is_bounded_and_a_client_that_leaves_frees_its_place() {
    let server = start_model(&slow_model(), |config| {
        config.limits.sequences = NonZeroUsize::MIN;
        config.limits.queue = 1;
    });
    let slow = json!({"model": "tiny", "messages": [{"role": "user", "content": "a"}],
        "max_tokens": 3500, "temperature": 1.5, "guided_json": {"type": "string", "minLength": 3000, "maxLength": 3000}});
    let send = |stream: &mut std::net::TcpStream| {
        let body = slow.to_string();
        write!(stream, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    };
    let waiting = |expected: u64| {
        wait_until("the queue", || server.get("/health").ok()["queue"] == expected);
    };
    let mut first = server.connect();
    send(&mut first);
    wait_until("the first one", || has_started(&server));
    let mut second = server.connect();
    send(&mut second);
    waiting(1);
    for (path, status, body) in [
        ("/v1/chat/completions", 429, slow.clone()),
        (
            "/v1/messages",
            529,
            json!({"model": "tiny", "max_tokens": 5, "messages": [{"role": "user", "content": "a"}]}),
        ),
    ] {
        let reply = server.post(path, &body);
        assert_eq!(reply.status, status, "{}", reply.body);
        assert!(reply.header("retry-after").is_some());
        assert_eq!(reply.header("x-should-retry"), Some("true"));
    }
    drop((first, second));
    waiting(0);
    let start = Instant::now();
    assert_eq!(server.post("/v1/chat/completions", &chat()).status, 200);
    assert!(start.elapsed() < Duration::from_secs(20), "the first one was stopped");
}

#[test]
fn a_short_answer_does_not_wait_for_the_long_ones() {
    let server = start_model(&slow_model(), |_| ());
    let mut long = Vec::new();
    for seed in 0..3 {
        let body = json!({"model": "tiny", "messages": [{"role": "user", "content": "a"}], "seed": seed,
            "max_tokens": 3500, "temperature": 1.5, "guided_json": {"type": "string", "minLength": 3000, "maxLength": 3000}})
        .to_string();
        let mut stream = server.connect();
        write!(stream, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        long.push(stream);
    }
    let running = |expected: u64| {
        wait_until("the answers", || server.get("/health").ok()["running"] == expected);
    };
    running(3);
    assert_eq!(server.post("/v1/chat/completions", &chat()).status, 200);
    assert_eq!(server.get("/health").ok()["running"], 3, "they go on");
    drop(long);
    running(0);
}

#[test]
fn a_server_that_stops_answers_what_is_running_and_then_ends() {
    let mut server = start(|config| config.limits.drain = Duration::from_secs(20));
    let body = with(with(chat(), "max_tokens", json!(300)), "guided_regex", json!("[a-z ]{250}"))
        .to_string();
    let mut stream = server.connect();
    write!(
        stream,
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    wait_until("the request", || has_started(&server));
    server.stop();
    let reply = read_reply(stream);
    assert_eq!(reply.ok()["choices"][0]["message"]["content"].as_str().unwrap().len(), 250);
}

#[test]
fn what_is_no_http_ends_the_connection_and_nothing_else() {
    let server = start(|_| ());
    for bytes in [
        &b"\x16\x03\x01\x00\x00"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost : localhost\r\n\r\n",
    ] {
        let mut stream = server.connect();
        stream.write_all(bytes).unwrap();
        let shut = stream.shutdown(std::net::Shutdown::Write);
        assert!(shut.is_ok());
        let mut answer = String::new();
        let _ = std::io::Read::read_to_string(&mut stream, &mut answer);
        let status = answer.split(' ').nth(1).unwrap_or_default();
        assert!(matches!(status, "" | "400" | "403" | "505"), "{answer}");
        assert!(!answer.contains("HTTP/1.1 200"), "{answer}");
    }
    assert_eq!(server.get("/health").status, 200);
}
