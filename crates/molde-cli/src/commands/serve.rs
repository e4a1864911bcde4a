//! `molde serve`: the model over HTTP.

use std::future::Future;
use std::io::Write as _;
use std::time::Duration;

use molde_server::{Config, Limits, Server};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::Serve;
use crate::failure::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::model;

/// Time between two looks at whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(50);
/// The environment variable with the key, so that it need not be on a command line.
const KEY_VARIABLE: &str = "MOLDE_API_KEY";

/// Serves until Ctrl-C or SIGTERM.
pub(crate) fn run(args: &Serve, interrupts: &Interrupts) -> Result<Exit, Failure> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("molde_server=warn"));
    // A program that has a subscriber already keeps it.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .try_init();
    let (loaded, id) = model::load_parts(&args.model, interrupts)?;
    let api_key = args.api_key.clone().or_else(|| std::env::var(KEY_VARIABLE).ok());
    let config = Config {
        host: args.host.clone(),
        port: args.port,
        aliases: args.alias.clone(),
        api_key: api_key.filter(|key| !key.is_empty()),
        insecure: args.insecure,
        hosts: args.allow_host.clone(),
        origins: args.allow_origin.clone(),
        show_schema: !args.hide_schema,
        recover_bounds: !args.no_recover_bounds,
        log_content: args.log_content,
        limits: Limits {
            sequences: args.parallel,
            queue: args.queue,
            default_max_tokens: args.max_tokens,
            request: args.deadline,
            drain: args.drain,
            ..Limits::default()
        },
        ..Config::new(id)
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Failure::Runtime)?;
    runtime.block_on(async {
        let stop = stop(interrupts)?;
        let server = Server::bind(loaded, args.model.context, config).await?;
        let mut output = std::io::stdout().lock();
        writeln!(output, "http://{}", server.address())
            .and_then(|()| output.flush())
            .map_err(Failure::Output)?;
        drop(output);
        server.run(stop).await?;
        Ok(Exit::Success)
    })
}

/// Ready when the program is asked to stop.
fn stop(interrupts: &Interrupts) -> Result<impl Future<Output = ()>, Failure> {
    let mut terminated = signal(SignalKind::terminate()).map_err(Failure::Runtime)?;
    let interrupts = interrupts.clone();
    Ok(async move {
        let interrupted = async {
            while !interrupts.work.is_cancelled() {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            _ = terminated.recv() => {}
            () = interrupted => {}
        }
    })
}
