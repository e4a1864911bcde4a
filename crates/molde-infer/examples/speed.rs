//! Prints how fast a model reads and writes: `cargo run --release --example speed -- MODEL`.
//!
//! The first line of the output is the text, so that a wrong answer shows.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use molde_infer::{GenerateRequest, LoadedModel, Message, ModelOptions, generate};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: speed MODEL")?;
    let started = Instant::now();
    let loaded = LoadedModel::load(Path::new(&path), &ModelOptions::default())?;
    let load_time = started.elapsed();
    let template = loaded.chat_template.as_ref().ok_or("the model has no chat template")?;
    let text = "The committee expects prices to rise by two per cent next year. ".repeat(8);
    let question = format!("{text}\nSummarise this in one sentence.");
    let prompt = template.encode(&loaded.tokenizer, &[Message::user(question)])?;
    let mut cache = loaded.model.new_cache(prompt.len() + 32);
    let request = GenerateRequest::new(prompt, 32);
    let outcome =
        generate(&loaded.model, &loaded.tokenizer, &request, &mut cache, None, &mut |_| {})?;
    let rate = |tokens: usize, time: std::time::Duration| tokens as f64 / time.as_secs_f64();
    let mut lines = vec![outcome.text.replace('\n', " ")];
    lines.push(format!("load     {load_time:.2?}, {} MB", loaded.model.memory_usage() >> 20));
    let (usage, timings) = (outcome.usage, outcome.timings);
    let prefill = rate(usage.prompt_tokens, timings.prefill);
    lines.push(format!("prefill  {} tokens, {prefill:.1} tok/s", usage.prompt_tokens));
    let decode = rate(usage.generated_tokens.saturating_sub(1), timings.decode);
    lines.push(format!("decode   {} tokens, {decode:.1} tok/s", usage.generated_tokens));
    std::io::Write::write_all(&mut std::io::stdout(), (lines.join("\n") + "\n").as_bytes())?;
    Ok(())
}
