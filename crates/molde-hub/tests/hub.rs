//! The hub's protocol as it should go, and the cache layout that results.

mod support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use molde_hub::{CancelFlag, HubError, ModelLayout, ModelRef, NetworkPolicy, Origin, Reachability};
use support::server::{Fault, Server};
use support::{Bench, COMMIT, FILE, files_in, gguf_catalog, git_sha1, noise, sha256};

const SIZE: usize = 700_000;

fn layout_path(layout: &ModelLayout) -> &Path {
    match layout {
        ModelLayout::Gguf { path } => path,
        other => panic!("a GGUF expected, got {other:?}"),
    }
}

#[test]
fn a_file_lands_in_the_shared_cache_layout_and_is_then_found_without_network() {
    let content = noise(SIZE, 1);
    let server = Server::with(&content);
    let bench = Bench::new(&server.address, gguf_catalog(&content));
    let files = bench.pull().expect("fetched");
    assert_eq!((files.id.as_str(), files.origin), ("tiny", Origin::Hub));
    let path = layout_path(&files.files);
    assert_eq!(path, bench.snapshot().join(FILE));
    assert_eq!(std::fs::read(path).expect("readable"), content);

    // What Python's huggingface_hub expects: a relative link to a blob named by the ETag.
    let etag = sha256(&content);
    #[cfg(unix)]
    assert_eq!(std::fs::read_link(path).expect("a link"), PathBuf::from("../../blobs").join(&etag));
    assert_eq!(files_in(&bench.repo_folder().join("blobs")), std::slice::from_ref(&etag));
    let locks = bench.config.cache.join(".locks/models--owner--tiny-gguf");
    assert_eq!(files_in(&locks), [format!("{etag}.lock")]);

    let requests = server.log().len();
    assert_eq!(bench.pull().expect("cached").origin, Origin::Cached);
    assert_eq!(server.log().len(), requests, "a cached model needs no request");
}

#[test]
fn small_files_are_checked_against_the_git_name_of_their_content() {
    let (config, tokenizer, weights) = (noise(500, 2), noise(900, 3), noise(4000, 4));
    let server = Server::start();
    for (name, content) in
        [("config.json", &config), ("tokenizer.json", &tokenizer), ("model.safetensors", &weights)]
    {
        server.add(&format!("/owner/tiny-gguf/resolve/{COMMIT}/{name}"), content);
    }
    let catalog = gguf_catalog(&weights)
        .replace("\"gguf\"", "\"safetensors\"")
        .replace(FILE, "model.safetensors")
        .replace(
            "[[model.files]]",
            "[[model.files]]\nname = \"config.json\"\n[[model.files]]\nname = \"tokenizer.json\"\n[[model.files]]",
        );
    let bench = Bench::new(&server.address, catalog);

    server.on_get([Fault::WrongByte]);
    match bench.pull() {
        Err(HubError::ChecksumMismatch { file, expected, .. }) => {
            assert_eq!((file.as_str(), expected), ("config.json", git_sha1(&config)));
        }
        other => panic!("a wrong byte must be seen without a pinned checksum: {other:?}"),
    }
    bench.assert_nothing_whole();

    let files = bench.pull().expect("fetched");
    let ModelLayout::Safetensors { folder, weights: found, generation_config, .. } = &files.files
    else {
        panic!("safetensors expected, got {files:?}");
    };
    assert_eq!(
        (folder, found),
        (&bench.snapshot(), &vec![bench.snapshot().join("model.safetensors")])
    );
    assert_eq!(*generation_config, None);

    // Damage of the same size: a small file is hashed whenever it is looked up.
    let path = bench.snapshot().join("config.json");
    std::fs::write(&path, noise(500, 99)).expect("damaged");
    assert_eq!(bench.hub().cached("tiny").expect("known"), None);
    bench.pull().expect("repaired");
    assert_eq!(std::fs::read(&path).expect("readable"), config);
}

#[test]
fn the_token_goes_to_the_hub_and_to_no_other_host() {
    let content = noise(SIZE, 5);
    let (hub, cdn) = (Server::with(&content), Server::with(&content));
    hub.redirect_bytes_to(&cdn);
    let mut bench = Bench::new(&hub.address, gguf_catalog(&content));
    bench.config.token = Some("hf_secret".to_owned());
    bench.pull().expect("fetched");
    assert!(hub.log().iter().all(|request| request.authorization == "Bearer hf_secret"));
    let served = cdn.log();
    assert_eq!(served.len(), 1, "the metadata is the hub's: {served:?}");
    assert!(served.iter().all(|request| request.authorization.is_empty()), "{served:?}");
    assert!(!format!("{:?} {:?}", bench.config, bench.hub()).contains("hf_secret"));
}

#[test]
fn a_token_is_not_sent_again_once_a_redirect_left_the_hub() {
    let content = noise(SIZE, 6);
    let (hub, other) = (Server::with(&content), Server::with(&content));
    let path = format!("/owner/tiny-gguf/resolve/{COMMIT}/{FILE}");
    other.on_head([Fault::Redirect(format!("{}{path}", hub.address))]);
    hub.on_head([Fault::Redirect(format!("{}{path}", other.address))]);
    let mut bench = Bench::new(&hub.address, gguf_catalog(&content));
    bench.config.token = Some("hf_secret".to_owned());
    bench.pull().expect("fetched");
    let sent: Vec<bool> =
        hub.log().iter().map(|request| !request.authorization.is_empty()).collect();
    assert_eq!(sent, [true, false, true], "HEAD, HEAD by way of the other host, GET");
    assert!(other.log().iter().all(|request| request.authorization.is_empty()));
}

#[test]
fn a_redirect_on_the_same_host_is_followed_with_the_token() {
    let content = noise(SIZE, 7);
    let server = Server::with(&content);
    let path = format!("/owner/tiny-gguf/resolve/{COMMIT}/{FILE}");
    server.add("/renamed", &content);
    server.on_head([Fault::Redirect("/renamed".to_owned())]);
    server.on_get([Fault::Redirect("/renamed".to_owned())]);
    let mut bench = Bench::new(&format!("{}/", server.address), gguf_catalog(&content));
    bench.config.token = Some("hf_secret".to_owned());
    bench.pull().expect("fetched");
    let paths: Vec<String> = server.log().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, [&path, "/renamed", &path, "/renamed"]);
    assert!(server.log().iter().all(|request| !request.authorization.is_empty()));
}

#[test]
fn content_that_is_there_under_another_revision_is_checked_and_linked() {
    let content = noise(SIZE, 8);
    let server = Server::with(&content);
    let bench = Bench::new(&server.address, gguf_catalog(&content));
    let blob = bench.blob(&sha256(&content));
    std::fs::create_dir_all(blob.parent().expect("a parent")).expect("folders");
    std::fs::write(&blob, &content).expect("a blob");
    bench.pull().expect("linked");
    assert_eq!(server.gets().len(), 0, "nothing had to be transferred");

    // The same with damaged content: it is fetched anew.
    let bench = Bench::new(&server.address, gguf_catalog(&content));
    std::fs::create_dir_all(bench.blob("x").parent().expect("a parent")).expect("folders");
    std::fs::write(bench.blob(&sha256(&content)), noise(SIZE, 9)).expect("a blob");
    let files = bench.pull().expect("fetched");
    assert_eq!(std::fs::read(layout_path(&files.files)).expect("readable"), content);
}

#[test]
fn verify_finds_a_flipped_bit_that_the_size_does_not_show() {
    let content = noise(SIZE, 10);
    let server = Server::with(&content);
    let bench = Bench::new(&server.address, gguf_catalog(&content));
    bench.pull().expect("fetched");
    let (hub, cancel) = (bench.hub(), CancelFlag::new());
    let absent = Bench::new(&server.address, gguf_catalog(&noise(5, 1)));
    let missing = absent.hub().verify("tiny", &mut |_| {}, &cancel);
    assert!(matches!(missing, Err(HubError::NotCached { .. })), "{missing:?}");
    hub.verify("tiny", &mut |_| {}, &cancel).expect("whole");
    let mut damaged = content.clone();
    damaged[SIZE / 2] ^= 4;
    std::fs::write(bench.blob(&sha256(&content)), &damaged).expect("damaged");
    match hub.verify("tiny", &mut |_| {}, &cancel) {
        Err(HubError::CacheDamaged { expected, got, .. }) => {
            assert_eq!((expected, got), (sha256(&content), sha256(&damaged)));
        }
        other => panic!("damage must be found: {other:?}"),
    }
}

#[test]
fn offline_never_touches_the_network() {
    let content = noise(SIZE, 11);
    let server = Server::with(&content);
    let mut bench = Bench::new(&server.address, gguf_catalog(&content));
    let model = ModelRef::Catalog("tiny".to_owned());
    let cancel = CancelFlag::new();
    let by_policy = bench.hub().resolve(&model, NetworkPolicy::Offline, &mut |_| {}, &cancel);
    bench.config.offline = true;
    let by_setting = bench.pull();
    for result in [by_policy, by_setting] {
        match result {
            Err(HubError::Offline { id, missing, cache }) => {
                assert_eq!((id.as_str(), missing), ("tiny", vec![FILE.to_owned()]));
                assert_eq!(cache, bench.config.cache);
            }
            other => panic!("offline expected, got {other:?}"),
        }
    }
    assert!(matches!(bench.hub().probe("tiny"), Ok(Reachability::Unreachable { .. })));
    assert_eq!(server.log().len(), 0);
    assert!(!bench.config.cache.exists(), "offline does not even make the cache folder");
}

#[test]
fn a_probe_tells_a_hub_that_has_the_model_from_one_that_does_not_answer() {
    let content = noise(1000, 12);
    let server = Server::with(&content);
    let bench = Bench::new(&server.address, gguf_catalog(&content));
    assert_eq!(bench.hub().probe("tiny").expect("known"), Reachability::Reachable);

    // Errors that pass are waited for, within the limit.
    server.on_head([Fault::Status(503), Fault::NoAnswer]);
    assert_eq!(bench.hub().probe("tiny").expect("known"), Reachability::Reachable);

    server.on_head([Fault::Status(404)]);
    let without = bench.hub().probe("tiny").expect("known");
    assert!(matches!(without, Reachability::Unreachable { .. }), "{without:?}");

    server.on_head([Fault::Wait(Duration::from_secs(20))]);
    let mut bench = bench;
    bench.config.answer_timeout = Duration::from_millis(700);
    let hub = bench.hub();
    let started = Instant::now();
    let silent = hub.probe("tiny").expect("known");
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    assert!(matches!(silent, Reachability::Unreachable { .. }), "{silent:?}");

    // Asked and then fetched, the silence is paid for once.
    let started = Instant::now();
    let model = ModelRef::Catalog("tiny".to_owned());
    let fetched = hub.resolve(&model, NetworkPolicy::Online, &mut |_| {}, &CancelFlag::new());
    assert!(matches!(fetched, Err(HubError::Unreachable { .. })), "{fetched:?}");
    assert!(started.elapsed() < Duration::from_millis(500), "{:?}", started.elapsed());
}

#[test]
fn a_port_where_nobody_listens_is_known_at_once() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let bench = Bench::new(&address, gguf_catalog(b"x"));
    let started = Instant::now();
    let result = bench.pull();
    assert!(matches!(result, Err(HubError::Unreachable { .. })), "{result:?}");
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}

#[test]
fn a_certificate_bundle_is_looked_at_only_for_the_network() {
    let content = noise(1000, 14);
    let server = Server::with(&content);
    let mut bench = Bench::new(&server.address, gguf_catalog(&content));
    let bundle = bench.folder.path().join("bundle.pem");
    bench.config.ca_bundle = Some(bundle.clone());
    let missing = bench.pull();
    assert!(matches!(missing, Err(HubError::Io { operation: "read", .. })), "{missing:?}");
    std::fs::write(&bundle, "no certificate").expect("written");
    let empty = bench.pull();
    assert!(matches!(empty, Err(HubError::Setting { variable: "SSL_CERT_FILE", .. })), "{empty:?}");
    let path = bench.snapshot().join(FILE);
    std::fs::create_dir_all(bench.snapshot()).expect("folders");
    std::fs::write(path, &content).expect("written");
    assert_eq!(bench.pull().expect("cached").origin, Origin::Cached);
}

#[test]
fn status_tells_what_is_cached_and_what_has_begun() {
    let content = noise(SIZE, 13);
    let server = Server::with(&content);
    let bench = Bench::new(&server.address, gguf_catalog(&content));
    bench.leave_partial(&sha256(&content), &content[..1234]);
    let hub = bench.hub();
    let begun: Vec<(bool, u64)> =
        hub.status().iter().map(|status| (status.cached.is_some(), status.partial_bytes)).collect();
    assert_eq!(begun, [(false, 1234)]);
    bench.pull().expect("fetched");
    let done: Vec<(bool, u64)> =
        hub.status().iter().map(|status| (status.cached.is_some(), status.partial_bytes)).collect();
    assert_eq!(done, [(true, 0)]);
}
