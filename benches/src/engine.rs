//! What is asked of an engine: compile a schema, then mask and accept tokens.

use molde_vocab::TokenId;

/// Why a schema is not enforced.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// By name: unsupported, malformed, beyond a limit.
    Refused(String),
    /// No value satisfies it, which is an answer and no refusal.
    Unsatisfiable,
}

/// An engine with everything that depends on the tokenizer alone.
pub(crate) trait Engine {
    type Session: Session;

    /// Compiles a schema from its text. Nothing is kept from one schema to the next.
    fn compile(&self, schema: &str) -> Result<Self::Session, Refusal>;
}

/// A compiled schema, and one text being written under it.
pub(crate) trait Session {
    /// Back to before the first token; what was found out about the schema may be kept.
    fn reset(&mut self);

    /// Finds the mask of the current position and looks the given tokens up in it: bit `i` of the
    /// answer is `tokens[i]`. `None` if there is no mask.
    fn look_up(&mut self, next: TokenId, others: &[TokenId; 64]) -> Option<(bool, u64)>;

    /// Advances by a token of the mask; whether that worked.
    fn accept(&mut self, token: TokenId) -> bool;

    /// Whether the text is complete.
    fn is_complete(&mut self) -> bool;
}
