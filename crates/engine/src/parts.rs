//! What an engine is made of.

use std::sync::Arc;

use lambda_idempotency_core::{clock::Clock, outbox::Sender, store::Store};

use crate::{observe::Observers, process::Completed, workers::Workers};

/// The parts of an engine, which its clones share.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Sends the messages that calls publish.
    pub(crate) sender: Option<Arc<dyn Sender>>,
    pub(crate) observers: Observers,
    /// Whether the spans of handlers have the fields of OpenTelemetry.
    pub(crate) has_opentelemetry_fields: bool,
    pub(crate) completed: Arc<Completed>,
    /// Whether nothing is claimed: each record runs.
    pub(crate) is_unprotected: bool,
    pub(crate) application: Option<Arc<str>>,
    /// The function, for the provenance of claims.
    pub(crate) workers: Arc<Workers>,
}
