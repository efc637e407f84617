//! Observers get outcomes of records, calls of the store and the ends of invocations, beside the log.

use std::time::Duration;

use crate::{
    secrecy::capture::Captured,
    support::{Noted, World, batch, order},
};
use lambda_idempotency::{
    Operation,
    observe::{BatchEnd, Observer, Report, StoreCall, TracingObserver},
    policy::Lease,
    source::Sqs,
    store::{Cache, StoreErrorKind},
};
use lambda_idempotency_testkit::faults::Fault;

impl Observer for Noted<String> {
    fn reported(&self, report: &Report<'_>) {
        let millis = |time: Option<Duration>| time.map(|time| time.as_millis());
        let times = [report.waited, report.ran_for, report.settled_in].map(millis);
        self.add(format!("{} {times:?}", report.outcome.label()));
    }

    fn store_called(&self, call: &StoreCall<'_>) {
        let StoreCall { operation, source, members, errors, .. } = call;
        let purpose = call.purpose.label();
        self.add(format!("{purpose} {members} for {operation} of {source}: {errors:?}"));
    }

    fn batch_ended(&self, end: &BatchEnd<'_>) {
        self.add(format!("end of {} with {} cache hits", end.records, end.cache_hits));
    }
}

#[derive(Clone)]
struct Panicking;

impl Observer for Panicking {
    fn reported(&self, _: &Report<'_>) {
        panic!("deliberate");
    }

    fn store_called(&self, _: &StoreCall<'_>) {
        panic!("deliberate");
    }

    fn batch_ended(&self, _: &BatchEnd<'_>) {
        panic!("deliberate");
    }
}

#[tokio::test]
async fn observers_add_to_each_other_and_to_the_log_and_one_that_panics_harms_nobody() {
    let (world, captured) = (World::instant(), Captured::default());
    let (first, last) = (Noted::<String>::new(), Noted::<String>::new());
    let idempotency = world
        .idempotency()
        .with_log(TracingObserver::new())
        .with_observer(first.clone())
        .with_observer(Panicking)
        .with_observer(last.clone());
    let function =
        idempotency.on(Sqs::new(), &Operation::new("a").key("id"), world.handler()).unwrap();
    let guard = captured.start();
    assert!(world.returned(&function, &batch([order("m-1", "a", "")])).await.is_empty());
    drop(guard);
    let noted = first.take();
    let wanted = [
        "claim 1 for a of sqs: []",
        "settle 1 for a of sqs: []",
        "executed [Some(0), Some(0), Some(0)]",
        "end of 1 with 0 cache hits",
    ];
    assert_eq!(noted, wanted);
    assert_eq!(noted, last.take());
    assert!(captured.text().contains("\"executed\""), "{}", captured.text());
}

#[tokio::test]
async fn without_the_log_other_observers_are_told() {
    let (world, captured, noted) = (World::new(), Captured::default(), Noted::<String>::new());
    let idempotency = world
        .idempotency()
        .with_observer(noted.clone())
        .with_log(TracingObserver::new())
        .without_log();
    let function =
        idempotency.on(Sqs::new(), &Operation::new("a").key("id"), world.handler()).unwrap();
    let guard = captured.start();
    world.invoke(&function, &batch([order("m-1", "a", "")])).await.unwrap();
    drop(guard);
    assert!(!captured.text().contains("lambda_idempotency::"), "{}", captured.text());
    assert_eq!(noted.take().len(), 4);
}

#[tokio::test]
async fn an_observer_learns_how_long_a_record_waited_ran_and_was_settled() {
    let (world, noted) = (World::instant(), Noted::<String>::new());
    // One after the other: the second waits for the first.
    let one_by_one = Sqs::new().concurrency(1);
    let idempotency = world.idempotency().with_observer(noted.clone());
    let function =
        idempotency.on(one_by_one, &Operation::new("a").key("id"), world.handler()).unwrap();
    let event = batch([order("m-1", "a", "sleep 2"), order("m-2", "b", "sleep 2")]);
    world.invoke(&function, &event).await.unwrap();
    let reports: Vec<String> =
        noted.take().into_iter().filter(|noted| noted.starts_with("executed")).collect();
    let wanted =
        ["executed [Some(0), Some(2000), Some(0)]", "executed [Some(2000), Some(2000), Some(0)]"];
    assert_eq!(reports, wanted);
}

#[tokio::test]
async fn an_observer_learns_of_errors_looks_and_hits_of_the_cache() {
    let (world, noted) = (World::new(), Noted::<String>::new());
    let idempotency = world.idempotency().with_observer(noted.clone());
    let function =
        idempotency.on(Sqs::new(), &Operation::new("a").key("id"), world.handler()).unwrap();
    let event = batch([order("m-1", "a", "")]);
    world.store.inject(Fault::refuse(StoreErrorKind::Corrupt));
    world.invoke(&function, &event).await.unwrap_err();
    let wanted = [
        "claim 1 for a of sqs: [Corrupt]",
        "unavailable [None, None, None]",
        "end of 1 with 0 cache hits",
    ];
    assert_eq!(noted.take(), wanted);
    for _ in 0..2 {
        world.invoke(&function, &event).await.unwrap();
    }
    let noted = noted.take();
    assert_eq!(
        noted[noted.len() - 2..],
        ["replayed [None, None, None]", "end of 1 with 1 cache hits"]
    );
}

#[tokio::test]
async fn a_renewal_is_not_taken_for_a_claim() {
    let (world, noted) = (World::new(), Noted::<String>::new());
    let operation =
        Operation::new("a").key("id").lease(Lease::Renewed { length: Duration::from_secs(6) });
    let idempotency = world.idempotency().with_observer(noted.clone());
    let function = idempotency.on(Sqs::new(), &operation, world.handler()).unwrap();
    world.invoke(&function, &batch([order("m-1", "a", "sleep 5")])).await.unwrap();
    let noted = noted.take();
    let of = |purpose: &str| noted.iter().filter(|noted| noted.starts_with(purpose)).count();
    assert_eq!((of("claim"), of("settle")), (1, 1), "{noted:?}");
    assert!(of("renew") >= 1, "{noted:?}");
}

#[tokio::test]
async fn without_the_cache_a_duplicate_calls_the_store() {
    for (cache, calls) in [(Cache::off(), 1), (Cache::new(), 0)] {
        let world = World::new();
        let idempotency = world.idempotency().with_cache(cache);
        let function =
            idempotency.on(Sqs::new(), &Operation::new("a").key("id"), world.handler()).unwrap();
        for message in ["m-1", "m-2"] {
            world.store.forget();
            assert!(world.returned(&function, &batch([order(message, "a", "")])).await.is_empty());
        }
        world.ledger.assert_once("a");
        assert_eq!(world.store.write_calls() + world.store.read_calls(), calls);
    }
}
