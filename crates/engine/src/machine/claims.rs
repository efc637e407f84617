//! Claims without an answer: they are sent, sent again, and undone if they stay in doubt.
//!
//! A claim is one conditional write. If a record is probably stored, its key is read first, and the claim
//! is a separate, later write. New claims share one call. It ends early, so that one slow key does not
//! delay the others; the slow ones are sent again separately, with the same token, while there is time for
//! claiming. The only record of a batch delays no other, so its call has all of that time: where a store makes
//! calls wait, it would lose its turn. A claim that may have been applied and was never answered is undone before its record is
//! returned, so that the next delivery need not wait for the end of an unused lease.

use std::{sync::Arc, time::Duration};

use super::{
    calls::{CallId, Calls},
    io::{Action, Carried},
};
use lambda_idempotency_core::{
    admission::{Claim, Finding, Held, Settlement, admit},
    clock::Timestamp,
    outcome::Completion,
    record::IdempotencyRecord,
    store::{Guard, StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_keys::Key;

/// How often a record may change under a claimant before it gives up.
const ROUNDS: u8 = 3;
/// How long the first call of a claim may take, at most.
const FIRST_CLAIM_CALL: Duration = Duration::from_secs(1);

/// A key that is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct WantedKey {
    /// The record's position in the batch.
    pub(super) at: usize,
    pub(super) key: Key,
    pub(super) claim: Claim,
    /// How claiming begins.
    pub(super) begins: Begins,
    /// How many losses in a row the claim takes over: 0, or in quarantine those that are known. A
    /// record with another number has its turn at another time.
    pub(super) losses: u32,
    /// When claiming is given up.
    pub(super) until: Timestamp,
    /// When it is given up while the store answers, and only other calls are in the way.
    pub(super) last: Timestamp,
    /// Whether the key is only taken to be free, and no claim is written.
    pub(super) is_optimistic: bool,
}

/// How claiming a key begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Begins {
    /// With a look, and it ends there if the key is free: there is probably an idempotency record, and its
    /// contents decide when the record may be claimed.
    Look,
    /// With a write that replaces the known record, or that expects none.
    Write(Option<Box<IdempotencyRecord>>),
}

/// The answer for a key.
pub(super) enum Claimed {
    /// The key is held.
    Held(Arc<Held>),
    /// The key is taken to be free, and nothing was written. Its completion is written under this guard.
    Assumed { held: Arc<Held>, guard: Box<Guard> },
    /// The work was done, and its messages may not have been sent.
    Unsent(Arc<Held>),
    /// Another record is stored; and when the work was done, if it was.
    Found(Finding, Option<Completion>),
    /// The answer to a look: the key can be claimed outside of quarantine, replacing the record that was
    /// read.
    Free { seen: Option<Box<IdempotencyRecord>> },
    /// The look failed, so nothing is known.
    Unseen,
    /// Its last attempts were lost. The key is not claimed: that is done just before the record runs, in
    /// quarantine.
    Suspect { losses: u32, seen: Option<Box<IdempotencyRecord>> },
    /// The store did not answer.
    Unavailable(StoreError),
}

impl Claimed {
    /// The answer, if it is known without a write: `None` if the key is free.
    pub(super) fn of(
        claim: &Claim,
        found: Option<&IdempotencyRecord>,
        now: Timestamp,
    ) -> Option<Self> {
        let held = || found.map(|found| Arc::new(claim.held(found.clone())));
        match admit(claim, found, now) {
            Finding::Free => None,
            Finding::Mine => held().map(Self::Held),
            Finding::Unsent(_) => held().map(Self::Unsent),
            finding => Some(Self::Found(finding, found.and_then(Completion::of))),
        }
    }
}

/// The answer for one key.
pub(super) struct ClaimAnswer {
    /// The record's position in the batch.
    pub(super) at: usize,
    pub(super) claimed: Claimed,
    /// The record that says so, if one was seen.
    pub(super) seen: Option<IdempotencyRecord>,
}

impl ClaimAnswer {
    /// An answer without a stored record.
    pub(super) const fn new(at: usize, claimed: Claimed) -> Self {
        Self { at, claimed, seen: None }
    }
}

/// The claims that are not answered yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Claims {
    calls: Calls<PendingClaim>,
}

impl Claims {
    /// How many claims have no answer yet.
    pub(super) fn open(&self) -> usize {
        self.calls.all().count()
    }

    /// Whether one has no answer yet whose first call is not over: others may wait for that call.
    pub(super) fn are_new(&self) -> bool {
        self.calls
            .all()
            .any(|pending| !pending.is_slow && !matches!(pending.phase, ClaimPhase::Undo(_)))
    }

    /// Whether one has no answer yet that may still be granted.
    pub(super) fn are_wanted(&self) -> bool {
        self.open() > self.undone().count()
    }

    /// The records whose claims are only undone: they are returned after that.
    pub(super) fn undone(&self) -> impl Iterator<Item = usize> {
        let undone =
            self.calls.all().filter(|pending| matches!(pending.phase, ClaimPhase::Undo(_)));
        undone.map(|pending| pending.wanted.at)
    }

    /// Makes room for this many claims at once, if there is none.
    pub(super) fn reserve(&mut self, claims: usize) {
        if self.calls.waiting.capacity() == 0 {
            self.calls.waiting.reserve_exact(claims);
        }
    }

    pub(super) fn add(&mut self, wanted: WantedKey) {
        self.calls.waiting.push(PendingClaim::new(wanted));
    }

    /// The next call to make, with its deadline. Claims that need no call are answered into `answers`. A
    /// claim that is sent gets the lease `lease_until`, and undoing ends at `last`. With `is_only`, the batch has no
    /// other record that a slow claim could delay; a look ends early all the same, since writes may succeed where reads fail.
    pub(super) fn send(
        &mut self,
        call: CallId,
        now: Timestamp,
        (lease_until, last): (Timestamp, Timestamp),
        is_only: bool,
        answers: &mut Vec<ClaimAnswer>,
    ) -> Option<Action> {
        while let Some(kind) = self.calls.waiting.first().map(PendingClaim::kind) {
            let mut members = self.calls.take(|pending| pending.kind() == kind);
            let until = members.iter().map(|member| member.wanted.until).min()?;
            let early = FIRST_CLAIM_CALL.min(until.since(now) / 2);
            let is_write = kind.0 == 1;
            let first = if is_only && is_write { until.since(now) } else { early };
            let first = first.min(lease_until.since(now) / 6);
            // Half of the lease is left when the claim is granted. Until then it goes with a later lease again.
            let slow = until.min(now.plus(lease_until.since(now) / 2));
            let deadline = match kind {
                (2, _) => last,
                (_, true) => slow,
                (_, false) => now.plus(first),
            };
            let action = match kind.0 {
                0 => {
                    let keys = members.iter().map(|member| member.wanted.key.clone()).collect();
                    Action::Read { call, keys, deadline }
                }
                1 => {
                    let mut writes = Vec::with_capacity(members.len());
                    members.retain_mut(|member| {
                        let write = member.write(now, lease_until, answers);
                        let goes = write.is_some();
                        writes.extend(write);
                        goes
                    });
                    Action::Write { call, writes, deadline }
                }
                _ => {
                    let writes = members.iter().filter_map(|member| member.undo(now)).collect();
                    Action::Write { call, writes, deadline }
                }
            };
            if members.is_empty() {
                continue;
            }
            self.calls.add(call, members, now, deadline, Duration::ZERO);
            return Some(action);
        }
        None
    }

    /// A read was answered. `None` if the call is not one of claims.
    pub(super) fn read(
        &mut self,
        call: CallId,
        found: impl Iterator<Item = Result<Option<IdempotencyRecord>, StoreError>>,
        now: Timestamp,
    ) -> Option<Vec<ClaimAnswer>> {
        let answered = self.calls.answered(call, now)?;
        let mut answers = Vec::new();
        for (pending, found) in answered.members.into_iter().zip(found) {
            match found {
                Ok(seen) => {
                    let at = pending.wanted.at;
                    let answer = match judge(&pending.wanted, seen, now) {
                        Ok(Free { seen, .. }) => {
                            ClaimAnswer::new(at, Claimed::Free { seen: seen.map(Box::new) })
                        }
                        Err(answer) => answer,
                    };
                    answers.push(answer);
                }
                // A read may fail although writes succeed. Without a look, the write of the claim finds out
                // what is stored.
                Err(_) => {
                    answers.push(ClaimAnswer::new(pending.wanted.at, Claimed::Unseen));
                }
            }
        }
        Some(answers)
    }

    /// These writes were answered. `None` if the call is not one of claims.
    pub(super) fn written(
        &mut self,
        call: CallId,
        writes: Vec<Write>,
        verdicts: impl Iterator<Item = Verdict>,
        now: Timestamp,
    ) -> Option<Vec<ClaimAnswer>> {
        let answered = self.calls.answered(call, now)?;
        let mut answers = Vec::with_capacity(answered.members.len());
        for ((mut pending, write), verdict) in
            answered.members.into_iter().zip(writes).zip(verdicts)
        {
            let at = pending.wanted.at;
            let verdict = match verdict {
                Verdict::EffectRefused(refused) => Verdict::Unknown(refused.into()),
                verdict => verdict,
            };
            match (pending.phase, write.record, verdict) {
                // The claim may be undone or not: there is no time to try again.
                (ClaimPhase::Undo(error), _, _) => {
                    answers.push(ClaimAnswer::new(at, Claimed::Unavailable(error.0)));
                }
                (ClaimPhase::Writing(_), Some(record), Verdict::Written) => {
                    let held = Held { claim: pending.wanted.claim, record };
                    answers.push(ClaimAnswer::new(at, Claimed::Held(Arc::new(held))));
                }
                (_, _, Verdict::Found(seen)) => {
                    // The write that was in doubt is resolved: this record is stored, perhaps by that write.
                    pending.doubt = own(&pending.wanted.claim, seen.as_ref());
                    pending.rounds += 1;
                    pending.phase = ClaimPhase::Write(seen);
                    self.calls.waiting.push(pending);
                }
                (ClaimPhase::Writing(over), Some(record), Verdict::Unknown(error)) => {
                    if error.may_have_applied() {
                        let claim = pending.wanted.claim.clone();
                        pending.doubt = Some(Box::new(Held { claim, record }));
                    }
                    pending.phase = ClaimPhase::Write(over);
                    self.failed(pending, error, answered.cut_short, now, &mut answers);
                }
                (phase, _, Verdict::Written | Verdict::EffectRefused(_) | Verdict::Unknown(_)) => {
                    pending.phase = phase;
                    self.calls.waiting.push(pending);
                }
            }
        }
        Some(answers)
    }

    /// Gives up all claims; returns whose they are.
    pub(super) fn abandon(&mut self) -> Vec<usize> {
        self.calls.abandon().into_iter().map(|pending| pending.wanted.at).collect()
    }
}

/// The claim, if an earlier write of it has stored this record: it is undone if it gets no answer in time.
fn own(claim: &Claim, seen: Option<&IdempotencyRecord>) -> Option<Box<Held>> {
    let own = seen.filter(|_| Guard::OwnedBy(claim.owner).holds(seen))?;
    Some(Box::new(Held { claim: claim.clone(), record: own.clone() }))
}

/// Whether less than half of the lease is left that a claim gets now.
fn is_short(held: &Held, now: Timestamp, lease_until: Timestamp) -> bool {
    let half = now.plus(lease_until.since(now) / 2);
    held.record.lease_until.is_some_and(|until| until < half)
}

impl Claims {
    /// Handles a claim without an answer: it is sent again if its deadline ended the call and there is
    /// time, else undone if it may have been applied, else given up.
    fn failed(
        &mut self,
        mut pending: PendingClaim,
        error: StoreError,
        cut_short: bool,
        now: Timestamp,
        answers: &mut Vec<ClaimAnswer>,
    ) {
        if error.kind() == StoreErrorKind::Contended {
            pending.wanted.until = pending.wanted.last;
        }
        if cut_short && error.is_transient() && now < pending.wanted.until {
            pending.is_slow = true;
            self.calls.waiting.push(pending);
        } else if pending.doubt.is_some() {
            pending.phase = ClaimPhase::Undo(Carried(error));
            self.calls.waiting.push(pending);
        } else {
            answers.push(ClaimAnswer::new(pending.wanted.at, Claimed::Unavailable(error)));
        }
    }

    /// Sends no more claims, since the time for handlers is over. Claims in doubt are undone; others that
    /// are not being sent get no answer.
    pub(super) fn stop(&mut self) -> Vec<ClaimAnswer> {
        let error = || {
            let why = "the store did not answer before the time for handlers was over";
            StoreError::new(StoreErrorKind::Unavailable, why)
        };
        let mut answers = Vec::new();
        for mut pending in std::mem::take(&mut self.calls.waiting) {
            match pending.phase {
                ClaimPhase::Undo(_) => self.calls.waiting.push(pending),
                _ if pending.doubt.is_some() => {
                    pending.phase = ClaimPhase::Undo(Carried(error()));
                    self.calls.waiting.push(pending);
                }
                _ => {
                    let claimed = Claimed::Unavailable(error());
                    answers.push(ClaimAnswer::new(pending.wanted.at, claimed));
                }
            }
        }
        answers
    }
}

impl PendingClaim {
    /// The write of a claim, unless the record that was read answers it.
    fn write(
        &mut self,
        now: Timestamp,
        lease_until: Timestamp,
        answers: &mut Vec<ClaimAnswer>,
    ) -> Option<Write> {
        let ClaimPhase::Write(seen) = &mut self.phase else { return None };
        let seen = seen.take();
        let wanted = &mut self.wanted;
        wanted.claim.lease_until = lease_until;
        let at = wanted.at;
        match judge(wanted, seen, now) {
            // An earlier write of this claim was applied, and its answer was lost. Its lease may end before the handler begins,
            // so it is renewed.
            Err(ClaimAnswer { claimed: Claimed::Held(held), seen, .. })
                if self.rounds < ROUNDS && is_short(&held, now, lease_until) =>
            {
                let (guard, record) = held.write(&Settlement::Renew { lease_until }, now);
                self.phase = ClaimPhase::Writing(seen);
                return Some(Write::new(wanted.key.clone(), guard, record));
            }
            Err(answer) => answers.push(answer),
            Ok(_) if self.rounds >= ROUNDS => {
                let error = StoreError::new(
                    StoreErrorKind::Contended,
                    format!("the record changed {ROUNDS} times while it was being claimed"),
                );
                answers.push(ClaimAnswer::new(at, Claimed::Unavailable(error)));
            }
            Ok(Free { guard, held, .. }) if wanted.is_optimistic => {
                let claimed = Claimed::Assumed { held: Arc::new(held), guard: Box::new(guard) };
                answers.push(ClaimAnswer::new(at, claimed));
            }
            Ok(Free { guard, held, seen }) => {
                let key = wanted.key.clone();
                self.phase = ClaimPhase::Writing(seen);
                return Some(Write::new(key, guard, Some(held.record)));
            }
        }
        None
    }

    /// The write that undoes the claim. It restores the earlier record, so that earlier failures stay
    /// counted.
    fn undo(&self, now: Timestamp) -> Option<Write> {
        let held = self.doubt.as_deref()?;
        let (guard, record) = held.write(&Settlement::Undo, now);
        Some(Write::new(self.wanted.key.clone(), guard, record))
    }
}

/// A claim that has no answer yet, and its next phase.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PendingClaim {
    wanted: WantedKey,
    phase: ClaimPhase,
    /// How many of its writes failed because the record had changed.
    rounds: u8,
    /// Whether the deadline ended its first call: the next call has all the time that is left.
    is_slow: bool,
    /// The claim that a call without an answer may have written.
    doubt: Option<Box<Held>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ClaimPhase {
    /// Read the record.
    Look,
    /// Write the claim over the record that was read.
    Write(Option<IdempotencyRecord>),
    /// The write was sent over the record that was read. The write comes back with its answer.
    Writing(Option<IdempotencyRecord>),
    /// Undo the write that may have been applied; then the record gets this error.
    Undo(Carried<StoreError>),
}

impl PendingClaim {
    fn new(mut wanted: WantedKey) -> Self {
        let phase = match &mut wanted.begins {
            Begins::Look => ClaimPhase::Look,
            Begins::Write(seen) => ClaimPhase::Write(seen.take().map(|seen| *seen)),
        };
        Self { wanted, phase, rounds: 0, is_slow: false, doubt: None }
    }

    /// Claims of one kind share a call: looks, writes, undos. Claims whose first call was cut short do
    /// not share a call with new ones.
    const fn kind(&self) -> (u8, bool) {
        let phase = match self.phase {
            ClaimPhase::Look => 0,
            ClaimPhase::Write(_) | ClaimPhase::Writing(_) => 1,
            ClaimPhase::Undo(_) => 2,
        };
        (phase, self.is_slow)
    }
}

/// A key that can be claimed.
struct Free {
    guard: Guard,
    held: Held,
    /// The record that the claim is written over.
    seen: Option<IdempotencyRecord>,
}

/// The record that was seen leaves a claim to be written, or answers it.
#[expect(clippy::result_large_err, reason = "no error: not worth a box")]
fn judge(
    wanted: &WantedKey,
    seen: Option<IdempotencyRecord>,
    now: Timestamp,
) -> Result<Free, ClaimAnswer> {
    let at = wanted.at;
    if let Some(claimed) = Claimed::of(&wanted.claim, seen.as_ref(), now) {
        return Err(ClaimAnswer { at, claimed, seen });
    }
    let (guard, held) = wanted.claim.over(seen.as_ref(), now);
    let losses = held.consecutive_losses();
    if losses == wanted.losses {
        return Ok(Free { guard, held, seen });
    }
    let seen = seen.map(Box::new);
    let claimed = match losses {
        0 => Claimed::Free { seen },
        losses => Claimed::Suspect { losses, seen },
    };
    Err(ClaimAnswer::new(at, claimed))
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
