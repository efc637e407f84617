//! A store with one bug.

use std::{
    collections::{BTreeSet, HashMap},
    str::Chars,
    sync::Mutex,
    time::Duration,
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, SystemClock, Timestamp},
    key::Key,
    record::{IdempotencyRecord, Json, Status},
    store::{
        Capabilities, Guard, RecordVersion, Store, StoreError, StoreErrorKind, Verdict, Write,
    },
};

use crate::mutants::Bug;

pub(crate) struct Mutant {
    bug: Bug,
    records: Mutex<HashMap<String, IdempotencyRecord>>,
    /// The version before the last write of each key.
    before: Mutex<HashMap<String, Option<IdempotencyRecord>>>,
    /// Keys that were ever deleted.
    deleted: Mutex<BTreeSet<String>>,
}

const LIMIT: usize = 400 * 1024;
const MINUTE: Duration = Duration::from_secs(60);

impl Mutant {
    pub(crate) fn new(bug: Bug) -> Self {
        Self { bug, records: Mutex::default(), before: Mutex::default(), deleted: Mutex::default() }
    }

    fn name(&self, key: &Key) -> String {
        let key = key.as_str();
        match self.bug {
            Bug::KeysFoldCase => key.to_lowercase(),
            Bug::KeysTrimmed => key.trim().to_owned(),
            Bug::KeysInAscii => key.chars().filter(char::is_ascii).collect(),
            Bug::KeysCutAt255 => key.chars().take(255).collect(),
            Bug::KeysArePrefixes => key.split('#').next().unwrap_or_default().to_owned(),
            _ => key.to_owned(),
        }
    }

    fn holds(&self, name: &str, guard: &Guard, found: Option<&IdempotencyRecord>) -> bool {
        let now = SystemClock.now();
        match (self.bug, guard, found) {
            (Bug::AbsentAlwaysHolds, Guard::Absent, _) => true,
            (Bug::AbsentIgnoresExpired, Guard::Absent, Some(r)) => r.expires_at < now,
            (Bug::AbsentIgnoresLapsed, Guard::Absent, Some(r)) => {
                r.status == Status::InProgress && r.lease_until.is_some_and(|lease| lease < now)
            }
            (Bug::AbsentIgnoresSettled, Guard::Absent, Some(r)) => r.status != Status::InProgress,
            (Bug::DeletedForGood, Guard::Absent, None) => {
                !self.deleted.lock().unwrap().contains(name)
            }
            (Bug::OwnedByIgnoresOwner, Guard::OwnedBy(_), Some(r)) => {
                r.status == Status::InProgress
            }
            (Bug::OwnedByIgnoresStatus, Guard::OwnedBy(mine), Some(r)) => r.owner == Some(*mine),
            (Bug::OwnedByComparesTheEnd, Guard::OwnedBy(mine), Some(r)) => {
                let end = |text: String| text.chars().skip(16).collect::<String>();
                r.status == Status::InProgress
                    && r.owner.is_some_and(|o| end(o.to_string()) == end(mine.to_string()))
            }
            (Bug::OwnedByTakesLastOwner, Guard::OwnedBy(mine), Some(r)) => {
                r.status == Status::InProgress && (r.owner.or(r.last_owner)) == Some(*mine)
            }
            (Bug::OwnedByChecksTheLease, Guard::OwnedBy(_), Some(r)) => {
                guard.holds(found) && r.lease_until.is_none_or(|lease| lease >= now)
            }
            (Bug::OwnedByCreates, Guard::OwnedBy(_), None)
            | (Bug::UnchangedCreates, Guard::Unchanged(_), None) => true,
            (_, Guard::Unchanged(seen), Some(r)) => self.seen(seen, &RecordVersion::of(r)),
            _ => guard.holds(found),
        }
    }

    fn seen(&self, seen: &RecordVersion, there: &RecordVersion) -> bool {
        let mut there = there.clone();
        match self.bug {
            Bug::UnchangedIgnoresStatus => there.status = seen.status,
            Bug::UnchangedIgnoresOwner => there.owner = seen.owner,
            Bug::UnchangedIgnoresLastOwner => there.last_owner = seen.last_owner,
            Bug::UnchangedIgnoresLease => there.lease_until = seen.lease_until,
            Bug::UnchangedIgnoresExpiry => there.expires_at = seen.expires_at,
            Bug::UnchangedIgnoresAll => there = seen.clone(),
            // As in `owner = $1 OR $1 IS NULL`.
            Bug::UnchangedTakesNoneForAny => {
                there.owner = seen.owner.and(there.owner);
                there.last_owner = seen.last_owner.and(there.last_owner);
                there.lease_until = seen.lease_until.and(there.lease_until);
            }
            // As `NULL = NULL` in SQL.
            Bug::UnchangedNeverMatchesNone if there.owner.is_none() => return false,
            Bug::UnchangedNeverMatchesNone if there.last_owner.is_none() => return false,
            Bug::UnchangedNeverMatchesNone if there.lease_until.is_none() => return false,
            _ => {}
        }
        *seen == there
    }

    /// The record that is stored when `new` replaces `old`.
    fn kept(&self, old: Option<&IdempotencyRecord>, new: &IdempotencyRecord) -> IdempotencyRecord {
        let mut kept = new.clone();
        match self.bug {
            Bug::Merges => {
                let Some(old) = old else { return kept };
                kept.owner = kept.owner.or(old.owner);
                kept.last_owner = kept.last_owner.or(old.last_owner);
                kept.lease_until = kept.lease_until.or(old.lease_until);
                kept.fingerprint = kept.fingerprint.or_else(|| old.fingerprint.clone());
                kept.result = kept.result.or_else(|| old.result.clone());
                kept.error_type = kept.error_type.or_else(|| old.error_type.clone());
                kept.application = kept.application.or_else(|| old.application.clone());
                kept.provenance = kept.provenance.or_else(|| old.provenance.clone());
                kept.steps = kept.steps.or_else(|| old.steps.clone());
                kept.outbox = kept.outbox.or_else(|| old.outbox.clone());
                kept.payload = kept.payload.or_else(|| old.payload.clone());
            }
            Bug::KeepsOldError if old.is_some_and(|old| old.error_type.is_some()) => {
                kept.error_type = old.and_then(|old| old.error_type.clone());
            }
            Bug::ForgetsOwner => kept.owner = None,
            Bug::ForgetsLastOwner => kept.last_owner = None,
            Bug::ForgetsFailedAttempts => kept.failed_attempts = 0,
            Bug::ForgetsFence => kept.fence = 0,
            Bug::FenceIn32Bits => kept.fence &= 0xffff_ffff,
            Bug::KeepsOldFence => kept.fence = old.map_or(kept.fence, |old| old.fence),
            Bug::ExpiryKeptFromTheClaim => {
                kept.expires_at = old.map_or(kept.expires_at, |old| old.expires_at);
            }
            Bug::ExpiryAMinuteEarly => kept.expires_at = kept.expires_at.minus(MINUTE),
            Bug::CompletionForgetsFingerprint if kept.status == Status::Completed => {
                kept.fingerprint = None;
            }
            Bug::CompletionForgetsLease if kept.status == Status::Completed => {
                kept.lease_until = None;
            }
            Bug::FailureForgetsResult if kept.status == Status::PermanentlyFailed => {
                kept.result = None
            }
            Bug::ForgetsLostAttempts => kept.lost_attempts = 0,
            Bug::ForgetsConsecutiveLosses => kept.consecutive_losses = 0,
            Bug::ForgetsLease => kept.lease_until = None,
            Bug::ForgetsFingerprint => kept.fingerprint = None,
            Bug::ForgetsResult => kept.result = None,
            Bug::ForgetsError => kept.error_type = None,
            Bug::ForgetsApplication => kept.application = None,
            Bug::ForgetsProvenance => kept.provenance = None,
            Bug::ReplacingForgetsProvenance if old.is_some() => kept.provenance = None,
            Bug::ForgetsSteps => kept.steps = None,
            Bug::KeepsOldSteps => {
                kept.steps = old.and_then(|old| old.steps.clone()).or_else(|| kept.steps.take());
            }
            Bug::ForgetsOutbox => kept.outbox = None,
            Bug::KeepsOldOutbox => {
                kept.outbox = old.and_then(|old| old.outbox.clone()).or_else(|| kept.outbox.take());
            }
            Bug::ForgetsPayload => kept.payload = None,
            Bug::KeepsOldPayload => {
                kept.payload =
                    old.and_then(|old| old.payload.clone()).or_else(|| kept.payload.take());
            }
            Bug::MarkForgetsResult if old.is_some_and(|old| old.status == Status::Completed) => {
                kept.result = None;
            }
            Bug::RenewalForgetsPayload if old.is_some_and(|old| old.owner == kept.owner) => {
                kept.payload = None;
            }
            Bug::KeepsOldProvenance => {
                kept.provenance =
                    old.and_then(|old| old.provenance.clone()).or_else(|| kept.provenance.take());
            }
            Bug::ProvenanceInSeconds => {
                if let Some(provenance) = &mut kept.provenance {
                    provenance.claimed_at = Timestamp::from_secs(provenance.claimed_at.as_secs());
                }
            }
            Bug::CountsInAByte => kept.failed_attempts &= 0xff,
            Bug::LeaseInSeconds => {
                kept.lease_until = kept.lease_until.map(|l| Timestamp::from_secs(l.as_secs()));
            }
            Bug::ResultReformatted => {
                kept.result = kept.result.map(|o| o.replace(' ', "").into());
            }
            Bug::ResultCutAt64K => {
                kept.result = only(kept.result, |chars| chars.take(65_536).collect());
            }
            Bug::TextInAscii => {
                kept.result = only(kept.result, |chars| chars.filter(char::is_ascii).collect());
            }
            Bug::EmptyForAbsent => kept.result = Some(kept.result.unwrap_or_else(|| "".into())),
            Bug::TooLargeIsCut => {
                kept.result = only(kept.result, |chars| chars.take(LIMIT).collect());
            }
            _ => {}
        }
        kept
    }

    async fn apply(&self, write: &Write) -> Verdict {
        if write.effects.is_some() {
            let refused = StoreError::without_effects(write);
            let plain = write.clone().with_effects(None);
            match self.bug {
                Bug::DropsEffects => return Box::pin(self.apply(&plain)).await,
                Bug::AppliesWithoutEffects => drop(Box::pin(self.apply(&plain)).await),
                Bug::EffectsAreInDoubt => return Verdict::Unknown(refused.with_doubt(true)),
                _ => {}
            }
            return Verdict::Unknown(refused);
        }
        let name = self.name(&write.key);
        let size = write.record.as_ref().and_then(|r| r.result.as_ref()).map_or(0, |o| o.len());
        if size > LIMIT && self.bug != Bug::TooLargeIsCut {
            let kind = match self.bug {
                Bug::TooLargeIsTransient => StoreErrorKind::Throttled,
                _ => StoreErrorKind::TooLarge,
            };
            if self.bug == Bug::TooLargeDeletes {
                self.records.lock().unwrap().remove(&name);
            }
            let in_doubt = self.bug == Bug::TooLargeIsInDoubt;
            return Verdict::Unknown(StoreError::new(kind, "too large").with_doubt(in_doubt));
        }
        let found = self.records.lock().unwrap().get(&name).cloned();
        if self.bug == Bug::LooksThenWrites {
            tokio::task::yield_now().await;
        }
        let deletes = write.record.is_none();
        let gone = deletes && found.is_none() && self.bug != Bug::DeleteOfMissingIsFound;
        let holds = self.holds(&name, &write.guard, found.as_ref())
            || gone
            || (deletes && self.bug == Bug::DeletesWhateverIsThere)
            || (self.bug == Bug::RepeatIsWritten && found.is_some() && found == write.record);
        if holds || self.bug == Bug::AppliesWhatItRefuses {
            self.before.lock().unwrap().insert(name.clone(), found.clone());
            let mut records = self.records.lock().unwrap();
            match &write.record {
                Some(record) => {
                    records.insert(name, self.kept(found.as_ref(), record));
                }
                None if self.bug == Bug::NeverDeletes => {}
                None => {
                    records.remove(&name);
                    self.deleted.lock().unwrap().insert(name);
                }
            }
        }
        match self.bug {
            _ if holds => Verdict::Written,
            Bug::RefusalShowsNothing => Verdict::Found(None),
            Bug::RefusalShowsTheNew => Verdict::Found(write.record.clone()),
            Bug::RefusalIsWritten => Verdict::Written,
            Bug::RefusalIsAnError => {
                Verdict::Unknown(StoreError::new(StoreErrorKind::Contended, "refused"))
            }
            _ => Verdict::Found(found),
        }
    }

    fn would_refuse(&self, write: &Write) -> bool {
        let found = self.records.lock().unwrap().get(write.key.as_str()).cloned();
        let large = write.record.as_ref().and_then(|r| r.result.as_ref());
        large.is_some_and(|result| result.len() > LIMIT) || !write.applies(found.as_ref())
    }

    async fn apply_all(&self, writes: &[Write]) -> Vec<Verdict> {
        let refused = || Verdict::Unknown(StoreError::new(StoreErrorKind::Refused, "the batch"));
        if self.bug == Bug::OneRefusesAll
            && writes.len() > 1
            && writes.iter().any(|write| self.would_refuse(write))
        {
            return writes.iter().map(|_| refused()).collect();
        }
        let mut verdicts = Vec::new();
        for (index, write) in writes.iter().enumerate() {
            let beyond = self.bug == Bug::WritesTheFirst25 && index >= 25;
            verdicts.push(if beyond { Verdict::Written } else { self.apply(write).await });
        }
        match self.bug {
            Bug::VerdictsReversed => verdicts.reverse(),
            Bug::VerdictsOfTheRefusedFirst => {
                verdicts.sort_by_key(|verdict| matches!(verdict, Verdict::Written));
            }
            Bug::AnswersNothingWithAnError if writes.is_empty() => verdicts.push(refused()),
            _ => {}
        }
        verdicts
    }

    fn read_all(&self, keys: &[Key]) -> Vec<Result<Option<IdempotencyRecord>, StoreError>> {
        let records = self.records.lock().unwrap();
        let before = self.before.lock().unwrap();
        let mut bytes = 0;
        let mut answers = Vec::new();
        for (index, key) in keys.iter().enumerate() {
            let name = self.name(key);
            let there = records.get(&name);
            bytes += there.and_then(|r| r.result.as_ref()).map_or(0, |o| o.len());
            answers.push(match self.bug {
                Bug::ReadsTheFirst100 if index >= 100 => None,
                Bug::ReadsTheFirst16M if bytes > 16 * 1024 * 1024 => None,
                Bug::ReadsAreStale => before.get(&name).cloned().flatten(),
                _ => there.cloned(),
            });
        }
        match self.bug {
            Bug::ReadsSkipWhatIsMissing => answers.retain(Option::is_some),
            Bug::ReadsInAnotherOrder => answers.sort_by_key(Option::is_none),
            Bug::AnswersNothingWithAnError if keys.is_empty() => answers.push(None),
            _ => {}
        }
        answers.into_iter().map(Ok).collect()
    }
}

impl Store for Mutant {
    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        Box::pin(async move {
            let late = SystemClock.now() > call_deadline;
            if late && self.bug == Bug::LateWritesAreConfirmed {
                return vec![Verdict::Written; writes.len()];
            }
            let verdicts = self.apply_all(writes).await;
            if late && self.bug == Bug::LateWritesAreDenied {
                let error = StoreError::new(StoreErrorKind::Unavailable, "late").with_doubt(false);
                return vec![Verdict::Unknown(error); writes.len()];
            }
            verdicts
        })
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        _: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        Box::pin(async move { self.read_all(keys) })
    }
}

fn only(result: Option<Json>, which: impl FnOnce(Chars<'_>) -> String) -> Option<Json> {
    result.map(|result| which(result.chars()).into())
}
