//! The speed of the model: reading prompts, writing tokens, alone and in batches, beside what the
//! machine could do at best, and beside candle's own quantized Qwen2.
//!
//! Every number is the best of short runs, since other processes can only slow them down; with
//! one thread it is processor time. Logits of a batch and of some rows are compared with those
//! computed alone, bit for bit.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::ValueEnum;
use molde_infer::{Feed, LoadedModel, Model, ModelOptions, Workspace};
use molde_vocab::TokenId;
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::{candle, machine, memory, model};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A GGUF file, a model folder, or an id of the catalogue that is cached.
    #[arg(long, default_value = "qwen2.5-coder-0.5b-instruct-q4_k_m")]
    model: String,
    /// Threads of the model; 0: all cores.
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Seconds to spend on each number.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Measures another implementation on the same file in the same run.
    #[arg(long)]
    baseline: Option<Baseline>,
    /// Writes the numbers as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Baseline {
    /// `quantized_qwen2` of candle-transformers; GGUF files only.
    Candle,
}

/// Prompts whose reading is timed, in tokens.
const PROMPTS: [usize; 2] = [128, 512];
/// Sequences that decode at once.
const BATCHES: [usize; 4] = [1, 4, 8, 16];
/// Tokens in the caches while decoding is timed.
const CONTEXT: usize = 128;
/// Steps of one timed run of decoding.
const STEPS: usize = 8;
/// Tokens that a mask leaves.
const FEW: usize = 16;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let path = model::locate(&arguments.model)?;
    let threads = std::num::NonZeroUsize::new(arguments.threads);
    let options = ModelOptions { threads, ..ModelOptions::default() };
    let cores = threads.map_or_else(cores, std::num::NonZeroUsize::get);
    let clock = Clock::new(arguments.seconds, cores);
    let started = Instant::now();
    let loaded = LoadedModel::load(&path, &options)?;
    let load_s = started.elapsed().as_secs_f64();
    let bench = Bench { model: &loaded.model, clock, text: text(&loaded)? };
    let rss_after_load = memory::peak_bytes();
    bench.first_token()?;
    let first_token_s = started.elapsed().as_secs_f64();
    println!("{}", path.display());
    println!("load {load_s:.2} s, first token after {first_token_s:.2} s");

    let bandwidth = machine::bandwidth_gb_s(cores, clock)?;
    let rate = machine::int8_gmac_s(cores, clock)?;
    println!(
        "{}, {cores} threads: read {bandwidth:.1} GB/s, int8 {rate:.0} G multiply-adds/s",
        clock.name()
    );

    let mut prefill = serde_json::Map::new();
    for tokens in PROMPTS {
        let speed = bench.prefill(tokens)?;
        println!("prefill {tokens:>4}      {speed:>7.1} tokens/s");
        prefill.insert(tokens.to_string(), json!(speed));
    }
    bench.check()?;
    let decode = [
        ("full", bench.decode(1, Kind::Full)?),
        ("few", bench.decode(1, Kind::Few)?),
        ("forced", bench.forced()?),
    ];
    let layers = loaded.model.layer_memory_usage() as f64;
    let head = loaded.model.head_memory_usage() as f64;
    for (name, speed) in decode {
        let read = if name == "full" { layers + head } else { layers };
        let steps = if name == "forced" { speed / FEW as f64 } else { speed };
        println!(
            "decode {name:<6}     {speed:>7.1} tokens/s, {:.0} MB a step, {:.0} % of the bandwidth",
            read / 1e6,
            read * steps / 1e7 / bandwidth
        );
    }
    let mut batches = serde_json::Map::new();
    for sequences in BATCHES {
        let speed = bench.decode(sequences, Kind::Full)?;
        println!("batch {sequences:>2}          {speed:>7.1} tokens/s");
        batches.insert(sequences.to_string(), json!(speed));
    }
    let mut report = json!({
        "model": arguments.model,
        "threads": cores,
        "clock": clock.name(),
        "prefill_tok_s": prefill,
        "decode_tok_s": decode.map(|(name, speed)| (name.to_owned(), json!(speed)))
            .into_iter().collect::<serde_json::Map<_, _>>(),
        "batch_tok_s": batches,
        "load_s": load_s,
        "first_token_s": first_token_s,
        "weights_mb": loaded.model.memory_usage() as f64 / 1e6,
        "layers_mb": layers / 1e6,
        "head_mb": head / 1e6,
        "bandwidth_gb_s": bandwidth,
        "int8_gmac_s": rate,
    });
    if let (Some(peak), Some(after_load)) = (memory::peak_bytes(), rss_after_load) {
        println!("peak memory {} MB, {} MB after loading", peak >> 20, after_load >> 20);
        report["rss_mb"] = json!(peak as f64 / f64::from(1 << 20));
        report["rss_after_load_mb"] = json!(after_load as f64 / f64::from(1 << 20));
    }
    if let Some(Baseline::Candle) = arguments.baseline {
        report["baseline"] = baseline(&path, &bench, &report)?;
    }
    if let Some(to) = &arguments.json {
        std::fs::write(to, format!("{report:#}\n"))
            .with_context(|| format!("cannot write {}", to.display()))?;
    }
    Ok(())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

/// Candle's numbers, and the ratios of ours to them.
fn baseline(path: &std::path::Path, bench: &Bench<'_>, ours: &Value) -> anyhow::Result<Value> {
    let mut peer = candle::Candle::load(path)?;
    let mut prefill = serde_json::Map::new();
    for tokens in PROMPTS {
        let speed = tokens as f64
            / bench.clock.seconds(|| peer.forward(&bench.text[..tokens], 0).map(|_| ()))?;
        let ratio = ours["prefill_tok_s"][tokens.to_string()].as_f64().unwrap_or(0.0) / speed;
        println!("candle prefill {tokens:>4} {speed:>6.1} tokens/s: ours {ratio:.2} x");
        prefill.insert(tokens.to_string(), json!(speed));
    }
    let peer = std::cell::RefCell::new(peer);
    let seconds = bench.clock.seconds_after(
        || peer.borrow_mut().forward(&bench.text[..CONTEXT], 0).map(|_| ()),
        |()| {
            (0..STEPS).try_for_each(|step| {
                let token = bench.text[CONTEXT + step];
                peer.borrow_mut().forward(&[token], CONTEXT + step).map(|_| ())
            })
        },
    )?;
    let speed = STEPS as f64 / seconds;
    let ratio = ours["decode_tok_s"]["full"].as_f64().unwrap_or(0.0) / speed;
    println!("candle decode       {speed:>6.1} tokens/s: ours {ratio:.2} x");
    Ok(json!({
        "name": "candle-transformers quantized_qwen2",
        "prefill_tok_s": prefill,
        "decode_tok_s": { "full": speed },
    }))
}

/// The tokens of a text that goes on long enough.
fn text(loaded: &LoadedModel) -> anyhow::Result<Vec<TokenId>> {
    let mut text = String::new();
    let mut number = 17_u32;
    while text.len() < 40 * PROMPTS[1] {
        number = number.wrapping_mul(1_103_515_245).wrapping_add(12345);
        let (revenue, share) = (number >> 16 & 0xfff, number >> 28);
        write!(
            text,
            "For the quarter we expect revenue between {revenue} and {} million dollars, and a \
             share of {share} percent from services. ",
            revenue + share
        )?;
    }
    Ok(loaded.tokenizer.encode_text(&text)?)
}

#[derive(Clone, Copy)]
enum Kind {
    Full,
    Few,
}

struct Bench<'m> {
    model: &'m Model,
    clock: Clock,
    text: Vec<TokenId>,
}

impl Bench<'_> {
    fn first_token(&self) -> anyhow::Result<()> {
        self.model.forward(&self.text[..16], &mut self.model.new_cache(16))?;
        Ok(())
    }

    /// Tokens read in a second, with the logits after the last.
    fn prefill(&self, tokens: usize) -> anyhow::Result<f64> {
        let seconds = self.clock.seconds(|| {
            let mut cache = self.model.new_cache(tokens);
            self.model.forward(&self.text[..tokens], &mut cache)?;
            Ok(())
        })?;
        Ok(tokens as f64 / seconds)
    }

    /// Sequences that have read different texts of the same length.
    fn feeds(&self, sequences: usize) -> anyhow::Result<Vec<Feed>> {
        let feed = |index: usize| {
            let mut cache = self.model.new_cache(CONTEXT + STEPS + FEW);
            let mut text = self.text[..CONTEXT].to_vec();
            text.rotate_left(index);
            self.model.prefill(&text, &mut cache, &molde_infer::Interrupt::default())?;
            Ok(Feed::new(cache))
        };
        (0..sequences).map(feed).collect()
    }

    /// Some tokens, spread over the vocabulary.
    fn few(&self) -> Vec<TokenId> {
        let stride = self.model.vocabulary_len() / FEW;
        (0..FEW).map(|index| (index * stride + index) as TokenId).collect()
    }

    /// One step of every sequence.
    fn step(
        &self,
        feeds: &mut [Feed],
        work: &mut Workspace,
        step: usize,
        kind: Kind,
    ) -> anyhow::Result<()> {
        for (index, feed) in feeds.iter_mut().enumerate() {
            feed.clear();
            feed.push(&[self.text[CONTEXT + step + index]]);
            match kind {
                Kind::Full => feed.want_all(),
                Kind::Few => feed.want_rows(&self.few()),
            }
        }
        Ok(self.model.step(feeds, work)?)
    }

    /// Tokens of all sequences in a second.
    fn decode(&self, sequences: usize, kind: Kind) -> anyhow::Result<f64> {
        let mut feeds = self.feeds(sequences)?;
        let mut work = self.model.new_workspace();
        let seconds = self.clock.seconds(|| {
            for feed in &mut feeds {
                feed.cache.truncate(CONTEXT);
            }
            (0..STEPS).try_for_each(|step| self.step(&mut feeds, &mut work, step, kind))
        })?;
        Ok((sequences * STEPS) as f64 / seconds)
    }

    /// Tokens of a forced run in a second, the choice after it among few tokens included.
    fn forced(&self) -> anyhow::Result<f64> {
        let mut feeds = self.feeds(1)?;
        let mut work = self.model.new_workspace();
        let few = self.few();
        let seconds = self.clock.seconds(|| {
            for feed in &mut feeds {
                feed.cache.truncate(CONTEXT);
                feed.clear();
                feed.push(&self.text[CONTEXT..CONTEXT + FEW]);
                feed.want_rows(&few);
            }
            Ok(self.model.step(&mut feeds, &mut work)?)
        })?;
        Ok(FEW as f64 / seconds)
    }

    /// That the ways that are timed compute the same bits.
    fn check(&self) -> anyhow::Result<()> {
        let largest = BATCHES[BATCHES.len() - 1];
        let mut together = self.feeds(largest)?;
        let mut work = self.model.new_workspace();
        self.step(&mut together, &mut work, 0, Kind::Full)?;
        let few = self.few();
        for (index, feed) in together.into_iter().enumerate() {
            let mut alone = Feed::new(feed.cache.prefix(CONTEXT, CONTEXT + 1));
            alone.push(&[self.text[CONTEXT + index]]);
            alone.want_rows(&few);
            let mut own = self.model.new_workspace();
            self.model.step(std::slice::from_mut(&mut alone), &mut own)?;
            let all = work.logits(index, 0);
            let expected: Vec<u32> = few.iter().map(|&id| all[id as usize].to_bits()).collect();
            let got: Vec<u32> = own.logits(0, 0).iter().map(|logit| logit.to_bits()).collect();
            ensure!(got == expected, "sequence {index} has other logits alone than in a batch");
        }
        Ok(())
    }
}
