//! Claiming keys, many in one round trip.

use std::sync::Arc;

use crate::unanswered::{each, unanswered};
use lambda_idempotency_core::{
    admission::{Admission, Claim, Held, Settlement, admit},
    clock::{Clock, Timestamp},
    record::{IdempotencyRecord, Json},
    store::{Guard, Store, StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_keys::Key;

/// How often a record may change under a claimant before it gives up.
const ROUNDS: usize = 3;

/// A key that is wanted.
pub(super) struct Wanted {
    /// The record's place in the batch.
    pub(super) at: usize,
    pub(super) key: Key,
    pub(super) claim: Claim,
    /// Whether to look before the first write, because something is known to be there.
    pub(super) look_first: bool,
    /// Whether the key may be taken from an owner that disappeared.
    pub(super) from_lost_attempt: bool,
}

/// What came of it.
pub(super) enum Claimed {
    /// The key is held.
    Held(Arc<Held>),
    /// The work was done.
    Replay(Option<Json>),
    /// The work failed permanently.
    PermanentlyFailed { error_type: Option<Arc<str>>, failed_attempts: u32, fence: u64 },
    /// The key was used with another payload.
    Mismatch { fence: u64 },
    /// Someone else holds the key.
    Busy { until: Timestamp },
    /// The key belongs to another application.
    Foreign { application: Arc<str> },
    /// Its last owner disappeared. Not taken: it has to be claimed just before it runs, alone.
    Suspect,
    /// The store did not say.
    Unavailable(StoreError),
}

impl Claimed {
    /// What is known without a write; otherwise what to write.
    #[expect(clippy::result_large_err, reason = "no error, and the usual case: not worth a box")]
    pub(super) fn of(admission: Admission) -> Result<Self, (Guard, Held)> {
        Ok(match admission {
            Admission::Try { guard, held } => return Err((guard, held)),
            Admission::Won(held) => Self::Held(Arc::new(held)),
            Admission::Replay(outcome) => Self::Replay(outcome),
            Admission::PermanentlyFailed { error_type: error, failed_attempts, fence, .. } => {
                Self::PermanentlyFailed { error_type: error, failed_attempts, fence }
            }
            Admission::Mismatch { fence } => Self::Mismatch { fence },
            Admission::Busy { until } => Self::Busy { until },
            Admission::Foreign { application } => Self::Foreign { application },
        })
    }
}

/// The answer for one key.
pub(super) struct Answer {
    /// The record's place in the batch.
    pub(super) at: usize,
    pub(super) claimed: Claimed,
    /// The record that says so, if one was seen.
    pub(super) seen: Option<IdempotencyRecord>,
}

/// Claims all that is wanted, until `deadline`; puts back what is in doubt then, until `last`.
pub(super) async fn claim(
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    wanted: Vec<Wanted>,
    deadline: Timestamp,
    last: Timestamp,
) -> Vec<Answer> {
    let mut claiming = Claiming { done: Vec::with_capacity(wanted.len()), in_doubt: Vec::new() };
    let (mut look, mut open) = (Vec::new(), Vec::with_capacity(wanted.len()));
    for wanted in wanted {
        if wanted.look_first {
            look.push(wanted);
        } else {
            open.push((wanted, None));
        }
    }
    if !look.is_empty() {
        let keys: Vec<Key> = look.iter().map(|wanted| wanted.key.clone()).collect();
        let seen = store.read(&keys, deadline).await;
        for (wanted, seen) in look.into_iter().zip(each(seen, Err(unanswered()))) {
            match seen {
                Ok(seen) => open.push((wanted, seen)),
                Err(error) => claiming.finish(&wanted, Claimed::Unavailable(error)),
            }
        }
    }
    for _ in 0..ROUNDS {
        open = claiming.round(&*store, &*clock, open, deadline).await;
        if open.is_empty() {
            break;
        }
    }
    for (wanted, _) in open {
        let error = StoreError::new(
            StoreErrorKind::Contended,
            format!("the record changed {ROUNDS} times while it was being claimed"),
        );
        claiming.finish(&wanted, Claimed::Unavailable(error));
    }
    if !claiming.in_doubt.is_empty() {
        // Best effort: if the claim was applied after all, the next delivery need not wait for the
        // lease to end.
        store.write(&claiming.in_doubt, last).await;
    }
    claiming.done
}

struct Claiming {
    done: Vec<Answer>,
    in_doubt: Vec<Write>,
}

impl Claiming {
    fn finish(&mut self, wanted: &Wanted, claimed: Claimed) {
        self.done.push(Answer { at: wanted.at, claimed, seen: None });
    }

    /// One write for each open claim; returns those that met something to decide about.
    async fn round(
        &mut self,
        store: &dyn Store,
        clock: &dyn Clock,
        open: Vec<(Wanted, Option<IdempotencyRecord>)>,
        deadline: Timestamp,
    ) -> Vec<(Wanted, Option<IdempotencyRecord>)> {
        let now = clock.now();
        let mut tries = Vec::with_capacity(open.len());
        let mut writes = Vec::with_capacity(open.len());
        for (wanted, seen) in open {
            match Claimed::of(admit(&wanted.claim, seen.as_ref(), now)) {
                Ok(claimed) => self.done.push(Answer { at: wanted.at, claimed, seen }),
                Err((_, held)) if held.lost_attempts() > 0 && !wanted.from_lost_attempt => {
                    self.finish(&wanted, Claimed::Suspect);
                }
                Err((guard, held)) => {
                    let record = Some(held.record.clone());
                    writes.push(Write { key: wanted.key.clone(), guard, record });
                    tries.push((wanted, held));
                }
            }
        }
        if writes.is_empty() {
            return Vec::new();
        }
        let verdicts = store.write(&writes, deadline).await;
        let mut again = Vec::new();
        for ((wanted, held), verdict) in
            tries.into_iter().zip(each(verdicts, Verdict::Unknown(unanswered())))
        {
            match verdict {
                Verdict::Written => self.finish(&wanted, Claimed::Held(Arc::new(held))),
                Verdict::Found(seen) => again.push((wanted, seen)),
                Verdict::Unknown(error) => {
                    if error.may_have_applied() {
                        let (guard, record) = held.write(&Settlement::Undo, now);
                        self.in_doubt.push(Write { key: wanted.key.clone(), guard, record });
                    }
                    self.finish(&wanted, Claimed::Unavailable(error));
                }
            }
        }
        again
    }
}
