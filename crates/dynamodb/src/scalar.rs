//! Texts and numbers of an item, and the exact reading of numbers.

use aws_sdk_dynamodb::types::AttributeValue;
use lambda_idempotency_core::{
    clock::Timestamp,
    record::{Owner, Status},
};

pub(crate) fn status(status: Status) -> AttributeValue {
    let text = match status {
        Status::InProgress => "INPROGRESS",
        Status::Completed => "COMPLETED",
        Status::PermanentlyFailed => "FAILED",
    };
    AttributeValue::S(text.to_owned())
}

pub(crate) fn token(owner: Owner) -> AttributeValue {
    AttributeValue::S(owner.to_string())
}

pub(crate) fn millis(at: Timestamp) -> AttributeValue {
    AttributeValue::N(at.as_millis().to_string())
}

/// Seconds, with a fraction if another library wrote one.
pub(crate) fn seconds(at: Timestamp) -> AttributeValue {
    let (secs, rest) = (at.as_secs(), at.as_millis() % 1000);
    AttributeValue::N(if rest == 0 { secs.to_string() } else { format!("{secs}.{rest:03}") })
}

/// `number` times ten to the power of `places`, if that is a whole number that fits.
pub(crate) fn scaled(number: &str, places: i32) -> Option<u64> {
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (number, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let fraction = i32::try_from(fraction.len()).ok()?;
    let shift = exponent.checked_add(places)?.checked_sub(fraction)?;
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    if shift >= 0 {
        let factor = 10u64.checked_pow(u32::try_from(shift).ok()?)?;
        digits.parse::<u64>().ok()?.checked_mul(factor)
    } else {
        let keep = digits.len().checked_sub(usize::try_from(shift.unsigned_abs()).ok()?)?;
        let (kept, dropped) = digits.split_at_checked(keep)?;
        if dropped.bytes().any(|b| b != b'0') || kept.is_empty() {
            return None;
        }
        kept.parse().ok()
    }
}
