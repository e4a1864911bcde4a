//! The tokenizer of the tiny model: every byte, and merges learned from a few sentences.

use std::collections::BTreeMap;

use crate::byte_level::char_of;

const MERGES: usize = 240;
/// The embedding table of the real model is padded, so this one is too.
const ROWS_MULTIPLE: usize = 64;

/// What merges are learned from.
const TEXT: &str = r#"{"name": "Ana", "age": 41, "tags": ["red", "blue"], "ok": true, "note": null}
{"quarter": "third", "value": 2.5, "low": -1.0, "high": 3.75, "items": [], "unit": "per cent"}
{"trimestre": 3, "bajo": 1.5, "alto": 2.5, "moneda": "euros", "valor": false}
The bank expects prices to rise by two per cent in the third quarter of the year, and the price of
oil to fall. The committee said that the forecast for the next quarter is between one and three.
El banco espera que los precios suban un dos por ciento en el tercer trimestre del año, y que el
precio del petróleo baje. La previsión para el próximo trimestre está entre el uno y el tres.
You are a helpful assistant. Read the text and answer with one JSON object, nothing else.
"#;

/// What the tiny model's conversations look like: Qwen's format.
pub(super) const CHAT_TEMPLATE: &str = r#"
{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content }}
    {%- else %}
        {{- 'You are a tiny model.' }}
    {%- endif %}
    {{- '\n\nTools:\n' }}
    {%- for tool in tools %}
        {{- tool | tojson }}
        {{- '\n' }}
    {%- endfor %}
    {{- '<|im_end|>\n' }}
{%- elif messages[0].role != 'system' %}
    {{- '<|im_start|>system\nYou are a tiny model.<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'tool' %}
        {{- '<|im_start|>user\n<tool_response>\n' + message.content + '\n</tool_response><|im_end|>\n' }}
    {%- elif message.tool_calls %}
        {{- '<|im_start|>assistant\n' + message.content }}
        {%- for call in message.tool_calls %}
            {{- '<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' }}
            {{- call.function.arguments | tojson }}
            {{- '}\n</tool_call>\n' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role != 'system' or not loop.first or not tools %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}
"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// A control token that decoding hides.
    Special,
    /// A control token that decoding shows, as Qwen's `<tool_call>`.
    Marker,
    Padding,
}

pub(super) struct TinyTokenizer {
    tokens: Vec<(String, Kind)>,
    merges: Vec<(String, String)>,
}

impl TinyTokenizer {
    pub(super) fn new() -> Self {
        let merges = learn();
        let mut tokens: Vec<_> =
            (0..=u8::MAX).map(|byte| (char_of(byte).to_string(), Kind::Text)).collect();
        tokens.extend(merges.iter().map(|(a, b)| (format!("{a}{b}"), Kind::Text)));
        for special in ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] {
            tokens.push((special.to_owned(), Kind::Special));
        }
        for marker in ["<tool_call>", "</tool_call>"] {
            tokens.push((marker.to_owned(), Kind::Marker));
        }
        // At least one row of padding, as in the real model.
        for id in tokens.len()..(tokens.len() + 1).next_multiple_of(ROWS_MULTIPLE) {
            tokens.push((format!("[PAD{id}]"), Kind::Padding));
        }
        Self { tokens, merges }
    }

    pub(super) fn tokens(&self) -> &[(String, Kind)] {
        &self.tokens
    }

    pub(super) fn merges(&self) -> Vec<String> {
        self.merges.iter().map(|(a, b)| format!("{a} {b}")).collect()
    }

    /// Rows of the embedding table.
    pub(super) fn rows(&self) -> usize {
        self.tokens.len()
    }

    pub(super) fn id(&self, text: &str) -> u32 {
        let found = self.tokens.iter().position(|(token, _)| token == text);
        found.expect("only called for control tokens of the list above") as u32
    }
}

/// Byte-pair encoding: merge the most frequent pair, of equal ones the lexicographically first.
fn learn() -> Vec<(String, String)> {
    let mut words: Vec<Vec<String>> = words(TEXT)
        .into_iter()
        .map(|word| word.bytes().map(|byte| char_of(byte).to_string()).collect())
        .collect();
    let mut merges = Vec::new();
    while merges.len() < MERGES {
        let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
        for pair in words.iter().flat_map(|word| word.windows(2)) {
            *counts.entry((pair[0].clone(), pair[1].clone())).or_default() += 1;
        }
        // The first of the largest: `max_by_key` would take the last.
        let Some(((a, b), _)) = counts.into_iter().rev().max_by_key(|&(_, count)| count) else {
            break;
        };
        for word in &mut words {
            let mut at = 0;
            while at + 1 < word.len() {
                if word[at] == a && word[at + 1] == b {
                    let second = word.remove(at + 1);
                    word[at].push_str(&second);
                }
                at += 1;
            }
        }
        merges.push((a, b));
    }
    merges
}

/// Runs of letters and runs of punctuation, each with the space before it: what the Qwen2 pattern
/// keeps together, as far as this text goes.
fn words(text: &str) -> Vec<String> {
    let kind = |c: char| match c {
        c if c.is_alphabetic() => 0,
        c if c.is_numeric() || c == '\n' => 1,
        ' ' => 2,
        _ => 3,
    };
    let mut words: Vec<String> = Vec::new();
    for c in text.chars() {
        match words.last_mut() {
            Some(word)
                if word.chars().next_back().is_some_and(|last| {
                    (kind(last) == kind(c) && matches!(kind(c), 0 | 3))
                        || (last == ' ' && matches!(kind(c), 0 | 3))
                }) =>
            {
                word.push(c);
            }
            _ => words.push(c.to_string()),
        }
    }
    words
}
