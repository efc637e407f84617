//! The store of a function: what `lambda-idempotency-dynamodb` does between the engine and the table.
//!
//! Its times, pauses and rounds are the real ones ([`Timing`], [`Patience`], [`Rounds`]). What is written together and what is read
//! afterwards follow its `write.rs` and `read.rs`. Left out are the requests that concurrent invocations of a process
//! share: a function here has one invocation at a time.

use std::{
    collections::HashMap,
    ops::{Deref, DerefMut},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::stream::{self, StreamExt as _};
use lambda_idempotency_core::{
    capabilities::Capabilities,
    clock::{BoxFuture, Timestamp},
    record::IdempotencyRecord,
    retry::{self, Backoff, Budget, Failure, Patience, PendingWrite},
    settings::Timing,
    store::{Guard, Store, StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_keys::Key;

use super::{Found, ServerError, Table, Written};
use crate::{scenario::Broken, time::MachineClock};

/// The settings of the real store that it shares with no other: a test compares them.
const SHORTEST: Duration = Duration::from_millis(20);
const MOST_STATEMENTS: usize = 25;
const MOST_READS: usize = 100;
const CONCURRENCY: usize = 10;
const ROUNDS: u8 = 3;

/// The pauses of a store that is broken on purpose.
const NO_PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(1));

/// The store of a function.
pub struct TableStore {
    table: Table,
    timing: Timing,
    /// Of the requests of all calls.
    patience: Patience,
    /// For the pauses.
    seeds: AtomicU64,
}

type Rounds<'w> = retry::Rounds<Member<'w>>;

/// A write of a call that has no verdict yet.
struct Member<'w> {
    pending: PendingWrite<'w>,
    /// How often its guard failed on a record that was gone when it was read.
    lost: u8,
}

impl<'w> Deref for Member<'w> {
    type Target = PendingWrite<'w>;

    fn deref(&self) -> &Self::Target {
        &self.pending
    }
}

impl DerefMut for Member<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.pending
    }
}

impl<'w> Member<'w> {
    const fn new(pending: PendingWrite<'w>) -> Result<Self, StoreError> {
        Ok(Self { pending, lost: 0 })
    }

    /// The verdict of a write that found this record, which it may have written itself.
    fn met(&self, mut found: IdempotencyRecord) -> Verdict {
        // The table does not keep it.
        let wish = self.write.record.as_ref();
        found.provenance = wish.and_then(|wish| wish.provenance.clone());
        if self.is_own_work(&found) {
            return Verdict::Written;
        }
        found.provenance = None;
        Verdict::Found(Some(found))
    }
}

fn too_late() -> Failure {
    Failure::new(StoreErrorKind::Unavailable, "no time is left to reach the table")
}

fn throttled() -> Failure {
    Failure::transient(StoreErrorKind::Throttled, "the table throttled a request")
}

/// The request timed out, or was answered with an error of the server: it may have been applied all the same.
fn unanswered() -> Failure {
    Failure::unanswered("a request to the table had no answer")
}

impl TableStore {
    /// A store of this table, in a function with this clock.
    #[must_use]
    pub fn new(table: Table, clock: MachineClock, seed: u64) -> Self {
        let mut timing = Timing::default();
        timing.clock = Arc::new(clock);
        if table.0.scenario.broken == Some(Broken::NoPause) {
            timing.backoff = NO_PAUSE;
        }
        Self { table, timing, patience: Patience::default(), seeds: AtomicU64::new(seed) }
    }

    fn backoff(&self) -> Backoff {
        self.timing.backoff(SHORTEST).seeded(self.seeds.fetch_add(1, Ordering::Relaxed))
    }

    async fn write_all(&self, writes: &[Write], call_deadline: Timestamp) -> Vec<Verdict> {
        let budget = self.timing.budget(call_deadline);
        let mut backoff = self.backoff();
        let mut rounds = Rounds::begin(writes, Member::new);
        while let Some(members) = rounds.next(&budget, Some(&mut backoff), too_late).await {
            // Writes whose guard failed, and whose record has to be read.
            let mut unread = Vec::new();
            for (member, answer) in self.send(members, &budget).await {
                match answer {
                    Ok(Written::Yes) => rounds.settle(&member, Verdict::Written),
                    Ok(Written::No(Some(found))) => {
                        let verdict = member.met(*found);
                        rounds.settle(&member, verdict);
                    }
                    Ok(Written::No(None)) => lost_to_nothing(&mut rounds, member),
                    Ok(Written::Unread) => unread.push(member),
                    Ok(Written::Throttled) => rounds.fail(member, throttled()),
                    Err(failure) => rounds.fail(member, failure),
                }
            }
            self.look_up(&mut rounds, unread, &budget).await;
        }
        rounds.verdicts()
    }

    /// Reads the records that the responses did not contain.
    async fn look_up<'w>(
        &self,
        rounds: &mut Rounds<'w>,
        unread: Vec<Member<'w>>,
        budget: &Budget<'_>,
    ) {
        if unread.is_empty() {
            return;
        }
        let keys = unread.iter().map(|member| member.write.key.clone()).collect();
        let mut found = self.read_all(keys, budget).await;
        for member in unread {
            let verdict = match found.remove(&member.write.key) {
                Some(Ok(Some(found))) => member.met(found),
                Some(Ok(None)) => {
                    lost_to_nothing(rounds, member);
                    continue;
                }
                Some(Err(failure)) => member.unknown(failure),
                None => member.unknown(too_late()),
            };
            rounds.settle(&member, verdict);
        }
    }

    /// Sends each write once, in as few requests as possible.
    async fn send<'w>(
        &self,
        mut members: Vec<Member<'w>>,
        budget: &Budget<'_>,
    ) -> Vec<(Member<'w>, Result<Written, Failure>)> {
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
    ) -> Vec<(Member<'w>, Result<Written, Failure>)> {
        let writes = parcel.iter().map(|member| member.write.clone()).collect();
        match self.patience.attempt(budget, self.table.write(writes)).await {
            Ok(Ok(answers)) => parcel.into_iter().zip(answers.into_iter().map(Ok)).collect(),
            Ok(Err(ServerError)) | Err(_) => {
                parcel.into_iter().map(|member| (member, Err(unanswered()))).collect()
            }
        }
    }

    async fn read_all(
        &self,
        keys: Vec<Key>,
        budget: &Budget<'_>,
    ) -> HashMap<Key, Result<Option<IdempotencyRecord>, Failure>> {
        let requests: Vec<_> =
            keys.chunks(MOST_READS).map(|chunk| self.read_chunk(chunk.to_vec(), budget)).collect();
        let answers = stream::iter(requests).buffered(CONCURRENCY);
        answers.collect::<Vec<_>>().await.into_iter().flatten().collect()
    }

    async fn read_chunk(
        &self,
        mut pending: Vec<Key>,
        budget: &Budget<'_>,
    ) -> Vec<(Key, Result<Option<IdempotencyRecord>, Failure>)> {
        let mut answers = Vec::with_capacity(pending.len());
        let mut backoff = self.backoff();
        loop {
            if budget.left().is_zero() {
                answers.extend(pending.into_iter().map(|key| (key, Err(too_late()))));
                return answers;
            }
            let asked = pending.len();
            let sent = self.table.read(pending.clone());
            let failure = match self.patience.attempt(budget, sent).await {
                Ok(Ok(found)) => {
                    let mut left = Vec::new();
                    for (key, found) in pending.into_iter().zip(found) {
                        match found {
                            Found::Item(item) => answers.push((key, Ok(item.map(|item| *item)))),
                            Found::Throttled => left.push(key),
                        }
                    }
                    pending = left;
                    throttled()
                }
                Ok(Err(ServerError)) | Err(_) => unanswered(),
            };
            if pending.is_empty() {
                return answers;
            }
            if pending.len() == asked && !backoff.pause(budget).await {
                answers.extend(pending.into_iter().map(|key| (key, Err(failure.clone()))));
                return answers;
            }
        }
    }
}

/// There is no record: a delete is done, a claim is sent again, and any other write found nothing.
fn lost_to_nothing<'w>(rounds: &mut Rounds<'w>, mut member: Member<'w>) {
    match (&member.write.guard, &member.write.record) {
        (_, None) => rounds.settle(&member, Verdict::Written),
        (Guard::Absent, Some(_)) => {
            member.lost += 1;
            if member.lost < ROUNDS {
                return rounds.again(member);
            }
            let context = "a record came and went at each try";
            let failure: Failure = Failure::new(StoreErrorKind::Contended, context);
            let verdict = member.unknown(failure);
            rounds.settle(&member, verdict);
        }
        (Guard::OwnedBy(_) | Guard::Unchanged(_), Some(_)) => {
            rounds.settle(&member, Verdict::Found(None));
        }
    }
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
            let budget = self.timing.budget(call_deadline);
            let mut found = self.read_all(keys.to_vec(), &budget).await;
            let answer = |key| found.remove(key).unwrap_or_else(|| Err(too_late()));
            keys.iter().map(answer).map(|one| one.map_err(|error| error.report(false))).collect()
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
        let retry = include_str!("../../../../crates/dynamodb/src/retry.rs");
        let limits = include_str!("../../../../crates/dynamodb/src/limits.rs");
        let read = include_str!("../../../../crates/dynamodb/src/read.rs");
        let write = include_str!("../../../../crates/dynamodb/src/write.rs");
        let shortest = format!("Duration::from_millis({})", SHORTEST.as_millis());
        assert_eq!(real(retry, "SHORTEST"), shortest);
        assert_eq!(real(retry, "CONCURRENCY"), CONCURRENCY.to_string());
        assert_eq!(real(limits, "MOST_STATEMENTS"), MOST_STATEMENTS.to_string());
        assert_eq!(real(read, "MOST"), MOST_READS.to_string());
        assert_eq!(real(write, "ROUNDS"), ROUNDS.to_string());
    }
}
