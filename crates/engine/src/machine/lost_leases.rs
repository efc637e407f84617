//! A renewal was answered, or a lease is lost. A handler runs only while its worker knows that it has the lease. It
//! is stopped when a renewal finds another owner, or when no renewal succeeded in time.

use super::{
    lease::{Kept, Leases},
    messages::overtaken_by,
    record::Stage,
    rule::{Next, Step},
    settle::{not_started, settle},
    steps,
};
use lambda_idempotency_core::{
    admission::{Overtaken, Settled, Settlement},
    outcome::{Completion, NotStarted, Outcome},
    record::IdempotencyRecord,
    store::Verdict,
};

/// A renewal was answered, which wrote this record.
pub(super) fn renewed(
    step: &mut Step<'_, '_>,
    leases: &mut Leases,
    kept: Kept,
    record: Option<IdempotencyRecord>,
    verdict: Verdict,
) -> Next {
    let now = step.now;
    let (Some(record), Some(held)) = (record, step.entry.held()) else { return Next::Stay };
    match verdict {
        Verdict::Written => extended(step, leases, &record),
        Verdict::Found(found) => {
            let lease_until = record.lease_until.unwrap_or(now);
            match held.settled(&Settlement::Renew { lease_until }, found.as_ref(), now) {
                Settled::Done => extended(step, leases, found.as_ref().unwrap_or(&record)),
                Settled::Again { .. } => {
                    if let Some(found) = &found {
                        step.entry.renewed(found);
                    }
                    leases.again(kept, now);
                }
                Settled::Overtaken(by) => return lose(step, by, found),
            }
        }
        // It is tried again until the lease has ended; then the handler is stopped.
        Verdict::EffectRefused(_) => leases.unanswered(kept, now),
        Verdict::Unknown(error) => {
            steps::refused(step, &error);
            leases.unanswered(kept, now);
        }
    }
    Next::Stay
}

fn extended(step: &mut Step<'_, '_>, leases: &mut Leases, record: &IdempotencyRecord) {
    if let Some(lease_until) = record.lease_until {
        step.host.renewed(step.at, lease_until);
    }
    step.entry.renewed(record);
    if let Some(held) = step.entry.held() {
        leases.keep(step.at, held);
    }
    steps::stored(step, leases, record);
}

/// The lease of a running handler was not renewed in time: it is stopped. Another worker may have claimed
/// the key. If none has, the record says that this worker stopped the handler: else its next claim
/// would take that for a loss, as if the process had died.
pub(super) fn lapsed(step: &mut Step<'_, '_>) -> Next {
    let since = step.host.stop(step.at);
    step.entry.ended(since, step.now);
    if since.is_none() {
        return not_started(step, NotStarted::Lease);
    }
    match step.entry.held().cloned() {
        Some(held) => settle(step, held, Settlement::LeaveStanding, Outcome::Fenced),
        None => Next::End(Outcome::Fenced),
    }
}

/// The lease is lost: a running handler is dropped, and a waiting record does not start.
fn lose(step: &mut Step<'_, '_>, by: Overtaken, found: Option<IdempotencyRecord>) -> Next {
    let was_started = step.entry.stage() == Stage::Running;
    let since = if was_started { step.host.stop(step.at) } else { None };
    step.entry.ended(since, step.now);
    let running = since.is_some();
    let completion = found.as_ref().and_then(Completion::of);
    let outcome = match by {
        Overtaken::Completed(result) if running => Outcome::Superseded { result, completion },
        Overtaken::Completed(result) => Outcome::Replayed { result, completion },
        _ if running => Outcome::Fenced,
        Overtaken::Foreign { application } => Outcome::Foreign(step.foreign(application)),
        Overtaken::Mismatch => Outcome::Mismatch,
        Overtaken::InProgress { until } => Outcome::Busy { until },
        Overtaken::PermanentlyFailed { .. } | Overtaken::Gone => {
            Outcome::Returned(NotStarted::Lease)
        }
    };
    match step.entry.held().cloned() {
        Some(held) => overtaken_by(step, &held, found, outcome),
        None => Next::End(outcome),
    }
}
