//! What happens to a record, what a rule sees of it, and what becomes of it.
//!
//! A rule is a function of one record in its [`Step`]. It returns the [`Next`] stage of the record. It does not see
//! the machine, nor other records, and calls no rule that could call it: what follows for other records is the
//! machine's part.

use std::sync::Arc;

use super::{
    Ended, Host, Setting,
    budget::Budget,
    lease::{Kept, Terms},
    outboxes::Outbox,
    record::{Entry, Stage},
    settlements::{Settling, Written},
    wanted::{Claimed, Wanted},
};
use lambda_idempotency_core::{
    admission::Claim,
    clock::Timestamp,
    outbox::SendError,
    outcome::{Foreign, NotStarted, Outcome},
    record::{IdempotencyRecord, Json, Owner, Provenance},
    store::Verdict,
};

/// What happens to a record. An event is moved several times, so a settlement is in a box.
pub(super) enum Event {
    /// It may be the first of its key and its group. If it `looks`, its key probably has an idempotency record.
    Begin { looks: bool },
    /// It is looked at or claimed now.
    Turn,
    /// Its wait for a busy key is over.
    Woken,
    /// Its look or its claim was answered.
    Claimed(Claimed),
    /// There is room for its handler.
    Start,
    /// Its handler has ended; and when it was called, if it was.
    Ended(Ended, Option<Timestamp>),
    /// Steps of its handler have ended.
    Steps(Json),
    /// A renewal of its lease was answered.
    Renewed { kept: Kept, record: Option<Box<IdempotencyRecord>>, verdict: Box<Verdict> },
    /// Its lease has ended.
    Lapsed,
    /// The time for handlers is over.
    Stop,
    /// Its settlement was answered, which writes this; without a verdict, as most are, it is written.
    Settled { settling: Box<Settling>, written: Written, verdict: Option<Box<Verdict>> },
    /// The sender has answered.
    Sent(Outbox, Result<(), SendError>),
    /// It is not started any more.
    Close(NotStarted),
    /// The response is due, and its claim has no answer.
    Unanswered,
    /// The response is due, and its settlement has no answer.
    Unsettled(Box<Settling>),
}

/// What becomes of a record. The machine enters the stage, and moves the record from list to list.
pub(super) enum Next {
    /// It stays in its stage.
    Stay,
    /// A stage that has no other data.
    To(Stage),
    /// Its last attempts were lost, so many in a row: it waits for its turn in quarantine.
    Suspect(u32),
    /// Its key is looked at or claimed.
    Claim(Wanted),
    /// Its claim is settled.
    Settle(Box<Settling>),
    /// Its messages are sent.
    Send(Outbox),
    /// It has this outcome.
    End(Outcome),
}

/// A record to which something happens: what its rules see, and what they say besides its next stage.
pub(super) struct Step<'s, 'a> {
    pub(super) at: usize,
    pub(super) entry: &'s mut Entry<'a>,
    pub(super) now: Timestamp,
    pub(super) host: &'s mut dyn Host,
    pub(super) setting: &'s Setting<'a>,
    pub(super) budget: Budget,
    pub(super) terms: Terms,
    /// Why it will not be started, if that is decided.
    pub(super) closed: Option<NotStarted>,
    /// Whether it is in the quarantine group that has its turn.
    pub(super) has_turn: bool,
    /// Whether other records have no outcome yet.
    pub(super) is_beside_others: bool,
    /// Said by a rule: the others waited for it, and its key could not be claimed.
    pub(super) held_up: bool,
}

impl Step<'_, '_> {
    /// The claim that the record makes now.
    pub(super) fn claim_by(&self, owner: Owner, provenance: Option<Provenance>) -> Claim {
        let ask = self.entry.ask();
        Claim {
            owner,
            lease_until: self.terms.lease_until(self.now),
            retention: self.setting.policy.retention,
            clock_skew: self.setting.policy.clock_skew,
            fingerprint: ask.fingerprint.clone(),
            application: self.setting.application.clone(),
            provenance,
            payload: ask.kept.clone(),
        }
    }

    /// Describes the other application that owns a key.
    pub(super) fn foreign(&self, theirs: Arc<str>) -> Foreign {
        Foreign::new(self.setting.operation, theirs, self.setting.application.clone())
    }

    /// Whether nothing is kept of its attempts.
    pub(super) fn is_mutex(&self) -> bool {
        !self.setting.policy.mode.keeps_completions()
    }

    /// Whether the response is due.
    pub(super) fn is_reply_due(&self) -> bool {
        self.now >= self.budget.reply()
    }
}
