//! Listening, connections and their end.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use molde_infer::LoadedModel;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Sleep;

use crate::app::App;
use crate::config::Config;
use crate::error::ServerError;
use crate::routes::router;

/// Time between two tries where the system has no file descriptor left for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Time for answers to be sent after the sequences behind them were stopped.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A server that listens, and is not running yet.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    /// Listens. `context_tokens` can only lower what the model has.
    ///
    /// # Errors
    /// [`ServerError::KeyNeeded`], [`ServerError::NoChatTemplate`], [`ServerError::Bind`],
    /// [`ServerError::Origin`] and [`ServerError::Io`].
    pub async fn bind(
        loaded: LoadedModel,
        context_tokens: Option<usize>,
        config: Config,
    ) -> Result<Self, ServerError> {
        let is_loopback = config.host == "localhost"
            || config.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        if !is_loopback && config.api_key.is_none() && !config.insecure {
            return Err(ServerError::KeyNeeded { host: config.host });
        }
        let (host, port) = (config.host.clone(), config.port);
        let listener = TcpListener::bind((host.as_str(), port))
            .await
            .map_err(|source| ServerError::Bind { host, port, source })?;
        let address =
            listener.local_addr().map_err(|source| ServerError::Io { address: None, source })?;
        let app = Arc::new(App::new(loaded, context_tokens, config)?);
        // Checks the origins before anyone is told that the server runs.
        let _ = router(&app)?;
        Ok(Self { app, listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is ready; then takes no new connections, answers what is running within
    /// [`Limits::drain`](crate::Limits::drain), stops the rest and returns.
    ///
    /// # Errors
    /// [`ServerError::Origin`], which [`bind`](Self::bind) has ruled out.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), ServerError> {
        let service = TowerToHyperService::new(router(&self.app)?);
        let limits = self.app.config.limits.clone();
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(limits.reading);
        let connections = Arc::new(Semaphore::new(limits.connections.max(1)));
        let graceful = GracefulShutdown::new();
        tokio::pin!(stop);
        loop {
            let permit = tokio::select! {
                permit = Arc::clone(&connections).acquire_owned() => permit,
                () = &mut stop => break,
            };
            let Ok(permit) = permit else { break };
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = &mut stop => break,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            // Small pieces of a stream are to leave at once; without it they only leave later.
            let _ = stream.set_nodelay(true);
            let io = TokioIo::new(Patient::new(stream, limits.writing));
            let connection = graceful.watch(http.serve_connection(io, service.clone()));
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection ended with an error");
                }
                drop(permit);
            });
        }
        drop(self.listener);
        self.app.drain();
        let app = Arc::clone(&self.app);
        let drained = graceful.shutdown();
        tokio::pin!(drained);
        if tokio::time::timeout(limits.drain, &mut drained).await.is_err() {
            tracing::warn!("requests are still running: they are stopped");
            app.stop_all();
            let _ = tokio::time::timeout(LAST_WORDS, &mut drained).await;
        }
        Ok(())
    }
}

/// A connection that ends when its peer takes nothing for too long.
#[derive(Debug)]
struct Patient {
    stream: TcpStream,
    patience: Duration,
    /// Runs while a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn new(stream: TcpStream, patience: Duration) -> Self {
        Self { stream, patience, waiting: None }
    }

    fn or_too_late<T>(
        &mut self,
        polled: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.waiting = None;
            return polled;
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.or_too_late(polled, context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        this.or_too_late(polled, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
