//! `molde trace`: a text through the mask, token by token.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use molde::{MatcherOptions, MoldeError, Segmentation};
use molde_constraint::{Choices, Explanation, Matcher, PatternConstraint, SchemaConstraint};
use molde_infer::Tokenizer;
use molde_schema::{CompileOptions, CompiledSchema, Reason, Registry, Rejection};
use molde_vocab::{ByteAutomaton, ByteSet, MaskKind, TokenConstraint, TokenId};
use serde_json::{Value, json};

use crate::args::Trace;
use crate::documents::read_argument;
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::progress::{printable, say};
use crate::{registry, tokenizer};

/// Feeds the text through the mask, and says what became of it.
pub(crate) fn run(args: &Trace, interrupts: &Interrupts) -> Result<Exit, Failure> {
    let source = &args.source;
    if let Some(pattern) = &source.regex {
        return trace(PatternConstraint::new(pattern)?, args, interrupts);
    }
    if let Some(texts) = source.choices.as_ref().or(source.choice.as_ref()) {
        return trace(Choices::new(texts)?, args, interrupts);
    }
    let options = CompileOptions {
        style: args.style.into(),
        order: args.order.into(),
        number_style: args.numbers.into(),
        escapes: args.escapes.into(),
        formats: args.meaning.formats.into(),
        ..CompileOptions::default()
    };
    let (path, text, registry) = match &source.schema {
        None => (PathBuf::new(), r#"{"type": "object"}"#.to_owned(), Registry::new()),
        Some(path) => {
            let text = read_argument(path)?;
            let registry = registry::load(&args.meaning.registry, &text)?;
            (path.clone(), text, registry)
        }
    };
    let schema = CompiledSchema::compile_with(&text, &registry, &options)
        .map_err(|error| Failure::Schema { path, source: Box::new(MoldeError::from(error)) })?;
    trace(SchemaConstraint::new(&Arc::new(schema)), args, interrupts)
}

/// What can say more about a rejection than the automaton does.
trait Explain {
    /// Why the text cannot go on like this or, if it is whole, not end there.
    fn rejection(&self, _text: &[u8], _is_whole: bool) -> Option<Rejection> {
        None
    }
}

impl Explain for SchemaConstraint {
    fn rejection(&self, text: &[u8], is_whole: bool) -> Option<Rejection> {
        self.schema().explain(text, is_whole)
    }
}

impl Explain for PatternConstraint {}
impl Explain for Choices {}

fn trace<A: ByteAutomaton + Explain + Clone + Send>(
    mut automaton: A,
    args: &Trace,
    interrupts: &Interrupts,
) -> Result<Exit, Failure> {
    let text = text(args.text.as_deref())?;
    let segmentation: Segmentation = args.segmentation.into();
    if args.quiet && segmentation == Segmentation::Any {
        // Any segmentation will do: whether there is one is a question about bytes.
        let accepted = args.tokenizer.as_deref().is_none_or(Path::exists);
        if !accepted {
            load_tokenizer(args, interrupts)?;
        }
        return Ok(if accepts(&mut automaton, &text) { Exit::Success } else { Exit::Rejected });
    }
    let tokenizer = load_tokenizer(args, interrupts)?;
    let tokens = segment(&tokenizer, &text)?;
    let options = MatcherOptions { segmentation, ..MatcherOptions::default() };
    let explainer = automaton.clone();
    let matcher = Matcher::new(automaton, Arc::clone(tokenizer.vocabulary()), options);
    let output = std::io::BufWriter::new(std::io::stdout().lock());
    let mut tracer = Tracer { matcher, output, format: Format::of(args) };
    let end = tracer.feed(&tokens)?;
    let undecided = tracer.matcher.undecided();
    if undecided > 0 && !args.quiet {
        say(&format!("{undecided} tokens were masked out because their effect is not decided"));
    }
    let rejection = match end {
        End::Complete => None,
        End::Incomplete => explainer.rejection(&text, true),
        End::Rejected { .. } => explainer.rejection(&text, false),
    };
    tracer.conclude(&end, rejection.as_ref(), text.len())?;
    tracer.output.flush()?;
    Ok(if matches!(end, End::Complete) { Exit::Success } else { Exit::Rejected })
}

/// The text, or the standard input without the line end that most programs write last.
fn text(argument: Option<&str>) -> Result<Vec<u8>, Failure> {
    if let Some(text) = argument.filter(|text| *text != "-") {
        return Ok(text.as_bytes().to_vec());
    }
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(|source| Failure::Argument { path: "-".into(), source })?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
    Ok(bytes)
}

fn load_tokenizer(args: &Trace, interrupts: &Interrupts) -> Result<Tokenizer, Failure> {
    tokenizer::load(args.tokenizer.as_deref(), args.model.as_deref(), interrupts)
}

/// The tokenizer's own tokens of a text or, where they are of another text (the tokenizer
/// normalises, and bytes need not be text), the longest tokens from left to right.
fn segment(tokenizer: &Tokenizer, text: &[u8]) -> Result<Vec<TokenId>, Failure> {
    if let Ok(text) = std::str::from_utf8(text) {
        let tokens =
            tokenizer.encode_text(text).map_err(|error| Failure::Tokenizer(Box::new(error)))?;
        if tokenizer.decode_bytes(&tokens) == text.as_bytes() {
            return Ok(tokens);
        }
    }
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some((len, token)) = tokenizer.vocabulary().trie().prefixes(rest).last() {
        tokens.push(token);
        rest = &rest[len..];
    }
    Ok(tokens)
}

/// Whether a text is accepted and complete.
fn accepts(automaton: &mut impl ByteAutomaton, text: &[u8]) -> bool {
    let mut state = automaton.start();
    for (at, &byte) in text.iter().enumerate() {
        state = automaton.step(state, byte);
        state = automaton.settle(state, &text[..=at]);
        if !state.is_live() {
            return false;
        }
    }
    automaton.is_accepting(state)
}

/// What became of a text.
enum End {
    Complete,
    Incomplete,
    /// At this token, of which this byte cannot follow.
    Rejected {
        token: TokenId,
        explanation: Explanation,
    },
}

/// How a trace is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Nothing,
    Lines,
    Json,
}

impl Format {
    fn of(args: &Trace) -> Self {
        match (args.quiet, args.json) {
            (true, _) => Self::Nothing,
            (false, true) => Self::Json,
            (false, false) => Self::Lines,
        }
    }
}

struct Tracer<A, W> {
    matcher: Matcher<A>,
    output: W,
    format: Format,
}

impl<A: ByteAutomaton + Send, W: Write> Tracer<A, W> {
    fn feed(&mut self, tokens: &[TokenId]) -> Result<End, Failure> {
        for &token in tokens {
            if let Some(end) = self.feed_token(token)? {
                return Ok(end);
            }
        }
        self.write_step(None)?;
        Ok(if self.matcher.is_complete() { End::Complete } else { End::Incomplete })
    }

    /// One token; where what it does as a whole is not decided, shorter ones with the same bytes.
    fn feed_token(&mut self, token: TokenId) -> Result<Option<End>, Failure> {
        let explanation = self.matcher.explain(token);
        if matches!(explanation, Explanation::Undecided { .. }) {
            let vocabulary = Arc::clone(self.matcher.vocabulary());
            let bytes = vocabulary.token_bytes(token).unwrap_or_default();
            let shorter = vocabulary.trie().prefixes(bytes).filter(|(len, _)| *len < bytes.len());
            let shorter: Vec<(usize, TokenId)> = shorter.collect();
            for (len, first) in shorter.into_iter().rev() {
                let rest = vocabulary.trie().prefixes(&bytes[len..]).last();
                let Some((_, rest)) = rest.filter(|(rest, _)| len + rest == bytes.len()) else {
                    continue;
                };
                if self.matcher.explain(first) == Explanation::Allowed {
                    return match self.feed_token(first)? {
                        None => self.feed_token(rest),
                        end => Ok(end),
                    };
                }
            }
        }
        self.write_step(Some(token))?;
        let rejected = Ok(Some(End::Rejected { token, explanation }));
        let allowed = self.matcher.mask().is_ok_and(|mask| mask.contains(token));
        if !allowed || self.matcher.accept(token).is_err() {
            return rejected;
        }
        Ok(None)
    }

    /// A line for a token and the mask that it meets; without a token, for the end.
    fn write_step(&mut self, token: Option<TokenId>) -> Result<(), Failure> {
        if self.format == Format::Nothing {
            return Ok(());
        }
        let (kind, size) = match self.matcher.mask() {
            Ok(mask) => (kind(mask.kind()), mask.len()),
            Err(_) => ("empty", 0),
        };
        let is_forced = token.is_some() && self.matcher.forced() == token;
        let bytes = token.and_then(|token| self.matcher.vocabulary().token_bytes(token));
        let text = bytes.map(String::from_utf8_lossy);
        if self.format == Format::Json {
            let line = json!({
                "token": text, "id": token, "mask": kind, "size": size, "forced": is_forced,
            });
            writeln!(self.output, "{line}")?;
            return Ok(());
        }
        let id = token.map_or_else(|| "end".to_owned(), |token| token.to_string());
        let mark = if is_forced { "forced" } else { "" };
        let text = text.map_or_else(String::new, |text| format!("{text:?}"));
        let line = format!("{id:>7}  {kind:<6}  {size:>6}  {mark:<6}  {text}");
        writeln!(self.output, "{}", line.trim_end())?;
        Ok(())
    }

    /// What became of the text, and why.
    fn conclude(
        &mut self,
        end: &End,
        rejection: Option<&Rejection>,
        len: usize,
    ) -> Result<(), Failure> {
        let read = self.matcher.text().len();
        let (name, offset) = match end {
            End::Complete => ("complete", len),
            End::Incomplete => ("incomplete", len),
            End::Rejected { explanation, .. } => {
                let inside = match explanation {
                    Explanation::Rejected { byte_offset, .. }
                    | Explanation::Undecided { byte_offset, .. } => *byte_offset,
                    _ => 0,
                };
                ("rejected", rejection.map_or(read + inside, |rejection| rejection.offset))
            }
        };
        let next = self.next_bytes(end);
        let reasons = match rejection {
            Some(rejection) => rejection.reasons.clone(),
            None => self.other_reasons(end),
        };
        match self.format {
            Format::Nothing => {}
            Format::Json => {
                let reasons: Vec<Value> = reasons.iter().map(reason_json).collect();
                let line = json!({
                    "outcome": name, "byte": offset, "reasons": reasons, "next": ranges(next),
                });
                writeln!(self.output, "{line}")?;
            }
            Format::Lines => match end {
                End::Complete => writeln!(self.output, "accepted and complete, {len} bytes")?,
                End::Incomplete => writeln!(self.output, "not complete after {len} bytes")?,
                End::Rejected { token, .. } => {
                    let bytes = self.matcher.vocabulary().token_bytes(*token).unwrap_or_default();
                    let text = String::from_utf8_lossy(bytes);
                    writeln!(self.output, "rejected at byte {offset}, in the token {text:?}")?;
                }
            },
        }
        if self.format == Format::Lines && !matches!(end, End::Complete) {
            for reason in &reasons {
                let joint = if reason.is_joint { " (together)" } else { "" };
                let value = match reason.instance.as_str() {
                    "" => String::new(),
                    value => format!(", for the value at {value}"),
                };
                let line = printable(&format!("{reason}{value}{joint}"));
                writeln!(self.output, "  {line}")?;
            }
            if !next.is_empty() {
                writeln!(self.output, "  can follow: {}", ranges(next).join(" "))?;
            }
        }
        Ok(())
    }

    /// The bytes that can come where the text is wrong.
    fn next_bytes(&mut self, end: &End) -> ByteSet {
        let state = match end {
            End::Rejected {
                explanation:
                    Explanation::Rejected { state, .. } | Explanation::Undecided { state, .. },
                ..
            } => *state,
            _ => self.matcher.state(),
        };
        self.matcher.live_bytes(state)
    }

    /// What there is to say where no keyword is to blame.
    fn other_reasons(&self, end: &End) -> Vec<Reason> {
        let expected = match end {
            End::Rejected { explanation: Explanation::NotCanonical { expected }, .. } => {
                let bytes = self.matcher.vocabulary().token_bytes(*expected).unwrap_or_default();
                let text = String::from_utf8_lossy(bytes);
                format!("the token {text:?} ({expected}), as the tokenizer writes this text")
            }
            End::Rejected { explanation: Explanation::Undecided { .. }, .. } => {
                "a token whose effect is decided within the limits".to_owned()
            }
            _ => return Vec::new(),
        };
        vec![Reason {
            instance: String::new(),
            location: String::new(),
            keyword: String::new(),
            expected,
            is_joint: false,
        }]
    }
}

fn kind(kind: MaskKind<'_>) -> &'static str {
    match kind {
        MaskKind::Empty => "empty",
        MaskKind::Forced(_) => "forced",
        MaskKind::Few(_) => "few",
        MaskKind::Many => "many",
    }
}

fn reason_json(reason: &Reason) -> Value {
    json!({
        "instance": reason.instance,
        "location": reason.location,
        "keyword": reason.keyword,
        "expected": reason.expected,
        "joint": reason.is_joint,
    })
}

/// Bytes as ranges, printable ones as themselves.
fn ranges(bytes: ByteSet) -> Vec<String> {
    let mut ranges: Vec<(u8, u8)> = Vec::new();
    for byte in bytes.iter() {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == byte => *last = byte,
            _ => ranges.push((byte, byte)),
        }
    }
    let name = |byte: u8| {
        if byte.is_ascii_graphic() { char::from(byte).to_string() } else { format!("0x{byte:02x}") }
    };
    ranges
        .into_iter()
        .map(|(first, last)| match last - first {
            0 => name(first),
            1 => format!("{} {}", name(first), name(last)),
            _ => format!("{}–{}", name(first), name(last)),
        })
        .collect()
}
