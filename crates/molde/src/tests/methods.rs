//! The methods, with a model that is a script.

use std::sync::Mutex;

use molde_infer::{Message, Role};
use serde_json::{Value, json};

use super::fake::{Fake, Policy};
use crate::{
    AnswerModel, Contract, Control, Counts, End, Fallback, FieldRule, Form, Language, Method,
    ModelAnswer, MoldeError, RawJson, RepairKind, Report, Rule, Runner,
};

const FORECAST: &str = r#"{"type": "object", "additionalProperties": false, "properties": {
    "trimestre": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 4}, {"type": "null"}]},
    "bajo": {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "null"}]},
    "alto": {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "null"}]}},
    "required": ["trimestre", "bajo", "alto"]}"#;

/// Gives its answers one after the other, and keeps what it was asked.
struct Script {
    answers: Vec<Result<&'static str, ()>>,
    asked: Mutex<Vec<(Vec<Message>, Form)>>,
}

impl Script {
    fn new(answers: impl IntoIterator<Item = &'static str>) -> Self {
        Self { answers: answers.into_iter().map(Ok).collect(), asked: Mutex::default() }
    }

    fn asked(&self) -> Vec<(Vec<Message>, Form)> {
        self.asked.lock().expect("no test panics with the lock").clone()
    }
}

impl AnswerModel for Script {
    fn write(
        &self,
        messages: &[Message],
        form: Form,
        _: &Control,
    ) -> Result<ModelAnswer, MoldeError> {
        let mut asked = self.asked.lock().expect("no test panics with the lock");
        asked.push((messages.to_vec(), form));
        match self.answers[(asked.len() - 1).min(self.answers.len() - 1)] {
            Ok(text) => Ok(ModelAnswer::new(text)),
            Err(()) => Err(MoldeError::Model("the service is gone".into())),
        }
    }
}

fn contract() -> Contract {
    Contract::from_schema(FORECAST).expect("the schema is supported")
}

fn turns() -> Vec<Message> {
    vec![Message::system("Extract."), Message::user("The document.")]
}

fn run(runner: &Runner, model: &Script) -> Report<RawJson> {
    runner.run(model, &turns(), "The document.", &Control::new()).expect("the script answers")
}

fn runner(method: Method) -> Runner {
    Runner::new(&contract(), method).expect("the schema is supported")
}

const VALID: &str = r#"{"trimestre": 4, "bajo": 7230, "alto": 7650}"#;
const BROKEN: &str = r#"{"trimestre": 4, "bajo": 7.230,0, "alto": 7650}"#;

#[test]
fn a_free_answer_is_validated_and_nothing_else() {
    let report = run(&runner(Method::free()), &Script::new([VALID]));
    assert!(report.is_valid() && report.fault().is_none() && report.error_kind().is_none());
    assert_eq!(report.json.as_deref(), Some(VALID));
    let script = Script::new([BROKEN, VALID]);
    let report = run(&runner(Method::free()), &script);
    assert!(!report.is_valid() && report.value.is_none());
    assert_eq!(
        (report.error_kind(), report.calls(), report.raw()),
        (Some("json_invalid"), 1, BROKEN)
    );
    assert_eq!(script.asked()[0].1, Form::Free);
}

#[test]
fn a_retry_sends_the_answer_and_its_fault_back_as_turns() {
    let wrong = r#"{"trimestre": 5, "bajo": 1, "alto": 2}"#;
    let script = Script::new([BROKEN, wrong, VALID]);
    let report = run(&runner(Method::retry(2)).language(Language::Spanish), &script);
    assert!(report.is_valid());
    assert_eq!(report.calls(), 3);
    let kinds: Vec<Option<&str>> = report
        .attempts
        .iter()
        .map(|attempt| attempt.fault.as_ref().map(|fault| fault.kind.as_ref()))
        .collect();
    assert_eq!(kinds, [Some("json_invalid"), Some("less_than_equal"), None]);
    let (last, _) = &script.asked()[2];
    let roles: Vec<Role> = last.iter().map(|turn| turn.role).collect();
    let expected =
        [Role::System, Role::User, Role::Assistant, Role::User, Role::Assistant, Role::User];
    assert_eq!(roles, expected);
    assert_eq!(last[2].content, BROKEN);
    let correction = "Error de validación: json_invalid. Corrige y responde solo con el JSON.";
    assert_eq!(last[3].content, correction);
    assert!(last[5].content.contains("less_than_equal /trimestre"), "{}", last[5].content);
}

#[test]
fn retries_end_when_there_are_no_more() {
    let script = Script::new(["null"]);
    let report = run(&runner(Method::retry(3)), &script);
    assert_eq!((report.calls(), report.error_kind()), (4, Some("model_type")));
}

#[test]
fn a_repair_is_tried_after_the_last_answer_and_logged() {
    let report = run(&runner(Method::repair()), &Script::new([BROKEN]));
    assert!(report.is_valid());
    let expected = json!({"trimestre": 4, "bajo": 7230, "alto": 7650});
    let value = report.value.as_ref().expect("repaired").to_value().expect("JSON");
    assert_eq!(value, expected);
    let log = &report.repairs[0];
    assert_eq!((log.kind, log.pointer.as_str()), (RepairKind::NumberForm, "/bajo"));
    assert_eq!((log.before.as_str(), log.after.as_str()), ("7.230,0", "7230"));
    // The document says nothing of 7,230.
    assert_eq!(
        (report.flag(), report.ungrounded),
        (Some("repair_ungrounded"), vec!["/bajo".to_owned()])
    );
    let script = Script::new(["no", BROKEN]);
    let report = run(&runner(Method::repair().with_retries(1)), &script);
    assert!(report.is_valid());
    assert_eq!(report.calls(), 2);
}

#[test]
fn when_all_fails_the_fallback_stands_with_its_reason_and_the_raw_text() {
    let default = r#"{"trimestre": null, "bajo": null, "alto": null}"#;
    let runner = runner(Method::repair()).fallback(default).expect("the fallback is valid");
    let report = run(&runner, &Script::new(["No hay previsión."]));
    assert_eq!(report.json.as_deref(), Some(default));
    assert_eq!(report.fallback.map(Fallback::name), Some("parse_error"));
    assert_eq!((report.raw(), report.error_kind()), ("No hay previsión.", Some("json_invalid")));
    assert!(!report.is_valid(), "a fallback is not the model's value");
    let error = super::methods::runner(Method::free()).fallback("{}").expect_err("not an instance");
    assert_eq!(error.kind(), "invalid_answer");
}

#[test]
fn rules_between_fields_are_checked_last_and_have_names() {
    let runner = runner(Method::free())
        .rule(FieldRule::all_or_none(["bajo", "alto"]).rule())
        .rule(FieldRule::less_or_equal("bajo", "alto").rule())
        .rule(Rule::new("not the third", |value: &Value| value["trimestre"] != json!(3)));
    for (answer, kind) in [
        (VALID, None),
        (r#"{"trimestre": 4, "bajo": 9, "alto": 8}"#, Some("rule:bajo<=alto")),
        (r#"{"trimestre": 3, "bajo": null, "alto": 8}"#, Some("rule:all_or_none(bajo,alto)")),
        (r#"{"trimestre": 3, "bajo": 8, "alto": 8}"#, Some("rule:not the third")),
        (r#"{"trimestre": 3, "bajo": 0, "alto": null}"#, Some("greater_than")),
        (r#"{"trimestre": 4, "bajo": null, "alto": null}"#, None),
    ] {
        let report = run(&runner, &Script::new([answer]));
        assert_eq!(report.error_kind(), kind, "{answer}");
    }
}

#[test]
fn a_rule_about_a_field_that_is_not_there_is_an_error() {
    let error = FieldRule::add_to(FORECAST, &[FieldRule::less_or_equal("bajo", "high")])
        .expect_err("there is no such field");
    assert!(matches!(&error, MoldeError::UnknownField { field } if field == "high"), "{error}");
    assert!(FieldRule::add_to("{", &[FieldRule::less_or_equal("a", "b")]).is_err());
}

#[test]
fn all_or_none_can_be_part_of_the_schema() {
    let schema = FieldRule::add_to(FORECAST, &[FieldRule::all_or_none(["bajo", "alto"])])
        .expect("the fields are declared");
    let contract = Contract::from_schema(&schema).expect("the rule can be enforced");
    for (text, valid) in [
        (VALID, true),
        (r#"{"trimestre": 4, "bajo": null, "alto": null}"#, true),
        (r#"{"trimestre": 4, "bajo": null, "alto": 1}"#, false),
        (r#"{"trimestre": 4, "bajo": 1, "alto": null}"#, false),
    ] {
        let verdict = contract.check(text).expect("small");
        assert_eq!(verdict == crate::Verdict::Valid, valid, "{text}: {verdict:?}");
    }
}

#[test]
fn what_keeps_the_model_from_answering_is_an_error() {
    let script = Script { answers: vec![Err(())], asked: Mutex::default() };
    let error = runner(Method::free())
        .run(&script, &turns(), "", &Control::new())
        .expect_err("the service is gone");
    assert_eq!(error.kind(), "model");
}

#[test]
fn an_extractor_is_a_model_for_every_method() {
    let engine = Fake::engine(Policy::Script(BROKEN.to_owned()));
    let extractor = engine.extractor(FORECAST).build().expect("the schema is supported");
    let messages = extractor.messages("The document.");
    let free = extractor.write(&messages, Form::Free, &Control::new()).expect("the fake works");
    assert_eq!((free.text.as_str(), &free.end), (BROKEN, &End::Complete));
    let report = runner(Method::constrained())
        .run(&extractor, &messages, "The document.", &Control::new())
        .expect("the fake works");
    assert!(report.is_valid(), "{report:?}");
    assert_eq!(report.calls(), 1);
}

#[test]
fn examples_are_turns_before_the_document_and_must_be_valid() {
    let engine = Fake::engine(Policy::Script(VALID.to_owned()));
    let extractor = engine
        .extractor(FORECAST)
        .example("First.", VALID)
        .example("Second.", r#"{"trimestre": null, "bajo": null, "alto": null}"#)
        .build()
        .expect("the examples are valid");
    let roles: Vec<Role> = extractor.messages("x").iter().map(|turn| turn.role).collect();
    use Role::{Assistant, System, User};
    assert_eq!(roles, [System, User, Assistant, User, Assistant, User]);
    assert_eq!(extractor.extract("x").expect("the fake works").text, VALID);
    let error = engine.extractor(FORECAST).example("x", "{}").build().expect_err("not valid");
    assert_eq!(error.kind(), "invalid_answer");
}

#[test]
fn faults_are_counted_by_any_column() {
    let mut counts = Counts::default();
    counts.add(None, [("type", "8-K"), ("language", "en")]);
    counts.add(Some("greater_than"), [("type", "8-K"), ("language", "en")]);
    counts.add(Some("greater_than"), [("type", "HR"), ("language", "es")]);
    assert_eq!((counts.total(), counts.valid()), (3, 1));
    assert_eq!(counts.all["greater_than"], 2);
    assert_eq!(counts.by["type"]["HR"].get("valid"), None);
    assert_eq!(counts.by["language"]["en"]["valid"], 1);
}
