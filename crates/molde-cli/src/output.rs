//! The results of documents on the standard output.
//!
//! One document: the bare value. Several: one JSON line each, in the order of the command line.
//! A value is the model's own text, never parsed and printed again. A line is written whole or
//! not at all.

use std::borrow::Cow;
use std::io::Write;

use serde_json::Value;

use crate::failure::{Exit, Failure};
use crate::progress::printable;
use crate::table::line;

/// Why one document has no value.
#[derive(Debug)]
pub(crate) struct DocumentFailure {
    /// A stable name in `snake_case`.
    pub(crate) kind: Cow<'static, str>,
    pub(crate) message: String,
}

/// Where the results of a command go.
pub(crate) struct Results<O: Write, E: Write> {
    output: O,
    errors: E,
    several: bool,
    failed: usize,
}

impl<O: Write, E: Write> Results<O, E> {
    /// `several`: whether the command names more than one document.
    pub(crate) fn new(output: O, errors: E, several: bool) -> Self {
        Self { output, errors, several, failed: 0 }
    }

    /// Writes the result of the next document: members of its line, the value first.
    pub(crate) fn write(
        &mut self,
        id: &Value,
        result: &Result<Vec<(&'static str, String)>, DocumentFailure>,
    ) -> Result<(), Failure> {
        if let Err(failure) = result {
            self.failed += 1;
            // What the message says stands on the standard error as well: not everyone reads
            // the other. It can be gone; the result matters more.
            let id = id.as_str().map_or_else(|| id.to_string(), ToOwned::to_owned);
            let message = printable(&format!("{id}: {}", failure.message));
            let _ = writeln!(self.errors, "molde: {message}");
        }
        let line = match (result, self.several) {
            (Ok(members), false) if members.len() == 1 => format!("{}\n", members[0].1),
            (Err(_), false) => return Ok(()),
            (result, _) => line(id, result),
        };
        self.output.write_all(line.as_bytes())?;
        self.output.flush()?;
        Ok(())
    }

    /// How many documents failed, as the end of a sentence; empty if none did.
    pub(crate) fn summary(&self) -> String {
        if self.failed == 0 { String::new() } else { format!(", {} failed", self.failed) }
    }

    /// The exit code for what has been written.
    pub(crate) fn exit(&self) -> Exit {
        if self.failed == 0 { Exit::Success } else { Exit::Failed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure() -> DocumentFailure {
        DocumentFailure {
            kind: "empty_document".into(),
            message: "nothing but \"space\"".to_owned(),
        }
    }

    fn run(results: &[(&str, Result<String, DocumentFailure>)]) -> (String, String, Exit) {
        let results: Vec<_> = results
            .iter()
            .map(|(id, result)| {
                let result = match result {
                    Ok(value) => Ok(vec![("value", value.clone())]),
                    Err(_) => Err(failure()),
                };
                (Value::from(*id), result)
            })
            .collect();
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        let mut writer = Results::new(&mut output, &mut errors, results.len() > 1);
        for (id, result) in &results {
            writer.write(id, result).expect("memory can be written to");
        }
        let exit = writer.exit();
        let text = |bytes| String::from_utf8(bytes).expect("the output is text");
        (text(output), text(errors), exit)
    }

    #[test]
    fn one_value_stands_bare_and_digit_for_digit() {
        let value = r#"{"n": 2512292042121000001, "x": 1.50, "s": "\u00e1"}"#;
        let (output, errors, exit) = run(&[("-", Ok(value.to_owned()))]);
        assert_eq!(output, format!("{value}\n"));
        assert_eq!((errors.as_str(), exit), ("", Exit::Success));
    }

    #[test]
    fn one_failure_leaves_the_output_empty() {
        let (output, errors, exit) = run(&[("a.txt", Err(failure()))]);
        assert_eq!(output, "");
        assert_eq!(errors, "molde: a.txt: nothing but \"space\"\n");
        assert_eq!(exit, Exit::Failed);
    }

    #[test]
    fn several_documents_make_one_line_each_in_order() {
        let (output, errors, exit) = run(&[
            (
                "b \"1\".txt",
                Ok("{\"a\": 12345678901234567890123456789012345678901234567890}".to_owned()),
            ),
            ("c.txt", Err(failure())),
            ("a.txt", Ok("{\n  \"a\": null\r\n}".to_owned())),
        ]);
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(
            lines,
            [
                r#"{"id":"b \"1\".txt","value":{"a": 12345678901234567890123456789012345678901234567890}}"#,
                r#"{"id":"c.txt","error":{"kind":"empty_document","message":"nothing but \"space\""}}"#,
                r#"{"id":"a.txt","value":{   "a": null  }}"#,
            ]
        );
        for line in lines {
            serde_json::from_str::<Value>(line).expect("each line is JSON");
        }
        assert_eq!(errors.lines().count(), 1);
        assert_eq!(exit, Exit::Failed);
    }

    #[test]
    fn a_reader_that_has_gone_is_success() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut results = Results::new(Closed, Vec::new(), true);
        let failure = results
            .write(&Value::from("a"), &Ok(vec![("value", "1".to_owned())]))
            .expect_err("the pipe is closed");
        assert_eq!(failure.exit(), Exit::Success);
    }
}
