//! Exports a span for each call of a handler, linked to the span in which its record was sent.
//!
//! `lambda-idempotency` makes the spans, with the names of OpenTelemetry's conventions for messaging. This function
//! sends them to a collector at `http://localhost:4318` (`OTEL_EXPORTER_OTLP_ENDPOINT` names another), such as the one in
//! the Lambda layer of the AWS Distro for OpenTelemetry, before Lambda freezes the process.

use lambda_idempotency::{Call, DynamoDbStore, Failure, Idempotency, Operation, source::Sqs};
use lambda_runtime::{Error, Runtime, layers::OpenTelemetryLayer};
use opentelemetry_api::trace::{
    SpanContext, SpanId, TraceFlags, TraceId, TraceState, TracerProvider as _,
};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{filter::LevelFilter, layer::SubscriberExt as _, registry::LookupSpan};

#[derive(serde::Deserialize)]
struct Order {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let exporter = opentelemetry_otlp::SpanExporter::builder().with_http().build()?;
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).build();
    let log = tracing_subscriber::fmt::layer().json();
    let subscriber = tracing_subscriber::registry().with(LevelFilter::INFO).with(log);
    tracing::subscriber::set_global_default(subscriber.with(spans(&provider)))?;

    let store = DynamoDbStore::from_env().await?;
    let idempotency = Idempotency::new(store).with_opentelemetry_fields();
    let function =
        idempotency.on(Sqs::new(), &Operation::new("place-order").key("orderId"), place_order)?;
    let flush = OpenTelemetryLayer::new(move || {
        if let Err(error) = provider.force_flush() {
            tracing::warn!("spans are missing, because the collector did not take them: {error}");
        }
    });
    Runtime::new(function).layer(flush).run().await
}

async fn place_order(_: Order, call: Call) -> Result<(), Failure> {
    link(&call);
    tracing::info!("placing the order");
    Ok(())
}

/// Sends the spans of `tracing` to the exporter of `provider`.
fn spans<S>(provider: &SdkTracerProvider) -> impl tracing_subscriber::Layer<S>
where
    S: tracing::Subscriber + for<'s> LookupSpan<'s>,
{
    tracing_opentelemetry::layer().with_tracer(provider.tracer("lambda-idempotency"))
}

/// Links the span of this call of a handler to the span in which its record was sent.
///
/// A link, and not a parent: the records of a batch have several producers, and the conventions ask for links.
fn link(call: &Call) {
    let Some(sent) = call.trace_context() else { return };
    let flags = if sent.is_sampled() { TraceFlags::SAMPLED } else { TraceFlags::default() };
    Span::current().add_link(SpanContext::new(
        TraceId::from_bytes(sent.trace_id().to_be_bytes()),
        SpanId::from_bytes(sent.span_id().to_be_bytes()),
        flags,
        true,
        TraceState::default(),
    ));
}

#[cfg(test)]
mod tests {
    use lambda_idempotency::{MemoryStore, testing};
    use opentelemetry_api::trace::SpanKind;
    use opentelemetry_sdk::trace::InMemorySpanExporter;

    use super::*;

    #[tokio::test]
    async fn the_span_of_a_handler_is_linked_to_the_span_of_its_producer() {
        let exporter = InMemorySpanExporter::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
        let subscriber = tracing_subscriber::registry().with(spans(&provider));
        let guard = tracing::subscriber::set_default(subscriber);
        let idempotency = Idempotency::new(MemoryStore::new()).with_opentelemetry_fields();
        let function =
            idempotency.on(Sqs::new(), &Operation::new("place").key("id"), place_order).unwrap();
        let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let event = serde_json::json!({ "Records": [{
            "messageId": "m-1",
            "body": r#"{"id":"1"}"#,
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:orders",
            "messageAttributes": {
                "traceparent": { "dataType": "String", "stringValue": traceparent },
            },
        }] });
        testing::invoke(&function, &event).await.unwrap();
        drop(guard);
        let spans = exporter.get_finished_spans().unwrap();
        let span = spans.iter().find(|span| span.name == "process orders").unwrap();
        assert_eq!(span.span_kind, SpanKind::Consumer);
        let link = &span.links.links[0].span_context;
        assert_eq!(link.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(link.span_id().to_string(), "00f067aa0ba902b7");
    }
}
