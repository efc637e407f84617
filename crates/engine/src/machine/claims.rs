//! Claims on their way: what is asked of the store, asked again, and undone when it stays in doubt.
//!
//! A claim is one conditional write. If a record is probably stored, its key is read first, and the claim
//! is a separate, later write. New claims share one call. It ends early, so that one slow key does not
//! delay the others; the slow ones are asked again by themselves, under the same token, for as long as
//! claiming is worth while.
//! A claim that may have been applied and was never answered is undone before its record is
//! returned, so that the next delivery need not wait for a lease that nobody uses.

use std::{sync::Arc, time::Duration};

use super::{
    calls::{CallId, Calls},
    carried::Carried,
    quarantine::Attempts,
    wanted::{Answer, Begins, Claimed, Wanted},
};
use crate::rules::{Rule, keeps};
use lambda_idempotency_core::{
    admission::{Held, Settlement, admit},
    clock::Timestamp,
    record::IdempotencyRecord,
    store::{Guard, StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_keys::Key;

/// How often a record may change under a claimant before it gives up.
const ROUNDS: u8 = 3;
/// How long the first call of a claim may take, at most.
const FIRST_CLAIM_CALL: Duration = Duration::from_secs(1);

/// A claim and how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Attempt {
    wanted: Wanted,
    step: Step,
    /// How many writes have met another record.
    rounds: u8,
    /// Whether its first call was cut short: the next one has all the time that is left.
    is_slow: bool,
    /// The claim as it was written by a call whose answer was lost.
    doubt: Option<Box<Held>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "the large ones are the usual ones")]
enum Step {
    /// Read what is there.
    Look,
    /// Write the claim over what was seen.
    Write(Option<IdempotencyRecord>),
    /// The write is on its way; this is the claim if it is applied.
    Writing { held: Held, over: Option<IdempotencyRecord> },
    /// Undo what may have been written; then the record is told of this error.
    Undo(Carried<StoreError>),
}

impl Attempt {
    /// Claims of one kind share a call: looks, writes, undoing; and what was cut short goes apart
    /// from what is asked for the first time.
    const fn kind(&self) -> (u8, bool) {
        let step = match self.step {
            Step::Look => 0,
            Step::Write(_) | Step::Writing { .. } => 1,
            Step::Undo(_) => 2,
        };
        (step, self.is_slow)
    }
}

/// A call of the store that claiming needs.
pub(super) enum Request {
    Read(Vec<Key>),
    Write(Vec<Write>),
}

/// The claims that are not answered yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Claims {
    to_send: Vec<Attempt>,
    calls: Calls<Attempt>,
    open: usize,
}

impl Claims {
    /// How many there are.
    pub(super) const fn open(&self) -> usize {
        self.open
    }

    pub(super) fn add(&mut self, mut wanted: Wanted) {
        let step = match &mut wanted.begins {
            Begins::Look => Step::Look,
            Begins::Write(seen) => Step::Write(seen.take().map(|seen| *seen)),
        };
        self.to_send.push(Attempt { wanted, step, rounds: 0, is_slow: false, doubt: None });
        self.open += 1;
    }

    /// The next call to be made, with its deadline. What turns out to need none is answered into
    /// `answers`. A claim that is sent gets the lease `lease_until`, and undoing ends at `last`.
    pub(super) fn send(
        &mut self,
        call: CallId,
        now: Timestamp,
        lease_until: Timestamp,
        last: Timestamp,
        answers: &mut Vec<Answer>,
    ) -> Option<(Request, Timestamp)> {
        while let Some(kind) = self.to_send.first().map(Attempt::kind) {
            let mut members = self.take(kind);
            let until = members.iter().map(|member| member.wanted.until).min()?;
            let first = FIRST_CLAIM_CALL.min(until.since(now) / 2).min(lease_until.since(now) / 6);
            let deadline = if kind.1 { until } else { now.plus(first) };
            let (request, deadline) = match kind.0 {
                0 => {
                    let keys = members.iter().map(|member| member.wanted.key.clone()).collect();
                    (Request::Read(keys), deadline)
                }
                1 => {
                    let mut writes = Vec::with_capacity(members.len());
                    members.retain_mut(|member| {
                        let write = self.write(member, now, lease_until, answers);
                        let goes = write.is_some();
                        writes.extend(write);
                        goes
                    });
                    (Request::Write(writes), deadline)
                }
                _ => {
                    let writes = members.iter().filter_map(|member| undo(member, now)).collect();
                    (Request::Write(writes), last)
                }
            };
            if members.is_empty() {
                continue;
            }
            self.calls.add(call, members, now, deadline, Duration::ZERO);
            return Some((request, deadline));
        }
        None
    }

    fn take(&mut self, kind: (u8, bool)) -> Vec<Attempt> {
        if self.to_send.iter().all(|attempt| attempt.kind() == kind) {
            return std::mem::take(&mut self.to_send);
        }
        self.to_send.extract_if(.., |attempt| attempt.kind() == kind).collect()
    }

    /// The write of a claim, unless what was seen answers it.
    fn write(
        &mut self,
        attempt: &mut Attempt,
        now: Timestamp,
        lease_until: Timestamp,
        answers: &mut Vec<Answer>,
    ) -> Option<Write> {
        let Step::Write(seen) = &mut attempt.step else { return None };
        let seen = seen.take();
        let wanted = &mut attempt.wanted;
        wanted.claim.lease_until = lease_until;
        let at = wanted.at;
        match judge(wanted, seen, now) {
            Err(answer) => self.answer(answer, answers),
            Ok(_) if attempt.rounds >= ROUNDS => {
                let error = StoreError::new(
                    StoreErrorKind::Contended,
                    format!("the record changed {ROUNDS} times while it was being claimed"),
                );
                self.answer(Answer::new(at, Claimed::Unavailable(error)), answers);
            }
            Ok(Free { guard, held, seen }) => {
                let record = Some(held.record.clone());
                let key = wanted.key.clone();
                attempt.step = Step::Writing { held, over: seen };
                return Some(Write { key, guard, record });
            }
        }
        None
    }

    fn answer(&mut self, answer: Answer, answers: &mut Vec<Answer>) {
        self.open = self.open.saturating_sub(1);
        answers.push(answer);
    }

    /// A read was answered. `None` if the call is not one of claims.
    pub(super) fn read(
        &mut self,
        call: CallId,
        found: impl Iterator<Item = Result<Option<IdempotencyRecord>, StoreError>>,
        now: Timestamp,
    ) -> Option<Vec<Answer>> {
        let answered = self.calls.answered(call, now)?;
        let mut answers = Vec::new();
        for (attempt, found) in answered.members.into_iter().zip(found) {
            match found {
                Ok(seen) => {
                    let at = attempt.wanted.at;
                    let answer = match judge(&attempt.wanted, seen, now) {
                        Ok(Free { seen, .. }) => {
                            Answer::new(at, Claimed::Free { seen: seen.map(Box::new) })
                        }
                        Err(answer) => answer,
                    };
                    self.answer(answer, &mut answers);
                }
                // Reads and writes fail apart. Without a look, the claim itself finds out what is stored.
                Err(_) => {
                    let claimed = Claimed::Free { seen: None };
                    self.answer(Answer::new(attempt.wanted.at, claimed), &mut answers);
                }
            }
        }
        Some(answers)
    }

    /// A write was answered. `None` if the call is not one of claims.
    pub(super) fn written(
        &mut self,
        call: CallId,
        verdicts: impl Iterator<Item = Verdict>,
        now: Timestamp,
    ) -> Option<Vec<Answer>> {
        let answered = self.calls.answered(call, now)?;
        let mut answers = Vec::with_capacity(answered.members.len());
        for (mut attempt, verdict) in answered.members.into_iter().zip(verdicts) {
            let at = attempt.wanted.at;
            match (attempt.step, verdict) {
                // Undone or not: there is no time for more.
                (Step::Undo(error), _) => {
                    self.answer(Answer::new(at, Claimed::Unavailable(error.0)), &mut answers);
                }
                (Step::Writing { held, .. }, Verdict::Written) => {
                    self.answer(Answer::new(at, Claimed::Held(Arc::new(held))), &mut answers);
                }
                (_, Verdict::Found(seen)) => {
                    // Whatever was in doubt: this is what is there.
                    attempt.doubt = None;
                    attempt.rounds += 1;
                    attempt.step = Step::Write(seen);
                    self.to_send.push(attempt);
                }
                (Step::Writing { held, over }, Verdict::Unknown(error)) => {
                    if error.may_have_applied() {
                        attempt.doubt = Some(Box::new(held));
                    }
                    attempt.step = Step::Write(over);
                    self.failed(attempt, error, answered.cut_short, now, &mut answers);
                }
                (step, Verdict::Written | Verdict::Unknown(_)) => {
                    attempt.step = step;
                    self.to_send.push(attempt);
                }
            }
        }
        Some(answers)
    }

    /// What becomes of a claim without an answer: it is asked again if its call was cut short and
    /// there is time, else undone if it may have been applied, else given up.
    fn failed(
        &mut self,
        mut attempt: Attempt,
        error: StoreError,
        cut_short: bool,
        now: Timestamp,
        answers: &mut Vec<Answer>,
    ) {
        if cut_short && error.is_transient() && now < attempt.wanted.until {
            attempt.is_slow = true;
            self.to_send.push(attempt);
        } else if attempt.doubt.is_some() {
            attempt.step = Step::Undo(Carried(error));
            self.to_send.push(attempt);
        } else {
            self.answer(Answer::new(attempt.wanted.at, Claimed::Unavailable(error)), answers);
        }
    }

    /// Sends no more claims, since the time for handlers is over. Those in doubt are undone; the others
    /// that are not on their way have no answer.
    pub(super) fn stop(&mut self) -> Vec<Answer> {
        let error = || {
            let why = "the store did not answer before the time for handlers was over";
            StoreError::new(StoreErrorKind::Unavailable, why)
        };
        let mut answers = Vec::new();
        for mut attempt in std::mem::take(&mut self.to_send) {
            match attempt.step {
                Step::Undo(_) => self.to_send.push(attempt),
                _ if attempt.doubt.is_some() => {
                    attempt.step = Step::Undo(Carried(error()));
                    self.to_send.push(attempt);
                }
                _ => {
                    let claimed = Claimed::Unavailable(error());
                    self.answer(Answer::new(attempt.wanted.at, claimed), &mut answers);
                }
            }
        }
        answers
    }

    /// Gives up all claims; returns whose they are.
    pub(super) fn abandon(&mut self) -> Vec<usize> {
        self.open = 0;
        let on_their_way = self.calls.abandon();
        let all = on_their_way.chain(std::mem::take(&mut self.to_send));
        all.map(|attempt| attempt.wanted.at).collect()
    }
}

/// A key that can be claimed.
struct Free {
    guard: Guard,
    held: Held,
    /// What the claim is written over.
    seen: Option<IdempotencyRecord>,
}

/// What was seen leaves a claim to be written, or answers it.
#[expect(clippy::result_large_err, reason = "no error: not worth a box")]
fn judge(wanted: &Wanted, seen: Option<IdempotencyRecord>, now: Timestamp) -> Result<Free, Answer> {
    let at = wanted.at;
    match Claimed::of(admit(&wanted.claim, seen.as_ref(), now)) {
        Ok(claimed) => Err(Answer { at, claimed, seen }),
        Err((guard, held))
            if held.consecutive_losses() == wanted.losses || !keeps(Rule::QuarantinesTheLost) =>
        {
            Ok(Free { guard, held, seen })
        }
        Err((_, held)) => {
            let (attempts, seen) = (Attempts::before(&held), seen.map(Box::new));
            Err(Answer::new(
                at,
                if attempts.losses() == 0 {
                    Claimed::Free { seen }
                } else {
                    Claimed::Suspect { attempts, seen }
                },
            ))
        }
    }
}

/// What undoes a claim: it leaves behind what was there before, so that earlier failures stay
/// counted.
fn undo(attempt: &Attempt, now: Timestamp) -> Option<Write> {
    let held = attempt.doubt.as_deref()?;
    let (guard, record) = held.write(&Settlement::Undo, now);
    let record = record.filter(|_| keeps(Rule::UndoKeepsHistory));
    Some(Write { key: attempt.wanted.key.clone(), guard, record })
}
