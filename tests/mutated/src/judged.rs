//! Asks of each decision of admission, in whatever state it is made, that a worker knows its own writes, and that a busy
//! key is free when it is said to be.

use std::{cell::Cell, time::Duration};

use crate::core::{
    clock::Timestamp,
    record::{IdempotencyRecord, Status},
};

/// A decision that is wrong, whatever follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misjudged {
    /// A worker did not recognise its own write.
    OwnWork,
    /// An owner was told that it was overtaken.
    Overtaken,
    /// The key is busy after the instant that was given.
    Promise,
}

thread_local! {
    static WRONG: Cell<Option<Misjudged>> = const { Cell::new(None) };
}

/// The last wrong decision on this thread since the last call.
#[must_use]
pub fn misjudged() -> Option<Misjudged> {
    WRONG.take()
}

fn note(wrong: Misjudged, is_wrong: bool) {
    if is_wrong {
        WRONG.set(Some(wrong));
    }
}

/// The copied admission. It is asked through functions that look at its answers.
pub mod admission {
    use super::{Duration, IdempotencyRecord, Misjudged, Status, Timestamp, note};
    pub use crate::copied::admission::*;

    /// Decides about a claim.
    #[must_use]
    pub fn admit(claim: &Claim, found: Option<&IdempotencyRecord>, now: Timestamp) -> Finding {
        let decide = |now| crate::copied::admission::admit(claim, found, now);
        let admission = decide(now);
        let is_mine = found
            .is_some_and(|it| it.status == Status::InProgress && it.owner == Some(claim.owner));
        note(Misjudged::OwnWork, is_mine && !matches!(admission, Finding::Mine));
        if let Finding::Held { until } = admission {
            let later = decide(until.plus(Duration::from_millis(1)));
            note(Misjudged::Promise, matches!(later, Finding::Held { .. }));
        }
        admission
    }

    impl Held {
        /// Decides what to do after a refused settlement.
        #[must_use]
        pub fn settled(
            &self,
            settlement: &Settlement,
            found: Option<&IdempotencyRecord>,
            now: Timestamp,
        ) -> Settled {
            let settled = self.decide(settlement, found, now);
            let (Some(found), (_, asked)) = (found, self.write(settlement, now)) else {
                return settled;
            };
            let who = |it: &IdempotencyRecord| (it.status, it.owner, it.last_owner);
            let is_asked = asked.is_some_and(|asked| {
                let is_renewal = matches!(settlement, Settlement::Renew { .. });
                let extends = asked.lease_until == found.lease_until && asked.steps == found.steps;
                who(&asked) == who(found) && (extends || !is_renewal)
            });
            let owner = Some(self.claim.owner);
            let owns = found.status == Status::InProgress && found.owner == owner;
            note(Misjudged::OwnWork, is_asked && settled != Settled::Done);
            note(Misjudged::Overtaken, owns && matches!(settled, Settled::Overtaken(_)));
            settled
        }
    }
}
