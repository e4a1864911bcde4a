//! Untrained weights and a high temperature: whatever the model would like to write, what is sent
//! is an instance of the schema as it was sent, in every dialect.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that fails panics")]

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use support::{Reply, Running, start};

/// Forty schemas, one a line: each keyword that bounds something is in one of them.
fn schemas() -> Vec<Value> {
    let lines = include_str!("data/schemas.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn assert_valid(schema: &Value, text: &str) {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let options = jsonschema::options().should_validate_formats(true);
    let validator = options.build(schema).unwrap();
    assert!(validator.is_valid(&value), "{text} under {schema}");
}

/// Requests at the same time.
const CLIENTS: usize = 4;

/// What one endpoint is asked, and where its JSON text is.
type Endpoint = (&'static str, fn(&Value, u64) -> Value, fn(&Reply) -> String);

fn message() -> Value {
    json!([{"role": "user", "content": "Ana: 41 años 😀"}])
}

fn endpoints() -> Vec<Endpoint> {
    const CHAT: &str = "/v1/chat/completions";
    vec![
        (
            CHAT,
            |schema, seed| {
                json!({"model": "tiny", "messages": message(), "temperature": 1.5, "seed": seed,
                    "max_tokens": 200, "response_format": {"type": "json_schema",
                    "json_schema": {"name": "s", "schema": schema}}})
            },
            |reply| reply.ok()["choices"][0]["message"]["content"].as_str().unwrap().to_owned(),
        ),
        (
            CHAT,
            |schema, seed| {
                json!({"model": "tiny", "messages": message(), "temperature": 1.5, "seed": seed,
                    "max_tokens": 200, "stream": true, "guided_json": schema})
            },
            |reply| {
                let events = reply.events();
                let chunks = events[..events.len() - 1].iter();
                chunks
                    .map(|(_, data)| serde_json::from_str::<Value>(data).unwrap())
                    .filter_map(|c| c["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
                    .collect()
            },
        ),
        (
            CHAT,
            |schema, seed| {
                json!({"model": "tiny", "messages": message(), "temperature": 1.5, "seed": seed,
                    "max_tokens": 200, "tools": [{"type": "function", "function": {"name": "other",
                    "parameters": {"type": "object"}}}, {"type": "function",
                    "function": {"name": "save", "parameters": schema}}],
                    "tool_choice": {"type": "function", "function": {"name": "save"}},
                    "parallel_tool_calls": false})
            },
            |reply| {
                let call = &reply.ok()["choices"][0]["message"]["tool_calls"][0]["function"];
                assert_eq!(call["name"], "save");
                call["arguments"].as_str().unwrap().to_owned()
            },
        ),
        (
            "/v1/responses",
            |schema, seed| {
                json!({"model": "tiny", "input": message(), "temperature": 1.5, "seed": seed,
                    "max_output_tokens": 200, "text": {"format": {"type": "json_schema",
                    "name": "s", "schema": schema}}})
            },
            |reply| reply.ok()["output"][0]["content"][0]["text"].as_str().unwrap().to_owned(),
        ),
        (
            "/v1/completions",
            |schema, seed| {
                json!({"model": "tiny", "prompt": "Ana", "temperature": 1.5, "seed": seed,
                    "max_tokens": 200, "structured_outputs": {"json": schema}})
            },
            |reply| reply.ok()["choices"][0]["text"].as_str().unwrap().to_owned(),
        ),
        (
            "/v1/messages",
            |schema, seed| {
                let _ = seed;
                json!({"model": "tiny", "messages": message(), "temperature": 1.5,
                    "max_tokens": 200, "output_config": {"format": {"type": "json_schema",
                    "schema": schema}}})
            },
            |reply| reply.ok()["content"][0]["text"].as_str().unwrap().to_owned(),
        ),
        (
            "/v1/messages",
            |schema, seed| {
                let _ = seed;
                json!({"model": "tiny", "messages": message(), "temperature": 1.5,
                    "max_tokens": 200, "tools": [{"name": "save", "input_schema": schema}],
                    "tool_choice": {"type": "any", "disable_parallel_tool_use": true}})
            },
            |reply| {
                let body = reply.ok();
                assert_eq!(body["content"][0]["type"], "tool_use");
                body["content"][0]["input"].to_string()
            },
        ),
        (
            "/api/chat",
            |schema, seed| {
                json!({"model": "tiny", "messages": message(), "stream": false, "format": schema,
                    "options": {"temperature": 1.5, "seed": seed, "num_predict": 200}})
            },
            |reply| reply.ok()["message"]["content"].as_str().unwrap().to_owned(),
        ),
        (
            "/api/generate",
            |schema, seed| {
                json!({"model": "tiny", "prompt": "Ana", "format": schema,
                    "options": {"temperature": 1.5, "seed": seed, "num_predict": 200}})
            },
            |reply| {
                let lines =
                    reply.body.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
                lines.map(|line| line["response"].as_str().unwrap().to_owned()).collect()
            },
        ),
    ]
}

/// Arguments of a call are objects.
fn is_refused(endpoint: usize, schema: &Value) -> bool {
    let is_call = matches!(endpoint, 2 | 6);
    is_call && schema["type"] != "object"
}

/// Asks every endpoint for every schema, several at a time; the number of answers.
fn check(server: &Running, seeds: u64) -> usize {
    let (schemas, endpoints) = (schemas(), endpoints());
    let works: Vec<(usize, usize)> =
        (0..schemas.len()).flat_map(|s| (0..endpoints.len()).map(move |e| (s, e))).collect();
    let (next, answers) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while let Some(&(schema, endpoint)) = works.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (schema, (path, body, text)) = (&schemas[schema], endpoints[endpoint]);
            for seed in 0..seeds {
                let reply = server.post(path, &body(schema, seed));
                if is_refused(endpoint, schema) {
                    assert_eq!(reply.status, 400, "{}", reply.body);
                    continue;
                }
                assert_valid(schema, &text(&reply));
                answers.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(work);
        }
    });
    answers.into_inner()
}

#[test]
fn every_answer_of_untrained_weights_is_an_instance_of_its_schema() {
    let server = start(|_| ());
    // The number of requests can be raised from outside, for a longer run.
    let seeds = std::env::var("MOLDE_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let answers = check(&server, seeds);
    println!("{answers} answers are valid");
    assert_eq!(schemas().len(), 40);
    let refused = schemas().iter().filter(|schema| schema["type"] != "object").count() * 2;
    assert_eq!(answers as u64, (40 * 9 - refused as u64) * seeds);
}

#[test]
fn a_seed_decides_what_is_written() {
    let server = start(|_| ());
    let (path, body, text) = endpoints()[0];
    let schema = json!({"type": "string", "minLength": 20, "maxLength": 40});
    let write = |seed| text(&server.post(path, &body(&schema, seed)));
    assert_eq!(write(1), write(1));
    assert_ne!(write(1), write(2));
}

#[test]
fn several_answers_differ_and_are_all_valid() {
    let server = start(|_| ());
    let schema = json!({"type": "string", "minLength": 20, "maxLength": 40});
    let mut body = endpoints()[0].1(&schema, 1);
    body["n"] = json!(3);
    let reply = server.post("/v1/chat/completions", &body).ok();
    let texts: Vec<_> =
        (0..3).map(|i| reply["choices"][i]["message"]["content"].as_str().unwrap()).collect();
    for text in &texts {
        assert_valid(&schema, text);
    }
    assert!(texts[0] != texts[1] && texts[1] != texts[2] && texts[0] != texts[2]);
    assert_eq!(reply["choices"][2]["index"], 2);
}

#[test]
fn a_choice_and_a_pattern_are_held_to() {
    let server = start(|_| ());
    for seed in 0..5 {
        let ask = |field: &str, value: Value| {
            let mut body =
                json!({"model": "tiny", "messages": message(), "temperature": 1.5, "seed": seed});
            body[field] = value;
            let reply = server.post("/v1/chat/completions", &body).ok();
            reply["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
        };
        let choice = ask("guided_choice", json!(["red", "reddish", "blue"]));
        assert!(["red", "reddish", "blue"].contains(&choice.as_str()), "{choice}");
        let text = ask("structured_outputs", json!({"regex": "[ab]{3}-[0-9]{2}"}));
        let (left, right) = text.split_once('-').unwrap();
        assert!(left.len() == 3 && left.chars().all(|c| "ab".contains(c)), "{text}");
        assert!(right.len() == 2 && right.chars().all(|c| c.is_ascii_digit()), "{text}");
        let object = ask("response_format", json!({"type": "json_object"}));
        assert!(serde_json::from_str::<Value>(&object).unwrap().is_object(), "{object}");
    }
}

#[test]
fn objects_are_closed_to_members_that_nobody_asked_for_unless_they_are_to_be_open() {
    let server = start(|_| ());
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let keys = |endpoint: usize, seed: u64, open: bool| {
        let (path, body, text) = endpoints()[endpoint];
        let mut body = body(&schema, seed);
        body["molde"] = json!({"open_objects": open});
        let value: Value = serde_json::from_str(&text(&server.post(path, &body))).unwrap();
        value.as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    // Text, and the arguments of a call.
    for endpoint in [0, 2] {
        let closed: Vec<_> = (0..8).flat_map(|seed| keys(endpoint, seed, false)).collect();
        assert!(closed.iter().all(|key| key == "a"), "{closed:?}");
        let open: Vec<_> = (0..8).flat_map(|seed| keys(endpoint, seed, true)).collect();
        assert!(open.iter().any(|key| key != "a"), "{open:?}");
    }
}
