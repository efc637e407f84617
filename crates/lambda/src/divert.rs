//! Diverts the records that will never be processed: gives them to the sinks of the user.
//!
//! A sink is called once all records of its operation have their outcomes: so a sink that hangs or kills its process costs
//! no handler its work. A record is acknowledged if its sink has returned `Ok`; otherwise its next delivery finds the same
//! outcome, and calls the sink with the same id.

use std::{
    collections::{HashMap, HashSet, hash_map},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, Timestamp},
    contained::{self, run},
    failure::Failure,
    outcome::Outcome,
    record::Fingerprint,
};
use lambda_idempotency_engine::{
    batch::{Delivery, Engine, Work},
    call::RecordId,
};
use lambda_idempotency_keys::Key;

use crate::{
    find_key::Extraction,
    route::Route,
    source::{DivertReason, DivertedRecord, Record, Settings, Sink},
};

/// How many sinks run at a time: each may open a connection.
const AT_ONCE: usize = 16;
/// Sinks are stopped this long before the invocation deadline, or after 95 % of the time if that is later.
const REPLY_MARGIN: Duration = Duration::from_millis(250);
/// Handlers that may be followed by a sink leave this time to it, or 20 % of the time if that is less. Only handlers do: a
/// process holds its leases until Lambda has stopped it, and a completion that is written late is still written.
const TIME_FOR_SINKS: Duration = Duration::from_secs(2);
/// A call has at least this long, if there is as much: a share of many would stop each sink before it can answer.
const LEAST_SHARE: Duration = Duration::from_secs(1);
/// As [`LEAST_SHARE`], of a recovery: a cold client that tries again takes some seconds, and there is no other call.
const RECOVERY_SHARE: Duration = Duration::from_secs(10);
/// The longest sleep: the wall clock may be put right meanwhile.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// How much time handlers leave for sinks.
pub(crate) fn time_for_sinks(settings: &Settings) -> Duration {
    if settings.has_sink() { TIME_FOR_SINKS } else { Duration::ZERO }
}

/// The key under which a record is processed, with its fingerprint. `None` if it has none.
pub(crate) type ClaimedKey = Option<(Key, Option<Fingerprint>)>;

/// The keys under which these records are processed, if a sink may have to know them: a user's function that made one may
/// make another if it is called again.
pub(crate) fn claimed_keys(settings: &Settings, deliveries: &[Delivery<'_>]) -> Vec<ClaimedKey> {
    if !settings.has_sink() {
        return Vec::new();
    }
    let keys = deliveries.iter().map(|delivery| match &delivery.work {
        Work::Keyed { key, fingerprint, .. } => Some((key.clone(), fingerprint.clone())),
        Work::Unprotected { .. } | Work::Reject(_) => None,
    });
    keys.collect()
}

/// The call of a sink, for a record and its copies.
struct SinkCall<'a> {
    sink: &'a Sink,
    reason: DivertReason,
    id: String,
    key_hash: Option<String>,
    /// The position of the record.
    first: usize,
    copies: Vec<usize>,
}

/// Why a sink has not taken a record.
enum NotTaken {
    Failed(Failure),
    Panicked,
    /// Its share of the time, in milliseconds, was over.
    Late(u128),
    NotCalled,
}

/// The sinks of a route, in one invocation.
pub(crate) struct Sinks<'a> {
    engine: &'a Engine,
    route: &'a Route,
    extraction: &'a Extraction<'a>,
    keys: Vec<ClaimedKey>,
    until: Timestamp,
    is_recovery: bool,
}

impl<'a> Sinks<'a> {
    /// The sinks of a route, for records with these keys, in an invocation that has `begun` and ends then.
    pub(crate) fn new(
        engine: &'a Engine,
        route: &'a Route,
        extraction: &'a Extraction<'a>,
        keys: Vec<ClaimedKey>,
        (begun, deadline): (Timestamp, Option<Timestamp>),
    ) -> Self {
        let end = deadline.unwrap_or_else(|| begun.plus(route.policy.fallback_timeout));
        let until = end.minus(REPLY_MARGIN.min(end.since(begun) / 20));
        Self { engine, route, extraction, keys, until, is_recovery: false }
    }

    /// Of a recovery, which does not find this record again: it has a tenth of the time that is left, or ten seconds of that,
    /// so that records after it have most of the time.
    pub(crate) fn in_recovery(mut self) -> Self {
        let now = self.engine.clock().now();
        let left = self.until.since(now);
        self.until = now.plus((left / 10).max(RECOVERY_SHARE).min(left));
        self.is_recovery = true;
        self
    }

    /// Gives the records that will never be processed to their sinks; returns those that were taken.
    ///
    /// Where there are more than run at a time, each round of calls has its share of the time that is left, and at least a
    /// second. So those that hang leave time for some of those behind them, though not for all. The first records of a stream
    /// come first, because the stream goes on behind them. A queue gets each record back by itself: there the order differs at
    /// each delivery, and none is behind the same ones for ever.
    pub(crate) async fn call(
        &self,
        records: &[Record<'_>],
        outcomes: &[Outcome],
    ) -> HashSet<usize> {
        let mut calls = self.calls(records, outcomes);
        let rounds = calls.len().div_ceil(AT_ONCE);
        if rounds > 1 {
            let now = self.engine.clock().now();
            // Queues count receives, and streams do not.
            let is_of_queue = |record: &Record<'_>| record.receives.is_some();
            calls.sort_by_cached_key(|call| {
                let is_shuffled = records.get(call.first).is_some_and(is_of_queue);
                is_shuffled.then(|| shuffled(now, &call.id))
            });
        }
        let calls = calls.into_iter().enumerate().map(|(nth, call)| {
            let rounds_left = rounds.saturating_sub(nth / AT_ONCE);
            let calling: BoxFuture<'_, _> = Box::pin(self.call_one(call, records, rounds_left));
            calling
        });
        let mut running = stream::iter(calls.collect::<Vec<_>>()).buffer_unordered(AT_ONCE);
        let mut taken = HashSet::new();
        while let Some(call) = running.next().await {
            taken.extend(call.iter().flat_map(SinkCall::positions));
        }
        taken
    }

    /// Returns the call if the sink has taken the record.
    async fn call_one(
        &self,
        call: SinkCall<'a>,
        records: &[Record<'_>],
        rounds_left: usize,
    ) -> Option<SinkCall<'a>> {
        let result = self.divert(&call, records.get(call.first)?, rounds_left).await;
        for record in call.positions().filter_map(|at| records.get(at)) {
            self.log(record, &call, &result);
        }
        result.is_ok().then_some(call)
    }

    /// The calls for these outcomes, one for each record and its copies.
    fn calls(&self, records: &[Record<'_>], outcomes: &[Outcome]) -> Vec<SinkCall<'a>> {
        let mut calls: Vec<SinkCall<'a>> = Vec::new();
        let mut by_id = HashMap::new();
        for (first, (record, outcome)) in records.iter().zip(outcomes).enumerate() {
            let Some((sink, reason)) = self.route.settings.sink_for(outcome) else { continue };
            let key = self.keys.get(first).and_then(Option::as_ref);
            let id = self.id(record, key);
            let nth = match by_id.entry(id.clone()) {
                hash_map::Entry::Occupied(nth) => *nth.get(),
                hash_map::Entry::Vacant(nth) => *nth.insert(calls.len()),
            };
            match calls.get_mut(nth) {
                Some(call) => call.copies.push(first),
                None => {
                    let key_hash = key.map(|(key, _)| key.hash().to_owned());
                    calls.push(SinkCall { sink, reason, id, key_hash, first, copies: Vec::new() });
                }
            }
        }
        calls
    }

    /// The id of a record, the same at each delivery. It contains the content *and* the key with the fingerprint, or else the
    /// identity: a producer may give one id to different messages, and different messages may have one key. Without a key,
    /// an identity that AWS gave tells records apart; otherwise all of the record does, but for its volatile members.
    fn id(&self, record: &Record<'_>, key: Option<&(Key, Option<Fingerprint>)>) -> String {
        let RecordId { source, id, arn, .. } = &record.id;
        let stable;
        let mut parts = vec!["diverted"];
        parts.extend(record.content());
        if let Some((key, fingerprint)) = key {
            parts.push(key.as_str());
            parts.extend(fingerprint.as_ref().map(Fingerprint::as_str));
        } else {
            match &record.identity {
                Ok(identity) => parts.extend(identity.iter().map(|part| &**part)),
                Err(_) => parts.extend([source, arn.as_deref().unwrap_or_default(), id]),
            }
            let is_chosen = record.id.label() != &*record.id.id;
            if record.identity.is_err() || is_chosen || record.content().is_none() {
                stable = record.stable(self.route.source.volatile());
                parts.push(&stable);
            }
        }
        let Extraction { operation, .. } = self.extraction;
        operation.key_format.identity(&self.extraction.scope(), &parts).hash().to_owned()
    }

    /// Calls the sink. One round of calls, of `rounds_left`, has its share of the time.
    async fn divert(
        &self,
        call: &SinkCall<'_>,
        record: &Record<'_>,
        rounds_left: usize,
    ) -> Result<(), NotTaken> {
        let clock: &dyn Clock = &**self.engine.clock();
        let now = clock.now();
        let rounds = u32::try_from(rounds_left.max(1)).unwrap_or(u32::MAX);
        let left = self.until.since(now);
        let share = (left / rounds).max(LEAST_SHARE).min(left);
        if share.is_zero() {
            return Err(NotTaken::NotCalled);
        }
        let diverted = DivertedRecord {
            id: call.id.clone(),
            operation: self.extraction.operation.name.clone(),
            record: record.id.clone(),
            key_hash: call.key_hash.clone(),
            raw: record.raw.clone().into_owned(),
            reason: call.reason.clone(),
        };
        match run(|| call.sink.call(diverted), sleep_until(clock, now.plus(share))).await {
            contained::Ended::Through(result) => result.map_err(NotTaken::Failed),
            contained::Ended::Panicked => Err(NotTaken::Panicked),
            contained::Ended::Late => Err(NotTaken::Late(share.as_millis())),
        }
    }

    /// Says that a record was diverted, or why not.
    fn log(&self, record: &Record<'_>, call: &SinkCall<'_>, result: &Result<(), NotTaken>) {
        let Some(log) = self.engine.log() else { return };
        macro_rules! event {
            ($($said:tt)*) => {
                tracing::warn!(
                    target: "lambda_idempotency::record",
                    source = record.id.source,
                    record = record.id.label(),
                    operation = &*self.extraction.operation.name,
                    key_hash = call.key_hash.as_deref().unwrap_or_default(),
                    $($said)*
                )
            };
        }
        let (problem, failure) = match result {
            Ok(()) => return event!(problem = %call.reason, "record diverted"),
            Err(NotTaken::Failed(failure)) => {
                (format!("the sink failed with {}", failure.error_type()), Some(failure))
            }
            Err(NotTaken::Panicked) => ("the sink failed with a panic".to_owned(), None),
            Err(NotTaken::Late(share)) => {
                (format!("the sink did not return within {share} ms, its share of the time"), None)
            }
            Err(NotTaken::NotCalled) => {
                ("the sink was not called, because no time was left".to_owned(), None)
            }
        };
        let failure = failure.filter(|_| log.shows_error_messages());
        let error_message = failure.map(Failure::messages);
        if self.is_recovery {
            event!(problem, error_message, "record not diverted: nothing calls its sink again");
        } else {
            event!(
                problem,
                error_message,
                "record not diverted: it returns to its source, and its next delivery calls the sink again"
            );
        }
    }
}

impl SinkCall<'_> {
    fn positions(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.first).chain(self.copies.iter().copied())
    }
}

/// A number by which calls are in another order at each time.
fn shuffled(now: Timestamp, id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (now, id).hash(&mut hasher);
    hasher.finish()
}

async fn sleep_until(clock: &dyn Clock, until: Timestamp) {
    loop {
        let left = until.since(clock.now());
        if left.is_zero() {
            return;
        }
        clock.sleep(left.min(LONGEST_SLEEP)).await;
    }
}
