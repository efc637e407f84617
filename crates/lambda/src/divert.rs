//! Calls sinks with the records that will never be processed.
//!
//! A sink is called once all records of its operation have their outcomes: so a sink that hangs or kills its process costs
//! no handler its work. A record is acknowledged if its sink has returned `Ok`; otherwise its next delivery finds the same
//! outcome, and calls the sink with the same id.

use std::{
    collections::{HashMap, HashSet, hash_map},
    future::poll_fn,
    task::Poll,
    time::Duration,
};

use futures_util::{FutureExt as _, StreamExt as _, stream};
use lambda_idempotency_core::{
    clock::{Clock, Timestamp},
    failure::Failure,
    outcome::Outcome,
};
use lambda_idempotency_engine::batch::Engine;

use crate::{
    find_key::{Extraction, Keyed},
    guarded::guarded,
    source::{DivertReason, DivertedRecord, Record, Settings, Sink},
};

/// How many sinks run at a time: each may open a connection.
const AT_ONCE: usize = 16;
/// Sinks are stopped this long before the invocation deadline, or after 95 % of the time if that is later.
const REPLY_MARGIN: Duration = Duration::from_millis(250);
/// The longest sleep: the wall clock may be put right meanwhile.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// The call of a sink, for a record and its copies.
struct Call {
    sink: Sink,
    diverted: DivertedRecord,
    records: Vec<usize>,
}

/// Which sinks are called, and until when.
pub(crate) struct Sinks<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) extraction: &'a Extraction<'a>,
    pub(crate) settings: &'a Settings,
    /// The members of records that differ at each delivery.
    pub(crate) volatile: &'a [&'static str],
    pub(crate) until: Timestamp,
}

impl Sinks<'_> {
    /// Until when sinks of an invocation may run that has `begun` and ends then.
    pub(crate) fn until(begun: Timestamp, end: Timestamp) -> Timestamp {
        end.minus(REPLY_MARGIN.min(end.since(begun) / 20))
    }

    /// Gives the records that will never be processed to their sinks; returns those that were taken.
    pub(crate) async fn call(
        &self,
        records: &[Record<'_>],
        keys: &[Option<Keyed>],
        outcomes: &[Outcome],
    ) -> HashSet<usize> {
        let calls = self.calls(records, keys, outcomes);
        let mut taken = HashSet::new();
        if calls.is_empty() {
            return taken;
        }
        let all: Vec<usize> = calls.iter().flat_map(|call| &call.records).copied().collect();
        let mut ended = HashSet::new();
        let mut running = stream::iter(calls)
            .map(|Call { sink, diverted, records }| async move {
                let reason = diverted.reason.clone();
                let result = guarded(|| sink.call(diverted)).await;
                (records, reason, result.flatten())
            })
            .buffer_unordered(AT_ONCE);
        let mut time_is_up = std::pin::pin!(self.time_is_up());
        let log = |at: &usize, result: Result<&DivertReason, Option<&Failure>>| {
            if let (Some(record), Some(key)) = (records.get(*at), keys.get(*at)) {
                self.log(record, key.as_ref(), result);
            }
        };
        loop {
            let next = poll_fn(|context| {
                // The time first: nothing begins when it is up.
                if time_is_up.poll_unpin(context).is_ready() {
                    return Poll::Ready(None);
                }
                running.poll_next_unpin(context)
            });
            let Some((records, reason, result)) = next.await else { break };
            ended.extend(records.iter().copied());
            for at in &records {
                log(at, result.as_ref().map(|()| &reason).map_err(Some));
            }
            if result.is_ok() {
                taken.extend(records);
            }
        }
        for at in all.iter().filter(|at| !ended.contains(*at)) {
            log(at, Err(None));
        }
        taken
    }

    /// The calls for these outcomes, one for each record and its copies.
    fn calls(
        &self,
        records: &[Record<'_>],
        keys: &[Option<Keyed>],
        outcomes: &[Outcome],
    ) -> Vec<Call> {
        let mut calls: Vec<Call> = Vec::new();
        let mut by_id = HashMap::new();
        for (at, ((record, key), outcome)) in records.iter().zip(keys).zip(outcomes).enumerate() {
            let Some((sink, reason)) = self.settings.sink_for(outcome) else { continue };
            let id = self.extraction.diverted_id(record, key.as_ref(), self.volatile);
            let nth = match by_id.entry(id.clone()) {
                hash_map::Entry::Occupied(nth) => *nth.get(),
                hash_map::Entry::Vacant(nth) => *nth.insert(calls.len()),
            };
            match calls.get_mut(nth) {
                Some(call) => call.records.push(at),
                None => calls.push(Call {
                    sink: sink.clone(),
                    diverted: DivertedRecord {
                        id,
                        operation: self.extraction.operation.name.clone(),
                        record: record.id.clone(),
                        key_hash: key.as_ref().map(|keyed| keyed.key.hash().to_owned()),
                        raw: record.raw.clone().into_owned(),
                        reason,
                    },
                    records: vec![at],
                }),
            }
        }
        calls
    }

    /// Ends when no sink may run any more.
    async fn time_is_up(&self) {
        let clock: &dyn Clock = &**self.engine.clock();
        loop {
            let left = self.until.since(clock.now());
            if left.is_zero() {
                return;
            }
            clock.sleep(left.min(LONGEST_SLEEP)).await;
        }
    }

    /// Says that a record was diverted, or why not: its sink failed, or the time was up.
    fn log(
        &self,
        record: &Record<'_>,
        key: Option<&Keyed>,
        result: Result<&DivertReason, Option<&Failure>>,
    ) {
        let Some(log) = self.engine.log() else { return };
        macro_rules! event {
            ($($said:tt)*) => {
                tracing::warn!(
                    target: "lambda_idempotency::record",
                    source = record.id.source,
                    record = record.id.label(),
                    operation = &*self.extraction.operation.name,
                    key_hash = key.map_or("", |keyed| keyed.key.hash()),
                    $($said)*
                )
            };
        }
        match result {
            Ok(reason) => event!(problem = %reason, "record diverted"),
            Err(Some(failure)) => event!(
                problem = format!("the sink failed with {}", failure.error_type()),
                error_message = log.shows_error_messages().then(|| failure.messages()),
                "record not diverted: it returns to its source, and its next delivery calls the sink again"
            ),
            Err(None) => event!(
                problem = "the sink did not return before the invocation's deadline",
                "record not diverted: it returns to its source, and its next delivery calls the sink again"
            ),
        }
    }
}
