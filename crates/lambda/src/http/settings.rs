//! The settings of a layer, shared with its services.

use std::sync::Arc;

use lambda_http::{
    Body, Request,
    http::{HeaderName, Method, Response, StatusCode, request::Parts},
};
use lambda_idempotency_core::{clock::BoxFuture, contained::caught, policy::Policy};
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
    /// Headers of responses that are not replayed.
    pub(super) not_replayed: Vec<HeaderName>,
    /// A setting that another one has replaced.
    pub(super) mistake: Option<&'static str>,
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
    /// The operation's policy for requests outside of Lambda, whose client may go away.
    pub(super) outside: Policy,
    pub(super) options: Options,
}

pub(super) type NeedsKey = dyn Fn(&Parts) -> bool + Send + Sync;
pub(super) type Keeps = dyn Fn(StatusCode) -> bool + Send + Sync;
pub(super) type Verify =
    dyn Fn(Request) -> BoxFuture<'static, Result<(), Response<Body>>> + Send + Sync;

impl Options {
    pub(super) fn new(keys: Keys) -> Self {
        Self {
            keys,
            needs_key: Arc::new(|parts| [Method::POST, Method::PATCH].contains(&parts.method)),
            keeps: Arc::new(kept::is_kept_by_default),
            callers: Callers::Known,
            verify: None,
            not_replayed: Vec::new(),
            mistake: None,
        }
    }

    /// Sets how callers are told apart, which an earlier setting must not have said.
    pub(super) fn choose(&mut self, callers: Callers) {
        if !matches!(self.callers, Callers::Known) {
            self.mistake = Some(
                "of `.caller(..)`, `.caller_from_header(..)` and `.all_callers_are_one()` the last would replace the \
                 others; choose one",
            );
        }
        self.callers = callers;
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
