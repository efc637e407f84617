//! The settings of a layer, shared with its services.

use std::sync::Arc;

use lambda_http::{
    Body,
    http::{HeaderMap, HeaderName, Method, Response, StatusCode},
};
use lambda_idempotency_engine::batch::Engine;

use super::callers::Callers;
use crate::operation::Prepared;

#[derive(Clone)]
pub(super) struct Settings {
    pub(super) engine: Engine,
    pub(super) operation: Arc<Prepared>,
    pub(super) header: HeaderName,
    pub(super) methods: Vec<Method>,
    pub(super) keeps: Arc<Keeps>,
    pub(super) callers: Callers,
    /// Whether the path is a part of the key.
    pub(super) by_path: bool,
    pub(super) amends: Option<Arc<Amends>>,
    pub(super) on_replay: Option<Arc<Amends>>,
}

pub(super) type Keeps = dyn Fn(StatusCode) -> bool + Send + Sync;
/// Changes a response, given the headers of the request that gets it.
pub(super) type Amends = dyn Fn(&HeaderMap, &mut Response<Body>) + Send + Sync;
