//! The official SDKs, in environments of their own, against the server that was just built.

use std::env;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::{python, step};

/// The key that the scripts send.
const KEY: &str = "local";

/// Tokens of an answer whose request says nothing, so that free text does not take all the time.
const MAX_TOKENS: &str = "256";

/// The names of models in captured requests; the first is what the scripts ask for.
const ALIASES: [&str; 2] = ["qwen2.5-0.5b-instruct", "qwen2.5:0.5b-instruct"];

/// The environments, `requirements-NAME.txt`, and the scripts that run in each.
const SCRIPTS: [(&str, &[&str]); 4] = [
    ("latest", &["check_openai.py", "check_anthropic.py", "check_ollama.py"]),
    ("old", &["check_openai.py", "check_anthropic.py"]),
    ("instructor", &["check_instructor.py"]),
    ("langchain", &["check_langchain.py"]),
];

/// Requests that SDKs sent, beside the workspace.
const CAPTURES: &str = "../shared/wire";

/// Runs every script at the same time: requests share the steps of the model.
///
/// # Errors
/// A script that fails, and a server that writes of a panic. In CI also packages that cannot be had.
pub(crate) fn check(root: &Path, molde: &Path, model: &str) -> Result<()> {
    eprintln!("check: official SDKs");
    let begin = Instant::now();
    let mut works = Vec::new();
    for (name, scripts) in SCRIPTS {
        let requirements = format!("tests/sdk/requirements-{name}.txt");
        let made = python::environment(root, &requirements, &format!("sdk-venv-{name}"));
        let Some(python) = unless_absent(&format!("the SDKs of {requirements}"), made)? else {
            continue;
        };
        for script in scripts {
            works.push(Work::new(name, python.clone(), script));
        }
        if name == "latest" {
            let captures = root.join(CAPTURES);
            if captures.is_dir() {
                let work = Work::new(name, python.clone(), "check_wire.py");
                works.push(Work { captures: Some(captures), ..work });
            } else {
                eprintln!("check: captured requests skipped: there is no {CAPTURES}");
            }
        }
    }
    if let Some(folder) = unless_absent("the SDKs of npm", node_folder(root))? {
        works.push(Work {
            folder: Some(folder),
            ..Work::new("npm", "node".into(), "check_node.mjs")
        });
    }
    if works.is_empty() {
        return Ok(());
    }
    let server = Server::start(root, molde, model)?;
    let outcomes: Vec<(String, Result<Output>)> = std::thread::scope(|scope| {
        let run = |work: &Work| (work.to_string(), work.run(root, &server.url));
        let threads: Vec<_> = works.iter().map(|work| scope.spawn(move || run(work))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    server.stop()?;
    let mut failed = Vec::new();
    if outcomes.len() != works.len() {
        bail!("{} of {} scripts could not be watched", works.len() - outcomes.len(), works.len());
    }
    for (name, outcome) in outcomes {
        let output = outcome?;
        let text = String::from_utf8_lossy(&output.stdout);
        eprintln!("{name}:\n{}", text.trim_end());
        if !output.status.success() {
            eprintln!("{}", String::from_utf8_lossy(&output.stderr).trim_end());
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        bail!("official SDKs: {} failed", failed.join(", "));
    }
    eprintln!("check: official SDKs passed in {} s", begin.elapsed().as_secs());
    Ok(())
}

/// What needs a package registry is skipped where there is none, except in CI.
fn unless_absent<T>(what: &str, made: Result<T>) -> Result<Option<T>> {
    match made {
        Ok(made) => Ok(Some(made)),
        Err(error) if env::var("CI").as_deref() == Ok("true") => Err(error),
        Err(error) => {
            eprintln!("check: {what} skipped: {error:#}");
            Ok(None)
        }
    }
}

/// A folder with the npm packages and the script that uses them.
fn node_folder(root: &Path) -> Result<PathBuf> {
    let source = root.join("tests/sdk");
    let folder = root.join("target/sdk-node");
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let wanted = std::fs::read_to_string(source.join("package.json")).context("package.json")?;
    let is_made = std::fs::read_to_string(folder.join("package.json"));
    if !is_made.is_ok_and(|made| made == wanted) || !folder.join("node_modules").is_dir() {
        std::fs::write(folder.join("package.json"), wanted).context("writing package.json")?;
        let mut npm = Command::new("npm");
        npm.current_dir(&folder).args(["install", "--no-audit", "--no-fund", "--silent"]);
        step("npm packages", &mut npm)?;
    }
    let script = "check_node.mjs";
    std::fs::copy(source.join(script), folder.join(script)).context("copying the script")?;
    Ok(folder)
}

/// One script.
struct Work {
    environment: &'static str,
    program: PathBuf,
    script: &'static str,
    /// Where it runs, if not where it is.
    folder: Option<PathBuf>,
    captures: Option<PathBuf>,
}

impl std::fmt::Display for Work {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} ({})", self.script, self.environment)
    }
}

impl Work {
    fn new(environment: &'static str, program: PathBuf, script: &'static str) -> Self {
        Self { environment, program, script, folder: None, captures: None }
    }

    fn run(&self, root: &Path, url: &str) -> Result<Output> {
        let folder = self.folder.clone().unwrap_or_else(|| root.join("tests/sdk"));
        let mut command = Command::new(&self.program);
        command.current_dir(folder).arg(self.script).arg(url);
        match &self.captures {
            Some(captures) => command.arg(captures).arg(KEY),
            None => command.arg(ALIASES[0]),
        };
        command.stdin(Stdio::null()).output().with_context(|| format!("starting {self}"))
    }
}

/// A running server; dropping it ends it.
struct Server {
    child: Child,
    url: String,
    log: PathBuf,
}

impl Server {
    fn start(root: &Path, molde: &Path, model: &str) -> Result<Self> {
        let log = root.join("target/sdk-server.log");
        let errors = File::create(&log).with_context(|| format!("writing {}", log.display()))?;
        let mut command = Command::new(molde);
        command.current_dir(root).args(["serve", "--offline", "--port", "0", "--model", model]);
        command.args(["--api-key", KEY, "--max-tokens", MAX_TOKENS]);
        for alias in ALIASES {
            command.args(["--alias", alias]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
        let child = command.spawn().context("starting the server")?;
        let mut server = Self { child, url: String::new(), log };
        let output = server.child.stdout.take().context("the server's output")?;
        BufReader::new(output).read_line(&mut server.url).context("the server's address")?;
        server.url = server.url.trim().to_owned();
        if server.url.is_empty() {
            bail!("the server did not start:\n{}", server.written());
        }
        Ok(server)
    }

    fn written(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn stop(mut self) -> Result<()> {
        let ended = self.child.try_wait().context("watching the server")?;
        let written = self.written();
        if ended.is_some() || written.contains("panicked") {
            bail!("the server did not last:\n{written}");
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _gone = self.child.kill();
        let _waited = self.child.wait();
    }
}
