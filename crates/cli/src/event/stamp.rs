//! What AWS puts into an envelope by itself: new ids and the time.

use std::hash::{BuildHasher as _, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

/// Makes ids, sequence numbers and times.
#[derive(Debug)]
pub(crate) struct Stamp {
    /// Milliseconds since 1970.
    pub(crate) now_ms: u64,
    /// The id of the next record, if it is given.
    next: Option<String>,
    /// How many sequence numbers were made.
    made: u64,
}

impl Stamp {
    /// The present, and this id for the first record.
    pub(crate) fn now(first_id: Option<String>) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the sender of an event has a real clock")]
        let now = SystemTime::now();
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Self { now_ms, next: first_id, made: 0 }
    }

    /// The id of the next record: the given one, or a new one in the shape of a UUID.
    pub(crate) fn id(&mut self) -> String {
        self.next.take().unwrap_or_else(|| {
            let random = || RandomState::new().hash_one(self.made);
            let (high, low) = (random(), random());
            format!(
                "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
                high >> 32,
                (high >> 16) & 0xffff,
                high & 0xfff,
                (low >> 48) & 0xfff,
                low & 0xffff_ffff_ffff
            )
        })
    }

    /// The given id, if no record has it yet.
    pub(crate) fn given(&mut self) -> Option<String> {
        self.next.take()
    }

    /// A number that grows from record to record, and from one use of the command to the next.
    pub(crate) fn sequence(&mut self) -> u64 {
        self.made += 1;
        self.now_ms * 1000 + self.made
    }

    /// The time as `2026-11-21T09:07:12.418Z`.
    pub(crate) fn time(&self) -> String {
        let (seconds, ms) = (self.now_ms / 1000, self.now_ms % 1000);
        let (year, month, day) = date(seconds / 86_400);
        let (hour, minute) = (seconds / 3600 % 24, seconds / 60 % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}.{ms:03}Z", seconds % 60)
    }
}

/// Year, month and day of a number of days since 1970, by counting.
fn date(mut days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_aws_writes_it() {
        let at = |now_ms| Stamp { now_ms, next: None, made: 0 }.time();
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(1_709_210_096_007), "2024-02-29T12:34:56.007Z");
        assert_eq!(at(1_798_761_599_999), "2026-12-31T23:59:59.999Z");
        assert_eq!(at(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
    }
}
