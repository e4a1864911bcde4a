//! The real binary, in all that needs no weights: usage, schemas, documents, exit codes.

mod support;

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use support::{Run, Sandbox};

const SCHEMA: &str =
    r#"{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}"#;

#[test]
fn help_and_version_succeed_and_say_what_the_exit_codes_mean() {
    let sandbox = Sandbox::new("help");
    let help = sandbox.run(&["--help"]).exits(0).output();
    for word in [
        "pull",
        "models",
        "extract",
        "generate",
        "classify",
        "compare",
        "explain",
        "signature",
        "lint",
        "trace",
        "serve",
        "demo",
        "doctor",
        "Exit codes",
    ] {
        assert!(help.contains(word), "{word} in\n{help}");
    }
    assert!(sandbox.run(&["--version"]).exits(0).output().starts_with("molde "));
}

#[test]
fn bad_usage_exits_with_2() {
    let sandbox = Sandbox::new("usage");
    sandbox.file("s.json", SCHEMA);
    for arguments in [
        &[][..],
        &["extract"],
        &["extract", "--schema", "s.json", "--max-tokens", "0"],
        &["extract", "--schema", "s.json", "--deadline", "-1"],
        &["nonsense"],
        &["extract", "--schema", "missing.json", "-"],
        &["extract", "--schema", "s.json", "--instructions", "@missing.txt", "-"],
        &["generate", "@missing.txt"],
        &["extract", "--schema", "s.json", "--model", "no-such-model", "document.txt"],
    ] {
        sandbox.file("document.txt", "Some text.");
        let run = sandbox.run(arguments).exits(2);
        assert_eq!(run.output(), "", "{arguments:?}");
        assert!(!run.errors().is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_schema_that_cannot_be_used_exits_with_2_before_any_model_is_needed() {
    let sandbox = Sandbox::new("schemas");
    sandbox.file("document.txt", "Some text.");
    for (schema, expected) in [
        ("{", "not JSON"),
        ("3", "the root"),
        (r#"{"type": "integer", "minimum": 3, "maximum": 2}"#, "no value satisfies"),
        (r#"{"type": "text"}"#, "/type"),
    ] {
        sandbox.file("s.json", schema);
        let run = sandbox.run(&["extract", "--schema", "s.json", "document.txt"]).exits(2);
        assert!(run.errors().contains(expected), "{schema}: {}", run.errors());
        assert!(run.errors().contains("s.json"), "{}", run.errors());
        assert_eq!(run.output(), "");
    }
}

#[test]
fn every_offender_of_a_refused_schema_is_listed_with_its_pointer() {
    let sandbox = Sandbox::new("offenders");
    sandbox.file("document.txt", "Some text.");
    // Not what is refused today but what stays refused: backreferences are no regular language.
    let schema = r#"{
        "type": "object",
        "properties": {
            "a": {"type": "string", "pattern": "^(a+)b\\1$"},
            "b/c": {"type": "array", "items": {"type": "string", "pattern": "(x)\\1"}}
        }
    }"#;
    sandbox.file("s.json", schema);
    let errors = sandbox.run(&["extract", "--schema", "s.json", "document.txt"]).exits(2).errors();
    for pointer in ["/properties/a/pattern", "/properties/b~1c/items/pattern"] {
        assert!(errors.contains(pointer), "{pointer} in\n{errors}");
    }
}

#[test]
fn a_schema_that_is_no_text_is_named_by_the_bad_byte() {
    let sandbox = Sandbox::new("schema-bytes");
    sandbox.file("s.json", b"{\"a\": \xff}");
    let errors = sandbox.run(&["extract", "--schema", "s.json", "-"]).exits(2).errors();
    assert!(errors.contains("s.json") && errors.contains("offset 6"), "{errors}");
}

#[test]
fn documents_that_cannot_be_read_fail_alone_and_need_no_model() {
    let sandbox = Sandbox::new("documents");
    sandbox.file("s.json", SCHEMA);
    sandbox.file("latin.txt", b"caf\xe9");
    sandbox.file("blank.txt", " \n");
    let run = sandbox
        .run(&["extract", "--schema", "s.json", "latin.txt", "missing.txt", "blank.txt"])
        .exits(1);
    let lines: Vec<serde_json::Value> = run
        .output()
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect();
    let found: Vec<(&str, &str)> = lines
        .iter()
        .map(|line| {
            assert!(line.get("value").is_none());
            assert!(line["error"]["message"].as_str().is_some_and(|message| !message.is_empty()));
            (line["id"].as_str().expect("a name"), line["error"]["kind"].as_str().expect("a kind"))
        })
        .collect();
    assert_eq!(
        found,
        [("latin.txt", "not_utf8"), ("missing.txt", "not_found"), ("blank.txt", "empty_document")]
    );
    assert!(lines[0]["error"]["message"].to_string().contains("offset 3"), "{}", lines[0]);
}

#[cfg(unix)]
#[test]
fn names_with_control_characters_are_escaped_in_messages() {
    let sandbox = Sandbox::new("control-characters");
    sandbox.file("s.json", SCHEMA);
    let name = "a\u{1b}[31m\nmolde: all is well.txt";
    sandbox.file(name, " ");
    for arguments in [
        &["extract", "--schema", "s.json", name][..],
        &["extract", "--schema", "s.json", name, "missing\r.txt"],
        &["extract", "--schema", "s.json", "--offline", "--model", "x\u{7}.gguf", "-"],
        &["extract", "--schema", "no\u{1b}.json", name],
    ] {
        let run = sandbox.run_with_input(arguments, b"Some text.");
        let errors = run.errors();
        assert!(errors.chars().all(|c| c == '\n' || !c.is_control()), "{errors:?}");
        assert!(!errors.contains("\nmolde: all is well"), "{errors}");
        assert!(run.code() == 1 || run.code() == 2, "{errors}");
    }
}

#[test]
fn too_many_threads_are_bad_usage_that_says_how_many_may_be() {
    let sandbox = Sandbox::new("threads");
    let errors = sandbox.run(&["demo", "--threads", "1000000"]).exits(2).errors();
    let cores = std::thread::available_parallelism().expect("a number").get();
    assert!(errors.contains(&format!("at most {}", 4 * cores)), "{errors}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_cache_that_cannot_be_made_gives_advice() {
    let sandbox = Sandbox::new("no-cache");
    let output = Command::new(env!("CARGO_BIN_EXE_molde"))
        .args(["pull", "qwen2.5-coder-0.5b-instruct-q4_k_m"])
        .current_dir(&sandbox.folder)
        .env("HF_HOME", "/proc/nope")
        .env("HF_ENDPOINT", "http://127.0.0.1:9")
        .env_remove("HF_HUB_CACHE")
        .env_remove("HF_HUB_OFFLINE")
        .output()
        .expect("the binary was built");
    let run = Run(output).exits(1);
    assert!(run.errors().contains("choose another folder with HF_HOME"), "{}", run.errors());
}

#[test]
fn one_document_that_fails_leaves_the_output_empty() {
    let sandbox = Sandbox::new("one-document");
    sandbox.file("s.json", SCHEMA);
    for (arguments, input) in [
        (&["extract", "--schema", "s.json", "missing.txt"][..], &b""[..]),
        (&["extract", "--schema", "s.json"], b""),
        (&["extract", "--schema", "s.json", "-"], b"\xff"),
    ] {
        let run = sandbox.run_with_input(arguments, input).exits(1);
        assert_eq!(run.output(), "");
        assert!(!run.errors().is_empty());
    }
}

#[test]
fn offline_without_a_model_says_what_is_missing_and_where() {
    let sandbox = Sandbox::new("offline");
    sandbox.file("s.json", SCHEMA);
    sandbox.file("document.txt", "Some text.");
    for arguments in [
        &["extract", "--schema", "s.json", "--offline", "document.txt"][..],
        &["generate", "hello", "--offline"],
        &["demo", "--offline"],
        &["pull", "--offline"],
        &["pull", "--verify"],
    ] {
        let run = sandbox.run(arguments).exits(1);
        assert!(run.errors().contains("qwen2.5-0.5b-instruct"), "{arguments:?}: {}", run.errors());
        // Where it was looked for, and what to do: fetch it, or point to another cache.
        let cache = sandbox.folder.join("cache").display().to_string();
        assert!(run.errors().contains(&cache), "{arguments:?}: {}", run.errors());
        let help = ["HF_HOME", "pull it"].iter().any(|help| run.errors().contains(help));
        assert!(help, "{arguments:?}: {}", run.errors());
        assert_eq!(run.output(), "");
    }
}

#[test]
fn a_file_that_is_no_model_is_named() {
    let sandbox = Sandbox::new("no-model");
    sandbox.file("s.json", SCHEMA);
    sandbox.file("document.txt", "Some text.");
    sandbox.file("short.gguf", b"GGUF\x03\0\0\0");
    sandbox.file("wrong.gguf", b"PK\x03\x04 this is an archive");
    for model in ["short.gguf", "wrong.gguf", "missing.gguf", "."] {
        let run = sandbox
            .run(&["extract", "--schema", "s.json", "--offline", "--model", model, "document.txt"])
            .exits(1);
        assert!(run.errors().contains(model), "{model}: {}", run.errors());
        assert_eq!(run.output(), "");
    }
}

#[test]
fn the_models_and_the_doctor_work_with_an_empty_cache() {
    let sandbox = Sandbox::new("empty-cache");
    let models = sandbox.run(&["models"]).exits(0).output();
    let default: Vec<&str> = models.lines().filter(|line| line.ends_with("(default)")).collect();
    assert_eq!(default.len(), 1, "{models}");
    assert!(
        models.lines().count() >= 3 && models.lines().all(|line| line.contains("not cached")),
        "{models}"
    );

    let doctor = sandbox.run(&["doctor", "--offline"]).exits(1).output();
    for word in
        ["processor", "thread", "cache", "not there yet, writable", "free", "offline", "default"]
    {
        assert!(doctor.contains(word), "{word} in\n{doctor}");
    }
    assert!(!sandbox.folder.join("cache").exists(), "looking makes nothing");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let sandbox = Sandbox::new("pipe");
    let mut child = Command::new(env!("CARGO_BIN_EXE_molde"))
        .arg("models")
        .env("HF_HOME", sandbox.folder.join("cache"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    // Whether the pipe is closed before or after the program has written: success, and silence.
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stderr, b"");
}

/// The contract of the lesson, as Pydantic writes it.
const LESSON: &str = r#"{"additionalProperties":false,"description":"Previsión de ventas del trimestre siguiente.","properties":{"trimestre":{"anyOf":[{"maximum":4,"minimum":1,"type":"integer"},{"type":"null"}],"title":"Trimestre"},"anio":{"anyOf":[{"maximum":2026,"minimum":2018,"type":"integer"},{"type":"null"}],"title":"Anio"},"bajo":{"anyOf":[{"exclusiveMinimum":0,"type":"number"},{"type":"null"}],"description":"millones de USD","title":"Bajo"},"alto":{"anyOf":[{"exclusiveMinimum":0,"type":"number"},{"type":"null"}],"description":"millones de USD","title":"Alto"}},"required":["trimestre","anio","bajo","alto"],"title":"Prevision","type":"object"}"#;

#[test]
fn a_signature_is_one_line_and_the_whole_schema_has_no_titles() {
    let sandbox = Sandbox::new("signature");
    sandbox.file("s.json", LESSON);
    let run = sandbox.run(&["signature", "--schema", "s.json", "--language", "es"]).exits(0);
    let expected = "{\"trimestre\": integer 1-4 o null, \"anio\": integer 2018-2026 o null, \
                    \"bajo\": number > 0 o null, \"alto\": number > 0 o null}\n";
    assert_eq!(run.output(), expected);
    let full = sandbox.run(&["signature", "--schema", "s.json", "--full"]).exits(0).output();
    assert_eq!(full.lines().count(), 1);
    assert!(
        full.starts_with("{\"additionalProperties\":false,") && !full.contains("title"),
        "{full}"
    );
    sandbox.file("bad.json", "{\"type\": 3}");
    sandbox.run(&["signature", "--schema", "bad.json"]).exits(2);
}

#[test]
fn the_lessons_token_counts_come_out() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data/qwen2.5-tokenizer.json.gz");
    let Ok(compressed) = std::fs::read(&path) else {
        eprintln!("skipped: the tokenizer of the shared data is not here");
        return;
    };
    let mut tokenizer = Vec::new();
    flate2::read::GzDecoder::new(&compressed[..]).read_to_end(&mut tokenizer).expect("gzip");
    let sandbox = Sandbox::new("counts");
    sandbox.file("t.json", tokenizer);
    sandbox.file("s.json", LESSON);
    let run = sandbox
        .run(&[
            "signature",
            "--schema",
            "s.json",
            "--count",
            "--language",
            "es",
            "--no-notes",
            "--instructions",
            "Extrae la previsión de ventas del trimestre siguiente.",
            "--conventions",
            "Importes en millones de USD, sin separador de miles (1 billion = 1000).",
            "--no-data",
            "Sin previsión: null.",
            "--tokenizer",
            "t.json",
        ])
        .exits(0);
    let output = run.output();
    let lines: Vec<&str> = output.lines().skip(1).collect();
    assert_eq!(lines, ["signature 51 tokens", "schema 144 tokens", "system message 100 tokens"]);
}

#[test]
fn lint_says_which_objects_extract_closes() {
    let sandbox = Sandbox::new("closing");
    let open = r#"{"type": "object", "properties": {"a": {"properties": {"b": {}}}}}"#;
    sandbox.file("s.json", open);
    let lint = sandbox.run(&["lint", "--schema", "s.json"]).exits(0).output();
    let added: Vec<&str> = lint.lines().filter(|line| line.starts_with("added")).collect();
    assert_eq!(added.len(), 2, "{lint}");
    assert!(added[0].contains("/properties/a/unevaluatedProperties"), "{lint}");
}

#[test]
fn labels_that_cannot_be_used_exit_with_2_before_a_model_is_needed() {
    let sandbox = Sandbox::new("labels");
    sandbox.file("l.json", "[1, 2]");
    sandbox.file("t.txt", "Hello.");
    let run = sandbox.run(&["classify", "--labels", "l.json", "t.txt"]).exits(2);
    assert!(run.errors().contains("l.json"), "{}", run.errors());
}

#[test]
fn a_truth_that_does_not_match_exits_with_2_before_a_model_is_needed() {
    let sandbox = Sandbox::new("truth");
    sandbox.file("s.json", SCHEMA);
    for (line, expected) in [
        ("{", "not JSON"),
        (r#"{"id": "1", "text": "x"}"#, "truth"),
        (r#"{"id": "1", "text": "x", "truth": {"a": "4"}}"#, "int_type at /a"),
        ("", "no documents"),
    ] {
        sandbox.file("d.jsonl", line);
        let run =
            sandbox.run(&["compare", "--schema", "s.json", "--documents", "d.jsonl"]).exits(2);
        assert!(run.errors().contains(expected), "{line}: {}", run.errors());
        assert!(run.errors().contains("line 1"), "{}", run.errors());
    }
}

#[test]
fn fields_and_rules_that_are_not_there_and_ids_that_repeat_exit_with_2() {
    let sandbox = Sandbox::new("fields");
    sandbox.file("s.json", SCHEMA);
    sandbox.file("d.jsonl", "{\"id\": 1, \"text\": \"x\"}\n{\"id\": 1, \"text\": \"y\"}");
    for (arguments, expected) in [
        (&["--all-or-none", "a,zzz", "d.jsonl"][..], "zzz"),
        (&["--journal", "j.jsonl", "d.jsonl"], "id \"1\""),
        (&["--less-or-equal", "a", "d.jsonl"], "two names"),
    ] {
        let arguments = [&["extract", "--schema", "s.json"], arguments].concat();
        let run = sandbox.run(&arguments).exits(2);
        assert!(run.errors().contains(expected), "{arguments:?}: {}", run.errors());
    }
}
