//! `molde lint`: what becomes of every keyword of a schema.

use std::io::Write;

use molde_schema::{CompileOptions, Dialect, Lint, Occurrence, Offenders, SchemaError, Verdict};
use serde_json::{Value, json};

use crate::args;
use crate::documents::read_argument;
use crate::failure::{Exit, Failure};
use crate::progress::{printable, say};
use crate::registry;

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    pointer: String,
    keyword: String,
    verdict: &'static str,
    reason: String,
}

/// Prints the table, also where the schema cannot be used.
pub(crate) fn run(args: &args::Lint) -> Result<Exit, Failure> {
    let text = read_argument(&args.schema)?;
    let registry = registry::load(&args.meaning.registry, &text)?;
    let options =
        CompileOptions { formats: args.meaning.formats.into(), ..CompileOptions::default() };
    let lint = Lint::new(&text, &registry, &options);
    let mut rows = rows(&lint);
    if lint.outcome.is_ok() {
        rows.extend(closing(&text));
        rows.sort_by(|a, b| a.pointer.cmp(&b.pointer));
    }
    let mut output = std::io::stdout().lock();
    if args.json {
        writeln!(output, "{}", as_json(&lint, &rows))?;
    } else {
        write_table(&mut output, &rows)?;
    }
    output.flush()?;
    let Err(error) = &lint.outcome else { return Ok(Exit::Success) };
    let message = match error {
        // The table has the rest.
        SchemaError::Refused(list) => format!("{} cannot be enforced", keywords(list)),
        SchemaError::Malformed(list) => format!("not a schema: {} malformed", keywords(list)),
        other => other.to_string(),
    };
    say(&format!("{}: {message}", args.schema.display()));
    Ok(Exit::Usage)
}

fn keywords(list: &Offenders) -> String {
    match list.0.len() {
        1 => "1 keyword".to_owned(),
        many => format!("{many} keywords"),
    }
}

/// What became of each keyword, by pointer. What the error names replaces the verdict.
fn rows(lint: &Lint) -> Vec<Row> {
    let (list, verdict) = match &lint.outcome {
        Err(SchemaError::Refused(list)) => (list.0.as_slice(), "refused"),
        Err(SchemaError::Malformed(list)) => (list.0.as_slice(), "malformed"),
        _ => (&[][..], ""),
    };
    let mut rows: Vec<Row> = list
        .iter()
        .map(|offender| Row {
            pointer: offender.pointer.clone(),
            keyword: offender.keyword.clone(),
            verdict,
            reason: offender.reason.clone(),
        })
        .collect();
    let others = lint
        .occurrences
        .iter()
        .filter(|occurrence| !list.iter().any(|offender| offender.pointer == occurrence.pointer));
    rows.extend(others.map(|Occurrence { pointer, keyword, verdict }| {
        let (verdict, reason) = match verdict {
            Verdict::Enforced => ("enforced", ""),
            Verdict::EnforcedWithData => ("enforced", "with `$data`"),
            Verdict::Subset(reason) => ("subset", *reason),
            Verdict::Annotation(reason) => ("annotation", *reason),
        };
        Row {
            pointer: pointer.clone(),
            keyword: keyword.clone(),
            verdict,
            reason: reason.to_owned(),
        }
    }));
    rows.sort_by(|a, b| a.pointer.cmp(&b.pointer));
    rows
}

/// What `extract` adds to the schema, and what it does not: whether objects have other members.
fn closing(text: &str) -> impl Iterator<Item = Row> {
    let found = molde::close_objects(text);
    let row = |pointer: String, verdict, reason: &str| Row {
        pointer: format!("{pointer}/unevaluatedProperties"),
        keyword: "unevaluatedProperties".to_owned(),
        verdict,
        reason: reason.to_owned(),
    };
    let closed = found.closed.into_iter().map(move |pointer| {
        row(pointer, "added", "by extract, unless --keep-open: no members that are not declared")
    });
    let open = found.left_open.into_iter().map(move |pointer| {
        row(
            pointer,
            "not added",
            "other members are allowed: closing this could change what else is valid",
        )
    });
    closed.chain(open)
}

fn write_table(output: &mut impl Write, rows: &[Row]) -> Result<(), Failure> {
    let width = |text: fn(&Row) -> &str| {
        rows.iter().map(|row| printable(text(row)).chars().count()).max().unwrap_or(0)
    };
    let verdicts = width(|row| row.verdict);
    // One long pointer must not push the reasons of all the others off the screen.
    let pointers = width(|row| &row.pointer).min(60);
    let keywords = width(|row| &row.keyword).min(30);
    for row in rows {
        let line = format!(
            "{:verdicts$}  {:pointers$}  {:keywords$}  {}",
            row.verdict,
            printable(&row.pointer),
            printable(&row.keyword),
            printable(&row.reason)
        );
        writeln!(output, "{}", line.trim_end())?;
    }
    Ok(())
}

fn as_json(lint: &Lint, rows: &[Row]) -> Value {
    let status = match &lint.outcome {
        Ok(_) => "enforced",
        Err(SchemaError::Refused(_)) => "refused",
        Err(SchemaError::Malformed(_)) => "malformed",
        Err(SchemaError::Unsatisfiable { .. }) => "unsatisfiable",
        Err(SchemaError::Limit { .. }) => "limit",
        Err(_) => "syntax",
    };
    let keywords: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "pointer": row.pointer,
                "keyword": row.keyword,
                "verdict": row.verdict,
                "reason": row.reason,
            })
        })
        .collect();
    json!({
        "status": status,
        "dialect": lint.outcome.as_ref().ok().map(|schema| dialect(schema.dialect())),
        "message": lint.outcome.as_ref().err().map(ToString::to_string),
        "keywords": keywords,
    })
}

fn dialect(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Draft4 => "draft4",
        Dialect::Draft6 => "draft6",
        Dialect::Draft7 => "draft7",
        Dialect::Draft201909 => "draft2019-09",
        Dialect::Draft202012 => "draft2020-12",
    }
}
