//! `molde demo`: three press releases, read freely and under the mask.

use std::io::Write;
use std::time::Duration;

use molde::{Contract, Control, End, Engine, Extractor, GenerationRequest, Language, Verdict};

use crate::args::Demo;
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::model;

/// The form of the answers: the revenue forecast for the next quarter, in millions of USD.
const SCHEMA: &str = include_str!("../demo/prevision.schema.json");

/// The documents, of companies that do not exist: one forecasts in English and in billions, one
/// in Spanish and in millions, one does not forecast.
const DOCUMENTS: [(&str, &str); 3] = [
    ("halden-optics.txt", include_str!("../demo/halden-optics.txt")),
    ("salinas-del-norte.txt", include_str!("../demo/salinas-del-norte.txt")),
    ("brightwell-foods.txt", include_str!("../demo/brightwell-foods.txt")),
];

const INSTRUCTIONS: &str = "Extrae la previsión de ventas del trimestre siguiente.";
const CONVENTIONS: &str =
    "Importes en millones de USD y sin separador de miles (1 billion = 1000).";
const NO_DATA: &str = "Si no hay previsión: null.";

/// Tokens for one answer: twice what the longest valid one of these documents takes.
const MAX_TOKENS: usize = 96;

/// Reads the documents both ways and ends with how many constrained answers are valid.
pub(crate) fn run(args: &Demo, interrupts: &Interrupts) -> Result<Exit, Failure> {
    let contract = Contract::from_schema(SCHEMA)?;
    let engine = model::load(&args.model, interrupts)?;
    let extractor = engine
        .extractor_with(contract.clone())
        .language(Language::Spanish)
        .instructions(INSTRUCTIONS)
        .conventions(CONVENTIONS)
        .no_data(NO_DATA)
        .max_tokens(MAX_TOKENS)
        .build()?;
    let mut output = std::io::stdout().lock();
    writeln!(output, "The instructions, the same for every document and for both ways:\n")?;
    write_indented(&mut output, extractor.system_message())?;
    let mut valid = 0;
    for (index, (name, document)) in DOCUMENTS.iter().enumerate() {
        writeln!(output, "\nDocument {} of {}: {name}\n", index + 1, DOCUMENTS.len())?;
        write_indented(&mut output, document)?;
        let free = free(&engine, extractor.system_message(), document, interrupts)?;
        show(&mut output, "free", &free, &contract)?;
        let constrained = constrained(&extractor, document, interrupts)?;
        valid += usize::from(show(&mut output, "constrained", &constrained, &contract)?);
    }
    writeln!(output, "\n{valid} of {} valid", DOCUMENTS.len())?;
    Ok(if valid == DOCUMENTS.len() { Exit::Success } else { Exit::Failed })
}

struct Answer {
    text: String,
    cut: bool,
    time: Duration,
}

fn free(
    engine: &Engine,
    system: &str,
    document: &str,
    interrupts: &Interrupts,
) -> Result<Answer, Failure> {
    let request = GenerationRequest {
        system: Some(system.to_owned()),
        max_tokens: MAX_TOKENS,
        ..GenerationRequest::new(document)
    };
    let control = Control::new().cancel(&interrupts.work);
    let generation = engine.generate_with(&request, &control, |_| {})?;
    interrupts.check()?;
    Ok(Answer {
        text: generation.text,
        cut: generation.end == End::Truncated,
        time: generation.timings.total,
    })
}

fn constrained(
    extractor: &Extractor,
    document: &str,
    interrupts: &Interrupts,
) -> Result<Answer, Failure> {
    let control = Control::new().cancel(&interrupts.work);
    let outcome = extractor.extract_with(document, &control, |_| {})?;
    interrupts.check()?;
    Ok(Answer { text: outcome.text, cut: false, time: outcome.timings.total })
}

/// Writes one answer, whether it is valid, and why not.
fn show(
    output: &mut impl Write,
    way: &str,
    answer: &Answer,
    contract: &Contract,
) -> Result<bool, Failure> {
    let verdict = contract.check(&answer.text)?;
    let cut = if answer.cut { format!(", cut at {MAX_TOKENS} tokens") } else { String::new() };
    writeln!(
        output,
        "\n  {way}: {}{cut}, {} ms",
        describe(&verdict, &answer.text),
        answer.time.as_millis()
    )?;
    write_indented(output, &answer.text)?;
    Ok(verdict == Verdict::Valid)
}

fn describe(verdict: &Verdict, text: &str) -> String {
    let place =
        |pointer: &str| if pointer.is_empty() { "the root".to_owned() } else { pointer.to_owned() };
    match verdict {
        Verdict::Valid => "valid".to_owned(),
        Verdict::Invalid { pointer, offset } => {
            // The offset does not count white space before the answer.
            let found = text.trim_start().get(*offset..).and_then(|rest| rest.chars().next());
            let found = found
                .map_or_else(String::new, |character| format!(", {character:?} is not allowed"));
            format!("invalid at {}, byte {offset}{found}", place(pointer))
        }
        Verdict::Incomplete { pointer } => format!("invalid, it breaks off in {}", place(pointer)),
        Verdict::Undecided { offset } => {
            format!("not decided within the limits, from byte {offset} on")
        }
    }
}

fn write_indented(output: &mut impl Write, text: &str) -> std::io::Result<()> {
    for line in text.trim().lines() {
        writeln!(output, "    {line}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_schema_is_supported_and_judges_answers() {
        let contract = Contract::from_schema(SCHEMA).expect("the bundled schema is supported");
        let valid = r#"{"trimestre": 4, "anio": 2025, "bajo": 2550, "alto": 2700}"#;
        let fenced = format!("```json\n{valid}\n```");
        for (text, expected) in [
            (valid, "valid"),
            (fenced.as_str(), "invalid at the root, byte 0, '`' is not allowed"),
            (
                r#" {"trimestre": 4, "anio": 2025, "bajo": 0, "alto": 2700}"#,
                "invalid at /bajo, byte 40, ',' is not allowed",
            ),
            (r#"{"trimestre": 4, "anio": 20"#, "invalid, it breaks off in /anio"),
        ] {
            let verdict = contract.check(text).expect("the schema is small");
            assert_eq!(describe(&verdict, text), expected, "{text}");
        }
    }

    #[test]
    fn an_answer_is_shown_with_its_verdict_and_time() {
        let contract = Contract::from_schema(SCHEMA).expect("the bundled schema is supported");
        let answer =
            Answer { text: "no\nidea".to_owned(), cut: true, time: Duration::from_millis(1234) };
        let mut output = Vec::new();
        assert!(!show(&mut output, "free", &answer, &contract).expect("memory can be written to"));
        assert_eq!(
            String::from_utf8(output).expect("text"),
            "\n  free: invalid at the root, byte 0, 'n' is not allowed, cut at 96 tokens, 1234 ms\n    no\n    idea\n"
        );
    }
}
