//! Which model a command uses when none is named. The library never decides this by itself.

use crate::catalog::Catalog;
use crate::hub::{NetworkPolicy, Reachability};

/// A model and, if it is not the default one, why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DefaultChoice {
    /// Id of the model.
    pub id: String,
    /// Why it is not the default model, as the end of a sentence; none if it is.
    pub reason: Option<String>,
}

/// Chooses between the catalogue's default and its fallback: the default if it is in the cache or
/// the hub has it, else the fallback.
///
/// `cached` says whether a model of this id is in the cache. `probe` is asked only if the network
/// may be used and the default is not in the cache. Offline with neither in the cache the default
/// is chosen, so that the error that follows is about it.
pub fn choose_default(
    catalog: &Catalog,
    policy: NetworkPolicy,
    cached: impl Fn(&str) -> bool,
    probe: impl FnOnce(&str) -> Reachability,
) -> DefaultChoice {
    let (default, fallback) = (catalog.default_id(), catalog.fallback_id());
    let chosen = |id: &str, reason| DefaultChoice { id: id.to_owned(), reason };
    if default == fallback || cached(default) {
        return chosen(default, None);
    }
    match policy {
        NetworkPolicy::Offline if cached(fallback) => {
            let reason = format!("{default} is not in the cache and offline mode is on");
            chosen(fallback, Some(reason))
        }
        NetworkPolicy::Offline => chosen(default, None),
        NetworkPolicy::Online => match probe(default) {
            Reachability::Reachable => chosen(default, None),
            Reachability::Unreachable { reason } => {
                let reason =
                    format!("{default} is not in the cache and cannot be fetched: {reason}");
                chosen(fallback, Some(reason))
            }
        },
    }
}
