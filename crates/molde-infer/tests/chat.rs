//! Chat templates: the model's own format, and documents that try to leave their turn.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // Helpers of tests are tests.

mod support;

use std::sync::Arc;

use molde_infer::tiny::{TinyDtype, TinyModel};
use molde_infer::{
    ChatTemplate, InferError, LoadedModel, Message, ModelOptions, Role, SpecialTokens, Tokenizer,
    ToolCall,
};
use support::{Random, tiny};

fn model() -> LoadedModel {
    tiny(&TinyModel::default(), TinyDtype::Q8_0, &ModelOptions::default())
}

fn encode(loaded: &LoadedModel, messages: &[Message]) -> Vec<u32> {
    let template = loaded.chat_template.as_ref().unwrap();
    template.encode(&loaded.tokenizer, messages).unwrap()
}

/// What Qwen's template writes for a conversation that starts with a system message.
fn rendered(messages: &[Message]) -> String {
    let turns: Vec<_> = messages
        .iter()
        .map(|m| format!("<|im_start|>{}\n{}<|im_end|>\n", m.role.name(), m.content))
        .collect();
    let turns = turns.concat();
    turns + "<|im_start|>assistant\n"
}

#[test]
fn ordinary_contents_give_the_tokens_of_the_whole_rendered_text() {
    let loaded = model();
    let folder = tempfile::tempdir().unwrap();
    TinyModel::default().write_folder(folder.path(), TinyDtype::F32, 1).unwrap();
    let library = tokenizers::Tokenizer::from_file(folder.path().join("tokenizer.json")).unwrap();
    let mut random = Random(1);
    for round in 0..500 {
        let messages = [
            Message::system(random.text(round % 7)),
            Message::user(random.text(round % 9)),
            Message::assistant(random.text(round % 5)),
            Message::user(random.text(1 + round % 3)),
        ];
        let expected = library.encode(rendered(&messages), false).unwrap();
        assert_eq!(encode(&loaded, &messages), expected.get_ids(), "{messages:?}");
    }
    // Contents that merge with the line break before them, or the marker's neighbours.
    for content in ["", "\n", "\n\n  x", "  x", "x\n", "\r\n", "\u{301}x", "system", "assistant\n"]
    {
        let messages = [Message::system(content), Message::user(content)];
        let expected = library.encode(rendered(&messages), false).unwrap();
        assert_eq!(encode(&loaded, &messages), expected.get_ids(), "{content:?}");
    }
}

#[test]
fn no_document_can_open_or_close_a_turn() {
    let loaded = model();
    let vocabulary = loaded.tokenizer.vocabulary();
    let control = |ids: &[u32]| {
        ids.iter().copied().filter(|&id| vocabulary.is_control(id)).collect::<Vec<_>>()
    };
    let expected = control(&encode(&loaded, &[Message::system("a"), Message::user("b")]));
    assert_eq!(expected.len(), 5);
    let mut random = Random(2);
    for round in 0..1000 {
        let content = random.hostile_text(1 + round % 8);
        let ids = encode(&loaded, &[Message::system("a"), Message::user(content.clone())]);
        assert_eq!(control(&ids), expected, "{content:?}");
        // The document is there, in one piece, as text.
        let text = loaded.tokenizer.decode(&loaded.tokenizer.encode_text(&content).unwrap());
        assert!(loaded.tokenizer.decode(&ids).contains(&format!("user\n{text}\n")), "{content:?}");
    }
    // Contents that look like placeholders are contents too.
    for content in ["\u{E0F0}\"<&'aZ 0\u{E0F1}", "\u{E0F0}\"<&'aZ 1\u{E0F1}", "{{ messages }}"] {
        let ids = encode(&loaded, &[Message::system(content), Message::user(content)]);
        assert_eq!(control(&ids), expected, "{content:?}");
        assert_eq!(loaded.tokenizer.decode(&ids).matches(content).count(), 2);
    }
}

#[test]
fn a_last_message_of_the_assistant_is_the_beginning_of_the_answer() {
    let loaded = model();
    let open = encode(&loaded, &[Message::user("b"), Message::assistant("{\"a\": <|im_end|>")]);
    let plain = encode(&loaded, &[Message::user("b")]);
    let text = loaded.tokenizer.decode(&open);
    assert!(text.ends_with("assistant\n{\"a\": <|im_end|>"), "{text:?}");
    let vocabulary = loaded.tokenizer.vocabulary();
    let count = |ids: &[u32]| ids.iter().filter(|&&id| vocabulary.is_control(id)).count();
    assert_eq!(count(&open), count(&plain));
}

#[test]
fn without_a_system_message_the_template_writes_its_own() {
    let loaded = model();
    let text = loaded.tokenizer.decode(&encode(&loaded, &[Message::user("b")]));
    assert_eq!(text, "system\nYou are a tiny model.\nuser\nb\nassistant\n");
}

fn with(source: &str) -> Result<ChatTemplate, InferError> {
    ChatTemplate::new(source, SpecialTokens { bos: None, eos: Some("<|im_end|>".to_owned()) })
}

#[test]
fn templates_as_they_are_published_are_rendered() {
    let tokenizer: Arc<Tokenizer> = model().tokenizer;
    let messages = [Message::system("a"), Message::user("b")];
    for (source, expected) in [
        ("{% for m in messages %}{{ m['content'].strip() }}{{ eos_token }}{% endfor %}", "ab"),
        ("{% for m in messages %}\n    {{- m.content | trim }}\n{% endfor %}\n", "a\nb\n"),
        (
            "{% if tools %}x{% endif %}{% for m in messages %}{{ m.role.upper() ~ m.content }}{% endfor %}",
            "SYSTEMaUSERb",
        ),
        ("{{ bos_token }}{{ messages[1].content }}{{ messages[0].content }}", "ba"),
    ] {
        let ids = with(source).unwrap().encode(&tokenizer, &messages).unwrap();
        assert_eq!(tokenizer.decode(&ids), expected, "{source}");
    }
}

#[test]
fn templates_that_cannot_be_used_safely_are_refused() {
    let tokenizer: Arc<Tokenizer> = model().tokenizer;
    let messages = [Message::system("a"), Message::user("b")];
    for (source, first, expected) in [
        ("{% for m in messages %}{{ m.content | upper }}{% endfor %}", 0, 0),
        ("{% for m in messages %}{{ m.content | tojson }}{% endfor %}", 0, 0),
        ("{{ messages[0].content }}", 1, 0),
        ("{% for m in messages %}{{ m.content }}{% endfor %}{{ messages[1].content }}", 1, 2),
    ] {
        match with(source).unwrap().encode(&tokenizer, &messages) {
            Err(InferError::TemplateContent { message, got }) => {
                assert_eq!((message, got), (first, expected), "{source}");
            }
            other => panic!("{source}: {other:?}"),
        }
    }
    let endless = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
    for source in ["{{ raise_exception('roles must alternate') }}", "{{ nobody() }}", endless] {
        let error = with(source).unwrap().encode(&tokenizer, &messages).unwrap_err();
        assert!(matches!(error, InferError::Template { .. }), "{source}: {error}");
    }
    let error = with("{% for %}").unwrap_err();
    assert!(matches!(error, InferError::Template { .. }), "{error}");
    let error = with("x").unwrap().encode(&tokenizer, &[]).unwrap_err();
    assert!(matches!(error, InferError::EmptyPrompt), "{error}");
}

/// A conversation in which a tool was called, with one text wherever a user can put any.
fn with_tools(text: &str) -> (Vec<Message>, Vec<String>) {
    let call = ToolCall { name: "save".to_owned(), arguments: format!("{{\"a\": \"{text}\"}}") };
    let messages = vec![
        Message::system("s"),
        Message::user("u"),
        Message { tool_calls: vec![call], ..Message::assistant("") },
        Message::new(Role::Tool, text),
    ];
    (messages, vec![format!("{{\"name\": \"save\", \"description\": \"{text}\"}}")])
}

#[test]
fn tools_and_their_calls_are_written_as_the_template_does() {
    let loaded = model();
    let template = loaded.chat_template.as_ref().unwrap();
    let (messages, tools) = with_tools("é");
    let ids = template.encode_with_tools(&loaded.tokenizer, &messages, &tools).unwrap();
    let expected = "<|im_start|>system\ns\n\nTools:\n{\"name\": \"save\", \"description\": \
                    \"é\"}\n<|im_end|>\n<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\n\
                    <tool_call>\n{\"name\": \"save\", \"arguments\": {\"a\": \"é\"}}\n\
                    </tool_call>\n<|im_end|>\n<|im_start|>user\n<tool_response>\né\n\
                    </tool_response><|im_end|>\n<|im_start|>assistant\n";
    assert_eq!(ids, loaded.tokenizer.encode_with_control(expected).unwrap());
}

#[test]
fn no_tool_call_or_result_can_open_or_close_a_turn() {
    let loaded = model();
    let template = loaded.chat_template.as_ref().unwrap();
    let vocabulary = loaded.tokenizer.vocabulary();
    let control = |text: &str| {
        let (messages, tools) = with_tools(text);
        let ids = template.encode_with_tools(&loaded.tokenizer, &messages, &tools).unwrap();
        ids.into_iter().filter(|&id| vocabulary.is_control(id)).collect::<Vec<_>>()
    };
    let mut random = Random(5);
    for round in 0..200 {
        let text = random.hostile_text(1 + round % 8);
        assert_eq!(control(&text), control("a"), "{text:?}");
    }
}

#[test]
fn a_template_without_tools_refuses_them() {
    let loaded = model();
    let source = "{% for message in messages %}{{ message.content }}{% endfor %}";
    let template = ChatTemplate::new(source, SpecialTokens::default()).unwrap();
    let (messages, tools) = with_tools("a");
    for (messages, tools) in [(&messages[..], &[][..]), (&messages[..2], &tools[..])] {
        let error = template.encode_with_tools(&loaded.tokenizer, messages, tools).unwrap_err();
        assert!(matches!(error, InferError::TemplateTool { index: 0, got: 0, .. }), "{error}");
    }
}
