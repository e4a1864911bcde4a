//! The order of events, and that every prefix of a stream can be read.
#![allow(clippy::unwrap_used, reason = "a test that fails panics")]

mod support;

use jiter::{JsonValue, PartialMode};
use serde_json::{Value, json};
use support::{Reply, Running, start};

/// Its integers fit 64 bits: this build of the parser of the SDKs, unlike theirs, has no larger ones.
fn schema() -> Value {
    json!({"type": "object", "properties": {"á": {"type": "string", "maxLength": 12},
        "n": {"type": ["integer", "null"], "minimum": -9_000_000, "maximum": 9_000_000},
        "list": {"type": "array", "maxItems": 2, "items": {"type": "boolean"}}},
        "required": ["á", "n", "list"], "additionalProperties": false})
}

fn tools() -> Value {
    json!([{"type": "function", "function": {"name": "save", "description": "Saves.", "parameters": schema()}}])
}

#[allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]
fn ask(server: &Running, path: &str, body: Value) -> Reply {
    let mut whole = json!({"model": "tiny", "stream": true, "temperature": 1.2,
        "messages": [{"role": "user", "content": "hola"}]});
    whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
    server.post(path, &whole)
}

fn data(reply: &Reply) -> Vec<Value> {
    let events = reply.events();
    let json = events.iter().filter(|(_, data)| data != "[DONE]");
    json.map(|(_, data)| serde_json::from_str(data).unwrap()).collect()
}

/// Every prefix parses as the SDKs parse it: partially, after the first byte.
fn assert_prefixes(pieces: &[String]) {
    let mut text = String::new();
    for piece in pieces {
        text.push_str(piece);
        let parsed =
            JsonValue::parse_with_config(text.as_bytes(), false, PartialMode::TrailingStrings);
        assert!(parsed.is_ok(), "{text}: {parsed:?}");
    }
    assert!(serde_json::from_str::<Value>(&text).is_ok(), "{text}");
}

#[test]
fn chat_chunks_come_in_the_order_of_the_api() {
    let server = start(|_| ());
    for seed in 0..4 {
        let reply = ask(
            &server,
            "/v1/chat/completions",
            json!({"seed": seed,
            "stream_options": {"include_usage": true},
            "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": schema()}}}),
        );
        assert!(reply.header("content-type").unwrap().starts_with("text/event-stream"));
        assert!(reply.body.ends_with("data: [DONE]\n\n"));
        assert!(reply.events().iter().all(|(name, _)| name.is_none()));
        let chunks = data(&reply);
        let delta = |chunk: &Value| chunk["choices"][0]["delta"].clone();
        assert_eq!(delta(&chunks[0]), json!({"role": "assistant", "content": "", "refusal": null}));
        let (usage, rest) = chunks[1..].split_last().unwrap();
        let (last, middle) = rest.split_last().unwrap();
        assert_eq!(usage["choices"], json!([]));
        assert!(usage["usage"]["completion_tokens"].as_u64().unwrap() > 0);
        assert_eq!(delta(last), json!({}));
        assert_eq!(last["choices"][0]["finish_reason"], "stop");
        assert!(chunks[..chunks.len() - 1].iter().all(|chunk| chunk["usage"].is_null()));
        assert!(chunks.iter().all(|chunk| chunk["id"] == chunks[0]["id"]));
        let pieces: Vec<String> = middle
            .iter()
            .map(|chunk| delta(chunk)["content"].as_str().unwrap().to_owned())
            .collect();
        assert_prefixes(&pieces);
    }
}

#[test]
fn chat_calls_name_themselves_once_and_then_come_in_pieces() {
    let server = start(|_| ());
    let reply = ask(
        &server,
        "/v1/chat/completions",
        json!({"tools": tools(), "tool_choice": "required", "parallel_tool_calls": false, "max_tokens": 200}),
    );
    let chunks = data(&reply);
    let calls: Vec<&Value> = chunks
        .iter()
        .map(|chunk| &chunk["choices"][0]["delta"]["tool_calls"][0])
        .filter(|call| !call.is_null())
        .collect();
    assert!(calls[0]["id"].as_str().unwrap().starts_with("call_"));
    assert_eq!(calls[0]["function"], json!({"name": "save", "arguments": ""}));
    assert!(calls[1..].iter().all(|call| call.get("id").is_none()));
    let pieces: Vec<String> = calls[1..]
        .iter()
        .map(|call| call["function"]["arguments"].as_str().unwrap().to_owned())
        .collect();
    assert_prefixes(&pieces);
    assert_eq!(chunks.last().unwrap()["choices"][0]["finish_reason"], "tool_calls");
}

#[test]
fn messages_events_come_in_the_order_of_the_api() {
    let server = start(|_| ());
    let format = json!({"format": {"type": "json_schema", "schema": schema()}});
    let reply = ask(&server, "/v1/messages", json!({"max_tokens": 200, "output_config": format}));
    let names: Vec<String> = reply.events().into_iter().map(|(name, _)| name.unwrap()).collect();
    let events = data(&reply);
    for (name, event) in names.iter().zip(&events) {
        assert_eq!(event["type"], name.as_str());
    }
    let last = names.len() - 1;
    assert_eq!(names[..3], ["message_start", "content_block_start", "ping"]);
    assert_eq!(names[last - 2..], ["content_block_stop", "message_delta", "message_stop"]);
    assert!(names[3..last - 2].iter().all(|name| name == "content_block_delta"));
    assert_eq!(events[0]["message"]["stop_reason"], Value::Null);
    assert_eq!(events[last - 1]["delta"]["stop_reason"], "end_turn");
    let pieces: Vec<String> = events[3..last - 2]
        .iter()
        .map(|event| event["delta"]["text"].as_str().unwrap().to_owned())
        .collect();
    assert_prefixes(&pieces);

    let tools = json!([{"name": "save", "input_schema": schema()}]);
    let reply = ask(
        &server,
        "/v1/messages",
        json!({"max_tokens": 200, "tools": tools, "tool_choice": {"type": "tool", "name": "save", "disable_parallel_tool_use": true}}),
    );
    let events = data(&reply);
    assert_eq!(events[1]["content_block"]["type"], "tool_use");
    assert_eq!(events[1]["content_block"]["input"], json!({}));
    let pieces: Vec<String> = events
        .iter()
        .filter_map(|event| event["delta"]["partial_json"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(pieces[0], "");
    assert_prefixes(&pieces[1..]);
    assert_eq!(events[events.len() - 2]["delta"]["stop_reason"], "tool_use");
}

#[test]
fn responses_events_come_in_the_order_of_the_api_with_stable_names() {
    let server = start(|_| ());
    let text = json!({"format": {"type": "json_schema", "name": "s", "schema": schema()}});
    let reply = ask(&server, "/v1/responses", json!({"input": "hola", "text": text}));
    let events = data(&reply);
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], index);
    }
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let last = kinds.len() - 1;
    assert_eq!(
        kinds[..4],
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added"
        ]
    );
    assert_eq!(
        kinds[last - 3..],
        [
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed"
        ]
    );
    assert!(kinds[4..last - 3].iter().all(|kind| *kind == "response.output_text.delta"));
    let id = &events[0]["response"]["id"];
    assert_eq!(&events[last]["response"]["id"], id);
    let item = &events[2]["item"]["id"];
    assert!(events[3..last - 1].iter().all(|event| &event["item_id"] == item));
    let pieces: Vec<String> = events[4..last - 3]
        .iter()
        .map(|event| event["delta"].as_str().unwrap().to_owned())
        .collect();
    assert_prefixes(&pieces);
    assert_eq!(events[last]["response"]["output"][0]["content"][0]["text"], pieces.concat());

    // It was kept, and can be continued and forgotten.
    let path = format!("/v1/responses/{}", id.as_str().unwrap());
    assert_eq!(server.get(&path).ok(), events[last]["response"]);
    let more = json!({"model": "tiny", "input": "más", "previous_response_id": id, "max_output_tokens": 5});
    let input_tokens = |body: &Value| {
        server.post("/v1/responses", body).ok()["usage"]["input_tokens"].as_u64().unwrap()
    };
    let alone = json!({"model": "tiny", "input": "más", "max_output_tokens": 5});
    // What was said before is read again.
    assert!(input_tokens(&more) > input_tokens(&alone) + 10);
    assert_eq!(server.request("DELETE", &path, &[], "").ok()["deleted"], true);
    assert_eq!(server.get(&path).status, 404);
}

#[test]
fn ollama_lines_end_with_the_counts() {
    let server = start(|_| ());
    let reply =
        ask(&server, "/api/chat", json!({"format": schema(), "options": {"temperature": 1.0}}));
    assert_eq!(reply.header("content-type"), Some("application/x-ndjson"));
    let lines: Vec<Value> =
        reply.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (last, rest) = lines.split_last().unwrap();
    assert!(rest.iter().all(|line| line["done"] == false));
    let pieces: Vec<String> =
        rest.iter().map(|line| line["message"]["content"].as_str().unwrap().to_owned()).collect();
    assert_prefixes(&pieces);
    assert_eq!((&last["done"], &last["done_reason"]), (&json!(true), &json!("stop")));
    for field in ["total_duration", "prompt_eval_count", "eval_count", "eval_duration"] {
        assert!(last[field].as_u64().unwrap() > 0, "{field}");
    }
}

#[test]
fn logprobs_are_those_under_the_mask() {
    let server = start(|_| ());
    let reply = server.post(
        "/v1/chat/completions",
        &json!({"model": "tiny",
        "messages": [{"role": "user", "content": "a"}], "logprobs": true, "top_logprobs": 3,
        "temperature": 1.5, "guided_choice": ["yes", "no", "nope"]}),
    );
    let tokens = reply.ok()["choices"][0]["logprobs"]["content"].clone();
    let tokens = tokens.as_array().unwrap();
    let text: String = tokens.iter().map(|token| token["token"].as_str().unwrap()).collect();
    assert_eq!(reply.json()["choices"][0]["message"]["content"], text.as_str());
    for token in tokens {
        let top = token["top_logprobs"].as_array().unwrap();
        let chosen = token["logprob"].as_f64().unwrap();
        assert!(chosen <= 0.0);
        let sum: f64 = top.iter().map(|top| top["logprob"].as_f64().unwrap().exp()).sum();
        assert!(sum <= 1.0 + 1e-5, "{token}");
        // At most three tokens are ever allowed here, so the three shown are all of them, or one
        // of them ends the turn and has no text.
        assert!(top.iter().any(|top| top["logprob"].as_f64().unwrap() >= chosen), "{token}");
    }
}
