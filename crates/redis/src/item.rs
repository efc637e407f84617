//! An idempotency record as text, and back.
//!
//! ```text
//! INPROGRESS 0123456789abcdef0123456789abcdef - 1700000060000 1700086400000
//! fence 13 1700000000000
//! result 16 {"charged":true}
//! ```
//!
//! The first line has all that a guard names: status, owner, last owner, lease and expiry, with `-` for what is absent. A
//! guard is therefore the beginning of the text. Each other line is a field: its name, its length in bytes, its value.
//! Instants are milliseconds since the epoch, tokens 32 hexadecimal digits. A field that is absent, or a counter that
//! is zero, is not written.

use std::{borrow::Cow, fmt::Write as _, time::Duration};

use lambda_idempotency_core::{
    clock::Timestamp,
    record::{Fingerprint, IdempotencyRecord, Owner, Provenance, Status},
    store::{Extent, Guard, RecordVersion, Write},
};

/// The end of the year 9999. The server computes with instants, and refuses those that are near its limit.
const LAST: Timestamp = Timestamp::from_millis(253_402_300_799_999);

const ABSENT: &str = "-";

/// The fields of a record. The last one may have more than this version reads.
const FIELDS: [&str; 12] = [
    "fence",
    "failed_attempts",
    "lost_attempts",
    "consecutive_losses",
    "fingerprint",
    "result",
    "steps",
    "outbox",
    "payload",
    "error_type",
    "application",
    "provenance",
];

/// The fields that a write changes beside the first line. It leaves the provenance of its claim.
pub(crate) fn changed(write: &Write) -> &'static [&'static str] {
    let Some(record) = &write.record else { return &[] };
    match (write.extent(), FIELDS.split_last()) {
        (Extent::Lease, _) if record.steps.is_some() => &["steps"],
        (Extent::Lease, _) => &[],
        (Extent::Outbox, _) => &["outbox"],
        (Extent::Record, Some((_, others)))
            if record.provenance.is_some() && !write.is_claim() && write.guard != Guard::Absent =>
        {
            others
        }
        (Extent::Record, _) => &FIELDS,
    }
}

/// The text that is stored for a record, with these of its fields.
pub(crate) fn encode(record: &IdempotencyRecord, fields: &[&str]) -> String {
    let mut text = head(&RecordVersion::of(record));
    let mut field = |name: &str, value: &str| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name} {} {value}", value.len());
    };
    let provenance = record.provenance.as_ref().map(Provenance::to_json);
    let count = |count: u64| (count > 0).then(|| Cow::Owned(count.to_string()));
    let values = [
        count(record.fence),
        count(record.failed_attempts.into()),
        count(record.lost_attempts.into()),
        count(record.consecutive_losses.into()),
        borrowed(record.fingerprint.as_ref().map(Fingerprint::as_str)),
        borrowed(record.result.as_deref()),
        borrowed(record.steps.as_deref()),
        borrowed(record.outbox.as_deref()),
        borrowed(record.payload.as_deref()),
        borrowed(record.error_type.as_deref()),
        borrowed(record.application.as_deref()),
        provenance.map(Cow::Owned),
    ];
    for (name, value) in FIELDS.iter().zip(values).filter(|(name, _)| fields.contains(name)) {
        if let Some(value) = value {
            field(name, &value);
        }
    }
    text
}

fn borrowed(text: Option<&str>) -> Option<Cow<'_, str>> {
    text.map(Cow::Borrowed)
}

/// The first line, with its end.
pub(crate) fn head(seen: &RecordVersion) -> String {
    let token = |owner: Option<Owner>| owner.map_or_else(|| ABSENT.to_owned(), |o| o.to_string());
    let lease = seen.lease_until.map_or_else(|| ABSENT.to_owned(), millis);
    let (owner, last_owner) = (token(seen.owner), token(seen.last_owner));
    let expires_at = seen.expires_at.as_millis();
    format!("{} {owner} {last_owner} {lease} {expires_at}\n", status(seen.status))
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

/// A text that is not an idempotency record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Corrupt {
    /// The name of the field at fault.
    pub(crate) field: &'static str,
    /// Its problem; never its value.
    pub(crate) problem: &'static str,
}

/// Reads a stored text. Fields that this version does not know are ignored.
pub(crate) fn decode(bytes: &[u8]) -> Result<IdempotencyRecord, Corrupt> {
    let unfit = |field, problem| Corrupt { field, problem };
    let text = std::str::from_utf8(bytes)
        .map_err(|_| unfit("status", "is in something that is not valid UTF-8 text"))?;
    let (head, mut rest) = text.split_once('\n').ok_or_else(|| unfit("status", "is missing"))?;
    let parts: Vec<&str> = head.split(' ').collect();
    let [state, owner, last_owner, lease, expiry] = parts[..] else {
        return Err(unfit("status", "is missing"));
    };
    let state = match state {
        "INPROGRESS" => Status::InProgress,
        "COMPLETED" => Status::Completed,
        "FAILED" => Status::PermanentlyFailed,
        _ => return Err(unfit("status", "is not INPROGRESS, COMPLETED or FAILED")),
    };
    let mut record = IdempotencyRecord::new(state, Timestamp::EPOCH);
    record.owner = unless_absent(owner, |text| token("owner", text))?;
    record.last_owner = unless_absent(last_owner, |text| token("last_owner", text))?;
    record.lease_until =
        unless_absent(lease, |text| number("lease_until", text).map(Timestamp::from_millis))?;
    record.expires_at = Timestamp::from_millis(number("expires_at", expiry)?);
    while !rest.is_empty() {
        let (name, value, next) = field(rest)
            .ok_or_else(|| unfit("fields", "are not each a name, a length and a value"))?;
        rest = next;
        match name {
            "fence" => record.fence = number("fence", value)?,
            "failed_attempts" => record.failed_attempts = number("failed_attempts", value)?,
            "lost_attempts" => record.lost_attempts = number("lost_attempts", value)?,
            "consecutive_losses" => {
                record.consecutive_losses = number("consecutive_losses", value)?;
            }
            "fingerprint" => record.fingerprint = Some(Fingerprint::new(value)),
            "result" => record.result = Some(value.into()),
            "steps" => record.steps = Some(value.into()),
            "outbox" => record.outbox = Some(value.into()),
            "payload" => record.payload = Some(value.into()),
            "error_type" => record.error_type = Some(value.into()),
            "application" => record.application = Some(value.into()),
            "provenance" => record.provenance = Provenance::from_json(value),
            _ => {}
        }
    }
    Ok(record)
}

/// The name and the value of the first field, and what follows it. Never of a text that [the server](crate::script) cannot take apart.
fn field(text: &str) -> Option<(&str, &str, &str)> {
    let (name, text) = text.split_once(' ')?;
    let (length, text) = text.split_once(' ')?;
    let (value, text) = text.split_at_checked(number("fields", length).ok()?)?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte > b' ');
    Some((name, value, text.strip_prefix('\n')?)).filter(|_| is_name)
}

fn unless_absent<T>(
    text: &str,
    read: impl FnOnce(&str) -> Result<T, Corrupt>,
) -> Result<Option<T>, Corrupt> {
    if text == ABSENT { Ok(None) } else { read(text).map(Some) }
}

/// Only the text that this crate writes: a guard compares texts, and would never hold for another one of the same
/// number.
fn number<N: std::str::FromStr + ToString>(field: &'static str, text: &str) -> Result<N, Corrupt> {
    let number = text.parse::<N>().ok().filter(|number| number.to_string() == text);
    number
        .ok_or(Corrupt { field, problem: "is not a whole number in decimal digits, or too large" })
}

fn token(field: &'static str, text: &str) -> Result<Owner, Corrupt> {
    let owner = Owner::parse(text).filter(|owner| owner.to_string() == text);
    owner.ok_or(Corrupt { field, problem: "is not 32 hexadecimal digits" })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_record_without_anything_optional_is_one_line() {
        let record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(4_000_000_000));
        let text = "COMPLETED - - - 4000000000000\n";
        assert_eq!(encode(&record, &FIELDS), text);
        assert_eq!(decode(text.as_bytes()), Ok(record));
    }

    #[test]
    fn a_record_is_text_that_people_can_read() {
        let mut record =
            IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(1_700_086_400));
        record.owner = Owner::parse(OWNER);
        record.lease_until = Some(Timestamp::from_millis(1_700_000_060_000));
        record.fence = 1_700_000_000_000;
        record.result = Some("{\"a\":\n1}".into());
        let text = format!(
            "INPROGRESS {OWNER} - 1700000060000 1700086400000\nfence 13 1700000000000\nresult 8 {{\"a\":\n1}}\n"
        );
        assert_eq!(encode(&record, &FIELDS), text);
        assert_eq!(decode(text.as_bytes()), Ok(record));
    }

    #[test]
    fn fields_of_a_later_version_are_ignored() {
        let text = "COMPLETED - - - 1000\ncolour 5 b u\ne\nfence 1 7\n";
        assert_eq!(decode(text.as_bytes()).unwrap().fence, 7);
    }

    #[test]
    fn what_a_guard_could_never_compare_is_not_a_record() {
        for (text, field) in [
            ("", "status"),
            ("s3cr3t", "status"),
            ("COMPLETED - - - 1", "status"),
            ("completed - - - 1\n", "status"),
            ("COMPLETED - - - 01\n", "expires_at"),
            ("COMPLETED - - - -\n", "expires_at"),
            ("COMPLETED - - - 4e12\n", "expires_at"),
            ("INPROGRESS - - -1 1\n", "lease_until"),
            ("INPROGRESS - - 18446744073709551616 1\n", "lease_until"),
            ("INPROGRESS 0123456789ABCDEF0123456789ABCDEF - - 1\n", "owner"),
            ("INPROGRESS - 7 - 1\n", "last_owner"),
            ("COMPLETED - - - 1\nlost_attempts 10 4294967296\n", "lost_attempts"),
            ("COMPLETED - - - 1\nfence 2 +1\n", "fence"),
            ("COMPLETED - - - 1\nresult 9 s3cr3t\n", "fields"),
            ("COMPLETED - - - 1\nresult 2 s3cr3t\n", "fields"),
            ("COMPLETED - - - 1\nresult", "fields"),
        ] {
            let error = decode(text.as_bytes()).unwrap_err();
            assert_eq!(error.field, field, "{text}");
            assert!(!error.problem.contains("s3cr3t"));
        }
        assert_eq!(decode(&[0xff]).unwrap_err().field, "status");
        // A length that ends inside of a character.
        assert_eq!(
            decode("COMPLETED - - - 1\nresult 1 ß\n".as_bytes()).unwrap_err().field,
            "fields"
        );
    }

    #[test]
    fn a_provenance_that_cannot_be_read_is_left_out() {
        let text = "COMPLETED - - - 1000\nprovenance 18 {\"request_id\":\"r\"}\n";
        assert_eq!(decode(text.as_bytes()).unwrap().provenance, None);
    }

    #[test]
    fn a_record_is_removed_a_margin_after_it_counts() {
        let margin = Duration::from_secs(600);
        let mut record = IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(1_000));
        assert_eq!(removal(&record, margin), Timestamp::from_secs(1_600));
        record.lease_until = Some(Timestamp::from_millis(1_000_001));
        assert_eq!(removal(&record, margin), Timestamp::from_millis(1_600_001), "while it is held");
        record.status = Status::Completed;
        assert_eq!(
            removal(&record, margin),
            Timestamp::from_secs(1_600),
            "a completion holds nothing"
        );
        record.expires_at = Timestamp::from_millis(u64::MAX);
        assert_eq!(removal(&record, margin), LAST);
    }
}
