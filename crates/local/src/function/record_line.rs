//! The lines that a function writes: one for a record that it has to say something about, and one for each effect that a
//! handler reports.
//!
//! A function built on this project logs, through `tracing`, an event whose message begins with `record done`,
//! `record returned`, `record rejected` or `record declined`, with the fields of [`RecordLine`], and another that begins with
//! `record diverted` when the user's sink has the record, or with `record not diverted` when the sink failed. Both shapes of the JSON formatter are read: fields nested under `fields` (the default of `lambda_runtime`) and flattened.
//! `lambda_idempotency::testing::effect` writes the line of an effect; a function that does not use the library can write
//! it itself.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

const TARGET: &str = "lambda_idempotency::record";
const DIVERTED: &str = "record diverted";
const NOT_TAKEN: &str = "record not diverted";
const MESSAGES: [&str; 6] =
    ["record done", "record returned", "record rejected", "record declined", DIVERTED, NOT_TAKEN];

/// The outcome of one record, as the function logged it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecordLine {
    /// `sqs`, `sns`, `eventbridge`, ...
    pub source: String,
    /// The record's own id, such as a message id.
    pub record: String,
    /// The operation's name.
    pub operation: String,
    /// The hash of its idempotency key, in hex, if it had one.
    pub key_hash: Option<String>,
    /// The outcome of the delivery.
    pub outcome: Outcome,
    /// How long the handler took, if it ran.
    pub ms: Option<f64>,
    /// How often earlier attempts failed.
    pub failed_attempts: u64,
    /// How many earlier attempts were lost.
    pub lost_attempts: u64,
    /// Why it is returned, or what else is wrong.
    pub problem: Option<String>,
    /// The message of the handler's error, if the function logs it.
    pub error_message: Option<String>,
    /// The invocation that it was in.
    pub request_id: Option<String>,
    /// Whether the user's sink has it.
    pub is_diverted: bool,
    /// Why the user's sink does not have it, where that failed.
    pub not_diverted: Option<String>,
}

impl RecordLine {
    /// Reads a line of output, if it is a record line.
    pub fn parse(line: &str) -> Option<Self> {
        let Value::Object(line) = serde_json::from_str(line.trim()).ok()? else { return None };
        let fields = line.get("fields").and_then(Value::as_object).unwrap_or(&line);
        let message = text(fields, "message")?;
        if !MESSAGES.iter().any(|begins| message.starts_with(begins))
            || line.get("target").is_some_and(|target| target != TARGET)
        {
            return None;
        }
        let of_sink = [DIVERTED, NOT_TAKEN].into_iter().find(|begins| message.starts_with(begins));
        let end = || Some(of_sink?.trim_start_matches("record ").to_owned());
        let outcome = text(fields, "outcome").or_else(end)?;
        let [problem, error_message] = ["problem", "error_message"].map(|name| text(fields, name));
        let said = [&problem, &error_message].into_iter().flatten().cloned().collect::<Vec<_>>();
        let span = line.get("span").and_then(Value::as_object);
        Some(Self {
            source: text(fields, "source").unwrap_or_default(),
            record: text(fields, "record").unwrap_or_default(),
            operation: text(fields, "operation").unwrap_or_default(),
            key_hash: text(fields, "key_hash").filter(|hash| !hash.is_empty()),
            outcome: Outcome::from(&*outcome),
            ms: number(fields, "ms"),
            failed_attempts: number(fields, "failed_attempts").unwrap_or(0.0) as u64,
            lost_attempts: number(fields, "lost_attempts").unwrap_or(0.0) as u64,
            problem,
            error_message,
            request_id: text(fields, "request_id").or_else(|| text(span?, "requestId")),
            is_diverted: of_sink == Some(DIVERTED),
            not_diverted: (of_sink == Some(NOT_TAKEN)).then(|| said.join(": ")),
        })
    }
}

fn text(fields: &Map<String, Value>, name: &str) -> Option<String> {
    match fields.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

fn number(fields: &Map<String, Value>, name: &str) -> Option<f64> {
    match fields.get(name)? {
        Value::String(text) => text.parse().ok(),
        other => other.as_f64(),
    }
}

macro_rules! outcomes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The outcome of a delivery.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Outcome {
            $($(#[$doc])* $variant,)*
            /// An outcome that this version does not know.
            Other(String),
        }

        impl Outcome {
            /// The word that the function logs, and that reports show.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Other(name) => name,
                }
            }
        }

        impl From<&str> for Outcome {
            fn from(name: &str) -> Self {
                match name {
                    $($name => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }
    };
}

outcomes! {
    /// The handler ran and its success was recorded.
    Executed = "executed",
    /// The handler ran without a key, because the operation allows that.
    Unprotected = "unprotected",
    /// An earlier execution's outcome answered it.
    Replayed = "replayed",
    /// Another record of the same batch, with the same key, answered it.
    Coalesced = "coalesced",
    /// The handler ran too long: its lease was taken over, and the successor's result answered the record.
    Superseded = "superseded",
    /// The handler ran too long: its lease was taken over, and the successor is still running.
    Fenced = "fenced",
    /// The handler turned the record away before it did any work; its key is free.
    Declined = "declined",
    /// The handler ran and failed.
    Failed = "failed",
    /// An earlier permanent failure answered it.
    OnPermanentFailure = "permanently_failed",
    /// Another execution holds its key.
    Busy = "busy",
    /// Its key is known with another payload.
    Mismatch = "mismatch",
    /// Its key belongs to another application.
    Foreign = "foreign",
    /// The handler, or the whole invocation, ran out of time.
    TimedOut = "timed_out",
    /// It was returned to its source without being started.
    Returned = "returned",
    /// It has no usable key or payload.
    Rejected = "rejected",
    /// The store could not be reached.
    Unavailable = "unavailable",
    /// The handler succeeded, but the completion could not be recorded.
    CompletionLost = "completion_lost",
    /// The handler succeeded, and it is not known whether its effects were committed.
    Uncommitted = "uncommitted",
    /// The handler returned, now or earlier, and one of its messages is not known to be sent.
    Unsent = "unsent",
    /// The function logged nothing about it, and acknowledged it.
    Acknowledged = "acknowledged",
    /// The function logged nothing about it, and the invocation failed or returned it.
    Refused = "refused",
    /// The function logged nothing about it, and its process died.
    Crashed = "crashed",
}

impl Outcome {
    /// Whether the handler ran to its end.
    pub fn ran(&self) -> bool {
        use Outcome::{
            CompletionLost, Declined, Executed, Failed, Fenced, Superseded, Uncommitted,
            Unprotected,
        };
        let failed = matches!(self, Failed | Superseded | Fenced | Uncommitted);
        failed || matches!(self, Executed | Unprotected | Declined | CompletionLost)
    }

    /// Whether the record was answered from another record's execution.
    pub fn answered_without_running(&self) -> bool {
        matches!(self, Self::Replayed | Self::Coalesced)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// An effect that a function reported.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EffectLine {
    /// Its name: what happened.
    pub name: String,
    /// The id of the record for which it happened.
    pub record: String,
    /// The hash of the record's idempotency key, if it has one.
    pub key_hash: Option<String>,
    /// The fence of the attempt.
    pub fence: Option<u64>,
}

impl EffectLine {
    /// Reads a line of output, if it is about an effect.
    ///
    /// ```
    /// # use lambda_idempotency_local::EffectLine;
    /// let line = EffectLine::parse(r#"{"lambda_idempotency_effect":"charge","record":"m-1"}"#);
    /// assert_eq!(line.map(|line| line.name).as_deref(), Some("charge"));
    /// assert_eq!(EffectLine::parse("charged m-1"), None);
    /// ```
    pub fn parse(line: &str) -> Option<Self> {
        if !line.contains("lambda_idempotency_effect") {
            return None;
        }
        let line: Value = serde_json::from_str(line.trim()).ok()?;
        let text = |name: &str| Some(line.get(name)?.as_str()?.to_owned());
        Some(Self {
            name: text("lambda_idempotency_effect")?,
            record: text("record")?,
            key_hash: text("key_hash"),
            fence: line.get("fence").and_then(Value::as_u64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NESTED: &str = r#"{"level":"INFO","fields":{"message":"record done","source":"sqs","record":"m1",
        "operation":"place-order","key_hash":"ab12","outcome":"executed","ms":1.5,"failed_attempts":1,"lost_attempts":0},
        "span":{"requestId":"r1","name":"Lambda runtime invoke"},"spans":[]}"#;
    const FLAT: &str = r#"{"timestamp":"2026-01-01","level":"INFO","target":"lambda_idempotency::record",
        "message":"record done","source":"sqs","record":"m1","operation":"place-order","key_hash":"ab12",
        "outcome":"executed","ms":1.5,"failed_attempts":1,"lost_attempts":0,"request_id":"r1"}"#;

    #[test]
    fn both_log_formats_give_the_same_line() {
        let nested = RecordLine::parse(NESTED).unwrap();
        assert_eq!(Some(&nested), RecordLine::parse(FLAT).as_ref());
        assert_eq!(nested.outcome, Outcome::Executed);
        assert_eq!(nested.ms, Some(1.5));
        assert_eq!(nested.request_id.as_deref(), Some("r1"));
    }

    #[test]
    fn other_lines_are_not_records() {
        for line in [
            "",
            "plain text",
            "{}",
            "[1]",
            r#"{"message":"record done"}"#,
            r#"{"fields":{"message":"hello"}}"#,
        ] {
            assert_eq!(RecordLine::parse(line), None, "{line}");
        }
        let foreign = FLAT.replace("lambda_idempotency::record", "somebody::else");
        assert_eq!(RecordLine::parse(&foreign), None);
    }

    #[test]
    fn an_unknown_outcome_is_kept() {
        assert_eq!(Outcome::from("transmogrified").as_str(), "transmogrified");
    }
}
