//! An idempotency record as a hash of the server, and back.
//!
//! Each field of the record is a field of the hash with its name, as text: instants in milliseconds since the epoch,
//! tokens as 32 hexadecimal digits. A field that is absent, or a counter that is zero, is not written.

use std::time::Duration;

use lambda_idempotency_core::{
    clock::Timestamp,
    record::{Fingerprint, IdempotencyRecord, Owner, Status},
};
use redis::Value;

use crate::provenance;

/// The end of the year 9999. The server computes with instants, and refuses those that are near its limit.
const LAST: Timestamp = Timestamp::from_millis(253_402_300_799_999);

/// The fields of a record.
pub(crate) type Fields = Vec<(&'static str, String)>;

/// What is stored for a record.
pub(crate) fn encode(record: &IdempotencyRecord) -> Fields {
    let counter = |count: u32| (count > 0).then(|| count.to_string());
    let fields = [
        ("status", Some(status(record.status).to_owned())),
        ("expires_at", Some(millis(record.expires_at))),
        ("owner", record.owner.map(|owner| owner.to_string())),
        ("last_owner", record.last_owner.map(|owner| owner.to_string())),
        ("lease_until", record.lease_until.map(millis)),
        ("fence", (record.fence > 0).then(|| record.fence.to_string())),
        ("failed_attempts", counter(record.failed_attempts)),
        ("lost_attempts", counter(record.lost_attempts)),
        ("consecutive_losses", counter(record.consecutive_losses)),
        ("last_receive", counter(record.last_receive)),
        ("fingerprint", record.fingerprint.as_ref().map(|hash| hash.as_str().to_owned())),
        ("result", record.result.as_deref().map(str::to_owned)),
        ("steps", record.steps.as_deref().map(str::to_owned)),
        ("outbox", record.outbox.as_deref().map(str::to_owned)),
        ("payload", record.payload.as_deref().map(str::to_owned)),
        ("error_type", record.error_type.as_deref().map(str::to_owned)),
        ("application", record.application.as_deref().map(str::to_owned)),
        ("provenance", record.provenance.as_ref().map(provenance::text)),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// When the server may remove the record: a margin after the last instant at which it means something. The server's
/// clock is another than that of the workers, and a record still counts within their clock skew.
pub(crate) fn removal(record: &IdempotencyRecord, margin: Duration) -> Timestamp {
    let held = record.lease_until.filter(|_| record.status == Status::InProgress);
    record.expires_at.max(held.unwrap_or_default()).plus(margin).min(LAST)
}

pub(crate) const fn status(status: Status) -> &'static str {
    match status {
        Status::InProgress => "INPROGRESS",
        Status::Completed => "COMPLETED",
        Status::PermanentlyFailed => "FAILED",
    }
}

pub(crate) fn millis(at: Timestamp) -> String {
    at.as_millis().to_string()
}

/// A hash that is not an idempotency record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Corrupt {
    /// The name of the field at fault.
    pub(crate) field: &'static str,
    /// What is wrong with it; never its value.
    pub(crate) problem: &'static str,
}

/// Reads the answer of `HGETALL`: names and values in turn. An empty answer means that there is no record. Fields that
/// this version does not know are ignored.
pub(crate) fn decode(answer: Vec<Value>) -> Result<Option<IdempotencyRecord>, Corrupt> {
    if answer.is_empty() {
        return Ok(None);
    }
    let mut record = IdempotencyRecord::new(Status::InProgress, Timestamp::EPOCH);
    let (mut has_status, mut has_expiry) = (false, false);
    let mut answer = answer.into_iter();
    while let (Some(name), Some(value)) = (answer.next(), answer.next()) {
        let Value::BulkString(name) = name else {
            return Err(Corrupt { field: "status", problem: "is missing" });
        };
        match name.as_slice() {
            b"status" => {
                has_status = true;
                record.status = match text("status", value)?.as_str() {
                    "INPROGRESS" => Status::InProgress,
                    "COMPLETED" => Status::Completed,
                    "FAILED" => Status::PermanentlyFailed,
                    _ => {
                        let problem = "is not INPROGRESS, COMPLETED or FAILED";
                        return Err(Corrupt { field: "status", problem });
                    }
                };
            }
            b"expires_at" => {
                has_expiry = true;
                record.expires_at = Timestamp::from_millis(number("expires_at", value)?);
            }
            b"owner" => record.owner = Some(token("owner", value)?),
            b"last_owner" => record.last_owner = Some(token("last_owner", value)?),
            b"lease_until" => {
                record.lease_until = Some(Timestamp::from_millis(number("lease_until", value)?));
            }
            b"fence" => record.fence = number("fence", value)?,
            b"failed_attempts" => record.failed_attempts = number("failed_attempts", value)?,
            b"lost_attempts" => record.lost_attempts = number("lost_attempts", value)?,
            b"consecutive_losses" => {
                record.consecutive_losses = number("consecutive_losses", value)?
            }
            b"last_receive" => record.last_receive = number("last_receive", value)?,
            b"fingerprint" => {
                record.fingerprint = Some(Fingerprint::new(text("fingerprint", value)?))
            }
            b"result" => record.result = Some(text("result", value)?.into()),
            b"steps" => record.steps = Some(text("steps", value)?.into()),
            b"outbox" => record.outbox = Some(text("outbox", value)?.into()),
            b"payload" => record.payload = Some(text("payload", value)?.into()),
            b"error_type" => record.error_type = Some(text("error_type", value)?.into()),
            b"application" => record.application = Some(text("application", value)?.into()),
            b"provenance" => record.provenance = provenance::read(&text("provenance", value)?),
            _ => {}
        }
    }
    for (field, found) in [("status", has_status), ("expires_at", has_expiry)] {
        if !found {
            return Err(Corrupt { field, problem: "is missing" });
        }
    }
    Ok(Some(record))
}

fn text(field: &'static str, value: Value) -> Result<String, Corrupt> {
    let Value::BulkString(bytes) = value else {
        return Err(Corrupt { field, problem: "is not text" });
    };
    String::from_utf8(bytes).map_err(|_| Corrupt { field, problem: "is not valid UTF-8 text" })
}

/// Only the text that this crate writes: a guard compares texts, and would never hold for another one of the same
/// number.
fn number<N: std::str::FromStr + ToString>(
    field: &'static str,
    value: Value,
) -> Result<N, Corrupt> {
    let text = text(field, value)?;
    let number = text.parse::<N>().ok().filter(|number| number.to_string() == text);
    number
        .ok_or(Corrupt { field, problem: "is not a whole number in decimal digits, or too large" })
}

fn token(field: &'static str, value: Value) -> Result<Owner, Corrupt> {
    let text = text(field, value)?;
    let owner = Owner::parse(&text).filter(|owner| owner.to_string() == text);
    owner.ok_or(Corrupt { field, problem: "is not 32 hexadecimal digits" })
}

#[cfg(test)]
#[path = "item_tests.rs"]
mod tests;
