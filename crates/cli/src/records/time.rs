//! Instants and durations as people read them.

use std::time::Duration;

use aws_sdk_dynamodb::primitives::{DateTime, DateTimeFormat};
use lambda_idempotency_core::clock::Timestamp;

/// `2026-11-22T09:30:00Z`.
pub(crate) fn instant(at: Timestamp) -> String {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    let text = DateTime::from_millis(millis).fmt(DateTimeFormat::DateTime);
    text.unwrap_or_else(|_| format!("{millis} ms since the epoch"))
}

/// The largest whole unit: `45s`, `12m`, `3h`, `9d`.
pub(crate) fn rough(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7199 => format!("{}m", seconds / 60),
        7200..=172_799 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// `5m ago`, or `in 5m`.
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> String {
    if at > now {
        format!("in {}", rough(at.since(now)))
    } else {
        format!("{} ago", rough(now.since(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_the_largest_whole_unit() {
        assert_eq!(instant(Timestamp::from_secs(1_700_000_000)), "2023-11-14T22:13:20Z");
        for (seconds, text) in [(119, "119s"), (120, "2m"), (7200, "2h"), (172_800, "2d")] {
            assert_eq!(rough(Duration::from_secs(seconds)), text);
        }
        let at = Timestamp::from_secs;
        assert_eq!(relative(at(100), at(400)), "5m ago");
        assert_eq!(relative(at(400), at(100)), "in 5m");
    }
}
