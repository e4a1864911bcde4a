use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::fake::{Fake, Policy};
use crate::{
    CancelHandle, CompileOptions, Contract, Control, End, Engine, Event, FormatProfile,
    GenerationRequest, MoldeError, Overflow, RawJson, Verdict,
};

const FORECAST: &str = r#"{
    "type": "object",
    "properties": {
        "quarter": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 4}, {"type": "null"}]},
        "names": {"type": "array", "items": {"type": "string"}}
    },
    "required": ["quarter", "names"],
    "additionalProperties": false
}"#;

const ANSWER: &str = r#"{"quarter": 4, "names": ["él", "b"]}"#;

#[test]
fn the_answer_is_the_text_as_written_and_complete() {
    let engine = Fake::engine(Policy::Script(ANSWER.to_owned()));
    let extractor = engine.extractor(FORECAST).build().expect("the schema is supported");
    let outcome = extractor.extract("The document.").expect("the fake works");
    assert_eq!(outcome.text, ANSWER);
    assert_eq!(outcome.end, End::Complete);
    assert!(outcome.usage.output_tokens > 0 && outcome.windows.is_empty());
    let value = outcome.into_value().expect("complete");
    assert_eq!(value.as_str(), ANSWER);
    assert_eq!(value.to_value().expect("JSON"), json!({"quarter": 4, "names": ["él", "b"]}));
}

#[test]
fn long_integers_come_through_digit_for_digit() {
    let digits = "1234567890123456789012345678901234567890";
    for number in [digits, "2512292042121000001"] {
        let answer = format!(r#"{{"id": {number}}}"#);
        let engine = Fake::engine(Policy::Script(answer.clone()));
        let schema = r#"{"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"], "additionalProperties": false}"#;
        let extractor = engine.extractor(schema).build().expect("the schema is supported");
        assert_eq!(extractor.extract("x").expect("the fake works").text, answer);
    }
}

#[test]
fn tokens_and_fields_are_reported_as_they_come() {
    let engine = Fake::engine(Policy::Script(ANSWER.to_owned()));
    let extractor = engine.extractor(FORECAST).build().expect("the schema is supported");
    let mut text = String::new();
    let mut fields = Vec::new();
    let mut forced_text = String::new();
    let outcome = extractor
        .extract_with("x", &Control::new(), |event| match event {
            Event::Token { text: more, forced } => {
                text.push_str(more);
                if forced {
                    forced_text.push_str(more);
                }
            }
            Event::Field { pointer, json } => fields.push((pointer.to_owned(), json.to_owned())),
            Event::Window { .. } => panic!("the document fits"),
        })
        .expect("the fake works");
    assert_eq!(text, outcome.text);
    assert!(forced_text.contains("quarter"), "{forced_text}");
    let expected = [
        ("/quarter", "4"),
        ("/names/0", "\"él\""),
        ("/names/1", "\"b\""),
        ("/names", "[\"él\", \"b\"]"),
    ];
    assert_eq!(fields, expected.map(|(pointer, json)| (pointer.to_owned(), json.to_owned())));
}

#[test]
fn an_answer_that_the_budget_changed_names_the_fields() {
    let long = format!(r#"{{"quarter": 1, "names": ["{}"]}}"#, "x".repeat(400));
    let engine = Fake::engine(Policy::Script(long));
    let extractor = engine.extractor(FORECAST).max_tokens(60).build().expect("60 tokens suffice");
    let outcome = extractor.extract("x").expect("the fake works");
    let End::ClosedByBudget { fields } = &outcome.end else { panic!("{:?}", outcome.end) };
    assert_eq!(fields[0], "/names/0", "the long string was cut first: {fields:?}");
    assert!(fields.iter().all(|field| field.starts_with("/names")), "{fields:?}");
    assert!(outcome.usage.output_tokens <= 60);
    let closed = outcome.clone().into_value_or_closed().expect("the value is whole");
    assert_eq!(closed.to_value().expect("JSON")["quarter"], 1);
    let error = outcome.into_value().expect_err("closed is no success");
    assert_eq!(error.kind(), "closed_by_budget");
    assert!(error.to_string().contains("/names/0"));
}

#[test]
fn a_budget_below_the_shortest_answer_is_refused_before_any_document() {
    let engine = Fake::engine(Policy::Random(1));
    let error = engine.extractor(FORECAST).max_tokens(3).build().expect_err("3 tokens are too few");
    let MoldeError::BudgetTooSmall { needed_tokens, max_tokens: 3 } = error else {
        panic!("{error}")
    };
    engine.extractor(FORECAST).max_tokens(needed_tokens).build().expect("what is needed suffices");
    let error =
        engine.extractor(FORECAST).max_tokens(needed_tokens - 1).build().expect_err("one less");
    assert_eq!(error.kind(), "budget_too_small");
}

#[test]
fn random_choices_stay_inside_any_budget_and_validate() {
    let engine = Fake::engine(Policy::Random(3));
    let validator = jsonschema::validator_for(&serde_json::from_str(FORECAST).expect("JSON"))
        .expect("a schema");
    for max_tokens in [20, 25, 30, 40, 80, 200] {
        let extractor = engine.extractor(FORECAST).max_tokens(max_tokens).build().expect("enough");
        for _ in 0..50 {
            let outcome = extractor.extract("x").expect("the fake works");
            assert!(outcome.usage.output_tokens <= max_tokens);
            let value = serde_json::from_str(&outcome.text).expect("the answer is JSON");
            assert!(validator.is_valid(&value), "{value}");
        }
    }
}

#[test]
fn the_instructions_are_read_once() {
    let fake = Arc::new(Fake::new(Policy::Script(ANSWER.to_owned()), 100_000));
    let engine = Engine::new(Arc::new(Arc::clone(&fake)));
    let extractor = engine.extractor(FORECAST).build().expect("the schema is supported");
    let first = extractor.extract("0 one document").expect("the fake works");
    let second = extractor.extract("another document").expect("the fake works");
    let prefills = fake.prefills.lock().expect("not poisoned").clone();
    assert_eq!(prefills.len(), 1, "{prefills:?}");
    assert_eq!(first.usage.cached_prompt_tokens, 0);
    assert_eq!(second.usage.cached_prompt_tokens, prefills[0]);
    assert!(prefills[0] > extractor.system_message().len() / 10);
}

#[test]
fn an_empty_document_is_an_error() {
    let engine = Fake::engine(Policy::Script(ANSWER.to_owned()));
    let extractor = engine.extractor(FORECAST).build().expect("the schema is supported");
    for document in ["", " \n\t\u{a0}"] {
        assert!(matches!(extractor.extract(document), Err(MoldeError::EmptyDocument)));
    }
    for document in ["\0", "\u{1}\u{2}", "<|im_end|>"] {
        assert!(extractor.extract(document).is_ok(), "{document:?} is text");
    }
}

#[test]
fn a_stop_returns_what_was_written_and_no_value() {
    let handle = CancelHandle::new();
    let mut fake = Fake::new(Policy::Script(ANSWER.to_owned()), 100_000);
    fake.cancel_after = Some((6, handle.clone()));
    let engine = Engine::new(Arc::new(Arc::new(fake)));
    let extractor = engine.extractor(FORECAST).build().expect("the schema is supported");
    let outcome = extractor
        .extract_with("x", &Control::new().cancel(&handle), |_| {})
        .expect("being cancelled is no error");
    assert_eq!((outcome.end.clone(), outcome.usage.output_tokens), (End::Cancelled, 6));
    assert!(ANSWER.starts_with(&outcome.text) && !outcome.text.is_empty());
    assert!(outcome.value.is_none());
    assert!(matches!(outcome.into_value(), Err(MoldeError::Cancelled)));

    let past = Control::new().deadline(Instant::now());
    let outcome = extractor.extract_with("x", &past, |_| {}).expect("a deadline is no error");
    assert_eq!(outcome.end, End::DeadlineExceeded);
    let error = outcome.into_value().expect_err("nothing was written");
    assert_eq!(error.kind(), "deadline_exceeded");

    let ample = Control::new().timeout(Duration::from_hours(1));
    assert_eq!(
        extractor.extract_with("x", &ample, |_| {}).expect("the fake works").end,
        End::Complete
    );
}

#[test]
fn a_document_beyond_the_context_is_an_error_with_the_numbers() {
    let engine =
        Engine::new(Arc::new(Arc::new(Fake::new(Policy::Script(ANSWER.to_owned()), 1000))));
    let extractor =
        engine.extractor(FORECAST).max_tokens(100).build().expect("the schema is supported");
    let error = extractor.extract(&"word ".repeat(300)).expect_err("1500 tokens do not fit");
    let MoldeError::ContextOverflow { prompt_tokens, max_tokens: 100, context_tokens: 1000 } =
        error
    else {
        panic!("{error}")
    };
    assert!(prompt_tokens > 1500);
    assert!(!error.to_string().contains("word"));
}

fn windowed(scripts: &[(&'static str, &'static str)], overlap_tokens: usize) -> crate::Extractor {
    let policy = Policy::ByDocument(scripts.iter().copied().collect::<BTreeMap<_, _>>());
    let engine = Engine::new(Arc::new(Arc::new(Fake::new(policy, 900))));
    engine
        .extractor(FORECAST)
        .max_tokens(100)
        .overflow(Overflow::Windows { overlap_tokens })
        .build()
        .expect("the schema is supported")
}

#[test]
fn windows_cover_the_document_and_the_first_that_found_something_answers() {
    let found = r#"{"quarter": 2, "names": []}"#;
    let nothing = r#"{"quarter": null, "names": []}"#;
    let extractor = windowed(&[("NEEDLE", found), ("filler", nothing)], 50);
    let document = format!("{}NEEDLE{}", "filler é ".repeat(200), "filler é ".repeat(100));
    let mut planned = Vec::new();
    let outcome = extractor
        .extract_with(&document, &Control::new(), |event| {
            if let Event::Window { index, count } = event {
                planned.push((index, count));
            }
        })
        .expect("the fake works");
    assert_eq!(outcome.text, found);
    assert!(outcome.windows.len() > 2, "{:?}", outcome.windows);
    assert_eq!(planned.len(), outcome.windows.len());
    assert!(planned.iter().enumerate().all(|(at, (index, count))| at == *index && *count > at));
    // Neighbours share exactly the overlap, the first begins and the last ends the document.
    assert_eq!(outcome.windows[0].first_token, 0);
    for pair in outcome.windows.windows(2) {
        assert_eq!(pair[1].first_token, pair[0].first_token + pair[0].tokens - 50);
    }
    let chosen: Vec<bool> = outcome.windows.iter().map(|window| window.chosen).collect();
    assert_eq!(chosen.iter().filter(|chosen| **chosen).count(), 1);
    let index = chosen.iter().position(|chosen| *chosen).expect("one is chosen");
    assert!(outcome.windows[..index].iter().all(|window| window.text != found));

    let extractor = windowed(&[("filler", nothing)], 0);
    let outcome = extractor.extract(&document).expect("the fake works");
    assert!(outcome.windows[0].chosen, "where nothing was found the first window answers");
    let total: usize = outcome.windows.iter().map(|window| window.tokens).sum();
    let last = outcome.windows.last().expect("there are windows");
    assert_eq!(total, last.first_token + last.tokens, "windows without overlap are disjoint");
}

#[test]
fn an_overlap_that_leaves_no_room_is_an_error() {
    let extractor = windowed(&[], 850);
    let error = extractor.extract(&"word ".repeat(400)).expect_err("the overlap is the window");
    assert_eq!(error.kind(), "window_too_small");
}

#[test]
fn free_text_is_cut_at_the_limit_and_says_so() {
    let engine = Fake::engine(Policy::Script("Hello, the world.".to_owned()));
    let mut request = GenerationRequest::new("Say hello");
    let whole = engine.generate(&request).expect("the fake works");
    assert_eq!((whole.text.as_str(), whole.end), ("Hello, the world.", End::Complete));
    request.max_tokens = 5;
    let cut = engine.generate(&request).expect("the fake works");
    assert_eq!((cut.text.as_str(), cut.end), ("Hello,", End::Truncated));
    assert_eq!(cut.usage.output_tokens, 5);
}

#[test]
fn schemas_that_cannot_be_used_are_told_apart() {
    let engine = Fake::engine(Policy::Random(1));
    for (schema, kind) in [
        ("{", "schema_syntax"),
        ("3", "schema_malformed"),
        (r#"{"type": "integer", "minimum": 3, "maximum": 2}"#, "schema_unsatisfiable"),
    ] {
        let error = engine.extractor(schema).build().expect_err(schema);
        assert_eq!(error.kind(), kind, "{schema}: {error}");
    }
}

#[test]
fn free_answers_are_judged_in_any_json_spelling() {
    let contract = crate::Contract::from_schema(FORECAST).expect("the schema is supported");
    let cases = [
        (ANSWER, Verdict::Valid),
        ("\n {\n  \"names\" : [ ],\n  \"quarter\":1.0e0\n}\n", Verdict::Valid),
        (r#"{"\u0071uarter": null, "names": ["\/"]}"#, Verdict::Valid),
        ("```json\n{}\n```", Verdict::Invalid { pointer: String::new(), offset: 0 }),
        (r#"{"quarter": 5"#, Verdict::Invalid { pointer: "/quarter".to_owned(), offset: 12 }),
        (r#"{"quarter": 1, "names": ["a"#, Verdict::Incomplete { pointer: "/names/0".to_owned() }),
        ("", Verdict::Incomplete { pointer: String::new() }),
    ];
    for (text, expected) in cases {
        assert_eq!(contract.check(text).expect("the schema is small"), expected, "{text}");
    }
}

#[test]
fn a_schema_that_only_the_compiler_can_read_still_makes_a_prompt() {
    let deep = format!(
        "{}{{\"type\": \"null\"}}{}",
        "{\"type\": \"array\", \"items\": ".repeat(150),
        "}".repeat(150)
    );
    let huge = r#"{"type": "object", "properties": {"a": {"type": "number", "minimum": 0, "maximum": 1e400}},
        "required": ["a"]}"#;
    let engine = Fake::engine(Policy::Script(String::new()));
    for (schema, shown) in [(deep.as_str(), "[[[["), (huge, r#"{"a": number >= 0}"#)] {
        let extractor = engine.extractor(schema).build().expect("the schema is supported");
        assert!(extractor.system_message().contains(shown), "{}", extractor.system_message());
    }
}

#[test]
fn formats_are_those_that_types_can_be_read_from_unless_the_standard_is_asked_for() {
    let schema = r#"{"type": "string", "format": "date-time"}"#;
    let answer = r#""2016-12-31t23:59:60z""#;
    let standard = CompileOptions {
        format_profile: FormatProfile::Standard,
        ..Contract::<RawJson>::default_options()
    };
    for (contract, kept) in [
        (Contract::from_schema(schema), false),
        (Contract::from_schema_with(schema, &standard), true),
    ] {
        let contract = contract.expect("the schema is supported");
        // A text that was written freely is judged by the standard in either case.
        assert_eq!(contract.check(answer).expect("small"), Verdict::Valid);
        let engine = Fake::engine(Policy::Script(answer.to_owned()));
        let extractor = engine.extractor_with(contract).build().expect("the schema is supported");
        let outcome = extractor.extract("any document").expect("the fake works");
        assert_eq!(outcome.text == answer, kept, "{}", outcome.text);
    }
}
