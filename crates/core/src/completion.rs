//! When work was done, and until when its key answers.

use crate::{
    clock::Timestamp,
    record::{IdempotencyRecord, Status},
};

/// When the work of a key was done, and until when later deliveries of the key are answered from that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Completion {
    /// When it was recorded, by the clock of the worker that did the work, rounded up to a whole second. `None` in
    /// records of earlier versions and of other libraries, which do not say it.
    pub done_at: Option<Timestamp>,
    /// The last instant at which the key answers: the time of the completion plus the retention. A worker whose clock is
    /// behind may answer a little later.
    pub answers_until: Timestamp,
}

impl Completion {
    /// What this record says; `None` if its work is not done.
    #[must_use]
    pub fn of(record: &IdempotencyRecord) -> Option<Self> {
        let (done_at, answers_until) = (record.settled_at(), record.expires_at);
        (record.status == Status::Completed).then_some(Self { done_at, answers_until })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Owner;

    #[test]
    fn only_a_record_of_a_claim_says_when_its_work_was_done() {
        let at = Timestamp::from_secs;
        let mut record = IdempotencyRecord::new(Status::Completed, at(90));
        // Another library leaves the end of its lease in what it completes.
        record.lease_until = Some(at(30));
        let completion = |record: &_| Completion::of(record).map(|c| (c.done_at, c.answers_until));
        assert_eq!(completion(&record), Some((None, at(90))));
        record.owner = Some(Owner::from_bits(1));
        assert_eq!(completion(&record), Some((Some(at(30)), at(90))));
        record.status = Status::InProgress;
        assert_eq!(completion(&record), None);
    }
}
