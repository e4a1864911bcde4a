//! Reading the body of a request within its limits.

use axum::body::Body;
use http_body_util::BodyExt as _;

use crate::app::App;
use crate::fault::{Fault, Kind};

/// How many times the limit is read and thrown away of a body that is too large: a client that is
/// cut off while it sends does not see the answer.
const PATIENCE: usize = 8;

/// The whole body.
///
/// # Errors
/// [`Kind::TooLarge`], [`Kind::SlowBody`], or [`Kind::Invalid`] for one that breaks off.
pub(crate) async fn collect(app: &App, body: Body) -> Result<Vec<u8>, Fault> {
    let limits = &app.config.limits;
    match tokio::time::timeout(limits.reading, read(body, limits.body_bytes)).await {
        Ok(read) => read,
        Err(_) => Err(Fault::new(
            Kind::SlowBody,
            format!("the body did not arrive within {} seconds", limits.reading.as_secs_f64()),
        )),
    }
}

async fn read(mut body: Body, most: usize) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    let mut total = 0_usize;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Fault::invalid("the body broke off before its end"))?;
        let Some(data) = frame.data_ref() else { continue };
        total = total.saturating_add(data.len());
        if total > most.saturating_mul(PATIENCE) {
            break;
        }
        if total > most {
            bytes = Vec::new();
        } else {
            bytes.extend_from_slice(data);
        }
    }
    if total > most {
        return Err(Fault::new(Kind::TooLarge, format!("the body has more than {most} bytes")));
    }
    Ok(bytes)
}
