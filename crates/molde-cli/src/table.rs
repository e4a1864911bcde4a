//! Results as a table in a file: CSV or JSON lines, by the file's name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::output::DocumentFailure;
use crate::records::csv_row;

type Line = Vec<(&'static str, String)>;

/// Results that are written when all are there, so that the file is whole or the old one.
pub(crate) struct Table {
    path: PathBuf,
    /// Names of the members of the outermost object, the columns of a CSV file.
    columns: Vec<String>,
    text: String,
    csv: bool,
}

impl Table {
    pub(crate) fn new(path: &Path, schema: &str) -> Self {
        let schema: Value = serde_json::from_str(schema).unwrap_or(Value::Null);
        let columns: Vec<String> = schema
            .get("properties")
            .and_then(Value::as_object)
            .map(|members| members.keys().cloned().collect())
            .unwrap_or_default();
        let csv = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
        let mut text = String::new();
        if csv {
            let names = columns.iter().map(String::as_str);
            text = csv_row(["id"].into_iter().chain(names).chain(["value", "error_kind"]));
        }
        Self { path: path.to_owned(), columns, text, csv }
    }

    pub(crate) fn add(&mut self, id: &Value, result: &Result<Line, DocumentFailure>) {
        if !self.csv {
            self.text.push_str(&line(id, result));
            return;
        }
        let id = id.as_str().map_or_else(|| id.to_string(), ToOwned::to_owned);
        let (value, kind) = match result {
            Ok(line) => (line.first().map_or("", |(_, text)| text.as_str()), ""),
            Err(failure) => ("", failure.kind.as_ref()),
        };
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(value).unwrap_or_default();
        let fields: Vec<String> = self
            .columns
            .iter()
            .map(|name| match members.get(name).map(|raw| raw.get()) {
                // A text without its quotes; a number with all its digits; null is empty.
                Some(raw) if raw.starts_with('"') => serde_json::from_str(raw).unwrap_or_default(),
                Some("null") | None => String::new(),
                Some(raw) => raw.to_owned(),
            })
            .collect();
        let names = fields.iter().map(String::as_str);
        self.text.push_str(&csv_row([id.as_str()].into_iter().chain(names).chain([value, kind])));
    }

    /// Writes the file by way of a new one beside it.
    pub(crate) fn write(self) -> Result<(), Failure> {
        let failed = |source| Failure::OutputFile { path: self.path.clone(), source };
        let mut partial = self.path.clone().into_os_string();
        partial.push(".partial");
        std::fs::write(&partial, &self.text).map_err(failed)?;
        std::fs::rename(&partial, &self.path).map_err(failed)
    }
}

/// One result as a JSON line.
pub(crate) fn line(id: &Value, result: &Result<Line, DocumentFailure>) -> String {
    let mut text = format!("{{\"id\":{id}");
    match result {
        Ok(members) => {
            for (name, json) in members {
                // Line ends can stand between the parts of a JSON text only.
                let json = json.replace(['\n', '\r'], " ");
                text.extend([",\"", *name, "\":", &json]);
            }
        }
        Err(failure) => {
            let error = json!({ "kind": failure.kind, "message": failure.message });
            text.extend([",\"error\":", &error.to_string()]);
        }
    }
    text.push_str("}\n");
    text
}

/// A result as a journal has it.
pub(crate) fn read_line(line: &str) -> Option<Result<Line, DocumentFailure>> {
    let members: BTreeMap<&str, &RawValue> = serde_json::from_str(line).ok()?;
    if let Some(error) = members.get("error") {
        let error: Value = serde_json::from_str(error.get()).ok()?;
        let text = |name: &str| Some(error.get(name)?.as_str()?.to_owned());
        return Some(Err(DocumentFailure {
            kind: text("kind")?.into(),
            message: text("message")?,
        }));
    }
    let value = members.get("value")?;
    let mut found = vec![("value", value.get().to_owned())];
    for name in ["fields", "evidence", "ms"] {
        found.extend(members.get(name).map(|raw| (name, raw.get().to_owned())));
    }
    Some(Ok(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_column_for_each_member_and_keeps_the_digits() {
        let schema = r#"{"properties": {"n": {}, "s": {}, "o": {}}}"#;
        let mut table = Table::new(Path::new("t.csv"), schema);
        let value = r#"{"n": 12345678901234567890.50, "s": "a, \"b\"", "o": {"x": null}}"#;
        table.add(&json!("1"), &Ok(vec![("value", value.to_owned())]));
        table.add(
            &json!(2),
            &Err(DocumentFailure { kind: "empty_document".into(), message: "m".into() }),
        );
        let rows = crate::records::read_csv(&table.text).expect("CSV");
        assert_eq!(rows[0], ["id", "n", "s", "o", "value", "error_kind"]);
        assert_eq!(rows[1][..4], ["1", "12345678901234567890.50", "a, \"b\"", "{\"x\": null}"]);
        assert_eq!(rows[1][4], value);
        assert_eq!(rows[2], ["2", "", "", "", "", "empty_document"]);
    }

    #[test]
    fn a_line_is_read_back_as_it_was() {
        for result in [
            Ok(vec![("value", "{\"x\": 1.50}".to_owned()), ("ms", "{\"total\":1}".to_owned())]),
            Err(DocumentFailure { kind: "cancelled".into(), message: "why \"so\"".into() }),
        ] {
            let text = line(&json!("a"), &result);
            assert_eq!(text.lines().count(), 1);
            let back = read_line(text.trim_end()).expect("a result");
            match (back, result) {
                (Ok(back), Ok(result)) => assert_eq!(back, result),
                (Err(back), Err(result)) => {
                    assert_eq!((back.kind, back.message), (result.kind, result.message));
                }
                _ => panic!("a result of another kind"),
            }
        }
    }
}
