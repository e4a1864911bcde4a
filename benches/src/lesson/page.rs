//! One page that a browser opens from disk: no other file, no script, no network.

use std::fmt::Write as _;

use super::figures::{Figure, escape};
use super::record::{MethodResult, Record};
use super::stats::Share;

/// The page of a run.
pub(super) fn page(record: &Record, figures: &[Figure]) -> String {
    let mut body = String::new();
    let mut put = |text: &str| {
        body.push_str(text);
        body.push('\n');
    };
    let (settings, machine) = (&record.settings, &record.machine);
    put("<h1>What constraining buys</h1>");
    put(&format!(
        "<p>{} documents ({}), {} of them with a forecast. Model {} ({}){}. {} threads of {} ({}){}. {}.</p>",
        settings.documents,
        escape(
            &settings
                .file
                .clone()
                .unwrap_or_else(|| format!("generated, seed {}", settings.seed.unwrap_or(0)))
        ),
        settings.with_forecast,
        escape(&record.model.id),
        escape(&record.model.precision),
        record
            .model
            .sha256
            .as_ref()
            .map_or(String::new(), |sum| format!(", SHA-256 {}", escape(sum))),
        machine.threads,
        escape(&machine.processor),
        escape(&machine.instruction_set),
        if machine.optimised {
            ""
        } else {
            "; built with assertions, so times are not those of a release"
        },
        escape(&settings.intervals)
    ));
    put(&table(&record.methods));
    if !record.prompts.is_empty() {
        put("<h2>How much of the schema the model is shown</h2>");
        put(&table(&record.prompts));
    }
    for (name, reason) in &record.not_run {
        put(&format!("<p><strong>{}</strong> was not run: {}</p>", escape(name), escape(reason)));
    }
    if !record.comparisons.is_empty() {
        put("<h2>The same documents, two methods</h2>");
        put(
            "<table><thead><tr><th scope=\"col\">compared</th><th scope=\"col\">difference</th><th scope=\"col\">95 % interval</th><th scope=\"col\">only the first</th><th scope=\"col\">only the second</th><th scope=\"col\">McNemar p</th></tr></thead><tbody>",
        );
        for pair in &record.comparisons {
            put(&format!(
                "<tr><th scope=\"row\">{} against {}, {}</th><td>{:+.1} points</td><td>{:+.1} to {:+.1}</td><td>{}</td><td>{}</td><td>{:.2e}</td></tr>",
                escape(&pair.better),
                escape(&pair.than),
                escape(&pair.of),
                100.0 * pair.difference,
                100.0 * pair.low,
                100.0 * pair.high,
                pair.only_first,
                pair.only_second,
                pair.p
            ));
        }
        put("</tbody></table>");
    }
    for figure in figures {
        put(&format!(
            "<figure>{}<figcaption><strong>{}.</strong> {}</figcaption></figure>",
            figure.svg,
            escape(&figure.title),
            escape(&figure.caption)
        ));
    }
    put("<h2>The instructions</h2>");
    put(&format!("<pre>{}</pre>", escape(&settings.system_message)));
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>What constraining buys</title>\n<style>\n\
         body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff; }}\n\
         table {{ border-collapse: collapse; margin: 1rem 0; }} th, td {{ padding: .3rem .6rem; border-bottom: 1px solid #ccc; text-align: right; }}\n\
         th:first-child, td:first-child {{ text-align: left; }} figure {{ margin: 2rem 0; }} pre {{ white-space: pre-wrap; background: #f5f5f5; padding: 1rem; }}\n\
         </style></head><body>\n{body}</body></html>\n"
    )
}

fn table(methods: &[MethodResult]) -> String {
    let mut text = String::from(
        "<table><thead><tr><th scope=\"col\">method</th><th scope=\"col\">valid</th><th scope=\"col\">correct</th>\
         <th scope=\"col\">found, of those with a forecast</th><th scope=\"col\">bounds in the document</th>\
         <th scope=\"col\">faults</th><th scope=\"col\">calls</th><th scope=\"col\">tokens written</th>\
         <th scope=\"col\">forced</th><th scope=\"col\">ms a document</th><th scope=\"col\">documents a minute</th></tr></thead><tbody>",
    );
    let share = |hits: usize, of: usize, share: &Share| {
        format!("{hits}/{of} ({:.0} to {:.0} %)", 100.0 * share.low, 100.0 * share.high)
    };
    for method in methods {
        let kinds: Vec<String> = method
            .error_kinds
            .iter()
            .map(|(kind, count)| format!("{} {count}", escape(kind)))
            .collect();
        write!(
            text,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{:.0} %</td><td>{}/{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.0}</td><td>{:.1}</td></tr>",
            escape(&method.name),
            share(method.valid, method.n, &method.valid_share),
            share(method.correct, method.n, &method.correct_share),
            100.0 * method.non_null_recall.of_all,
            method.bounds_in_document,
            method.bounds,
            kinds.join(", "),
            method.calls,
            method.output_tokens,
            method.forced_tokens,
            method.ms_per_document,
            method.documents_per_minute
        )
        .expect("a String takes any text");
    }
    text.push_str("</tbody></table>");
    text
}
