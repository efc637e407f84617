//! CloudWatch's embedded metric format.
//!
//! <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>

use std::mem;

use lambda_idempotency_core::clock::Timestamp;
use serde_json::{Map, Value, json};

use super::sums::Sums;

/// The most values of a metric in a document.
const MOST_VALUES: usize = 100;

/// The longest value of a dimension.
const LONGEST_DIMENSION: usize = 1024;

/// The documents of these sums, each in a line. Mostly one: more values of a metric than a document holds are in
/// further ones.
pub(super) fn documents(
    namespace: &str,
    (operation, source): (&str, &str),
    at: Timestamp,
    mut sums: Sums,
) -> Vec<String> {
    let mut documents = Vec::new();
    while !(sums.counts.is_empty() && sums.times.is_empty()) {
        let mut values = Map::new();
        let mut metrics = Vec::new();
        for (name, count) in mem::take(&mut sums.counts) {
            let unit = if name == "capacity_units" { "None" } else { "Count" };
            metrics.push(json!({ "Name": name, "Unit": unit }));
            values.insert(name.to_owned(), json!(count));
        }
        for (name, times) in &mut sums.times {
            let rest = times.split_off(times.len().min(MOST_VALUES));
            metrics.push(json!({ "Name": name, "Unit": "Milliseconds" }));
            values.insert((*name).to_owned(), json!(mem::replace(times, rest)));
        }
        sums.times.retain(|_, times| !times.is_empty());
        values.insert("operation".to_owned(), dimension(operation).into());
        values.insert("source".to_owned(), dimension(source).into());
        let directive = json!({
            "Namespace": namespace,
            "Dimensions": [["operation", "source"]],
            "Metrics": metrics,
        });
        let about = json!({ "Timestamp": at.as_millis(), "CloudWatchMetrics": [directive] });
        values.insert("_aws".to_owned(), about);
        documents.push(Value::Object(values).to_string());
    }
    documents
}

/// CloudWatch allows visible ASCII characters and spaces in a dimension, and drops metrics with others.
fn dimension(name: &str) -> String {
    let visible = |char: char| if matches!(char, ' '..='~') { char } else { '?' };
    let name: String = name.chars().take(LONGEST_DIMENSION).map(visible).collect();
    match name.strip_prefix(':') {
        Some(rest) => format!("?{rest}"),
        None if name.trim().is_empty() => "?".to_owned(),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::dimension;

    #[test]
    fn a_dimension_is_what_cloudwatch_takes() {
        assert_eq!(dimension("place-order"), "place-order");
        assert_eq!(dimension(":gr\u{f6}\u{df}e\n"), "?gr??e?");
        assert_eq!((dimension(" "), dimension("")), ("?".to_owned(), "?".to_owned()));
        assert_eq!(dimension(&"x".repeat(2000)).len(), 1024);
    }
}
