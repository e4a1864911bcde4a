//! What servers, networks and disks do wrong.

mod support;

use std::time::{Duration, Instant};

use molde_hub::{CancelFlag, HubError, ModelRef, NetworkPolicy, RedirectRule};
use support::server::{Fault, Server};
use support::{Bench, COMMIT, FILE, gguf_catalog, noise, sha256};

const SIZE: usize = 3_000_000;

fn case(seed: u64) -> (Vec<u8>, Server, Bench) {
    let content = noise(SIZE, seed);
    let server = Server::with(&content);
    let bench = Bench::new(&server.address, gguf_catalog(&content));
    (content, server, bench)
}

fn assert_fetched(bench: &Bench, content: &[u8]) {
    bench.pull().expect("fetched");
    let found = std::fs::read(bench.snapshot().join(FILE)).expect("readable");
    assert!(found == content, "the content is wrong");
}

fn offset(range: &str) -> usize {
    range
        .strip_prefix("bytes=")
        .and_then(|range| range.strip_suffix('-')?.parse().ok())
        .unwrap_or_else(|| panic!("no open range: {range:?}"))
}

#[test]
fn a_cut_connection_is_resumed_with_the_missing_bytes_only() {
    let (content, server, bench) = case(1);
    server.on_get([Fault::CutAfter(1_000_000), Fault::CutAfter(500_000)]);
    assert_fetched(&bench, &content);
    let ranges: Vec<String> = server.gets().into_iter().map(|request| request.range).collect();
    assert_eq!(ranges, ["", "bytes=1000000-", "bytes=1500000-"]);
    // The hub served the bytes itself, so a change in between would have been noticed.
    assert_eq!(server.gets()[1].if_range, format!("\"{}\"", sha256(&content)));
}

#[test]
fn bytes_of_an_earlier_run_are_read_again_and_not_fetched_again() {
    let (content, server, bench) = case(2);
    bench.leave_partial(&sha256(&content), &content[..2_000_000]);
    let mut events = Vec::new();
    bench.pull_with(&mut |event| events.push(event.to_owned())).expect("fetched");
    assert_eq!(offset(&server.gets()[0].range), 2_000_000);
    assert!(events[0].starts_with("Verify"), "{}", events[0]);
    assert!(events.iter().any(|event| event.contains("resumed_bytes: 2000000")));
    assert_fetched(&bench, &content);
}

#[test]
fn a_partial_file_that_is_complete_needs_no_transfer_and_one_too_long_starts_over() {
    let (content, server, bench) = case(3);
    bench.leave_partial(&sha256(&content), &content);
    assert_fetched(&bench, &content);
    assert_eq!(server.gets().len(), 0);

    let (content, server, bench) = case(4);
    bench.leave_partial(&sha256(&content), &noise(SIZE + 1, 5));
    assert_fetched(&bench, &content);
    assert_eq!(server.gets()[0].range, "");
}

#[test]
fn a_wrong_byte_is_an_error_with_both_checksums_and_the_next_try_is_clean() {
    let (content, server, bench) = case(6);
    server.on_get([Fault::WrongByte]);
    let mut wrong = content.clone();
    *wrong.last_mut().expect("not empty") ^= 1;
    match bench.pull() {
        Err(error @ HubError::ChecksumMismatch { .. }) => {
            let text = error.to_string();
            for part in [FILE, &sha256(&content), &sha256(&wrong)] {
                assert!(text.contains(part), "{text}");
            }
        }
        other => panic!("a checksum error expected, got {other:?}"),
    }
    bench.assert_nothing_whole();
    assert!(!bench.blob(&format!("{}.incomplete", sha256(&content))).exists());
    assert_fetched(&bench, &content);
    assert_eq!(server.gets()[1].range, "", "nothing of the wrong bytes is used");
}

#[test]
fn a_wrong_partial_file_is_found_out_and_removed() {
    let (content, _server, bench) = case(7);
    bench.leave_partial(&sha256(&content), &noise(1_000_000, 8));
    assert!(matches!(bench.pull(), Err(HubError::ChecksumMismatch { .. })));
    bench.assert_nothing_whole();
    assert_fetched(&bench, &content);
}

#[test]
fn another_file_than_the_pinned_one_is_refused_before_its_bytes_are_fetched() {
    let (content, server, bench) = case(9);
    server.on_head([Fault::Etag(sha256(b"another"))]);
    match bench.pull() {
        Err(HubError::ChecksumMismatch { expected, got, .. }) => {
            assert_eq!((expected, got), (sha256(&content), sha256(b"another")));
        }
        other => panic!("a checksum error expected, got {other:?}"),
    }
    assert_eq!(server.gets().len(), 0);
}

#[test]
fn server_errors_and_lost_answers_are_tried_again() {
    for fault in [Fault::Status(500), Fault::Status(503), Fault::Status(429), Fault::NoAnswer] {
        let (content, server, bench) = case(10);
        server.on_head([fault.clone(), Fault::Well]);
        server.on_get([fault.clone(), fault.clone()]);
        assert_fetched(&bench, &content);
        assert_eq!(server.gets().len(), 3, "{fault:?}");
    }
}

#[test]
fn a_server_error_that_stays_is_reported_with_its_status() {
    let (content, server, bench) = case(11);
    server.on_get(vec![Fault::CutAfter(1_200_000)]);
    server.on_get(vec![Fault::Status(502); 3]);
    match bench.pull() {
        Err(HubError::Http { status: 502, host, .. }) => {
            assert!(server.address.ends_with(&host), "{host}");
        }
        other => panic!("status 502 expected, got {other:?}"),
    }
    assert_eq!(server.gets().len(), 1 + 3, "three retries after the first failure");
    bench.assert_nothing_whole();
    assert_fetched(&bench, &content);
    assert_eq!(offset(&server.gets()[4].range), 1_200_000, "what arrived was kept");
}

#[test]
fn refusals_are_final_and_say_what_to_do() {
    for (status, hint) in [(401, "HF_TOKEN"), (403, "HF_TOKEN"), (404, COMMIT), (410, "410")] {
        let (_, server, bench) = case(12);
        server.on_head([Fault::Status(status)]);
        let error = bench.pull().expect_err("refused");
        assert!(error.to_string().contains(hint), "{status}: {error}");
        assert_eq!(server.log().len(), 1, "{status} must not be tried again");

        let (_, server, bench) = case(12);
        server.on_get([Fault::Status(status)]);
        bench.pull().expect_err("refused");
        assert_eq!(server.gets().len(), 1, "{status} must not be tried again");
        bench.assert_nothing_whole();
    }
}

#[test]
fn a_stalled_connection_is_given_up_and_resumed() {
    let (content, server, bench) = case(13);
    server.on_get([Fault::StallAfter(1_000_000, Duration::from_secs(8))]);
    let started = Instant::now();
    assert_fetched(&bench, &content);
    assert!(started.elapsed() < Duration::from_secs(7), "{:?}", started.elapsed());
    assert_eq!(offset(&server.gets()[1].range), 1_000_000);
}

#[test]
fn a_connection_that_keeps_breaking_is_an_error_that_says_how_far_it_came() {
    let (content, server, bench) = case(14);
    server.on_get(vec![Fault::CutAfter(1000); 4]);
    match bench.pull() {
        Err(HubError::Truncated { expected_bytes, got_bytes, attempts, .. }) => {
            assert_eq!((expected_bytes, got_bytes, attempts), (SIZE as u64, 4000, 4));
        }
        other => panic!("truncation expected, got {other:?}"),
    }
    assert_fetched(&bench, &content);
    assert_eq!(offset(&server.gets()[4].range), 4000);
}

#[test]
fn a_server_without_ranges_starts_over() {
    for fault in [Fault::IgnoreRange, Fault::OtherRange, Fault::Status(416)] {
        let (content, server, bench) = case(15);
        server.on_get([Fault::CutAfter(1_000_000), fault.clone()]);
        assert_fetched(&bench, &content);
        assert_eq!(offset(&server.gets()[1].range), 1_000_000, "{fault:?}");
        if let Some(third) = server.gets().get(2) {
            assert_eq!(third.range, "", "{fault:?}");
        }
    }
}

#[test]
fn a_content_length_that_is_not_the_size_is_an_error_with_both() {
    let (_, server, bench) = case(16);
    server.on_get([Fault::LengthMore(10)]);
    match bench.pull() {
        Err(HubError::SizeMismatch { expected_bytes, got_bytes, .. }) => {
            assert_eq!((expected_bytes, got_bytes), (SIZE as u64, SIZE as u64 + 10));
        }
        other => panic!("a size error expected, got {other:?}"),
    }
    bench.assert_nothing_whole();
}

#[test]
fn a_hub_with_a_file_of_another_size_is_an_error_with_both() {
    let content = noise(SIZE, 17);
    let server = Server::with(&content[1..]);
    let bench = Bench::new(&server.address, gguf_catalog(&content));
    match bench.pull() {
        Err(HubError::SizeMismatch { expected_bytes, got_bytes, .. }) => {
            assert_eq!((expected_bytes, got_bytes), (SIZE as u64, SIZE as u64 - 1));
        }
        other => panic!("a size error expected, got {other:?}"),
    }
}

#[test]
fn content_that_changes_under_way_is_not_mixed() {
    let (_, server, bench) = case(18);
    server.on_get([Fault::CutAfter(1_200_000), Fault::Etag(sha256(b"new"))]);
    assert!(matches!(bench.pull(), Err(HubError::Changed { .. })));
    bench.assert_nothing_whole();
}

#[test]
fn redirects_that_go_round_or_nowhere_end() {
    let (_, server, bench) = case(19);
    server.on_head(vec![Fault::Redirect("/loop".to_owned()); 40]);
    let error = bench.pull().expect_err("a loop");
    assert!(
        matches!(error, HubError::RedirectRefused { why: RedirectRule::TooMany, .. }),
        "{error:?}"
    );
    let (_, server, bench) = case(20);
    server.on_get([Fault::Redirect("ftp://elsewhere.test/x".to_owned())]);
    let error = bench.pull().expect_err("no http");
    assert!(
        matches!(error, HubError::RedirectRefused { why: RedirectRule::BadLocation, .. }),
        "{error:?}"
    );
}

#[test]
fn a_login_page_in_between_is_recognized() {
    let (_, server, bench) = case(21);
    server.on_head([Fault::NoEtag]);
    assert!(matches!(bench.pull(), Err(HubError::NotAHub { header: "ETag", .. })));
    for etag in ["../../escape", "", "a/b"] {
        let (_, server, bench) = case(21);
        server.on_head([Fault::Etag(etag.to_owned())]);
        assert!(matches!(bench.pull(), Err(HubError::NotAHub { .. })), "{etag:?}");
        assert!(!bench.repo_folder().join("escape").exists());
    }
}

#[test]
fn cancelling_stops_between_chunks_and_keeps_what_arrived() {
    let (content, server, bench) = case(22);
    server.pace(Duration::from_millis(5));
    let cancel = CancelFlag::new();
    let mut done = 0;
    let mut on_event = |event: molde_hub::Event<'_>| {
        if let molde_hub::Event::Bytes { done_bytes, .. } = event {
            done = done_bytes;
            if done_bytes > 500_000 {
                cancel.cancel();
            }
        }
    };
    let model = ModelRef::Catalog("tiny".to_owned());
    let result = bench.hub().resolve(&model, NetworkPolicy::Online, &mut on_event, &cancel);
    assert!(matches!(result, Err(HubError::Cancelled)), "{result:?}");
    assert!(done < SIZE as u64);
    let kept = std::fs::metadata(bench.blob(&format!("{}.incomplete", sha256(&content))))
        .expect("a partial file")
        .len();
    assert_eq!(kept, done);
    bench.assert_nothing_whole();
}

#[test]
fn waiting_for_another_process_can_be_limited() {
    let (content, server, mut bench) = case(27);
    bench.config.lock_timeout = Some(Duration::from_millis(300));
    let locks = bench.config.cache.join(".locks/models--owner--tiny-gguf");
    std::fs::create_dir_all(&locks).expect("folders");
    let lock = std::fs::File::create(locks.join(format!("{}.lock", sha256(&content))));
    let lock = lock.expect("a lock file");
    lock.lock().expect("locked");
    let mut events = Vec::new();
    let result = bench.pull_with(&mut |event| events.push(event.to_owned()));
    assert!(matches!(result, Err(HubError::Locked { .. })), "{result:?}");
    assert_eq!(events.len(), 1, "it says once that it waits: {events:?}");
    assert_eq!(server.gets().len(), 0);
    lock.unlock().expect("unlocked");
    assert_fetched(&bench, &content);
}

#[test]
fn a_cache_that_cannot_be_written_is_named() {
    let (_, _server, mut bench) = case(23);
    let file = bench.folder.path().join("a-file");
    std::fs::write(&file, "").expect("a file");
    bench.config.cache = file.join("hub");
    let error = bench.pull().expect_err("a file is no folder");
    assert!(matches!(error, HubError::ReadOnly { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("a-file") && text.contains("HF_HOME"), "{text}");
}

/// A folder of the kernel's own file systems: nobody may create anything there, root included.
#[cfg(target_os = "linux")]
#[test]
fn a_read_only_file_system_is_named() {
    let (_, _server, mut bench) = case(24);
    for folder in ["/sys/kernel/molde-hub-test", "/proc/molde-hub-test"] {
        bench.config.cache = folder.into();
        let error = bench.pull().expect_err("read-only");
        assert!(matches!(error, HubError::ReadOnly { .. }), "{error:?}");
        assert!(error.to_string().contains("HF_HOME"), "{error}");
    }
}

/// `/dev/full` answers every write with "no space left on device".
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_that_says_what_is_needed_and_leaves_nothing_whole() {
    let (content, _server, bench) = case(25);
    let partial = bench.blob(&format!("{}.incomplete", sha256(&content)));
    std::fs::create_dir_all(partial.parent().expect("a parent")).expect("folders");
    std::os::unix::fs::symlink("/dev/full", &partial).expect("a link");
    match bench.pull() {
        Err(error @ HubError::DiskFull { needed_bytes, .. }) => {
            assert_eq!(needed_bytes, SIZE as u64);
            assert!(error.to_string().contains("3.0 MB needed"), "{error}");
        }
        other => panic!("a full disk expected, got {other:?}"),
    }
    bench.assert_nothing_whole();
}

#[test]
fn a_file_larger_than_the_disk_is_refused_before_it_is_fetched() {
    let size = 1_u64 << 60;
    let content = noise(1000, 26);
    let server = Server::with(&content);
    let catalog =
        gguf_catalog(&content).replace("size_bytes = 1000", &format!("size_bytes = {size}"));
    let bench = Bench::new(&server.address, catalog);
    server.on_head([Fault::Size(size)]);
    let error = bench.pull().expect_err("no such disk");
    assert!(
        matches!(error, HubError::DiskFull { needed_bytes, available_bytes: Some(_), .. } if needed_bytes == size),
        "{error:?}"
    );
    assert_eq!(server.gets().len(), 0);
}
