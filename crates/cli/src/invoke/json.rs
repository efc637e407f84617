//! The report, for programs. Its shape is described in the crate's README.

use lambda_idempotency_local::{DeliveryReport, InvocationReport, InvocationResult, RecordReport};
use serde_json::{Map, Value, json};

use super::report::{Rows, Totals, has_refused};

/// The whole report as one document.
pub(crate) fn document(report: &DeliveryReport, tables: &[Rows], is_whole: bool) -> Value {
    let totals = Totals::of(report);
    let tables: Map<String, Value> =
        tables.iter().map(|rows| (rows.table.name().to_owned(), json!(rows.items))).collect();
    json!({
        "version": 1,
        "complete": is_whole && report.is_complete() && !has_refused(report),
        "summary": {
            "deliveries": totals.deliveries,
            "executed": totals.executed,
            "answered_without_running": totals.answered,
            "returned": totals.returned,
            "dead_lettered": totals.dead_lettered,
            "diverted": totals.diverted,
            "errors": totals.errors,
            "other": totals.other,
        },
        "invocations": report.invocations.iter().map(invocation).collect::<Vec<_>>(),
        "dead_letters": report.dead_letters,
        "tables": tables,
    })
}

fn invocation(report: &InvocationReport) -> Value {
    let invocation = &report.invocation;
    json!({
        "source": report.source,
        "request_id": invocation.request_id,
        "result": result(&invocation.result),
        "ms": invocation.duration.as_secs_f64() * 1000.0,
        "dynamodb": invocation.dynamodb,
        "records": report.records.iter().map(record).collect::<Vec<_>>(),
    })
}

fn result(result: &InvocationResult) -> Value {
    match result {
        InvocationResult::Response(response) => json!({ "kind": "response", "response": response }),
        InvocationResult::NotJson(text) => json!({ "kind": "not_json", "text": text }),
        InvocationResult::FunctionError { kind, message } => {
            json!({ "kind": "function_error", "error_type": kind, "error_message": message })
        }
        InvocationResult::TimedOut => json!({ "kind": "timed_out" }),
        InvocationResult::Exited { code, signal } => {
            json!({ "kind": "exited", "code": code, "signal": signal })
        }
    }
}

fn record(record: &RecordReport) -> Value {
    let line = record.line.as_ref();
    json!({
        "source": record.source,
        "record": record.record,
        "delivery": record.receive_count,
        "operation": line.map(|line| &line.operation),
        "key_hash": line.and_then(|line| line.key_hash.as_ref()),
        "outcome": record.outcome,
        "ms": line.and_then(|line| line.ms),
        "failed_attempts": line.map(|line| line.failed_attempts),
        "lost_attempts": line.map(|line| line.lost_attempts),
        "problem": line.and_then(|line| line.problem.as_ref()),
        "error_message": line.and_then(|line| line.error_message.as_ref()),
        "not_diverted": line.and_then(|line| line.not_diverted.as_ref()),
        "disposition": record.disposition,
    })
}
