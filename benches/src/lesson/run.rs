//! Runs the methods.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use molde::{
    AnswerModel, Contract, Control, Counts, Engine, Extractor, FieldRule, Form, Language, Message,
    Method, ModelAnswer, MoldeError, Precision, PromptTemplate, RawJson, Report, Runner, Shown,
};
use molde_hub::{Hub, ModelLayout, ModelRef, NetworkPolicy};
use serde_json::{Value, json};

use super::Arguments;
use super::documents::{Document, Truth};
use super::record::{
    Answer, Machine, MaskView, MethodResult, Model, Record, Settings, Stages, Viewed,
};
use super::stats::{paired, wilson};

/// The contract: quarter, year and range of the revenue forecast. As Pydantic writes it.
pub(crate) const SCHEMA: &str = include_str!("forecast.schema.json");

/// The methods of the table, in its order.
const METHODS: [&str; 7] = [
    "free",
    "retry",
    "repair",
    "constrained",
    "constrained_rules",
    "constrained_grounded",
    "reasoning",
];

/// The prompts that the mask is tried with. `constrained` itself shows the signature.
const PROMPTS: [&str; 2] = ["constrained_no_schema", "constrained_full_schema"];

/// The first field of the method with a text before the data, and its longest text.
const REASONING: (&str, usize) = ("razonamiento", 160);

/// Tokens that such a text may take, beyond those of the data.
const REASONING_TOKENS: usize = 96;

/// The prefix after which the mask is shown.
const VIEW_PREFIX: &str = "{\"trimestre\": ";

fn rules() -> [FieldRule; 2] {
    [FieldRule::all_or_none(["bajo", "alto"]), FieldRule::less_or_equal("bajo", "alto")]
}

pub(crate) fn template(shown: Shown) -> PromptTemplate {
    PromptTemplate::new(Language::Spanish)
        .instructions("Extrae la previsión de ventas del trimestre siguiente.")
        .conventions("Importes en millones de USD, sin separador de miles (1 billion = 1000).")
        .no_data("Sin previsión: null.")
        .field_notes(false)
        .shown(shown)
}

pub(super) fn run(arguments: &Arguments, documents: &[Document]) -> anyhow::Result<Record> {
    let known: Vec<&str> = METHODS.into_iter().chain(PROMPTS).collect();
    let wanted: Vec<&str> = match &arguments.methods {
        None => known.clone(),
        Some(names) => {
            for name in names {
                ensure!(
                    known.contains(&name.as_str()),
                    "no method {name:?}: there are {}",
                    known.join(", ")
                );
            }
            known.iter().copied().filter(|name| names.iter().any(|own| own == name)).collect()
        }
    };
    let (model, engine) = load_engine(arguments.model.as_deref(), arguments.exact)?;
    let mut bench = Bench { arguments, engine, documents, free: None, answers: Vec::new() };
    let mut results: BTreeMap<&str, MethodResult> = BTreeMap::new();
    let mut correct: BTreeMap<&str, Vec<bool>> = BTreeMap::new();
    let mut not_run = BTreeMap::new();
    for name in &wanted {
        match bench.method(name) {
            Ok((result, right)) => {
                results.insert(name, result);
                correct.insert(name, right);
            }
            Err(error) => match error.downcast_ref::<MoldeError>() {
                // What this version cannot enforce is said, and does not end the run.
                Some(MoldeError::Schema(reason)) => {
                    not_run.insert((*name).to_owned(), reason.to_string().replace('\n', " "));
                }
                _ => return Err(error.context(format!("method {name}"))),
            },
        }
    }
    let pairs = [
        ("constrained", "free"),
        ("constrained_rules", "constrained"),
        ("constrained_grounded", "constrained"),
        ("constrained_grounded", "free"),
        ("reasoning", "constrained"),
        ("constrained", "constrained_no_schema"),
        ("constrained", "constrained_full_schema"),
    ];
    let comparisons = pairs
        .iter()
        .filter_map(|(first, second)| {
            Some(paired((first, second), "correct", correct.get(first)?, correct.get(second)?))
        })
        .collect();
    let mask_view = bench.view()?;
    let pick =
        |names: &[&str]| names.iter().filter_map(|name| results.get(name).cloned()).collect();
    Ok(Record {
        settings: Settings {
            documents: documents.len(),
            with_forecast: documents
                .iter()
                .filter(|document| document.truth.bajo.is_some())
                .count(),
            file: arguments.documents.as_ref().map(|path| path.display().to_string()),
            seed: arguments.documents.is_none().then_some(arguments.seed),
            max_tokens: arguments.max_tokens,
            system_message: template(Shown::Signature).system_message(SCHEMA),
            schema: serde_json::from_str(SCHEMA)?,
            rules: rules().iter().map(FieldRule::name).collect(),
            intervals:
                "95 % intervals: Wilson for shares, bootstrap over documents for differences"
                    .to_owned(),
        },
        model,
        machine: machine(),
        methods: pick(&METHODS),
        prompts: pick(&PROMPTS),
        not_run,
        comparisons,
        mask_view,
        answers: bench.answers,
    })
}

struct Bench<'a> {
    arguments: &'a Arguments,
    engine: Engine,
    documents: &'a [Document],
    /// Free answers, which three methods begin with.
    free: Option<Memo>,
    answers: Vec<Answer>,
}

impl Bench<'_> {
    fn method(&mut self, name: &'static str) -> anyhow::Result<(MethodResult, Vec<bool>)> {
        let contract = Contract::from_schema(SCHEMA)?;
        let build =
            |schema: &str, shown: Shown, rules: &[FieldRule], grounded: &[&str], tokens: usize| {
                let contract = Contract::from_schema(schema)?;
                self.engine
                    .extractor_with(contract)
                    .prompt(template(shown))
                    .field_rules(rules.iter().cloned())
                    .grounded_numbers(grounded.iter().copied())
                    .max_tokens(tokens)
                    .build()
            };
        let tokens = self.arguments.max_tokens;
        let (method, extractor) = match name {
            "free" => (Method::free(), build(SCHEMA, Shown::Signature, &[], &[], tokens)?),
            "retry" => (Method::retry(1), build(SCHEMA, Shown::Signature, &[], &[], tokens)?),
            "repair" => {
                (Method::retry(1).with_repair(), build(SCHEMA, Shown::Signature, &[], &[], tokens)?)
            }
            "constrained" => {
                (Method::constrained(), build(SCHEMA, Shown::Signature, &[], &[], tokens)?)
            }
            "constrained_rules" => {
                (Method::constrained(), build(SCHEMA, Shown::Signature, &rules(), &[], tokens)?)
            }
            "constrained_grounded" => (
                Method::constrained(),
                build(SCHEMA, Shown::Signature, &rules(), &["bajo", "alto"], tokens)?,
            ),
            "reasoning" => {
                let schema = molde::add_reasoning_field(SCHEMA, REASONING.0, REASONING.1)?;
                let extractor =
                    build(&schema, Shown::Signature, &[], &[], tokens + REASONING_TOKENS)?;
                (Method::constrained(), extractor)
            }
            "constrained_no_schema" => {
                (Method::constrained(), build(SCHEMA, Shown::Nothing, &[], &[], tokens)?)
            }
            "constrained_full_schema" => {
                (Method::constrained(), build(SCHEMA, Shown::Schema, &[], &[], tokens)?)
            }
            other => bail!("no method {other:?}"),
        };
        let judged = if name == "reasoning" { extractor.contract().clone() } else { contract };
        let mut runner = Runner::new(&judged, method)?.language(Language::Spanish);
        for rule in rules() {
            runner = runner.rule(rule.rule());
        }
        self.measure(name, &runner, &extractor)
    }

    fn measure(
        &mut self,
        name: &str,
        runner: &Runner,
        extractor: &Extractor,
    ) -> anyhow::Result<(MethodResult, Vec<bool>)> {
        let memo = self.free.take().unwrap_or_default();
        let model = Remembering { extractor, memo: &memo };
        let control = Control::new();
        // The instructions are read once for all documents: that is not one document's time.
        extractor.write(&extractor.messages("."), Form::Free, &control).ok();
        let mut tally = Tally::default();
        for (index, document) in self.documents.iter().enumerate() {
            eprint!("\r{name}: {}/{} ", index + 1, self.documents.len());
            std::io::stderr().flush().ok();
            let messages = extractor.messages(&document.text);
            let report = match runner.run(&model, &messages, &document.text, &control) {
                Ok(report) => report,
                Err(error @ MoldeError::NoGroundedValue { .. }) => {
                    tally.failed(document, error.kind());
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let answer = tally.add(name, document, &report);
            self.answers.push(answer);
        }
        eprintln!();
        self.free = Some(memo);
        Ok((tally.result(name), tally.right))
    }

    fn view(&self) -> anyhow::Result<Option<MaskView>> {
        let Some(document) = self.documents.first() else { return Ok(None) };
        let extractor = self
            .engine
            .extractor_with(Contract::from_schema(SCHEMA)?)
            .prompt(template(Shown::Signature))
            .build()?;
        let view = extractor.explain(&document.text, VIEW_PREFIX, 8)?;
        Ok(Some(MaskView {
            document: document.id.clone(),
            prefix: VIEW_PREFIX.to_owned(),
            tokens: view
                .tokens
                .into_iter()
                .map(|token| Viewed {
                    text: token.text,
                    probability: token.probability,
                    allowed: token.allowed,
                })
                .collect(),
            removed: view.removed,
        }))
    }
}

type Memo = RefCell<BTreeMap<Vec<String>, ModelAnswer>>;

/// Answers a free conversation that has been answered before from memory, with the time that it
/// took: three methods begin with the same answer.
struct Remembering<'a> {
    extractor: &'a Extractor,
    memo: &'a Memo,
}

impl AnswerModel for Remembering<'_> {
    fn write(
        &self,
        messages: &[Message],
        form: Form,
        control: &Control,
    ) -> Result<ModelAnswer, MoldeError> {
        if form == Form::Constrained {
            return self.extractor.write(messages, form, control);
        }
        let key: Vec<String> = messages.iter().map(|message| message.content.clone()).collect();
        if let Some(known) = self.memo.borrow().get(&key) {
            return Ok(known.clone());
        }
        let answer = self.extractor.write(messages, form, control)?;
        self.memo.borrow_mut().insert(key, answer.clone());
        Ok(answer)
    }
}

#[derive(Default)]
struct Tally {
    n: usize,
    valid: usize,
    valid_by_schema: usize,
    right: Vec<bool>,
    counts: Counts,
    calls: usize,
    prompt_tokens: usize,
    output_tokens: usize,
    forced_tokens: usize,
    total: Duration,
    read: Duration,
    write: Duration,
    mask: Duration,
    with_forecast: usize,
    found: usize,
    bounds: usize,
    bounds_in_document: usize,
    ungrounded: usize,
}

fn columns(document: &Document) -> Vec<(&str, &str)> {
    let kind = document.kind.as_deref().map(|kind| ("type", kind));
    let language = document.language.as_deref().map(|language| ("language", language));
    kind.into_iter().chain(language).collect()
}

impl Tally {
    fn failed(&mut self, document: &Document, kind: &str) {
        self.n += 1;
        self.counts.add(Some(kind), columns(document));
        self.right.push(false);
        self.with_forecast += usize::from(document.truth.bajo.is_some());
    }

    fn add(&mut self, name: &str, document: &Document, report: &Report<RawJson>) -> Answer {
        let valid = report.is_valid();
        let kind = report.error_kind();
        let json = report.json.clone().filter(|_| valid);
        let value: Option<Value> = json.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let correct = value.as_ref().is_some_and(|value| is_correct(value, &document.truth));
        self.n += 1;
        self.valid += usize::from(valid);
        let rule_only = kind.is_some_and(|kind| kind.starts_with("rule:"));
        self.valid_by_schema += usize::from(valid || rule_only);
        self.right.push(correct);
        self.counts.add(kind, columns(document));
        self.calls += report.calls();
        self.prompt_tokens += report.usage.prompt_tokens;
        self.output_tokens += report.usage.output_tokens;
        self.forced_tokens += report.usage.forced_tokens;
        self.total += report.timings.total;
        self.read += report.timings.prefill;
        self.write += report.timings.decode;
        self.mask += report.timings.mask;
        if let Some(value) = &value {
            let bounds = ["bajo", "alto"].map(|name| value[name].as_f64());
            if document.truth.bajo.is_some() {
                self.found += usize::from(bounds.iter().all(Option::is_some));
            }
            for bound in ["bajo", "alto"].iter().filter(|name| value[**name].is_number()) {
                self.bounds += 1;
                let text = value[*bound].to_string();
                self.bounds_in_document +=
                    usize::from(molde::contains_number(&document.text, &text, "millones de USD"));
            }
        }
        self.with_forecast += usize::from(document.truth.bajo.is_some());
        self.ungrounded += usize::from(report.flag().is_some());
        Answer {
            document: document.id.clone(),
            method: name.to_owned(),
            raw: report.raw().to_owned(),
            json,
            error_kind: kind.map(ToOwned::to_owned),
            correct,
            repairs: report.repairs.iter().map(|repair| json!(repair)).collect(),
            calls: report.calls(),
            ms: report.timings.total.as_secs_f64() * 1000.0,
            truth: document.truth,
        }
    }

    fn result(&self, name: &str) -> MethodResult {
        let n = self.n.max(1) as f64;
        let ms = |time: Duration| time.as_secs_f64() * 1000.0 / n;
        let correct = self.right.iter().filter(|right| **right).count();
        let other = self.total.saturating_sub(self.read + self.write + self.mask);
        let mut error_kinds = self.counts.all.clone();
        error_kinds.remove("valid");
        MethodResult {
            name: name.to_owned(),
            n: self.n,
            valid: self.valid,
            valid_by_schema: self.valid_by_schema,
            correct,
            valid_share: wilson(self.valid, self.n),
            correct_share: wilson(correct, self.n),
            error_kinds,
            counts: self.counts.clone(),
            calls: self.calls,
            prompt_tokens: self.prompt_tokens,
            output_tokens: self.output_tokens,
            forced_tokens: self.forced_tokens,
            ms_per_document: ms(self.total),
            documents_per_minute: 60_000.0 / ms(self.total).max(1e-9),
            stages: Stages {
                read: ms(self.read),
                write: ms(self.write),
                mask: ms(self.mask),
                other: ms(other),
            },
            non_null_recall: wilson(self.found, self.with_forecast),
            bounds: self.bounds,
            bounds_in_document: self.bounds_in_document,
            repair_ungrounded: self.ungrounded,
        }
    }
}

/// Quarter and year exact, bounds within 0.5 %; without a forecast both bounds null.
fn is_correct(value: &Value, truth: &Truth) -> bool {
    let number = |name: &str| value[name].as_f64();
    let (Some(low), Some(high)) = (truth.bajo, truth.alto) else {
        return value["bajo"].is_null() && value["alto"].is_null();
    };
    let near = |found: Option<f64>, expected: f64| {
        found.is_some_and(|found| (found / expected - 1.0).abs() < 0.005)
    };
    number("trimestre") == truth.trimestre.map(f64::from)
        && number("anio") == truth.anio.map(f64::from)
        && near(number("bajo"), low)
        && near(number("alto"), high)
}

/// The model that is named, or one that is cached, and where it came from. Fetches nothing.
pub(crate) fn load_engine(name: Option<&str>, exact: bool) -> anyhow::Result<(Model, Engine)> {
    let hub = Hub::from_env()?;
    let reference = if let Some(text) = name {
        ModelRef::from_text(text, hub.catalog())
    } else {
        let cached = |id: &str| matches!(hub.cached(id), Ok(Some(_)));
        let ids: Vec<String> = hub.status().iter().map(|status| status.model.id.clone()).collect();
        let id = std::iter::once(hub.catalog().default_id().to_owned())
            .chain(ids)
            .find(|id| cached(id))
            .context("no model is cached: run `molde pull` first, or name one with --model")?;
        ModelRef::Catalog(id)
    };
    let files = hub.resolve(
        &reference,
        NetworkPolicy::Offline,
        &mut |_| {},
        &molde_hub::CancelFlag::default(),
    )?;
    let id = files.id.clone();
    let sha256 = match &files.files {
        ModelLayout::Gguf { path } => Some(sha256(path)?),
        _ => None,
    };
    let precision = if exact { Precision::Exact } else { Precision::Native };
    let engine = Engine::builder().files(files).precision(precision).build()?;
    let precision = if exact { "exact" } else { "native" }.to_owned();
    Ok((Model { id, sha256, precision }, engine))
}

fn sha256(path: &Path) -> anyhow::Result<String> {
    use sha2::{Digest, Sha256};
    use std::fmt::Write as _;
    let mut hasher = Sha256::new();
    let mut file = std::fs::File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
    }
    let mut text = String::new();
    for byte in hasher.finalize() {
        write!(text, "{byte:02x}")?;
    }
    Ok(text)
}

fn machine() -> Machine {
    let processor = std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        })
        .unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    Machine {
        processor,
        threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        instruction_set: Engine::instruction_set().to_owned(),
        optimised: !cfg!(debug_assertions),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correct_is_what_the_lesson_calls_correct() {
        let truth =
            Truth { trimestre: Some(4), anio: Some(2024), bajo: Some(7228.0), alto: Some(7648.0) };
        for (value, expected) in [
            (json!({"trimestre": 4, "anio": 2024, "bajo": 7230, "alto": 7650}), true),
            (json!({"trimestre": 4, "anio": 2024, "bajo": 7228.0, "alto": 7700}), false),
            (json!({"trimestre": 3, "anio": 2024, "bajo": 7230, "alto": 7650}), false),
            (json!({"trimestre": 4, "anio": null, "bajo": 7230, "alto": 7650}), false),
            (json!({"trimestre": 4, "anio": 2024, "bajo": 7.23, "alto": 7.65}), false),
            (json!({"trimestre": 4, "anio": 2024, "bajo": null, "alto": null}), false),
        ] {
            assert_eq!(is_correct(&value, &truth), expected, "{value}");
        }
        let none = Truth { trimestre: None, anio: None, bajo: None, alto: None };
        assert!(is_correct(
            &json!({"trimestre": 4, "anio": 2024, "bajo": null, "alto": null}),
            &none
        ));
        assert!(!is_correct(
            &json!({"trimestre": null, "anio": null, "bajo": 1, "alto": null}),
            &none
        ));
    }

    #[test]
    fn the_contract_and_its_prompts_are_supported() {
        assert!(Contract::from_schema(SCHEMA).is_ok());
        let schema = molde::add_reasoning_field(SCHEMA, REASONING.0, REASONING.1).expect("members");
        assert!(Contract::from_schema(&schema).is_ok());
    }
}
