//! What the record of a key means for the next delivery.

use clap::ValueEnum;

use lambda_idempotency_core::{
    clock::Timestamp,
    policy::Policy,
    record::{IdempotencyRecord, Status},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum State {
    /// A worker holds the key, or has left it held until its lease ends
    InProgress,
    /// The lease has ended without a word from the worker: the next delivery takes the key over
    Lapsed,
    /// The last attempt failed and gave the key up: the next delivery tries again
    Released,
    /// The work is done
    Completed,
    /// The work failed permanently and is not tried again
    Failed,
    /// The record is over: the next delivery is new work
    Expired,
    /// The item is not an idempotency record
    Unreadable,
}

impl State {
    /// The state of a record at this time.
    pub(crate) fn of(record: &IdempotencyRecord, now: Timestamp) -> Self {
        let skew = Policy::default().clock_skew;
        let held_until = record.lease_until.unwrap_or(record.expires_at).plus(skew);
        let is_over = now > record.expires_at.plus(skew);
        match record.status {
            Status::InProgress if now <= held_until => Self::InProgress,
            _ if is_over => Self::Expired,
            Status::InProgress if record.is_given_up() => Self::Released,
            Status::InProgress => Self::Lapsed,
            Status::Completed => Self::Completed,
            Status::PermanentlyFailed => Self::Failed,
        }
    }

    /// Its name in arguments and in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::InProgress => "in-progress",
            Self::Lapsed => "lapsed",
            Self::Released => "released",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Unreadable => "unreadable",
        }
    }

    /// Its name in a sentence.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::InProgress => "in progress",
            Self::Lapsed => "lapsed",
            Self::Released => "released",
            Self::Completed => "completed",
            Self::Failed => "permanently failed",
            Self::Expired => "expired",
            Self::Unreadable => "unreadable",
        }
    }

    /// What the next delivery of the key comes to.
    pub(crate) const fn next(self) -> &'static str {
        match self {
            Self::InProgress => "the next delivery waits, or returns to its source",
            Self::Lapsed => "the next delivery takes the key over",
            Self::Released => "the next delivery tries again",
            Self::Completed => "later deliveries are answered from it",
            Self::Failed => "later deliveries are not tried",
            Self::Expired => "the next delivery is new work",
            Self::Unreadable => "deliveries of this key fail",
        }
    }
}

#[cfg(test)]
mod tests {
    use lambda_idempotency_core::record::Owner;

    use super::*;

    #[test]
    fn at_its_last_instant_and_for_the_clock_skew_a_key_is_held() {
        let at = Timestamp::from_secs;
        let mut record = IdempotencyRecord::new(Status::InProgress, at(500));
        record.owner = Some(Owner::from_bits(1));
        record.lease_until = Some(at(100));
        assert_eq!(State::of(&record, at(101)), State::InProgress);
        assert_eq!(State::of(&record, at(102)), State::Lapsed);
        assert_eq!(State::of(&record, at(502)), State::Expired);
        record.last_owner = record.owner.take();
        assert_eq!(State::of(&record, at(101)), State::InProgress, "stopped, and left held");
        assert_eq!(State::of(&record, at(102)), State::Released);
        record.lease_until = None;
        assert_eq!(State::of(&record, at(501)), State::InProgress, "of another library");
    }
}
