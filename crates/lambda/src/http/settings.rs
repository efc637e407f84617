//! The settings of a layer, shared with its services.

use std::sync::Arc;

use lambda_http::{
    Body, Request,
    http::{HeaderMap, HeaderName, Method, Response, StatusCode, request::Parts},
};
use lambda_idempotency_core::{clock::BoxFuture, contained::caught};
use lambda_idempotency_engine::batch::Engine;
use lambda_idempotency_keys::KeyPath;

use super::{callers::Callers, kept};
use crate::operation::Prepared;

/// What a layer was given.
#[derive(Clone)]
pub(super) struct Options {
    pub(super) keys: Keys,
    pub(super) needs_key: Arc<NeedsKey>,
    pub(super) keeps: Arc<Keeps>,
    pub(super) callers: Callers,
    pub(super) verify: Option<Arc<Verify>>,
    pub(super) amends: Option<Arc<Amends>>,
    pub(super) on_replay: Option<Arc<Amends>>,
}

/// Where requests have their key.
#[derive(Clone, Debug)]
pub(super) enum Keys {
    Header(HeaderName),
    Body {
        /// The layer's own path; otherwise the operation's.
        path: Option<KeyPath>,
        /// Whether the path of the request is a part of the key.
        by_path: bool,
    },
}

/// A layer's engine, operation and options, shared with its services.
pub(super) struct Settings {
    pub(super) engine: Engine,
    pub(super) operation: Arc<Prepared>,
    pub(super) options: Options,
}

pub(super) type NeedsKey = dyn Fn(&Parts) -> bool + Send + Sync;
pub(super) type Keeps = dyn Fn(StatusCode) -> bool + Send + Sync;
pub(super) type Verify =
    dyn Fn(Request) -> BoxFuture<'static, Result<(), Response<Body>>> + Send + Sync;
/// Changes a response, given the headers of the request that gets it.
pub(super) type Amends = dyn Fn(&HeaderMap, &mut Response<Body>) + Send + Sync;

impl Options {
    pub(super) fn new(keys: Keys) -> Self {
        Self {
            keys,
            needs_key: Arc::new(|parts| [Method::POST, Method::PATCH].contains(&parts.method)),
            keeps: Arc::new(kept::is_kept_by_default),
            callers: Callers::Known,
            verify: None,
            amends: None,
            on_replay: None,
        }
    }

    /// Whether a request needs a key.
    pub(super) fn needs_key(&self, parts: &Parts) -> bool {
        caught(|| (self.needs_key)(parts)).unwrap_or(true)
    }
}

impl Keys {
    /// Whether the path of a request is a part of its key.
    pub(super) const fn by_path(&self) -> bool {
        matches!(self, Self::Body { by_path: true, .. })
    }
}
