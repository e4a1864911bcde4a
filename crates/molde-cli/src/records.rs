//! Many documents in one file: JSON lines and CSV, as input and as output.

use serde_json::{Value, json};

use crate::documents::Source;

/// A document, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) id: Value,
    pub(crate) text: Result<String, (&'static str, String)>,
}

/// How the standard input, and files whose names do not say it, are read.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    /// Everything is JSON lines.
    pub(crate) jsonl: bool,
    /// The column of a CSV file, and the member of a JSON line, that has the text.
    pub(crate) text_column: String,
    /// The one that has the id.
    pub(crate) id_column: String,
}

impl Reading {
    /// The documents of `sources`, in order: each line of a `.jsonl` file, each row of a `.csv` file,
    /// every other file as a whole.
    pub(crate) fn items(&self, sources: &[Source]) -> Vec<Item> {
        sources.iter().flat_map(|source| self.of_source(source)).collect()
    }

    fn of_source(&self, source: &Source) -> Vec<Item> {
        let name = source.id();
        let text = match source.read() {
            Ok(text) => text,
            Err(error) => {
                let text = Err((error.kind(), error.to_string()));
                return vec![Item { id: json!(name), text }];
            }
        };
        let extension = std::path::Path::new(&name).extension();
        let is_named = |kind: &str| extension.is_some_and(|own| own.eq_ignore_ascii_case(kind));
        if self.jsonl || is_named("jsonl") {
            text.lines()
                .enumerate()
                .filter(|(_, line)| !line.trim().is_empty())
                .map(|(number, line)| self.line(&name, number + 1, line))
                .collect()
        } else if is_named("csv") {
            self.rows(&name, &text)
        } else {
            vec![Item { id: json!(name), text: Ok(text) }]
        }
    }

    fn line(&self, file: &str, number: usize, line: &str) -> Item {
        let place = format!("{file}:{number}");
        let bad = |message: &str| bad_item(&place, "bad_line", message);
        let Ok(value) = serde_json::from_str::<Value>(line) else { return bad("it is not JSON") };
        let Some(text) = value.get(&self.text_column).and_then(Value::as_str) else {
            return bad(&format!("it has no member `{}` that is a string", self.text_column));
        };
        let id = value.get(&self.id_column).cloned().unwrap_or_else(|| json!(place));
        Item { id, text: Ok(text.to_owned()) }
    }

    fn rows(&self, file: &str, text: &str) -> Vec<Item> {
        let rows = match read_csv(text) {
            Ok(rows) => rows,
            Err(row) => {
                let place = format!("{file}:{row}");
                return vec![bad_item(&place, "bad_row", "a quoted field does not end")];
            }
        };
        let Some((header, rows)) = rows.split_first() else { return Vec::new() };
        let column = |name: &str| header.iter().position(|own| own == name);
        let Some(text_at) = column(&self.text_column) else {
            let message = format!("there is no column `{}`", self.text_column);
            return vec![bad_item(file, "bad_file", &message)];
        };
        let id_at = column(&self.id_column);
        rows.iter()
            .enumerate()
            .map(|(index, row)| {
                let place = format!("{file}:{}", index + 1);
                let id = id_at.and_then(|at| row.get(at)).cloned().unwrap_or_else(|| place.clone());
                match row.get(text_at) {
                    Some(text) => Item { id: json!(id), text: Ok(text.clone()) },
                    None => bad_item(&place, "bad_row", "the row has too few fields"),
                }
            })
            .collect()
    }
}

fn bad_item(place: &str, kind: &'static str, message: &str) -> Item {
    Item { id: json!(place), text: Err((kind, format!("{place}: {message}"))) }
}

/// The rows of a CSV text (RFC 4180), or the number of the row whose quoted field does not end.
pub(crate) fn read_csv(text: &str) -> Result<Vec<Vec<String>>, usize> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row: Vec<String> = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' if quoted => quoted = false,
            _ if quoted => field.push(character),
            '"' if field.is_empty() => quoted = true,
            ',' => row.push(std::mem::take(&mut field)),
            '\r' if characters.peek() == Some(&'\n') => {}
            '\n' => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            other => field.push(other),
        }
    }
    if quoted {
        return Err(rows.len());
    }
    if !field.is_empty() || !row.is_empty() {
        row.push(field);
        rows.push(row);
    }
    // An empty line is no row.
    rows.retain(|row| row.len() > 1 || row.iter().any(|field| !field.is_empty()));
    Ok(rows)
}

/// One row of CSV.
pub(crate) fn csv_row<'a>(fields: impl IntoIterator<Item = &'a str>) -> String {
    let fields: Vec<String> = fields
        .into_iter()
        .map(|field| {
            if field.contains(['"', ',', '\n', '\r']) || field.trim() != field {
                format!("\"{}\"", field.replace('"', "\"\""))
            } else {
                field.to_owned()
            }
        })
        .collect();
    format!("{}\r\n", fields.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading() -> Reading {
        Reading { jsonl: false, text_column: "text".to_owned(), id_column: "id".to_owned() }
    }

    #[test]
    fn a_line_is_an_item_or_says_why_it_is_none() {
        let item = reading().line("f", 3, r#"{"id": 7, "text": "hello", "gold": {}}"#);
        assert_eq!((item.id, item.text.expect("a text")), (json!(7), "hello".to_owned()));
        assert_eq!(reading().line("f", 3, r#"{"text": ""}"#).id, "f:3");
        for line in ["{", "3", r#"{"id": 1}"#, r#"{"text": 5}"#] {
            let (kind, message) = reading().line("f", 3, line).text.expect_err("no item");
            assert!(kind == "bad_line" && message.starts_with("f:3: "), "{message}");
        }
    }

    #[test]
    fn rows_of_csv_become_items() {
        let csv = "id,type,text\r\na,8-K,\"one, \"\"two\"\"\nthree\"\r\n\r\nb,HR,\r\nc,OIR\r\n";
        let items = reading().rows("f.csv", csv);
        assert_eq!(items.len(), 3);
        assert_eq!(items[0].text.as_deref(), Ok("one, \"two\"\nthree"));
        assert_eq!((&items[1].id, items[1].text.as_deref()), (&json!("b"), Ok("")));
        assert!(items[2].text.is_err());
        for (csv, kind) in [("id,body\n1,x\n", "bad_file"), ("text\n\"x", "bad_row")] {
            assert_eq!(reading().rows("f", csv)[0].text.as_ref().expect_err("bad").0, kind);
        }
        assert!(reading().rows("f", "").is_empty());
    }

    #[test]
    fn what_is_written_as_csv_is_read_back() {
        let fields = ["plain", "", " padded ", "a,b", "\"q\"", "line\nend", "é"];
        let text = csv_row(fields) + &csv_row(["x"; 7]);
        let rows = read_csv(&text).expect("CSV");
        assert_eq!(rows, [fields.map(str::to_owned), ["x"; 7].map(str::to_owned)]);
    }
}
