//! Why a server did not start, or stopped.

use std::net::SocketAddr;

use molde_infer::InferError;

/// The error of [`Server`](crate::Server).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The model's files hold no chat template.
    #[error(
        "the model has no chat template, so it cannot hold conversations: use an instruct model"
    )]
    NoChatTemplate,
    /// Anyone on the network could use the server.
    #[error(
        "{host} is not a loopback address: set an API key, or allow anyone who can reach it \
         explicitly (insecure)"
    )]
    KeyNeeded {
        /// The address asked for.
        host: String,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {host}:{port}: {source}")]
    Bind {
        /// The address asked for.
        host: String,
        /// The port asked for.
        port: u16,
        /// Why.
        source: std::io::Error,
    },
    /// An origin is not one that a browser sends.
    #[error(
        "\"{origin}\" is no web origin: expected * or a scheme and a host, such as http://localhost:3000"
    )]
    Origin {
        /// What was given.
        origin: String,
    },
    /// The model cannot be run.
    #[error(transparent)]
    Infer(#[from] InferError),
    /// The operating system does not give what is needed.
    #[error("the server on {address:?} cannot go on: {source}")]
    Io {
        /// The address, once it is known.
        address: Option<SocketAddr>,
        /// Why.
        source: std::io::Error,
    },
}
