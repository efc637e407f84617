//! Why records were returned or invocations failed, in the function's own words.

use lambda_idempotency_local::{DeliveryReport, InvocationResult, RecordReport};

/// The last problem of each record, and the errors of invocations that logged none.
pub(crate) fn lines(report: &DeliveryReport) -> Vec<String> {
    let mut problems: Vec<(Option<&str>, String)> = Vec::new();
    for invocation in &report.invocations {
        let logged: Vec<_> = invocation.records.iter().filter_map(problem).collect();
        let failed = match &invocation.invocation.result {
            // An error that only sums up the problems of its records is not repeated.
            InvocationResult::FunctionError { kind, message } if logged.is_empty() => {
                Some((None, format!("{kind}: {message}\n")))
            }
            _ => None,
        };
        for (record, text) in logged.into_iter().chain(failed) {
            problems
                .retain(|(known, same)| *same != text && (record.is_none() || *known != record));
            problems.push((record, text));
        }
    }
    problems.into_iter().map(|(_, text)| text).collect()
}

/// `failed, record 1fe70fdb-...: the handler failed`, and what its error says.
fn problem(report: &RecordReport) -> Option<(Option<&str>, String)> {
    let line = report.line.as_ref()?;
    let (outcome, problem) = (&report.outcome, line.problem.as_ref()?);
    let record = report.record.as_deref();
    let mut text = format!("{outcome}, record {}: {problem}\n", record.unwrap_or("-"));
    if let Some(message) = &line.error_message {
        text.push_str(&format!("    {message}\n"));
    }
    Some((record, text))
}
