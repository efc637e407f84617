//! Why records were returned or invocations failed, in the function's own words.

use lambda_idempotency_local::{DeliveryReport, InvocationResult, RecordReport};

/// The most records that are named for one problem.
const NAMED: usize = 5;
/// Separates a problem from the message of the handler's error.
const SAYS: &str = "\n    ";

/// A problem, and the records that have it.
struct Problem {
    text: String,
    records: Vec<String>,
    times: usize,
}

/// Each problem once, with its records. Problems that differ only in the count of a key's failures are one, with
/// the last text.
pub(crate) fn lines(report: &DeliveryReport) -> Vec<String> {
    let mut problems: Vec<Problem> = Vec::new();
    for invocation in &report.invocations {
        let logged: Vec<_> = invocation.records.iter().filter_map(problem).collect();
        match &invocation.invocation.result {
            // An error that only sums up the problems of its records is not repeated.
            InvocationResult::FunctionError { kind, message } if logged.is_empty() => {
                note(&mut problems, format!("{kind}: {message}"), None);
            }
            _ => logged.into_iter().for_each(|(text, record)| note(&mut problems, text, record)),
        }
    }
    problems.iter().map(line).collect()
}

/// The problem that the function logged for a record, and the record's id.
fn problem(record: &RecordReport) -> Option<(String, Option<String>)> {
    let line = record.line.as_ref()?;
    let problem = format!("{}: {}", record.outcome, line.problem.as_ref()?);
    let text = match &line.error_message {
        Some(message) => format!("{problem}{SAYS}{message}"),
        None => problem,
    };
    Some((text, record.record.clone()))
}

fn note(problems: &mut Vec<Problem>, text: String, record: Option<String>) {
    let known = problems.iter_mut().find(|known| uncounted(&known.text) == uncounted(&text));
    match known {
        Some(known) => {
            known.records.extend(record.filter(|record| !known.records.contains(record)));
            (known.text, known.times) = (text, known.times + 1);
        }
        None => problems.push(Problem { text, records: record.into_iter().collect(), times: 1 }),
    }
}

/// A problem without the count of its key's failures, and the message of the handler's error.
fn uncounted(problem: &str) -> (&str, &str) {
    let (problem, message) = problem.split_once(SAYS).unwrap_or((problem, ""));
    (problem.split_once(" (failure ").map_or(problem, |(problem, _)| problem), message)
}

/// `5 times failed, record 1fe70fdb-...: the handler failed`.
fn line(problem: &Problem) -> String {
    let times = if problem.times > 1 { format!("{} times ", problem.times) } else { String::new() };
    let (outcome, text) = match problem.text.split_once(": ") {
        Some((outcome, text)) if !problem.records.is_empty() => (outcome, text),
        _ => return format!("{times}{}\n", problem.text),
    };
    let mut named: Vec<&str> = problem.records.iter().take(NAMED).map(String::as_str).collect();
    let more = format!("{} more", problem.records.len().saturating_sub(NAMED));
    if problem.records.len() > NAMED {
        named.push(&more);
    }
    let word = if problem.records.len() == 1 { "record" } else { "records" };
    format!("{times}{outcome}, {word} {}: {text}\n", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_its_records() {
        let mut problems = Vec::new();
        for (failure, record) in [(1, "m1"), (1, "m2"), (2, "m1")] {
            let text = format!("failed: it failed (failure {failure} for this key){SAYS}why");
            note(&mut problems, text, Some(record.to_owned()));
        }
        note(&mut problems, "Type: message".to_owned(), None);
        let lines: Vec<_> = problems.iter().map(line).collect();
        assert_eq!(
            lines,
            [
                "3 times failed, records m1, m2: it failed (failure 2 for this key)\n    why\n",
                "Type: message\n"
            ]
        );
    }

    #[test]
    fn only_a_few_records_are_named() {
        let mut problems = Vec::new();
        for number in 0..8 {
            note(&mut problems, "rejected: no key".to_owned(), Some(format!("m{number}")));
        }
        assert_eq!(
            problems.iter().map(line).collect::<String>(),
            "8 times rejected, records m0, m1, m2, m3, m4, 3 more: no key\n"
        );
    }
}
