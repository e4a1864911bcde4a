//! Reading JSON texts into values, however deep they are nested.
//!
//! `serde_json` reads by recursion and stops at 128 levels, for a stack that it does not know. How
//! deep an answer is, is known before it is read: beyond what fits on any stack, it is read on a
//! thread whose stack is made for it.

use serde::de::DeserializeOwned;

use crate::MoldeError;

/// Levels that are read on the stack of the caller.
const SHALLOW_LEVELS: usize = 100;
/// Levels beyond which a text is refused: a value is dropped by recursion too, on the stack of
/// whoever has it then. 10,000 levels need less than 2 MiB for that.
const MAX_LEVELS: usize = 10_000;
/// Stack that one level may take while it is read, in bytes. Types that buffer what they read, as
/// enums without a tag do, take the most.
const STACK_BYTES_PER_LEVEL: usize = 16 << 10;

/// Reads a JSON text.
///
/// # Errors
/// [`MoldeError::Deserialize`], [`MoldeError::TooDeep`] beyond 10,000 levels, and
/// [`MoldeError::Stack`] if a deep text could not get its stack.
///
/// # Complexity
/// Linear. A text of more than 100 levels is read on a thread of its own.
pub(crate) fn read<T: DeserializeOwned + Send>(text: &str) -> Result<T, MoldeError> {
    let levels = levels(text);
    if levels <= SHALLOW_LEVELS {
        return serde_json::from_str(text).map_err(|error| MoldeError::deserialize::<T>(&error));
    }
    if levels > MAX_LEVELS {
        return Err(MoldeError::TooDeep { levels, max_levels: MAX_LEVELS });
    }
    let bytes = levels * STACK_BYTES_PER_LEVEL;
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(bytes)
            .spawn_scoped(scope, || read_without_limit(text))
            .map_err(|source| MoldeError::Stack { bytes, source })?
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn read_without_limit<T: DeserializeOwned>(text: &str) -> Result<T, MoldeError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.disable_recursion_limit();
    T::deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| MoldeError::deserialize::<T>(&error))
}

/// How many objects and arrays stand inside one another at the deepest place of a JSON text.
fn levels(text: &str) -> usize {
    let (mut open, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => {
                open += 1;
                deepest = deepest.max(open);
            }
            b'}' | b']' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::Value;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Chain {
        next: Option<Box<Chain>>,
    }

    /// The kind that takes most of the stack: each level is buffered before it is read.
    #[derive(Debug, Deserialize)]
    #[serde(untagged)]
    enum Untagged {
        Deeper { next: Box<Untagged> },
        End(()),
    }

    fn chain(levels: usize) -> String {
        format!("{}null{}", "{\"next\": ".repeat(levels), "}".repeat(levels))
    }

    #[test]
    fn the_levels_of_a_text_leave_out_what_is_in_strings() {
        for (text, expected) in [
            ("1", 0),
            ("[]", 1),
            (r#"{"a": [1, {"b": 2}], "c": [[]]}"#, 3),
            (r#"["[[[", "\"[", "\\", [], "{"]"#, 2),
        ] {
            assert_eq!(levels(text), expected, "{text}");
        }
    }

    #[test]
    fn values_are_read_at_every_depth_up_to_the_limit() {
        // The threads of tests have stacks of 2 MiB.
        for depth in [1, SHALLOW_LEVELS, SHALLOW_LEVELS + 1, 128, 129, 2000, MAX_LEVELS] {
            let mut chain: Chain = read(&chain(depth)).expect("the text has the type's form");
            for _ in 1..depth {
                chain = *chain.next.expect("one level more");
            }
            assert!(chain.next.is_none());
            let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            let value: Value = read(&text).expect("JSON");
            assert!(value.is_array());
        }
    }

    #[test]
    fn buffered_levels_have_the_stack_that_they_need() {
        let value: Untagged = read(&chain(2000)).expect("the text has the type's form");
        let mut levels = 0;
        let mut at = &value;
        while let Untagged::Deeper { next } = at {
            levels += 1;
            at = next;
        }
        assert_eq!(levels, 2000);
        assert!(matches!(at, Untagged::End(())));
    }

    #[test]
    fn what_is_deeper_or_no_json_is_an_error_with_numbers() {
        let text = "[".repeat(MAX_LEVELS + 1);
        let error = read::<Value>(&text).expect_err("too deep");
        assert!(error.to_string().contains("10001") && error.kind() == "too_deep", "{error}");
        let error = read::<Value>(&"[".repeat(500)).expect_err("it breaks off");
        assert_eq!(error.kind(), "deserialize");
        let text = format!("{} 1", chain(500));
        assert_eq!(read::<Chain>(&text).expect_err("more follows").kind(), "deserialize");
    }
}
