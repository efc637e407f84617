//! Records that are run again where nothing delivers them again.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::join;
use lambda_idempotency::{
    Call, Failure, Function, FunctionBuilder, MemoryStore, Operation, RunContext,
    handler::Handler,
    observe::TracingObserver,
    policy::OnOutage,
    recovery::{Recovered, Recovery},
    source::{DivertedRecord, Invoke, Kafka, KeepOrder, Pipe, Sources, Sqs},
    store::{BoxFuture, IdempotencyRecord},
};
use lambda_idempotency_core::{
    browse::{Browse, Cursor, Left, Page},
    clock::{Clock as _, Timestamp},
    key::Key,
    record::Status,
    store::{RecordVersion, Store as _, StoreError, StoreErrorKind},
};
use lambda_idempotency_testkit::{
    crashing::drop_after,
    faults::{Fault, FaultyStore},
};
use serde_json::{Value, json};

use crate::{
    diverting_failures::Taken,
    samples::samples,
    secrecy::capture::Captured,
    support::{Noted, World, batch, every_source, order, place, serve, with_body},
    support_streams,
};

/// Longer than a lease and the time for which a recovery leaves records alone.
const LATER: Duration = Duration::from_mins(16);

/// A queue whose records are kept with their claims.
fn kept() -> Sqs {
    Sqs::new().recoverable(64 * 1024)
}

/// A world whose handlers never end until they are let live, and what they saw of their records.
#[derive(Clone)]
struct Mortal {
    world: World,
    lives: Arc<AtomicBool>,
    seen: Noted<String>,
}

impl Mortal {
    fn new() -> Self {
        Self { world: World::instant(), lives: Arc::default(), seen: Noted::new() }
    }

    fn handler(&self) -> impl Handler<Value, Result<(), Failure>> {
        let this = self.clone();
        async move |_: Value, call: Call| this.handle(&call).await
    }

    async fn handle(&self, call: &Call) -> Result<(), Failure> {
        let seen = format!(
            "{} {:?} {:?} {:?} {:?}",
            call.record(),
            call.key_hash(),
            call.raw_record(),
            call.attribute("Test"),
            call.request_id(),
        );
        self.seen.add(seen);
        if !self.lives.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        self.world.clock.sleep(Duration::from_secs(1)).await;
        self.world.ledger.record(call.record().to_string(), call.lost_attempts());
        Ok(())
    }

    fn sqs(&self) -> Function {
        self.on(kept(), &place())
    }

    fn on(&self, source: impl Sources, operation: &Operation) -> Function {
        self.world.with_handler(source, operation, self.handler())
    }

    /// A function whose handler fails permanently as soon as it ends.
    fn giving_up(&self, source: Sqs) -> Function {
        let lives = Arc::clone(&self.lives);
        let handler = async move |_: Value, _: Call| {
            if !lives.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            Err::<(), _>(Failure::permanent("never"))
        };
        let idempotency = self.world.idempotency().with_log(TracingObserver::new());
        idempotency.on(source, &place(), handler).unwrap()
    }

    /// An invocation whose process dies while its handlers work.
    async fn dies(&self, function: &Function, event: &str) {
        self.lives.store(false, Ordering::SeqCst);
        let running = serve(function.clone(), event, self.world.context());
        assert!(self.world.clock.drive(drop_after(3, running)).await.is_none(), "{event}");
        self.lives.store(true, Ordering::SeqCst);
    }

    /// An invocation whose process died so long ago that its records are recovered.
    async fn died(&self, function: &Function, event: &str) {
        self.dies(function, event).await;
        self.world.clock.advance(LATER);
    }

    fn recovery(&self, function: &Function) -> Recovery<FaultyStore<MemoryStore>> {
        Recovery::new(self.world.store.clone(), function.clone()).unwrap()
    }

    async fn recover(&self, function: &Function) -> Recovered {
        let context = RunContext::without_deadline();
        let recovery = self.recovery(function);
        self.world.clock.drive(recovery.run(None, &context)).await.unwrap()
    }

    async fn stored(&self) -> Vec<IdempotencyRecord> {
        let until = self.world.clock.now().plus(LATER);
        let page = self.world.store.page(None, 99.try_into().unwrap(), until).await.unwrap();
        let keys: Vec<_> = page.items.into_iter().map(|(key, _)| key).collect();
        let found = self.world.store.read(&keys, until).await;
        found.into_iter().map(|record| record.unwrap().unwrap()).collect()
    }
}

fn message() -> String {
    batch([order("m-1", "o-1", "")]).to_string()
}

#[tokio::test]
async fn a_record_whose_worker_died_is_run_once_without_a_redelivery() {
    let mortal = Mortal::new();
    let function = mortal.sqs();
    mortal.dies(&function, &message()).await;
    let left = mortal.stored().await.remove(0);
    assert_eq!(left.status, Status::InProgress);
    let text = left.payload.as_deref().unwrap();
    assert!(text.contains("o-1") && !format!("{left:?}").contains("o-1"), "{text}");

    assert_eq!(mortal.recover(&function).await.recovered, 0, "its lease has not ended");
    mortal.world.clock.advance(LATER);
    let recovered = mortal.recover(&function).await;
    assert_eq!((recovered.swept.examined, recovered.recovered), (1, 1), "{recovered:?}");
    assert!(recovered.swept.is_complete);
    mortal.world.ledger.assert_once("sqs record m-1");
    let done = mortal.stored().await.remove(0);
    assert_eq!((done.status, done.payload), (Status::Completed, None));
    assert_eq!(mortal.recover(&function).await.recovered, 0);
    assert!(mortal.world.returned(&function, &batch([order("m-1", "o-1", "")])).await.is_empty());
    mortal.world.ledger.assert_once("sqs record m-1");
}

/// Local tools send such deadlines.
#[tokio::test]
async fn a_recovery_runs_under_a_deadline_that_lambda_cannot_mean() {
    for deadline in [600_000, 3_218_000_000_000] {
        let mortal = Mortal::new();
        let function = mortal.sqs();
        mortal.died(&function, &message()).await;
        let mut context = mortal.world.context();
        context.deadline = deadline;
        let recovery = mortal.recovery(&function);
        let recovered = mortal.world.clock.drive(recovery.run(None, &context)).await.unwrap();
        assert!(recovered.recovered == 1 && recovered.swept.is_complete, "{recovered:?}");
    }
}

#[tokio::test]
async fn of_two_recoveries_and_a_redelivery_one_runs_the_record() {
    let mortal = Mortal::new();
    let function = mortal.sqs();
    mortal.died(&function, &message()).await;
    // Another process each.
    let (one, other) = (mortal.recovery(&mortal.sqs()), mortal.recovery(&mortal.sqs()));
    let context = RunContext::without_deadline();
    let recoveries = join(one.run(None, &context), other.run(None, &context));
    let event = message();
    let redelivery = serve(mortal.sqs(), &event, mortal.world.context());
    let ((one, other), answer) = mortal.world.clock.drive(join(recoveries, redelivery)).await;
    let (one, other) = (one.unwrap(), other.unwrap());
    assert!(one.recovered + other.recovered <= 1, "{one:?} {other:?}");
    assert!(one.failed + other.failed == 0, "{one:?} {other:?}");
    assert!(answer.is_ok(), "{answer:?}");
    mortal.world.ledger.assert_once("sqs record m-1");
}

#[tokio::test]
async fn a_record_whose_handler_fails_is_tried_again_until_its_attempts_are_used_up() {
    let mortal = Mortal::new();
    let world = mortal.world.clone();
    let function = |operation| world.on(kept(), &operation);
    let fails = function(place());
    let event = batch([order("m-1", "o-1", "fail")]);
    assert_eq!(world.returned(&fails, &event).await, ["m-1"]);
    for attempt in 2..=5 {
        world.clock.advance(LATER);
        let recovered = mortal.recover(&fails).await;
        assert_eq!((recovered.failed, recovered.given_up), (1, 0), "attempt {attempt}");
        assert_eq!(mortal.stored().await[0].failed_attempts, attempt);
    }
    world.clock.advance(LATER);
    let recovered = mortal.recover(&fails).await;
    assert_eq!((recovered.failed, recovered.given_up), (0, 1));

    let permanent = function(Operation::new("other").key("id"));
    let event = batch([order("m-2", "o-1", "give up")]);
    assert_eq!(world.returned(&permanent, &event).await, ["m-2"]);
    let mut stored = mortal.stored().await.into_iter();
    let failed = stored.find(|record| record.status == Status::PermanentlyFailed).unwrap();
    assert_eq!(failed.payload, None, "it is never tried again");
}

/// Nothing waits for a record that is left in the store, and each run would find it again.
#[tokio::test]
async fn in_an_outage_no_record_is_recovered_without_a_claim() {
    let mortal = Mortal::new();
    let function = mortal.on(kept(), &place().on_outage(OnOutage::RunUnprotected));
    mortal.died(&function, &message()).await;
    mortal.world.store.inject(Fault::refuse(StoreErrorKind::Throttled).always());
    for _ in 0..2 {
        let recovered = mortal.recover(&function).await;
        assert_eq!((recovered.recovered, recovered.failed), (0, 1), "{recovered:?}");
    }
    mortal.world.store.heal();
    assert_eq!(mortal.recover(&function).await.recovered, 1);
    mortal.world.ledger.assert_once("sqs record m-1");
}

/// Nothing delivers it again, so the failure that is recorded is the last word, whatever its sink did.
#[tokio::test]
async fn a_permanent_failure_is_given_to_its_sink_and_is_not_tried_again() {
    for works in [true, false] {
        let (mortal, called) = (Mortal::new(), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&called);
        let source = kept().divert(move |_: DivertedRecord| {
            count.fetch_add(1, Ordering::SeqCst);
            async move { if works { Ok(()) } else { Err("out of reach") } }
        });
        let function = mortal.giving_up(source);
        mortal.died(&function, &message()).await;
        let recovered = mortal.recover(&function).await;
        assert_eq!((recovered.failed, recovered.recovered), (1, 0), "{recovered:?}");
        assert!(mortal.stored().await.iter().all(|record| record.payload.is_none()));
        mortal.world.clock.advance(LATER);
        assert_eq!(mortal.recover(&function).await.failed, 0);
        assert_eq!(called.load(Ordering::SeqCst), 1);
    }
}

/// The first call of a sink hangs, for its share of the time. That is not how long a record takes.
#[tokio::test]
async fn a_sink_that_hangs_leaves_time_for_other_records() {
    let (mortal, taken) = (Mortal::new(), Taken::default());
    let is_first = AtomicBool::new(true);
    let source = kept().divert(taken.hanging(move |_| is_first.swap(false, Ordering::SeqCst)));
    let function = mortal.giving_up(source);
    let messages = ["o-1", "o-2", "o-3", "o-4", "o-5"].map(|name| order(name, name, ""));
    mortal.died(&function, &batch(messages).to_string()).await;
    let begun = mortal.world.clock.now();
    let deadline = begun.plus(Duration::from_mins(15));
    let recovery = mortal.recovery(&function);
    let captured = Captured::default();
    let guard = captured.start();
    let recovered = mortal.world.clock.drive(recovery.run(None, &deadline)).await.unwrap();
    drop(guard);
    assert_eq!((recovered.failed, taken.ids()), (5, 4), "{recovered:?}");
    let said = captured.text();
    assert!(said.contains("nothing calls its sink again"), "{said}");
    assert!(!said.contains("next delivery"), "{said}");
    let took = mortal.world.clock.now().since(begun);
    assert!(took < Duration::from_secs(100), "a tenth of the time: {took:?}");
}

/// The function with the schedule was deployed with a lower limit.
#[tokio::test]
async fn an_attempt_of_a_recovery_keeps_the_record_whatever_its_limit_is() {
    let mortal = Mortal::new();
    mortal.died(&mortal.sqs(), &message()).await;
    let before = mortal.stored().await.remove(0).payload;
    let source = Sqs::new().recoverable(10);
    let fails = async |_: Value, _: Call| Err::<(), _>(Failure::transient("no luck"));
    let function = mortal.world.with_handler(source, &place(), fails);
    assert_eq!(mortal.recover(&function).await.failed, 1);
    assert_eq!(mortal.stored().await.remove(0).payload, before);
    mortal.world.clock.advance(LATER);
    assert_eq!(mortal.recover(&mortal.sqs()).await.recovered, 1);
}

/// Two records of an event of Kafka have one key.
#[tokio::test]
async fn the_record_that_is_recovered_is_the_one_that_was_claimed() {
    let mortal = Mortal::new();
    let source = Kafka::new().order(KeepOrder::None).recoverable(64 * 1024);
    let function = mortal.on(source, &place());
    let messages = [(0, "first"), (1, "second")]
        .map(|(partition, action)| support_streams::message(partition, 7, "o-1", action));
    mortal.died(&function, &support_streams::topic(messages).to_string()).await;
    let left = mortal.stored().await.into_iter().find(|left| left.payload.is_some()).unwrap();
    let claimed = left.provenance.unwrap().record.unwrap();
    assert_eq!(mortal.recover(&function).await.recovered, 1);
    mortal.world.ledger.assert_once(&format!("kafka record {claimed}"));
}

/// The claim of a long attempt was made long before it failed.
#[tokio::test]
async fn a_record_whose_attempt_has_just_failed_is_left_to_its_source() {
    let mortal = Mortal::new();
    let world = mortal.world.clone();
    let handler = move |_: Value, _: Call| {
        let clock = world.clock.clone();
        async move {
            clock.sleep(Duration::from_secs(20)).await;
            Err::<(), _>(Failure::transient("no luck"))
        }
    };
    let function = mortal.world.with_handler(kept(), &place(), handler);
    let event = batch([order("m-1", "o-1", "")]);
    assert_eq!(mortal.world.returned(&function, &event).await, ["m-1"]);
    let recover = async || {
        let recovery = mortal.recovery(&function).with_min_age(Duration::from_secs(10));
        let context = RunContext::without_deadline();
        let running = recovery.run(None, &context);
        mortal.world.clock.drive(running).await.unwrap().failed
    };
    assert_eq!(recover().await, 0, "it was claimed 20 seconds ago, and has failed now");
    mortal.world.clock.advance(Duration::from_secs(9));
    assert_eq!(recover().await, 0);
    mortal.world.clock.advance(Duration::from_secs(2));
    assert_eq!(recover().await, 1);
}

/// Of every source, in AWS's own shape: the handler sees what it saw before.
#[tokio::test]
async fn records_of_every_source_are_recovered_as_they_were_delivered() {
    let mut kinds = std::collections::BTreeSet::new();
    for (name, event) in samples() {
        let mortal = Mortal::new();
        let function = everything(&mortal).build().unwrap();
        let running = serve(function.clone(), &event, mortal.world.context());
        if mortal.world.clock.drive(drop_after(3, running)).await.is_some() {
            continue; // no record of it reaches a handler
        }
        let mut before = mortal.seen.take();
        mortal.lives.store(true, Ordering::SeqCst);
        mortal.world.clock.advance(LATER);
        let recovered = mortal.recover(&function).await;
        let claimed = mortal.stored().await.len() as u64;
        assert_eq!(recovered.recovered, claimed, "{name}: {recovered:?}");
        let mut after = mortal.seen.take();
        // Later records of an order group had not begun.
        before.sort();
        after.sort();
        let missing: Vec<_> = before.iter().filter(|seen| !after.contains(seen)).collect();
        assert!(!before.is_empty() && missing.is_empty(), "{name}: {missing:?}, {after:?}");
        kinds.extend(before.iter().filter_map(|seen| seen.split(' ').next().map(str::to_owned)));
    }
    // The samples of RabbitMQ have no id, and those of pipes are of other sources: see below.
    assert_eq!(kinds.len(), 11, "{kinds:?}");
}

fn everything(mortal: &Mortal) -> FunctionBuilder {
    const MOST: usize = 64 * 1024;
    let function = mortal.world.idempotency().function();
    let (new, handler) = (|name: &str| Operation::new(name), mortal.handler());
    every_source!(function, new, handler.clone(), |source| source.recoverable(MOST)).on(
        Invoke::by_request_id().recoverable(MOST),
        &new("invoke"),
        handler,
    )
}

#[tokio::test]
async fn each_claim_of_a_batch_keeps_its_own_record_only() {
    let mortal = Mortal::new();
    let pipe = mortal.on(Pipe::of(kept()), &place());
    let messages = [order("m-1", "o-1", ""), order("m-2", "o-2", "")];
    let (as_batch, in_a_pipe) = (batch(messages.clone()), Value::from(messages.to_vec()));
    for (function, event) in [(mortal.sqs(), as_batch), (pipe, in_a_pipe)] {
        mortal.dies(&function, &event.to_string()).await;
        let stored = mortal.stored().await;
        let texts: Vec<_> = stored.iter().filter_map(|record| record.payload.as_deref()).collect();
        assert_eq!(texts.len(), 2);
        let of = |id: &str| texts.iter().filter(|text| text.contains(id)).count();
        assert_eq!((of("o-1"), of("o-2")), (1, 1));
        mortal.world.clock.advance(LATER);
        assert_eq!(mortal.recover(&function).await.recovered, 2);
        mortal.world.clock.advance(Duration::from_hours(48));
    }
}

/// An event of Kafka is kept whole. With copies for each of its records, 300 KB in a thousand records would need 300 MB.
#[tokio::test]
async fn records_of_an_event_that_is_kept_whole_share_its_text() {
    let event =
        support_streams::topic((0..3).map(|offset| support_streams::message(0, offset, "a", "")))
            .to_string();
    let mortal = Mortal::new();
    let source = Kafka::new().recoverable(64 * 1024).order(KeepOrder::None);
    let operation = Operation::new("place");
    let function = mortal.world.idempotency().on(source, &operation, mortal.handler()).unwrap();
    mortal.dies(&function, &event).await;
    let stored = mortal.stored().await;
    let texts: Vec<_> = stored.iter().filter_map(|record| record.payload.as_deref()).collect();
    assert!(texts.len() == 3 && texts.iter().all(|text| std::ptr::eq(*text, texts[0])));
}

#[tokio::test]
async fn a_record_of_a_tenant_keeps_its_key() {
    let mortal = Mortal::new();
    let function = mortal.sqs();
    let mut context = mortal.world.context();
    context.tenant_id = Some("acme".to_owned());
    let event = message();
    let running = serve(function.clone(), &event, context);
    assert!(mortal.world.clock.drive(drop_after(3, running)).await.is_none());
    mortal.lives.store(true, Ordering::SeqCst);
    mortal.world.clock.advance(LATER);
    assert_eq!(mortal.recover(&function).await.recovered, 1);
}

#[tokio::test]
async fn a_record_with_another_key_than_before_is_left_alone() {
    let mortal = Mortal::new();
    mortal.died(&mortal.sqs(), &message()).await;
    let other = mortal.on(kept(), &place().key("[id, do]"));
    let recovered = mortal.recover(&other).await;
    assert_eq!((recovered.unknown, recovered.recovered), (1, 0));
    assert_eq!(mortal.world.ledger.total(), 0);
}

#[tokio::test]
async fn a_record_that_is_too_large_is_processed_and_not_kept() {
    let mortal = Mortal::new();
    let function = mortal.on(Sqs::new().recoverable(400), &place());
    let long = "x".repeat(400);
    let event = batch([order("m-1", "o-1", ""), order("m-2", "o-2", &long)]);
    mortal.dies(&function, &event.to_string()).await;
    let stored = mortal.stored().await;
    assert_eq!(stored.iter().filter(|record| record.payload.is_some()).count(), 1);
    mortal.world.clock.advance(LATER);
    assert_eq!(mortal.recover(&function).await.recovered, 1);
    assert!(mortal.world.returned(&function, &event).await.is_empty());
    mortal.world.ledger.assert_once("sqs record m-2");
}

#[tokio::test]
async fn a_recovery_ends_at_its_deadline_and_goes_on_where_it_stopped() {
    let mortal = Mortal::new();
    let function = mortal.sqs();
    let names: Vec<_> = (0..6).map(|number| format!("o-{number}")).collect();
    let event = batch(names.iter().map(|name| order(name, name, "")));
    mortal.died(&function, &event.to_string()).await;
    let (mut next, mut total, mut runs) = (None, 0, 0);
    loop {
        let deadline = mortal.world.clock.now().plus(Duration::from_secs(4));
        let recovery = mortal.recovery(&function);
        let running = recovery.run(next.as_ref(), &deadline);
        let recovered = mortal.world.clock.drive(running).await.unwrap();
        (total, runs) = (total + recovered.recovered, runs + 1);
        if recovered.swept.is_complete || runs > 9 {
            break;
        }
        next = recovered.swept.next;
    }
    assert!(total == 6 && (2..=6).contains(&runs), "{total} in {runs} runs");
    mortal.world.ledger.assert_sound();
    for name in names {
        mortal.world.ledger.assert_once(&format!("sqs record {name}"));
    }
}

/// A store of which a page takes most of a run's time.
struct SlowPages(World);

impl Browse for SlowPages {
    fn page<'a>(
        &'a self,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        until: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        self.0.store.page(after, limit, until)
    }

    fn left<'a>(
        &'a self,
        left: Left,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        until: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(async move {
            self.0.clock.sleep(Duration::from_secs(55)).await;
            self.0.store.left(left, after, limit, until).await
        })
    }

    fn mark_sent<'a>(
        &'a self,
        records: &'a [(Key, RecordVersion)],
        until: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), StoreError>>> {
        self.0.store.mark_sent(records, until)
    }

    fn count<'a>(&'a self, until: Timestamp) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.0.store.count(until)
    }
}

/// A handler that is stopped uses up an attempt, and after five the record is given up.
#[tokio::test]
async fn no_record_begins_at_the_end_of_a_run() {
    let mortal = Mortal::new();
    let function = mortal.sqs();
    mortal.dies(&function, &batch([order("m-1", "o-1", "")]).to_string()).await;
    let recovery = Recovery::new(SlowPages(mortal.world.clone()), function.clone()).unwrap();
    for _ in 0..6 {
        mortal.world.clock.advance(LATER);
        let deadline = mortal.world.clock.now().plus(Duration::from_secs(60));
        let recovered = mortal.world.clock.drive(recovery.run(None, &deadline)).await.unwrap();
        assert_eq!((recovered.failed, recovered.given_up), (0, 0));
        assert!(!recovered.swept.is_complete);
    }
    assert_eq!(mortal.recover(&function).await.recovered, 1);
}

#[test]
fn a_function_that_keeps_nothing_is_refused() {
    let mortal = Mortal::new();
    let function = mortal.on(Sqs::new(), &place());
    let refused = Recovery::new(mortal.world.store.clone(), function).map(drop);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("none of its sources is `.recoverable(..)`"), "{refused}");
}

/// Direct invocations are told apart by their request id, which a recovery keeps.
#[tokio::test]
async fn an_asynchronous_invocation_is_recovered_under_its_request_id() {
    let mortal = Mortal::new();
    let function =
        mortal.on(Invoke::by_request_id().recoverable(64 * 1024), &Operation::new("import"));
    mortal.died(&function, &json!({ "tenant": "acme" }).to_string()).await;
    assert_eq!(mortal.recover(&function).await.recovered, 1);
    let seen = mortal.seen.take();
    assert_eq!(seen[0], seen[1]);
    assert!(seen[1].contains("request-1"), "{seen:?}");
}

/// The result of a step is worth more: without it, its effect would be made at every receive.
#[tokio::test]
async fn a_step_takes_the_room_of_the_record_that_is_kept() {
    let (mortal, payments) = (Mortal::new(), Arc::<AtomicUsize>::default());
    let counted = Arc::clone(&payments);
    let handler = move |_: Value, call: Call| {
        let payments = Arc::clone(&counted);
        async move {
            let pay = |_| async move {
                payments.fetch_add(1, Ordering::Relaxed);
                Ok::<_, Failure>("x".repeat(30 * 1024))
            };
            call.step("pay", pay).await?;
            if call.failed_attempts() == 0 { Err(Failure::transient("not yet")) } else { Ok(()) }
        }
    };
    let source = Sqs::new().recoverable(1024 * 1024);
    let function = mortal.world.with_handler(source, &place(), handler);
    let body = json!({ "id": "o-1", "text": "x".repeat(380 * 1024) });
    let event = batch([with_body("m-1", &body.to_string())]);
    assert_eq!(mortal.world.returned(&function, &event).await, ["m-1"]);
    let released = mortal.stored().await.remove(0);
    assert!(released.steps.is_some() && released.payload.is_none());
    assert_eq!((released.failed_attempts, released.lost_attempts), (1, 0));
    assert!(mortal.world.returned(&function, &event).await.is_empty());
    assert_eq!(payments.load(Ordering::Relaxed), 1);
}
