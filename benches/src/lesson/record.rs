//! The record of a run: everything that the report is made from.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use molde::Counts;
use serde::{Deserialize, Serialize};

use super::documents::Truth;
use super::stats::{Paired, Share};

/// A run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) settings: Settings,
    pub(crate) model: Model,
    pub(crate) machine: Machine,
    /// The methods of the table, in its order.
    pub(crate) methods: Vec<MethodResult>,
    /// The same task under the mask, with more or less of the schema in the prompt.
    pub(crate) prompts: Vec<MethodResult>,
    /// Methods or prompts that could not be run, and why.
    pub(crate) not_run: BTreeMap<String, String>,
    pub(crate) comparisons: Vec<Paired>,
    pub(crate) mask_view: Option<MaskView>,
    pub(crate) answers: Vec<Answer>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) documents: usize,
    pub(crate) with_forecast: usize,
    /// File of the documents; `None` if they were generated.
    pub(crate) file: Option<String>,
    pub(crate) seed: Option<u64>,
    pub(crate) max_tokens: usize,
    pub(crate) system_message: String,
    pub(crate) schema: serde_json::Value,
    pub(crate) rules: Vec<String>,
    pub(crate) intervals: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Model {
    pub(crate) id: String,
    pub(crate) sha256: Option<String>,
    pub(crate) precision: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) threads: usize,
    pub(crate) instruction_set: String,
    pub(crate) optimised: bool,
}

/// What one method did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MethodResult {
    pub(crate) name: String,
    pub(crate) n: usize,
    /// Schema and rules hold.
    pub(crate) valid: usize,
    /// The schema holds, whatever the rules say.
    pub(crate) valid_by_schema: usize,
    pub(crate) correct: usize,
    pub(crate) valid_share: Share,
    pub(crate) correct_share: Share,
    /// Kinds of faults of what is not valid.
    pub(crate) error_kinds: BTreeMap<String, usize>,
    /// The same, with the valid ones, by columns of the documents.
    pub(crate) counts: Counts,
    pub(crate) calls: usize,
    pub(crate) prompt_tokens: usize,
    pub(crate) output_tokens: usize,
    pub(crate) forced_tokens: usize,
    pub(crate) ms_per_document: f64,
    pub(crate) documents_per_minute: f64,
    /// Milliseconds a document, by stage.
    pub(crate) stages: Stages,
    /// Of the documents that have a forecast, those with both bounds not null.
    pub(crate) non_null_recall: Share,
    /// Bounds that are numbers, and how many of them the document contains in some reading.
    pub(crate) bounds: usize,
    pub(crate) bounds_in_document: usize,
    /// Valid answers of which a repair changed a number that the document does not contain.
    pub(crate) repair_ungrounded: usize,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Stages {
    pub(crate) read: f64,
    pub(crate) write: f64,
    pub(crate) mask: f64,
    pub(crate) other: f64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MaskView {
    pub(crate) document: String,
    pub(crate) prefix: String,
    pub(crate) tokens: Vec<Viewed>,
    pub(crate) removed: f64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Viewed {
    pub(crate) text: String,
    pub(crate) probability: f64,
    pub(crate) allowed: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) document: String,
    pub(crate) method: String,
    /// The last answer as the model wrote it.
    pub(crate) raw: String,
    /// The value that counts, as JSON text.
    pub(crate) json: Option<String>,
    pub(crate) error_kind: Option<String>,
    pub(crate) correct: bool,
    pub(crate) repairs: Vec<serde_json::Value>,
    pub(crate) calls: usize,
    pub(crate) ms: f64,
    pub(crate) truth: Truth,
}

impl Record {
    /// The table as text.
    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        let mut put = |line: String| writeln!(text, "{line}").expect("a String takes any text");
        put(format!(
            "{} documents ({} with a forecast), {} ({}), {}",
            self.settings.documents,
            self.settings.with_forecast,
            self.model.id,
            self.model.precision,
            self.settings.intervals
        ));
        put(format!(
            "{:22} {:>10} {:>13} {:>10} {:>13} {:>6} {:>8} {:>9} {:>8}",
            "method", "valid", "", "correct", "", "calls", "tokens", "ms/doc", "doc/min"
        ));
        for method in self.methods.iter().chain(&self.prompts) {
            let share =
                |share: &Share| format!("{:.0}-{:.0} %", 100.0 * share.low, 100.0 * share.high);
            put(format!(
                "{:22} {:>10} {:>13} {:>10} {:>13} {:>6} {:>8} {:>9.0} {:>8.1}",
                method.name,
                format!("{}/{}", method.valid, method.n),
                share(&method.valid_share),
                format!("{}/{}", method.correct, method.n),
                share(&method.correct_share),
                method.calls,
                method.output_tokens,
                method.ms_per_document,
                method.documents_per_minute,
            ));
            if !method.error_kinds.is_empty() {
                let kinds: Vec<String> = method
                    .error_kinds
                    .iter()
                    .map(|(kind, count)| format!("{kind} {count}"))
                    .collect();
                put(format!("{:22}   {}", "", kinds.join(", ")));
            }
        }
        for (name, reason) in &self.not_run {
            put(format!("{name}: not run: {reason}"));
        }
        for pair in &self.comparisons {
            put(format!(
                "{} against {}, {}: {:+.1} points [{:+.1}, {:+.1}], {} against {} alone, McNemar p = {:.2e}",
                pair.better,
                pair.than,
                pair.of,
                100.0 * pair.difference,
                100.0 * pair.low,
                100.0 * pair.high,
                pair.only_first,
                pair.only_second,
                pair.p
            ));
        }
        text
    }
}
