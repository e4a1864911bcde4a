//! A file of labels.

use std::path::Path;

use crate::failure::Failure;

/// The labels of a file: a JSON array of strings, or one label a line.
pub(crate) fn read(path: &Path, text: &str) -> Result<Vec<String>, Failure> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text)
            .map_err(|source| Failure::Labels { path: path.to_owned(), source });
    }
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_lines_or_a_json_array() {
        let read = |text: &str| super::read(Path::new("l"), text);
        assert_eq!(read("a\n  b c \n\n").expect("lines"), ["a", "b c"]);
        assert_eq!(read(r#" ["a", "[b]"] "#).expect("an array"), ["a", "[b]"]);
        for text in ["[1]", "[\"a\"", "[\"a\"] x"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
