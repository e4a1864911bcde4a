//! Reads JSON lines `{"id", "schema": text, "tests": [{"valid", "text"}]}` from standard input,
//! writes one line for each schema that does not do what its tests say, and totals.
#![allow(clippy::print_stdout, missing_docs)]

use std::io::BufRead;
use std::sync::Arc;
use std::time::Instant;

use molde_schema::{
    CompileOptions, CompiledSchema, DEAD, Escapes, NumberStyle, Order, SchemaAutomaton, SchemaError,
};

fn accepts(automaton: &mut SchemaAutomaton, text: &[u8]) -> Result<(), usize> {
    let mut state = automaton.start();
    for (at, &byte) in text.iter().enumerate() {
        state = automaton.step(state, byte);
        if state == DEAD || state == molde_schema::UNDECIDED {
            return Err(at);
        }
        if matches!(byte, b'"') {
            state = automaton.settle(state, &text[..=at]);
        }
    }
    if automaton.is_accepting(state) { Ok(()) } else { Err(text.len()) }
}

fn main() {
    let options = CompileOptions {
        order: Order::Any,
        number_style: NumberStyle::Any,
        escapes: Escapes::Any,
        ..CompileOptions::default()
    };
    let (mut pass, mut refused, mut limit, mut unsat, mut wrong) = (0, 0, 0, 0, 0);
    let mut slow = Vec::new();
    for line in std::io::stdin().lock().lines() {
        let line: serde_json::Value =
            serde_json::from_str(&line.expect("readable")).expect("a JSON line");
        let id = line["id"].as_str().unwrap_or("");
        let begin = Instant::now();
        let schema = CompiledSchema::compile(line["schema"].as_str().unwrap_or(""), &options);
        let compiled = begin.elapsed();
        let schema = match schema {
            Ok(schema) => Arc::new(schema),
            Err(SchemaError::Limit { name, pointer, .. }) => {
                println!("limit {id}: {name} at {pointer}");
                limit += 1;
                continue;
            }
            Err(SchemaError::Unsatisfiable { .. }) => {
                println!("unsatisfiable {id}");
                unsat += 1;
                continue;
            }
            Err(SchemaError::Refused(offenders)) => {
                for offender in offenders.0.iter().take(2) {
                    println!("refused {}: {} {id}", offender.keyword, offender.reason);
                }
                refused += 1;
                continue;
            }
            Err(error) => {
                println!("error {id}: {error}");
                refused += 1;
                continue;
            }
        };
        let mut ok = true;
        for test in line["tests"].as_array().into_iter().flatten() {
            let text = test["text"].as_str().unwrap_or("");
            let valid = test["valid"] == true;
            let mut automaton = SchemaAutomaton::new(&schema);
            let result = accepts(&mut automaton, text.as_bytes());
            if result.is_ok() != valid {
                ok = false;
                let at = result.err().unwrap_or(0);
                let from = (0..=at.saturating_sub(30))
                    .rev()
                    .find(|&i| text.is_char_boundary(i))
                    .unwrap_or(0);
                let to = (at + 10..)
                    .find(|&i| i >= text.len() || text.is_char_boundary(i))
                    .unwrap_or(text.len())
                    .min(text.len());
                println!(
                    "{} {id}: byte {at} …{}… {}",
                    if valid { "valid rejected" } else { "invalid accepted" },
                    &text[from..to],
                    automaton.last_limit().unwrap_or_default(),
                );
            }
        }
        slow.push((begin.elapsed(), compiled, id.to_owned()));
        if ok { pass += 1 } else { wrong += 1 }
    }
    slow.sort();
    slow.reverse();
    for (total, compiled, id) in slow.iter().take(5) {
        println!("slow {total:?} (compile {compiled:?}) {id}");
    }
    println!("pass {pass} refused {refused} limit {limit} unsatisfiable {unsat} wrong {wrong}");
}
