//! The classifier on texts with gold labels: accuracy, and how well its probabilities are calibrated.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use molde::Control;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lesson::{Random, load_engine};

/// What is to be classified.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Texts, one JSON object a line: `{"id","text","gold":{"intent"}}`
    #[arg(long, value_name = "FILE")]
    texts: PathBuf,
    /// File with the labels, a JSON array [default: those of the texts]
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Texts to draw; 0 takes all
    #[arg(long, default_value_t = 100)]
    count: usize,
    /// Seed of the draw
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A model of the catalogue, a GGUF file or a folder [default: what is cached]
    #[arg(long, value_name = "ID|PATH")]
    model: Option<String>,
    /// Do not ask the model for its own confidence
    #[arg(long)]
    no_confidence: bool,
    /// Where the results are written
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Example {
    id: Value,
    text: String,
    gold: Gold,
}

#[derive(Deserialize)]
struct Gold {
    intent: String,
}

#[derive(Serialize)]
struct Row {
    id: Value,
    gold: String,
    found: String,
    probability: f64,
    confidence: Option<f64>,
    ms: f64,
}

/// Classifies, and prints what came out.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let texts = draw(read(&arguments.texts)?, arguments.count, arguments.seed);
    let labels: Vec<String> = if let Some(path) = &arguments.labels {
        serde_json::from_str(&std::fs::read_to_string(path)?)
            .with_context(|| format!("{} is no array of labels", path.display()))?
    } else {
        let all: BTreeSet<String> =
            read(&arguments.texts)?.into_iter().map(|text| text.gold.intent).collect();
        all.into_iter().collect()
    };
    for text in &texts {
        ensure!(
            labels.contains(&text.gold.intent),
            "{}: the gold label is none of the labels",
            text.id
        );
    }
    let (model, engine) = load_engine(arguments.model.as_deref(), false)?;
    let classifier =
        engine.classifier(labels.clone()).ask_confidence(!arguments.no_confidence).build()?;
    let mut rows = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        eprint!("\r{}/{} ", index + 1, texts.len());
        let start = std::time::Instant::now();
        let found = classifier.classify(&text.text, &Control::new())?;
        rows.push(Row {
            id: text.id.clone(),
            gold: text.gold.intent.clone(),
            probability: found.probability(),
            confidence: found.confidence,
            found: found.intent,
            ms: start.elapsed().as_secs_f64() * 1000.0,
        });
    }
    eprintln!();
    let right: Vec<bool> = rows.iter().map(|row| row.gold == row.found).collect();
    let hits = right.iter().filter(|right| **right).count();
    println!("{} texts, {} labels, {}", rows.len(), labels.len(), model.id);
    println!("accuracy {:.1} %", 100.0 * hits as f64 / rows.len() as f64);
    let probabilities: Vec<f64> = rows.iter().map(|row| row.probability).collect();
    println!("ECE of the probability {:.3}", calibration_error(&probabilities, &right));
    let confidences: Option<Vec<f64>> = rows.iter().map(|row| row.confidence).collect();
    if let Some(confidences) = confidences {
        println!("ECE of what the model writes {:.3}", calibration_error(&confidences, &right));
    }
    let ms: f64 = rows.iter().map(|row| row.ms).sum();
    println!("{:.0} ms a text", ms / rows.len() as f64);
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&rows)? + "\n")
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<Vec<Example>> {
    let content =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let texts: Vec<Example> = content
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| {
            serde_json::from_str(line)
                .with_context(|| format!("{}, line {}", path.display(), number + 1))
        })
        .collect::<anyhow::Result<_>>()?;
    ensure!(!texts.is_empty(), "{} has no texts", path.display());
    Ok(texts)
}

/// `count` of the texts without repetition, in their order.
fn draw(texts: Vec<Example>, count: usize, seed: u64) -> Vec<Example> {
    if count == 0 || count >= texts.len() {
        return texts;
    }
    let mut random = Random::new(seed);
    let mut chosen = BTreeSet::new();
    while chosen.len() < count {
        chosen.insert(random.below(texts.len()));
    }
    let kept = texts.into_iter().enumerate().filter(|(index, _)| chosen.contains(index));
    kept.map(|(_, text)| text).collect()
}

/// Bins of equal width.
const BINS: usize = 10;

/// Expected calibration error (Naeini and others 2015): over bins of the stated probability, the mean
/// distance between it and the share that is right, weighted by the texts in the bin.
fn calibration_error(stated: &[f64], right: &[bool]) -> f64 {
    let mut bins = vec![(0usize, 0.0, 0usize); BINS];
    for (stated, right) in stated.iter().zip(right) {
        let bin = ((stated * BINS as f64) as usize).min(BINS - 1);
        bins[bin].0 += 1;
        bins[bin].1 += stated;
        bins[bin].2 += usize::from(*right);
    }
    let n = stated.len().max(1) as f64;
    bins.iter().map(|(_, stated, right)| (stated - *right as f64).abs() / n).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calibration_is_the_weighted_distance_of_statement_and_truth() {
        // Four stated at 0.95, of which three are right; one at 0.15, right.
        let stated = [0.95, 0.95, 0.95, 0.95, 0.15];
        let right = [true, true, true, false, true];
        let expected = 0.8 * (0.95 - 0.75) + 0.2 * (1.0 - 0.15);
        assert!((calibration_error(&stated, &right) - expected).abs() < 1e-12);
        assert!(calibration_error(&[1.0, 1.0], &[true, true]).abs() < 1e-12);
        assert!(calibration_error(&[], &[]).abs() < 1e-12);
    }
}
