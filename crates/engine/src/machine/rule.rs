//! Events of a record, the view of it that a rule has, and what becomes of it.
//!
//! A rule is a function of one record in its [`RecordView`], which it only reads. It returns the [`Next`] stage of the
//! record, and some return [`Effect`]s beside it. It does not see the machine, the host, nor other records, and calls no
//! rule that could call it: the table asks the host before, and carries out what follows.

use std::{sync::Arc, time::Duration};

use super::{
    budget::TimeBudget,
    io::{Carried, HandlerEnd, Setting},
    lease::{KeptLease, Terms},
    record::{BatchRecord, Stage},
};
use lambda_idempotency_core::{
    admission::{Claim, Finding, Held, Settlement},
    clock::Timestamp,
    effects::Effects,
    outbox::{OutgoingMessage, SendError},
    outcome::{NotStarted, Outcome},
    record::{IdempotencyRecord, Json, Owner, Provenance},
    store::{Guard, StoreError, Verdict},
};
use lambda_idempotency_keys::Key;

/// An event of a record.
#[expect(clippy::large_enum_variant, reason = "looked at once and dropped, never kept")]
pub(super) enum RecordEvent {
    /// It may be the first of its key and its group. If it `looks`, its key probably has an idempotency record.
    Begin { looks: bool },
    /// It is looked at or claimed now. The host is asked whether the answer is [`Known`](Self::Known), or for a token.
    Turn,
    /// Its outcome is known, and the store is not asked.
    Known(Outcome),
    /// The store is asked for its key with this token.
    Token(ClaimToken),
    /// Its key can be neither looked at nor claimed: there is no token, or the response is due.
    Unavailable(StoreError),
    /// Its look was answered.
    Looked(Claiming, Result<Option<IdempotencyRecord>, StoreError>),
    /// Its claim was answered, or the write that undoes it.
    Claimed(Claiming, Written),
    /// Its wait for a busy key is over.
    Woken,
    /// There is room for its handler.
    Start,
    /// Its handler has ended.
    Ended(HandlerEnd),
    /// Steps of its handler have ended.
    Steps(Json),
    /// A renewal of its lease was answered.
    Renewed(KeptLease, Written),
    /// Its lease has ended.
    Lapsed,
    /// The time for handlers is over.
    Stop,
    /// Its handler was dropped, which was called before or not.
    Dropped(DropReason, bool),
    /// Its settlement was answered.
    Settled(Box<Settling>, Written),
    /// The sender has answered.
    Sent(Outbox, Result<(), SendError>),
    /// It is not started any more.
    Close(NotStarted),
}

/// The answer to a write.
pub(super) struct Written {
    /// The record that was to be stored.
    pub(super) record: Option<IdempotencyRecord>,
    pub(super) verdict: Verdict,
    /// Whether the deadline ended the call: it took most of the time that it had.
    pub(super) cut_short: bool,
}

/// The answers of the host that a claim needs.
pub(super) struct ClaimToken {
    pub(super) owner: Owner,
    pub(super) provenance: Option<Provenance>,
    /// How long handlers take.
    pub(super) pace: Duration,
    /// The record that was found under its key, which the claim replaces.
    pub(super) seen: Option<Box<IdempotencyRecord>>,
}

/// Why a running handler is dropped.
#[cfg_attr(test, derive(Debug))]
pub(super) enum DropReason {
    /// The time for handlers is over.
    Deadline,
    /// Its lease was not renewed in time.
    Lapsed,
    /// Its lease is lost: this was found instead.
    Lost(Finding, Option<Box<IdempotencyRecord>>),
}

/// The next stage of a record. The machine enters the stage, and moves the record from list to list.
#[cfg_attr(test, derive(Debug))]
pub(super) enum Next {
    /// It stays in its stage.
    Stay,
    /// A stage that has no other data.
    To(Stage),
    /// Its key is looked at or claimed.
    Claim(Claiming),
    /// Its handler is called.
    Start,
    /// Its running handler is dropped; a row of its own says what follows.
    Drop(DropReason),
    /// Its claim is settled.
    Settle(Box<Settling>),
    /// Its messages are sent.
    Send(Outbox),
    /// Its messages are sent, which are stored in this completion, and are marked there; then it has this outcome.
    Mark(Arc<Held>, Outcome),
    /// It has this outcome.
    End(Outcome),
    /// It has this outcome, and the store does not know that its messages were sent.
    EndUnmarked(Outcome, StoreError),
}

/// A consequence of a rule beside the next stage.
#[cfg_attr(test, derive(Debug))]
pub(super) enum Effect {
    /// Its key is held; or it is taken to be free, and its completion is written under this guard.
    Granted(Arc<Held>, Option<Box<Guard>>),
    /// Its key was looked at; its claim replaces this record. So many of its last attempts were lost in a row.
    Looked { losses: u32, seen: Option<Box<IdempotencyRecord>> },
    /// It runs without a claim, because of this error.
    Outage(StoreError),
    /// The others waited for it, and its key could not be claimed.
    HeldUp,
    /// Its key was found busy.
    MetBusy,
    /// These are all steps of its handler that have ended.
    Steps(Json),
    /// Its lease was renewed: this is stored now.
    Extended(Box<IdempotencyRecord>),
    /// Its lease is to be renewed again; over this record, if another write of the claim has stored one.
    Renew(KeptLease, Option<Box<IdempotencyRecord>>),
    /// The store refuses to keep its steps, and it is of no use to wait.
    StepsRefused(StoreError),
}

/// The next stage of a record, and the effects that are carried out before it enters that.
pub(super) struct Decision {
    pub(super) next: Next,
    pub(super) effects: [Option<Effect>; 2],
}

impl From<Next> for Decision {
    fn from(next: Next) -> Self {
        Self { next, effects: [None, None] }
    }
}

impl Next {
    pub(super) fn with(self, effect: Effect) -> Decision {
        Decision { next: self, effects: [Some(effect), None] }
    }
}

impl Decision {
    pub(super) fn and(self, effect: Option<Effect>) -> Self {
        let [first, _] = self.effects;
        Self { next: self.next, effects: [first, effect] }
    }
}

/// A record to which something happens, as its rules see it.
pub(super) struct RecordView<'s, 'a> {
    pub(super) at: usize,
    pub(super) record: &'s BatchRecord<'a>,
    pub(super) now: Timestamp,
    pub(super) setting: &'s Setting<'a>,
    pub(super) budget: TimeBudget,
    pub(super) terms: Terms,
    /// Whether the time for handlers is over, so that it will not be started.
    pub(super) is_closed: bool,
    /// Whether it is in the quarantine group that has its turn.
    pub(super) has_turn: bool,
    /// Whether other records have no outcome yet.
    pub(super) is_beside_others: bool,
}

impl RecordView<'_, '_> {
    /// The claim that the record makes now.
    pub(super) fn claim_by(&self, owner: Owner, provenance: Option<Provenance>) -> Claim {
        let given = &self.record.given;
        Claim {
            owner,
            lease_until: self.terms.lease_until(self.now),
            retention: self.setting.policy.retention,
            clock_skew: self.setting.policy.clock_skew,
            fingerprint: given.fingerprint.clone(),
            application: self.setting.application.clone(),
            provenance,
            payload: given.kept.clone(),
        }
    }

    /// Whether nothing is kept of its attempts.
    pub(super) fn is_mutex(&self) -> bool {
        !self.setting.policy.mode.keeps_completions()
    }
}

/// A key that is looked at or claimed, until the store has answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Claiming {
    /// The record's position in the batch.
    pub(super) at: usize,
    pub(super) key: Key,
    pub(super) claim: Claim,
    pub(super) step: ClaimStep,
    /// How many losses in a row the claim takes over: 0, or in quarantine those that are known. A
    /// record with another number has its turn at another time.
    pub(super) losses: u32,
    /// When claiming is given up.
    pub(super) until: Timestamp,
    /// When it is given up while the store answers, and only other calls are in the way.
    pub(super) last: Timestamp,
    /// How many of its writes failed because the record had changed.
    pub(super) rounds: u8,
    /// Whether the deadline ended its first call: the next call has all the time that is left.
    pub(super) is_slow: bool,
    /// The claim that a call without an answer may have written.
    pub(super) doubt: Option<Box<Held>>,
}

/// The next call of a claim, or the one that is on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ClaimStep {
    /// The record is read, and claiming ends there if the key is free: there is probably an idempotency record, and its
    /// contents decide when the record may be claimed.
    Look,
    /// The claim is written over the record that was read, or where none is expected.
    Write(Option<Box<IdempotencyRecord>>),
    /// The claim may have been written, and is undone; then the record gets this error.
    Undo(Box<Held>, Carried<StoreError>),
}

/// One claim to be settled.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Settling {
    /// The record's position in the batch.
    pub(super) at: usize,
    pub(super) key: Key,
    pub(super) held: Arc<Held>,
    pub(super) settlement: Settlement,
    /// The effects that are committed with the settlement.
    pub(super) effects: Option<Effects>,
    /// The guard that it is written under, if the key was not claimed.
    pub(super) assumed: Option<Box<Guard>>,
    /// The write that replaces the settlement's own one.
    pub(super) instead: Option<Box<(Guard, IdempotencyRecord)>>,
    /// The delivery's outcome if this succeeds.
    pub(super) outcome: Carried<Outcome>,
    /// Not before this instant, unless the clock steps back behind `since`.
    pub(super) due: Timestamp,
    /// When its handler ended, or it was decided that it is not called.
    pub(super) begun: Timestamp,
    /// When `due` was decided.
    pub(super) since: Timestamp,
    /// Not after this one.
    pub(super) until: Timestamp,
    pub(super) tries: u32,
    /// How often it found no record, or its own record again.
    pub(super) again: u32,
    /// Whether an answer that a retry may not change is retried all the same.
    pub(super) insists: bool,
    /// Whether one of its writes had no answer, if it has effects.
    pub(super) in_doubt: bool,
    /// The outcome if its commit was applied after all, once that is given up.
    pub(super) committed: Option<Carried<Outcome>>,
}

/// The messages of one record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Outbox {
    /// The record's position in the batch.
    pub(super) at: usize,
    /// The messages that are not sent yet, in their order.
    pub(super) messages: Vec<OutgoingMessage>,
    /// The completion in which they are stored; `None` if it could not be recorded.
    pub(super) stored: Option<Arc<Held>>,
    /// The delivery's outcome once they are sent.
    pub(super) outcome: Carried<Outcome>,
}
