//! The `tracing` span of a handler: its fields name the record to which a log line of the handler belongs.

use std::fmt;

use tracing::{Span, field};

use crate::{call::Call, delivered::Messaging};

/// The span of one call of a handler. It is made when the handler is called, and entered for each of
/// its polls. If no subscriber wants it, its fields are not evaluated.
///
/// A subscriber may format the fields when the span is made, although most handlers log nothing. So there are only those
/// that name the record, unless those of OpenTelemetry are asked for. Their names, with dots, are those of its conventions
/// for messaging, and of `tracing-opentelemetry`.
pub(crate) fn of(operation: &str, call: &Call, has_opentelemetry_fields: bool) -> Span {
    let record = call.record();
    macro_rules! span {
        ($($more:tt)*) => {
            tracing::info_span!(
                target: "lambda_idempotency::handler",
                "handler",
                source = record.source,
                record = record.label(),
                operation,
                key_hash = call.key_hash(),
                failed_attempts = call.failed_attempts(),
                lost_attempts = call.lost_attempts(),
                $($more)*
            )
        };
    }
    if !has_opentelemetry_fields {
        return span!();
    }
    span!(
        "otel.name" = field::display(Name { operation, messaging: call.messaging() }),
        "otel.kind" = if call.messaging().is_some() { "consumer" } else { "internal" },
        "otel.status_code" = field::Empty,
        "error.type" = field::Empty,
        "messaging.system" = call.messaging().map(|messaging| messaging.system),
        "messaging.operation.name" = call.messaging().map(|_| "process"),
        "messaging.operation.type" = call.messaging().map(|_| "process"),
        "messaging.destination.name" = call.messaging().and_then(|messaging| messaging.destination),
        "messaging.message.id" = call.messaging().and_then(|messaging| messaging.message_id),
        "trace.parent" = call.trace_context().map(field::display),
    )
}

/// The handler of this span has failed, with an error of this type. A span without the fields does not record it.
pub(crate) fn failed(span: &Span, error_type: &str) {
    span.record("error.type", error_type);
    span.record("otel.status_code", "ERROR");
}

/// What OpenTelemetry calls the span: what is done and with which destination, or the operation's name.
struct Name<'a> {
    operation: &'a str,
    messaging: Option<Messaging<'a>>,
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.messaging {
            Some(Messaging { destination: Some(destination), .. }) => {
                write!(f, "process {destination}")
            }
            Some(_) => f.write_str("process"),
            None => f.write_str(self.operation),
        }
    }
}
