//! Reads JSON strings from standard input, one a line, and writes the token ids of each as a JSON
//! list: for comparing the tokenizer with others.
//!
//! ```text
//! cargo run -p molde-infer --example tokenize -- MODEL.gguf < strings.jsonl
//! ```
#![allow(clippy::print_stdout, reason = "what it is for")]

use std::error::Error;
use std::io::BufRead;
use std::path::Path;

use molde_infer::Tokenizer;

fn main() -> Result<(), Box<dyn Error>> {
    let model = std::env::args().nth(1).ok_or("usage: tokenize MODEL")?;
    let tokenizer = Tokenizer::load(Path::new(&model))?;
    for line in std::io::stdin().lock().lines() {
        let text: String = serde_json::from_str(&line?)?;
        println!("{}", serde_json::to_string(&tokenizer.encode_text(&text)?)?);
    }
    Ok(())
}
