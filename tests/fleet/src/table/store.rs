//! The store of a function: what `lambda-idempotency-dynamodb` does between the engine and the table.
//!
//! Its time limits and pauses are the real ones ([`Budget`], [`Backoff`]), with its settings; what is written
//! together, what is sent again and what is read afterwards follow its `write.rs` and `read.rs`. Left out are the
//! requests that concurrent invocations of a process share: a function here has one invocation at a time.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use futures_util::stream::{self, StreamExt as _};
use lambda_idempotency_core::{
    capabilities::Capabilities,
    clock::{BoxFuture, Clock as _, Timestamp},
    record::IdempotencyRecord,
    retry::{Backoff, Budget},
    store::{Guard, Store, StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_keys::Key;

use super::{Found, ServerError, Table, Written};
use crate::{scenario::Broken, time::MachineClock};

/// The settings of the real store: a test compares them.
pub(super) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);
pub(super) const BACKOFF: (Duration, Duration) =
    (Duration::from_millis(25), Duration::from_millis(400));
pub(super) const SHORTEST: Duration = Duration::from_millis(20);
pub(super) const MOST_STATEMENTS: usize = 25;
pub(super) const MOST_READS: usize = 100;
pub(super) const CONCURRENCY: usize = 10;
pub(super) const ROUNDS: u8 = 3;

/// The store of a function.
pub struct TableStore {
    table: Table,
    clock: MachineClock,
    /// For the pauses.
    seeds: AtomicU64,
}

/// A write of a call that has no verdict yet.
struct Member<'w> {
    index: usize,
    write: &'w Write,
    /// A request had no answer, so it may have been applied.
    in_doubt: bool,
    /// How often its guard failed on a record that was gone when it was read.
    lost: u8,
}

/// The answer to one write.
enum Answer {
    Of(Written),
    Failed { in_doubt: bool },
}

impl Member<'_> {
    fn unknown(&self, kind: StoreErrorKind) -> Verdict {
        Verdict::Unknown(StoreError::new(kind, "the simulated table").with_doubt(self.in_doubt))
    }

    /// The verdict of a write that found this record, which it may have written itself.
    fn met(&self, found: IdempotencyRecord) -> Verdict {
        let has_token = found.owner.is_some() || found.last_owner.is_some();
        let is_own = |wish: &IdempotencyRecord| {
            let mut wish = wish.clone();
            wish.provenance = None;
            wish == found
        };
        match self.in_doubt && has_token && self.write.record.as_ref().is_some_and(is_own) {
            true => Verdict::Written,
            false => Verdict::Found(Some(found)),
        }
    }
}

impl TableStore {
    /// A store of this table, in a function with this clock.
    #[must_use]
    pub const fn new(table: Table, clock: MachineClock, seed: u64) -> Self {
        Self { table, clock, seeds: AtomicU64::new(seed) }
    }

    fn backoff(&self) -> Backoff {
        let pauses = match self.table.0.scenario.broken {
            Some(Broken::NoPause) => (Duration::from_millis(1), Duration::from_millis(1)),
            _ => BACKOFF,
        };
        Backoff::new(pauses, SHORTEST).seeded(self.seeds.fetch_add(1, Ordering::Relaxed))
    }

    async fn write_all(&self, writes: &[Write], call_deadline: Timestamp) -> Vec<Verdict> {
        let budget = Budget::new(&self.clock, ATTEMPT_TIMEOUT, call_deadline);
        let mut backoff = self.backoff();
        let mut verdicts: Vec<Option<Verdict>> = writes.iter().map(|_| None).collect();
        let mut pending: Vec<_> = writes
            .iter()
            .enumerate()
            .map(|(index, write)| Member { index, write, in_doubt: false, lost: 0 })
            .collect();
        let mut throttled = false;
        while !pending.is_empty() {
            if budget.left().is_zero() {
                break;
            }
            let (mut unread, mut again, mut pause) = (Vec::new(), Vec::new(), false);
            for (mut member, answer) in self.send(std::mem::take(&mut pending), &budget).await {
                let at = member.index;
                match answer {
                    Answer::Of(Written::Yes) => verdicts[at] = Some(Verdict::Written),
                    Answer::Of(Written::No(Some(found))) => {
                        verdicts[at] = Some(member.met(*found));
                    }
                    Answer::Of(Written::No(None)) => {
                        settle_nothing(member, &mut verdicts, &mut again);
                    }
                    Answer::Of(Written::Unread) => unread.push(member),
                    Answer::Of(Written::Throttled) => {
                        (throttled, pause) = (true, true);
                        again.push(member);
                    }
                    Answer::Failed { in_doubt } => {
                        member.in_doubt |= in_doubt;
                        (throttled, pause) = (false, true);
                        again.push(member);
                    }
                }
            }
            if !unread.is_empty() {
                let keys = unread.iter().map(|member| member.write.key.clone()).collect();
                let mut found = self.read_all(keys, &budget).await;
                for member in unread {
                    match found.remove(&member.write.key) {
                        Some(Ok(Some(found))) => {
                            verdicts[member.index] = Some(member.met(found));
                        }
                        Some(Ok(None)) => settle_nothing(member, &mut verdicts, &mut again),
                        Some(Err(error)) => {
                            let error = error.with_doubt(member.in_doubt);
                            verdicts[member.index] = Some(Verdict::Unknown(error));
                        }
                        None => {
                            let kind = StoreErrorKind::Unavailable;
                            verdicts[member.index] = Some(member.unknown(kind));
                        }
                    }
                }
            }
            pending = again;
            if pause && !pending.is_empty() && !backoff.pause(&budget).await {
                break;
            }
        }
        let kind = match throttled {
            true => StoreErrorKind::Throttled,
            false => StoreErrorKind::Unavailable,
        };
        for member in pending {
            verdicts[member.index] = Some(member.unknown(kind));
        }
        verdicts.into_iter().flatten().collect()
    }

    /// Sends each write once, in as few requests as possible.
    async fn send<'w>(
        &self,
        mut members: Vec<Member<'w>>,
        budget: &Budget<'_>,
    ) -> Vec<(Member<'w>, Answer)> {
        let mut requests = Vec::new();
        while !members.is_empty() {
            let rest = members.split_off(members.len().min(MOST_STATEMENTS));
            requests.push(self.send_parcel(std::mem::replace(&mut members, rest), budget));
        }
        let answers = stream::iter(requests).buffered(CONCURRENCY);
        answers.collect::<Vec<_>>().await.into_iter().flatten().collect()
    }

    async fn send_parcel<'w>(
        &self,
        parcel: Vec<Member<'w>>,
        budget: &Budget<'_>,
    ) -> Vec<(Member<'w>, Answer)> {
        let writes = parcel.iter().map(|member| member.write.clone()).collect();
        let answered = budget.attempt(budget.limit(), self.table.write(writes)).await;
        match answered {
            Ok(Ok(answers)) => {
                parcel.into_iter().zip(answers.into_iter().map(Answer::Of)).collect()
            }
            // A write that was answered with a server error may have been applied, too.
            Ok(Err(ServerError)) | Err(_) => parcel
                .into_iter()
                .map(|member| (member, Answer::Failed { in_doubt: true }))
                .collect(),
        }
    }

    async fn read_all(
        &self,
        keys: Vec<Key>,
        budget: &Budget<'_>,
    ) -> HashMap<Key, Result<Option<IdempotencyRecord>, StoreError>> {
        let requests: Vec<_> =
            keys.chunks(MOST_READS).map(|chunk| self.read_chunk(chunk.to_vec(), budget)).collect();
        let answers = stream::iter(requests).buffered(CONCURRENCY);
        answers.collect::<Vec<_>>().await.into_iter().flatten().collect()
    }

    async fn read_chunk(
        &self,
        mut pending: Vec<Key>,
        budget: &Budget<'_>,
    ) -> Vec<(Key, Result<Option<IdempotencyRecord>, StoreError>)> {
        let mut answers = Vec::with_capacity(pending.len());
        let mut backoff = self.backoff();
        loop {
            let asked = pending.len();
            let sent = self.table.read(pending.clone());
            let kind = match budget.attempt(budget.limit(), sent).await {
                Ok(Ok(found)) => {
                    let mut left = Vec::new();
                    for (key, found) in pending.into_iter().zip(found) {
                        match found {
                            Found::Item(item) => answers.push((key, Ok(item.map(|item| *item)))),
                            Found::Throttled => left.push(key),
                        }
                    }
                    pending = left;
                    StoreErrorKind::Throttled
                }
                Ok(Err(ServerError)) | Err(_) => StoreErrorKind::Unavailable,
            };
            if pending.is_empty() {
                return answers;
            }
            let progress = pending.len() < asked;
            if budget.left().is_zero() || (!progress && !backoff.pause(budget).await) {
                let error = StoreError::new(kind, "the simulated table");
                answers.extend(pending.into_iter().map(|key| (key, Err(error.clone()))));
                return answers;
            }
        }
    }
}

/// There is no record: a delete is done, a claim is sent again, and any other write found nothing.
fn settle_nothing<'w>(
    mut member: Member<'w>,
    verdicts: &mut [Option<Verdict>],
    again: &mut Vec<Member<'w>>,
) {
    verdicts[member.index] = match (&member.write.guard, &member.write.record) {
        (_, None) => Some(Verdict::Written),
        (Guard::Absent, Some(_)) => {
            member.lost += 1;
            if member.lost < ROUNDS {
                return again.push(member);
            }
            Some(member.unknown(StoreErrorKind::Contended))
        }
        (Guard::OwnedBy(_) | Guard::Unchanged(_), Some(_)) => Some(Verdict::Found(None)),
    };
}

impl Store for TableStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        Box::pin(self.write_all(writes, call_deadline))
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        Box::pin(async move {
            let budget = Budget::new(&self.clock, ATTEMPT_TIMEOUT, call_deadline);
            if call_deadline <= self.clock.now() {
                let error = StoreError::new(StoreErrorKind::Unavailable, "no time is left");
                return keys.iter().map(|_| Err(error.clone())).collect();
            }
            let mut found = self.read_all(keys.to_vec(), &budget).await;
            let missing = || Err(StoreError::new(StoreErrorKind::Unavailable, "no answer"));
            keys.iter().map(|key| found.remove(key).unwrap_or_else(missing)).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of a constant in the real store.
    fn real(source: &str, name: &str) -> String {
        let line = source.lines().find(|line| line.contains(&format!("const {name}: ")));
        let text = line.and_then(|line| line.split_once(" = ")).map(|(_, value)| value);
        text.unwrap_or_else(|| panic!("no constant {name}")).trim_end_matches(';').to_owned()
    }

    #[test]
    fn the_settings_are_those_of_the_real_store() {
        let builder = include_str!("../../../../crates/dynamodb/src/builder.rs");
        let retry = include_str!("../../../../crates/dynamodb/src/retry.rs");
        let limits = include_str!("../../../../crates/dynamodb/src/limits.rs");
        let read = include_str!("../../../../crates/dynamodb/src/read.rs");
        let write = include_str!("../../../../crates/dynamodb/src/write.rs");
        assert_eq!(real(builder, "ATTEMPT_TIMEOUT"), "Duration::from_secs(1)");
        assert_eq!(ATTEMPT_TIMEOUT, Duration::from_secs(1));
        let pauses = "(Duration::from_millis(25), Duration::from_millis(400))";
        assert_eq!(real(builder, "BACKOFF"), pauses);
        assert_eq!(BACKOFF, (Duration::from_millis(25), Duration::from_millis(400)));
        assert_eq!(real(retry, "SHORTEST"), "Duration::from_millis(20)");
        assert_eq!(SHORTEST, Duration::from_millis(20));
        assert_eq!(real(retry, "CONCURRENCY"), CONCURRENCY.to_string());
        assert_eq!(real(limits, "MOST_STATEMENTS"), MOST_STATEMENTS.to_string());
        assert_eq!(real(read, "MOST"), MOST_READS.to_string());
        assert_eq!(real(write, "ROUNDS"), ROUNDS.to_string());
    }
}
