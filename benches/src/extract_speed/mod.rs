//! How long an extraction takes: the lesson's form and prompt on some documents, freely and under
//! the mask, one at a time and several at once, beside any server with OpenAI's interface.
//!
//! One document is read before anything is timed, by each of the two, so that the shared prompt has been
//! read and the first masks are there, as in a run over many documents. Under the mask every
//! answer is checked against the schema, and those of several at once with those of one at a time.

mod server;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use molde::{AnswerModel as _, Contract, Control, Extractor, Form, Timings, Usage};
use serde_json::{Value, json};

use crate::lesson::{SCHEMA, documents, load_engine, template};
use server::Server;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A model of the catalogue, a GGUF file or a folder [default: what is cached]
    #[arg(long, value_name = "ID|PATH")]
    model: Option<String>,
    /// Documents, one JSON object a line, as those of `lesson` [default: generated]
    #[arg(long, value_name = "FILE.jsonl")]
    documents: Option<PathBuf>,
    /// Documents to generate
    #[arg(long, default_value_t = 20, conflicts_with = "documents")]
    count: usize,
    /// How many at the same time, between commas
    #[arg(long, value_delimiter = ',', default_values_t = [NonZeroUsize::MIN, NonZeroUsize::new(8).expect("8 is not zero")])]
    concurrency: Vec<NonZeroUsize>,
    /// Rounds over all documents; the fastest counts
    #[arg(long, default_value_t = NonZeroUsize::new(2).expect("2 is not zero"))]
    rounds: NonZeroUsize,
    /// Tokens of one answer
    #[arg(long, default_value_t = 64)]
    max_tokens: usize,
    /// A server that answers the same requests in the same run, such as `http://127.0.0.1:8081`
    #[arg(long, value_name = "URL")]
    openai: Option<String>,
    /// Writes the numbers as JSON
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
}

/// One answer and what it cost.
#[derive(Debug)]
struct Answer {
    text: String,
    usage: Usage,
    timings: Timings,
}

/// All documents, in one way.
#[derive(Debug)]
struct Round {
    elapsed: Duration,
    answers: Vec<Answer>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let documents = match &arguments.documents {
        Some(path) => documents::read(path)?,
        None => documents::generate(arguments.count, 1),
    };
    let texts: Vec<&str> = documents.iter().map(|document| document.text.as_str()).collect();
    ensure!(!texts.is_empty(), "there are no documents");
    let (model, engine) = load_engine(arguments.model.as_deref(), false)?;
    let extractor = engine
        .extractor_with(Contract::from_schema(SCHEMA)?)
        .prompt(template(molde::Shown::Signature))
        .max_tokens(arguments.max_tokens)
        .build()?;
    let server = arguments.openai.as_deref().map(Server::new);
    let ways = [("free", Form::Free), ("constrained", Form::Constrained)];
    let mut report = json!({ "model": model.id, "documents": texts.len() });
    println!("{}, {} documents of the lesson, milliseconds a document", model.id, texts.len());
    let mut alone: Vec<Vec<String>> = Vec::new();
    for &concurrency in &arguments.concurrency {
        for (index, &(name, form)) in ways.iter().enumerate() {
            let ours =
                |text: &str| -> anyhow::Result<Answer> { own_answer(&extractor, text, form) };
            let theirs = |text: &str| -> anyhow::Result<Answer> {
                let server = server.as_ref().context("there is no server")?;
                server.answer(&extractor.messages(text), form, SCHEMA, arguments.max_tokens)
            };
            ours(texts[0])?;
            if server.is_some() {
                theirs(texts[0])?;
            }
            let (mut own, mut peer): (Option<Round>, Option<Round>) = (None, None);
            for _ in 0..arguments.rounds.get() {
                keep_faster(&mut own, round(&texts, concurrency, ours)?);
                if server.is_some() {
                    keep_faster(&mut peer, round(&texts, concurrency, theirs)?);
                }
            }
            let own = own.context("there is a round")?;
            check(&own, form, &mut alone, index)?;
            let mut entry = own.report();
            println!("{}", own.line(&format!("molde {name}, {concurrency} at once")));
            if let Some(peer) = peer {
                let ratio = peer.elapsed.as_secs_f64() / own.elapsed.as_secs_f64();
                println!("{}: ours {ratio:.2} x", peer.line("  the server"));
                let valid = peer.valid()?;
                println!("  {valid} of {} answers of the server fit the schema", texts.len());
                entry["server"] = peer.report();
                entry["server"]["valid"] = json!(valid);
                entry["ratio"] = json!(ratio);
            }
            report[name][concurrency.to_string()] = entry;
        }
    }
    for concurrency in &arguments.concurrency {
        let ms = |name: &str| report[name][concurrency.to_string()]["ms_per_document"].as_f64();
        if let (Some(free), Some(constrained)) = (ms("free"), ms("constrained")) {
            println!("{concurrency} at once: constrained takes {:.2} of free", constrained / free);
        }
    }
    if let Some(path) = &arguments.json {
        std::fs::write(path, format!("{report:#}\n"))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn own_answer(extractor: &Extractor, text: &str, form: Form) -> anyhow::Result<Answer> {
    let answer = extractor.write(&extractor.messages(text), form, &Control::new())?;
    Ok(Answer { text: answer.text, usage: answer.usage, timings: answer.timings })
}

/// Has all documents answered, `concurrency` at a time.
fn round(
    texts: &[&str],
    concurrency: NonZeroUsize,
    answer: impl Fn(&str) -> anyhow::Result<Answer> + Sync,
) -> anyhow::Result<Round> {
    let started = Instant::now();
    let next = AtomicUsize::new(0);
    let work = || -> anyhow::Result<Vec<(usize, Answer)>> {
        let mut own = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(text) = texts.get(index) else { return Ok(own) };
            own.push((index, answer(text)?));
        }
    };
    let mut answers = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..concurrency.get()).map(|_| scope.spawn(work)).collect();
        let mut answers = Vec::new();
        for thread in threads {
            let own = thread.join().map_err(|_| anyhow::anyhow!("a thread has panicked"))??;
            answers.extend(own);
        }
        anyhow::Ok(answers)
    })?;
    let elapsed = started.elapsed();
    answers.sort_by_key(|(index, _)| *index);
    Ok(Round { elapsed, answers: answers.into_iter().map(|(_, answer)| answer).collect() })
}

fn keep_faster(best: &mut Option<Round>, round: Round) {
    if best.as_ref().is_none_or(|best| round.elapsed < best.elapsed) {
        *best = Some(round);
    }
}

/// That constrained answers fit the schema, and that all are what they are one at a time.
fn check(
    round: &Round,
    form: Form,
    alone: &mut Vec<Vec<String>>,
    way: usize,
) -> anyhow::Result<()> {
    let texts: Vec<String> = round.answers.iter().map(|answer| answer.text.clone()).collect();
    if form == Form::Constrained {
        let valid = round.valid()?;
        ensure!(valid == texts.len(), "{valid} of {} constrained answers are valid", texts.len());
    }
    match alone.get(way) {
        Some(expected) => ensure!(*expected == texts, "answers depend on how many are written"),
        None => alone.push(texts),
    }
    Ok(())
}

impl Round {
    fn milliseconds(&self) -> f64 {
        self.elapsed.as_secs_f64() * 1e3 / self.answers.len() as f64
    }

    /// Answers that are instances of the schema.
    fn valid(&self) -> anyhow::Result<usize> {
        let schema: Value = serde_json::from_str(SCHEMA)?;
        let validator = jsonschema::validator_for(&schema)?;
        let is_valid = |answer: &&Answer| {
            serde_json::from_str(&answer.text).is_ok_and(|value: Value| validator.is_valid(&value))
        };
        Ok(self.answers.iter().filter(is_valid).count())
    }

    fn sum(&self, of: impl Fn(&Answer) -> usize) -> usize {
        self.answers.iter().map(of).sum()
    }

    /// The share of the answers' own time that something took. Steps that several share count for
    /// each of them, as their waiting does.
    fn share(&self, of: impl Fn(&Timings) -> Duration) -> f64 {
        let total: f64 = self.answers.iter().map(|answer| answer.timings.total.as_secs_f64()).sum();
        let part: f64 = self.answers.iter().map(|answer| of(&answer.timings).as_secs_f64()).sum();
        if total > 0.0 { part / total } else { 0.0 }
    }

    fn line(&self, name: &str) -> String {
        let milliseconds = self.milliseconds();
        format!("{name}: {milliseconds:.0} ms, {:.1} documents a minute", 6e4 / milliseconds)
    }

    fn report(&self) -> Value {
        let head = self.share(|timings| timings.head);
        let model = self.share(|timings| timings.prefill + timings.decode);
        let mask = self.share(|timings| timings.mask);
        let prefill = self.share(|timings| timings.prefill);
        json!({
            "ms_per_document": self.milliseconds(),
            "documents_per_minute": 6e4 / self.milliseconds(),
            "tokens": {
                "prompt": self.sum(|answer| answer.usage.prompt_tokens),
                "cached": self.sum(|answer| answer.usage.cached_prompt_tokens),
                "written": self.sum(|answer| answer.usage.output_tokens),
                "forced": self.sum(|answer| answer.usage.forced_tokens),
                "chosen": self.sum(|answer| {
                    answer.usage.output_tokens - answer.usage.forced_tokens
                }),
                // Choices are greedy.
                "sampled": 0,
            },
            "time_shares": {
                "prefill": prefill,
                "decode": model - prefill,
                "head_within_both": head,
                "mask": mask,
                "tokenizer_waiting_and_rest": (1.0 - model - mask).max(0.0),
            },
        })
    }
}
