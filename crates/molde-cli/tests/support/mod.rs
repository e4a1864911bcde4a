//! Running the real binary in a folder of its own.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder of its own for each test, with an empty cache in it.
pub(crate) struct Sandbox {
    pub(crate) folder: PathBuf,
}

impl Sandbox {
    pub(crate) fn new(test: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        // What an earlier run left; there may be nothing.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("the target folder can be written to");
        Self { folder }
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.folder.join(name), content).expect("the sandbox can be written to");
        name.to_owned()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.run_with_input(arguments, b"")
    }

    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Run {
        let mut child = Command::new(env!("CARGO_BIN_EXE_molde"))
            .args(arguments)
            .current_dir(&self.folder)
            .env("HF_HOME", self.folder.join("cache"))
            .env_remove("HF_HUB_CACHE")
            .env_remove("HF_HUB_OFFLINE")
            .env_remove("HF_TOKEN")
            // A port on which nothing listens: no test touches the network.
            .env("HF_ENDPOINT", "http://127.0.0.1:9")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built");
        // The program may end without reading its input.
        let _ = child.stdin.take().expect("it is piped").write_all(input);
        Run(child.wait_with_output().expect("the program ends"))
    }
}

pub(crate) struct Run(pub(crate) Output);

impl Run {
    pub(crate) fn code(&self) -> i32 {
        self.0.status.code().expect("no signal ended it")
    }

    pub(crate) fn output(&self) -> String {
        String::from_utf8(self.0.stdout.clone()).expect("the output is UTF-8")
    }

    pub(crate) fn errors(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).expect("the messages are UTF-8")
    }

    /// The exit code, with both streams as the message where it is another one.
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "stdout:\n{}\nstderr:\n{}", self.output(), self.errors());
        assert!(!self.errors().contains("panicked"), "{}", self.errors());
        self
    }
}
