//! Models that are named by their place on disk.

use std::path::Path;

use molde_hub::{
    CancelFlag, Catalog, Hub, HubConfig, HubError, ModelFiles, ModelLayout, ModelPathProblem,
    ModelRef, NetworkPolicy, Origin,
};

fn resolve(path: &Path) -> Result<ModelFiles, HubError> {
    let mut config = HubConfig::new("/nowhere/at/all");
    // Nothing must be asked for a path.
    "http://127.0.0.1:9".clone_into(&mut config.endpoint);
    let hub = Hub::new(Catalog::embedded(), config).expect("valid settings");
    let model = ModelRef::Path(path.to_owned());
    hub.resolve(&model, NetworkPolicy::Offline, &mut |_| {}, &CancelFlag::new())
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).expect("written");
    }
    folder
}

#[test]
fn a_gguf_is_known_by_its_name_or_its_first_bytes() {
    let folder = folder(&[("a.GGUF", ""), ("b.bin", "GGUF\u{3}"), ("c.bin", "GGU"), ("d", "")]);
    for (name, is_gguf) in [("a.GGUF", true), ("b.bin", true), ("c.bin", false), ("d", false)] {
        let path = folder.path().join(name);
        match resolve(&path) {
            Ok(files) => {
                assert!(is_gguf, "{name}");
                assert_eq!((files.id.as_str(), files.origin), (name, Origin::Path));
                assert_eq!(files.files, ModelLayout::Gguf { path });
            }
            Err(HubError::NotAModel { problem, .. }) => {
                assert!(!is_gguf, "{name}");
                assert_eq!(problem, ModelPathProblem::NotGguf);
            }
            Err(error) => panic!("{name}: {error:?}"),
        }
    }
    match resolve(&folder.path().join("missing.gguf")) {
        Err(HubError::NotAModel { problem: ModelPathProblem::Missing, path }) => {
            assert!(path.ends_with("missing.gguf"));
        }
        other => panic!("nothing is there: {other:?}"),
    }
}

const INDEX: &str =
    r#"{"weight_map": {"a": "m-2.safetensors", "b": "m-1.safetensors", "c": "m-2.safetensors"}}"#;

#[test]
fn a_folder_gives_its_weights_in_order() {
    let base = [("config.json", "{}"), ("tokenizer.json", "{}")];
    let shards = [("m-1.safetensors", ""), ("m-2.safetensors", ""), ("unrelated.safetensors", "")];
    for (more, expected) in [
        (vec![("model.safetensors", "")], vec!["model.safetensors"]),
        (
            [&shards[..], &[("model.safetensors.index.json", INDEX)]].concat(),
            vec!["m-1.safetensors", "m-2.safetensors"],
        ),
        (shards.to_vec(), vec!["m-1.safetensors", "m-2.safetensors", "unrelated.safetensors"]),
    ] {
        let folder = folder(&[&base[..], &more].concat());
        let files = resolve(folder.path()).expect("a model");
        let ModelLayout::Safetensors { weights, tokenizer_config, .. } = files.files else {
            panic!("safetensors expected");
        };
        let expected: Vec<_> = expected.iter().map(|name| folder.path().join(name)).collect();
        assert_eq!(weights, expected);
        assert_eq!(tokenizer_config, None);
    }
    let one = folder(&[("only.gguf", ""), ("README.md", "")]);
    let files = resolve(one.path()).expect("a model").files;
    assert_eq!(files, ModelLayout::Gguf { path: one.path().join("only.gguf") });
}

#[test]
fn a_folder_that_is_no_model_says_what_it_lacks() {
    let all = [("config.json", "{}"), ("tokenizer.json", "{}"), ("model.safetensors", "")];
    let with_index = |index| [all[0], all[1], ("model.safetensors.index.json", index)];
    for (files, part) in [
        (vec![], "config.json"),
        (vec![all[1], all[2]], "config.json"),
        (vec![all[0], all[2]], "tokenizer.json"),
        (vec![all[0], all[1]], "model.safetensors"),
        (vec![("a.gguf", ""), ("b.gguf", "")], "several .gguf"),
        (with_index("{").to_vec(), "is no JSON"),
        (with_index("{}").to_vec(), "has no weight_map"),
        (with_index(r#"{"weight_map": {}}"#).to_vec(), "names no shard"),
        (with_index(r#"{"weight_map": {"a": "../x"}}"#).to_vec(), "no plain file name"),
        (with_index(r#"{"weight_map": {"a": 1}}"#).to_vec(), "no plain file name"),
        (with_index(INDEX).to_vec(), "m-1.safetensors is no model: nothing is there"),
    ] {
        let folder = folder(&files);
        let error = resolve(folder.path()).expect_err(part);
        assert!(matches!(error, HubError::NotAModel { .. }), "{part}: {error:?}");
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
}

#[test]
fn one_word_is_an_id_or_a_path() {
    let catalog = Catalog::embedded();
    let folder = folder(&[]);
    let existing = folder.path().to_str().expect("text");
    for (text, is_path) in [
        ("qwen2.5-0.5b-instruct", false),
        ("qwen2.5-1.5b", false),
        ("./qwen2.5-0.5b-instruct", true),
        ("models/mine", true),
        ("mine.gguf", true),
        (existing, true),
    ] {
        let model = ModelRef::from_text(text, &catalog);
        assert_eq!(matches!(model, ModelRef::Path(_)), is_path, "{text}");
    }
}
