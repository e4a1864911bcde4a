//! Several processes and one cache: `kill -9`, and two at once.

mod support;

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use support::server::Server;
use support::{Bench, FILE, files_in, gguf_catalog, noise, sha256};

const SIZE: usize = 6_000_000;

/// The example, which cargo builds together with the tests.
fn pull_command(bench: &Bench) -> Command {
    let test = std::env::current_exe().expect("the path of this test");
    let target = test.parent().and_then(|deps| deps.parent()).expect("target/<profile>/deps");
    let example: PathBuf =
        target.join("examples").join(format!("pull{}", std::env::consts::EXE_SUFFIX));
    let catalog = bench.folder.path().join("catalog.toml");
    std::fs::write(&catalog, &bench.catalog).expect("written");
    let mut command = Command::new(example);
    command
        .arg("tiny")
        .arg(&catalog)
        .env("HF_ENDPOINT", &bench.config.endpoint)
        .env("HF_HUB_CACHE", &bench.config.cache)
        .env("HF_HOME", bench.folder.path())
        .stdout(Stdio::piped());
    for name in [
        "HF_TOKEN",
        "HF_TOKEN_PATH",
        "HF_HUB_OFFLINE",
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
        "all_proxy",
        "HTTPS_PROXY",
        "https_proxy",
    ] {
        command.env_remove(name);
    }
    if let Some(python) = &bench.config.python {
        command.env("MOLDE_PYTHON", python);
    }
    command
}

/// Reads a child's lines until one contains `text`.
fn read_until(child: &mut Child, text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let reader = BufReader::new(child.stdout.take().expect("piped"));
    for line in reader.lines() {
        let line = line.expect("text");
        let found = line.contains(text);
        lines.push(line);
        if found {
            return lines;
        }
    }
    panic!("the child ended before it said {text:?}: {lines:#?}");
}

fn output(command: &mut Command) -> (bool, String) {
    let output = command.output().expect("started");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn after_kill_9_at_half_the_next_run_goes_on_from_the_bytes_on_disk() {
    let content = noise(SIZE, 1);
    let server = Server::with(&content);
    server.pace(Duration::from_millis(5));
    let bench = Bench::new(&server.address, gguf_catalog(&content));
    let mut child = pull_command(&bench).spawn().expect("started");
    read_until(&mut child, " 50% ");
    child.kill().expect("SIGKILL");
    child.wait().expect("ended");
    bench.assert_nothing_whole();
    let partial = bench.blob(&format!("{}.incomplete", sha256(&content)));
    let on_disk = std::fs::metadata(&partial).expect("a partial file").len();
    assert!(on_disk >= SIZE as u64 / 2 && on_disk < SIZE as u64, "{on_disk}");

    server.pace(Duration::ZERO);
    let (success, text) = output(&mut pull_command(&bench));
    assert!(success, "{text}");
    assert_eq!(server.gets()[1].range, format!("bytes={on_disk}-"));
    let found = std::fs::read(bench.snapshot().join(FILE)).expect("readable");
    assert!(found == content, "the content is wrong");
    assert_eq!(files_in(&bench.repo_folder().join("blobs")), [sha256(&content)]);
}

#[test]
fn of_two_processes_one_fetches_and_the_other_waits_and_finds_the_file() {
    let content = noise(SIZE, 2);
    let server = Server::with(&content);
    server.pace(Duration::from_millis(20));
    let bench = Bench::new(&server.address, gguf_catalog(&content));
    let mut first = pull_command(&bench).spawn().expect("started");
    // Keeps the pipe open: the first goes on writing to it.
    let mut lines = BufReader::new(first.stdout.take().expect("piped")).lines();
    assert!(lines.any(|line| line.is_ok_and(|line| line.contains(" 10% "))), "it has not begun");
    let reader = std::thread::spawn(move || lines.map_while(Result::ok).collect::<Vec<_>>());
    let (success, text) = output(&mut pull_command(&bench));
    assert!(success && text.contains("Waiting"), "{text}");
    assert!(first.wait().expect("ended").success());
    let said = reader.join().expect("no panic");
    assert!(said.last().is_some_and(|line| line.starts_with("ok ")), "{said:?}");
    assert_eq!(server.gets().len(), 1, "the bytes were fetched once");
    let found = std::fs::read(bench.snapshot().join(FILE)).expect("readable");
    assert!(found == content, "the content is wrong");
}

#[test]
fn a_waiting_process_takes_over_from_one_that_is_killed() {
    let content = noise(SIZE, 3);
    let server = Server::with(&content);
    server.pace(Duration::from_millis(20));
    let bench = Bench::new(&server.address, gguf_catalog(&content));
    let mut first = pull_command(&bench).spawn().expect("started");
    read_until(&mut first, " 20% ");
    let mut second = pull_command(&bench).spawn().expect("started");
    read_until(&mut second, "Waiting");
    first.kill().expect("SIGKILL");
    first.wait().expect("ended");
    assert!(second.wait().expect("ended").success());
    let found = std::fs::read(bench.snapshot().join(FILE)).expect("readable");
    assert!(found == content, "the content is wrong");
    let gets = server.gets();
    assert_eq!(gets.len(), 2);
    assert!(gets[1].range.starts_with("bytes="), "{:?}", gets[1]);
}
