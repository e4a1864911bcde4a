//! What an automaton may cost, and the error that says which limit stopped it.

/// Limits of every automaton construction. Exceeding one is a [`DfaError`], never a wrong answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_field_names, reason = "each is a maximum")]
pub(crate) struct DfaLimits {
    /// States of one automaton before minimization. Default 50,000.
    pub(crate) max_states: usize,
    /// Transitions of one automaton before minimization, and of the label refinement inside
    /// minimization. Default 4,000,000.
    pub(crate) max_transitions: usize,
    /// Heap bytes of the nondeterministic automaton a pattern is first compiled to. Default 8 MiB.
    pub(crate) max_nfa_bytes: usize,
    /// Heap bytes of the state sets that determinization interns. Default 64 MiB.
    pub(crate) max_determinize_bytes: usize,
    /// Threads that determinization may visit in all, a bound on its time. Default 20,000,000.
    pub(crate) max_determinize_steps: usize,
    /// Heap bytes of one table of attainable lengths. Default 8 MiB.
    pub(crate) max_length_table_bytes: usize,
}

impl Default for DfaLimits {
    fn default() -> Self {
        Self {
            max_states: 50_000,
            max_transitions: 4_000_000,
            max_nfa_bytes: 8 << 20,
            max_determinize_bytes: 64 << 20,
            max_determinize_steps: 20_000_000,
            max_length_table_bytes: 8 << 20,
        }
    }
}

/// An automaton would exceed one of [`DfaLimits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DfaError {
    /// More states than `max_states`.
    #[error(
        "the automaton needs more than {limit} states (limit `max_states`); shorten its repetitions or raise the limit"
    )]
    States {
        /// The limit, in states.
        limit: usize,
    },
    /// More transitions than `max_transitions`.
    #[error(
        "the automaton needs more than {limit} transitions (limit `max_transitions`); simplify its character classes or raise the limit"
    )]
    Transitions {
        /// The limit, in transitions.
        limit: usize,
    },
    /// A nondeterministic automaton above `max_nfa_bytes`.
    #[error(
        "the pattern needs more than {limit} bytes before determinization (limit `max_nfa_bytes`); shorten its repetitions or raise the limit"
    )]
    NfaBytes {
        /// The limit, in bytes.
        limit: usize,
    },
    /// State sets above `max_determinize_bytes`.
    #[error(
        "determinization needs more than {limit} bytes (limit `max_determinize_bytes`); shorten the repetitions after ambiguous parts or raise the limit"
    )]
    DeterminizeBytes {
        /// The limit, in bytes.
        limit: usize,
    },
    /// More work than `max_determinize_steps`.
    #[error(
        "determinization visits more than {limit} threads (limit `max_determinize_steps`); shorten the repetitions after ambiguous parts or raise the limit"
    )]
    DeterminizeSteps {
        /// The limit, in threads visited.
        limit: usize,
    },
    /// A table of attainable lengths above `max_length_table_bytes`.
    #[error(
        "the table of attainable lengths needs more than {limit} bytes (limit `max_length_table_bytes`); lower the length bounds or raise the limit"
    )]
    LengthTable {
        /// The limit, in bytes.
        limit: usize,
    },
}
