//! What the caller chooses: how texts are written, and how much work is allowed.

/// The whitespace between the parts of a JSON text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Style {
    /// `", "` between members and `": "` after a key: what models write by themselves.
    #[default]
    Spaced,
    /// No whitespace at all.
    Compact,
    /// Any JSON whitespace where JSON allows it, at most [`Limits::whitespace_bytes`] in one
    /// place plus 8 for each level of nesting: pretty-printing fits, endless whitespace does not.
    Flexible,
}

/// The order in which the members of an object are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// Declared names by first appearance in the schema, then required names that are not
    /// declared, then the rest in any order.
    #[default]
    Schema,
    /// Any order.
    Any,
}

pub use crate::format::Profile as FormatProfile;
pub use crate::number::NumberStyle;

/// Which escape sequences a JSON string may contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Escapes {
    /// Those that JSON demands: `\"`, `\\` and control characters. Every string has a text, and
    /// a text that the schema fixes (a key, a constant) can be spelt in one way only, which is
    /// what makes it forced.
    #[default]
    Needed,
    /// Every escape that JSON allows; surrogates only in pairs.
    Any,
}

/// What the keyword `format` means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Formats {
    /// Known formats are enforced; unknown names are annotations.
    #[default]
    Assert,
    /// Every format is an annotation, except where the dialect is one of the user's whose
    /// `$vocabulary` has the format-assertion vocabulary.
    Annotate,
}

/// How a schema is compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompileOptions {
    /// Whitespace; default [`Style::Spaced`].
    pub style: Style,
    /// Order of members; default [`Order::Schema`].
    pub order: Order,
    /// Spellings of numbers; default [`NumberStyle::Plain`].
    pub number_style: NumberStyle,
    /// Escape sequences; default [`Escapes::Needed`].
    pub escapes: Escapes,
    /// Meaning of `format`; default [`Formats::Assert`].
    pub formats: Formats,
    /// Which texts a known format accepts; default [`FormatProfile::Standard`].
    pub format_profile: FormatProfile,
    /// Bounds on the work.
    pub limits: Limits,
}

/// Bounds on what a schema may cost. Exceeding one while compiling is
/// [`SchemaError::Limit`](crate::SchemaError::Limit); exceeding one while matching makes the
/// successor state undecided, which masks it out and is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of schema text. Default 16 MiB.
    pub schema_bytes: usize,
    /// Nesting depth of the schema text. Default 1,024 levels.
    pub schema_depth: usize,
    /// Schema locations (objects and booleans that are schemas). Default 500,000.
    pub schema_nodes: usize,
    /// Alternatives that one value can have after `anyOf` and `allOf` are multiplied out, where
    /// they are: conditions on the members of an object stay apart once they are many. Default
    /// 4,096.
    pub alternatives: usize,
    /// Steps of multiplying out for one value; bounds the time where most alternatives turn out
    /// empty. Default 200,000 (about 0.2 s).
    pub expansion_steps: usize,
    /// Ways in which one text can be read at the same time. Default 2,048.
    pub threads: usize,
    /// Items that an array whose items must differ may need (`minItems`, `minContains`). Default
    /// 4,096.
    pub distinct_items: u64,
    /// Different values with which the items of such arrays are compared in one sequence. Default
    /// 65,536.
    pub distinct_values: usize,
    /// Steps in one search for the items that an array needs. Default 50,000.
    pub item_steps: usize,
    /// Steps in one search for a way in which an item can still differ from those before it.
    /// Default 50,000.
    pub comparison_steps: usize,
    /// Bytes of the shortest text of any value that is offered. Default 256 KiB, more than a
    /// context of 32,768 tokens holds.
    pub completion_bytes: u64,
    /// Bytes of whitespace in one place under [`Style::Flexible`], plus 8 for each level of
    /// nesting. Default 24.
    pub whitespace_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            schema_bytes: 16 << 20,
            schema_depth: 1024,
            schema_nodes: 500_000,
            alternatives: 4096,
            expansion_steps: 200_000,
            threads: 2048,
            distinct_items: 4096,
            distinct_values: 1 << 16,
            item_steps: 50_000,
            comparison_steps: 50_000,
            completion_bytes: 256 << 10,
            whitespace_bytes: 24,
        }
    }
}
