//! The log of records that are diverted, and of records that could not be diverted.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lambda_idempotency::{
    Failure,
    observe::TracingObserver,
    policy::OnTimeout,
    source::{DivertReason, DivertedRecord, Kinesis, Sqs},
};
use lambda_idempotency_core::{browse::Browse as _, clock::Clock as _};

use crate::{
    diverting_failures::{Taken, index},
    secrecy::capture::Captured,
    support::{World, batch, ids, order, serve},
    support_streams::with_data,
};

/// The log of an order that fails permanently.
async fn logged(world: &World, observer: TracingObserver, source: Sqs) -> String {
    let captured = Captured::default();
    let guard = captured.start();
    let idempotency = world.idempotency().with_log(observer);
    let function = idempotency.on(source, &index(), world.handler()).unwrap();
    world.returned(&function, &batch([order("m-1", "a", "give up")])).await;
    drop(guard);
    captured.text()
}

#[tokio::test]
async fn the_message_of_a_handlers_error_is_logged_only_if_enabled() {
    let (world, taken) = (World::new(), Taken::default());
    let log = logged(&world, TracingObserver::new(), Sqs::new().divert(taken.sink())).await;
    assert!(!log.contains("never again"), "{log}");
    let world = World::new();
    let shown = TracingObserver::new().showing_error_messages();
    let log = logged(&world, shown, Sqs::new().divert(taken.sink())).await;
    assert!(log.contains(r#"error_message="never again""#), "{log}");
    assert_eq!(taken.records().len(), 2);
}

#[tokio::test]
async fn a_failing_sink_is_logged_after_the_failure_of_the_record() {
    let (world, taken) = (World::new(), Taken::default());
    taken.refuse(1);
    let shown = TracingObserver::new().showing_error_messages();
    let log = logged(&world, shown, Sqs::new().divert(taken.sink())).await;
    let [failed, not_taken] = &log.lines().collect::<Vec<_>>()[..] else { panic!("{log}") };
    assert!(failed.contains(r#"error_message="never again""#), "{log}");
    assert!(not_taken.contains("the sink failed with a text"), "{log}");
    assert!(not_taken.contains(r#"error_message="cannot be reached""#), "{log}");
    let world = World::new();
    taken.refuse(1);
    let log = logged(&world, TracingObserver::new(), Sqs::new().divert(taken.sink())).await;
    assert!(!log.contains("cannot be reached"), "{log}");
}

#[tokio::test]
async fn a_record_that_was_diverted_is_logged_with_the_reason() {
    let log =
        logged(&World::new(), TracingObserver::new(), Sqs::new().divert(Taken::default().sink()))
            .await;
    let diverted = log.lines().find(|line| line.contains("record diverted")).unwrap();
    assert!(diverted.contains("its handler failed permanently, with a text"), "{log}");
    assert!(diverted.contains("WARN") && diverted.contains("m-1"), "{log}");
}

#[tokio::test]
async fn a_panic_of_the_sink_is_not_logged_as_one_of_the_handler() {
    async fn sink(_: DivertedRecord) -> Result<(), Failure> {
        panic!("no bucket")
    }
    let source = Sqs::new().divert(sink);
    let log = logged(&World::new(), TracingObserver::new(), source).await;
    assert!(log.contains("the sink failed with a panic"), "{log}");
    assert!(!log.contains("the handler failed with a panic"), "{log}");
}

/// Others are acknowledged all the same, and the next delivery calls the sink again.
#[tokio::test]
async fn a_sink_that_hangs_is_dropped_before_the_invocation_ends() {
    let world = World::new();
    let taken = Taken::default();
    let hangs = Arc::new(AtomicBool::new(true));
    let is_hanging = Arc::clone(&hangs);
    let source = Sqs::new()
        .divert(taken.hanging(move |id| is_hanging.load(Ordering::Relaxed) && id == "m-1"));
    let captured = Captured::default();
    let guard = captured.start();
    let idempotency = world.idempotency().with_log(TracingObserver::new());
    let function = idempotency.on(source, &index(), world.handler()).unwrap();
    let event =
        batch([order("m-1", "a", "give up"), order("m-2", "b", "give up"), order("m-3", "c", "")]);
    let begun = world.clock.now();
    assert_eq!(world.returned(&function, &event).await, ["m-1"]);
    let took = world.clock.now().since(begun);
    assert_eq!(took, Duration::from_millis(29_750), "the answer is in time");
    drop(guard);
    let late = "the sink did not return within";
    assert!(captured.text().contains(late), "{}", captured.text());
    hangs.store(false, Ordering::Relaxed);
    assert!(world.returned(&function, &event).await.is_empty());
    assert_eq!(taken.ids(), 2);
}

/// Sixteen sinks run at a time, and each round has its share of what is left.
#[tokio::test]
async fn sinks_that_hang_leave_time_for_those_behind_them() {
    let (world, taken) = (World::new(), Taken::default());
    let function = world.on(Sqs::new().divert(taken.hanging(|id| id != "m-16")), &index());
    let order = |nth: u32| order(&format!("m-{nth}"), &nth.to_string(), "give up");
    let returned = world.returned(&function, &batch((0..17).map(order))).await;
    assert_eq!(returned.len(), 16);
    assert_eq!(&*taken.records()[0].record.id, "m-16");
}

/// A delivery has time for 48 calls, and all but the last one hang. The order differs at each delivery.
#[tokio::test]
async fn sinks_that_hang_in_a_queue_are_not_before_the_same_records_for_ever() {
    let (world, taken) = (World::new(), Taken::default());
    let source = Sqs::new().divert(taken.hanging(|id| id != "m-64"));
    let function = world.on(source, &index());
    let order = |nth: u32| order(&format!("m-{nth}"), &nth.to_string(), "give up");
    let event = batch((0..65).map(order)).to_string();
    for _ in 0..5 {
        let mut context = world.context();
        context.deadline = world.clock.now().plus(Duration::from_secs(3)).as_millis();
        world.clock.drive(serve(function.clone(), &event, context)).await.unwrap();
        world.clock.advance(Duration::from_mins(1));
    }
    assert!(!taken.records().is_empty(), "never called in five deliveries");
}

/// There is time for three calls one after the other, sixteen times: the stream goes on behind them.
#[tokio::test]
async fn the_first_records_of_a_stream_come_first() {
    let (world, taken) = (World::new(), Taken::default());
    let source = Kinesis::new().divert(taken.slow(&world, Duration::from_millis(900)));
    let function = world.on(source, &index());
    let records: Vec<_> = (1..=100).map(|nth| with_data(nth, "k", "not JSON")).collect();
    let event = batch(records.clone()).to_string();
    let mut context = world.context();
    context.deadline = world.clock.now().plus(Duration::from_secs(3)).as_millis();
    let answer = world.clock.drive(serve(function, &event, context)).await.unwrap();
    let first_left = records[48]["kinesis"]["sequenceNumber"].as_str().unwrap();
    assert_eq!(ids(&serde_json::from_str(answer.get()).unwrap())[0], first_left);
}

/// 640 calls, sixteen at a time, of a sink that takes a tenth of a second: each delivery takes as many as there is time for.
#[tokio::test]
async fn healthy_sinks_of_many_records_have_the_time_that_they_need() {
    let (world, taken) = (World::new(), Taken::default());
    let sink = taken.slow(&world, Duration::from_millis(100));
    let function = world.on(Sqs::new().divert(sink), &index());
    let mut left: Vec<String> = (0..640).map(|nth| format!("m-{nth}")).collect();
    for delivery in 0..3 {
        let event = batch(left.iter().map(|id| order(id, id, "give up"))).to_string();
        let mut context = world.context();
        context.deadline = world.clock.now().plus(Duration::from_secs(3)).as_millis();
        let call = serve(function.clone(), &event, context);
        let answer = world.clock.drive(call).await.unwrap();
        let returned = ids(&serde_json::from_str(answer.get()).unwrap());
        assert!(left.is_empty() || returned.len() < left.len(), "none was taken in {delivery}");
        left = returned;
    }
    assert_eq!(left, [""; 0]);
}

/// A sink that keeps the processor leaves no time: the log does not say that the others failed.
#[tokio::test]
async fn a_sink_that_was_not_called_has_not_failed() {
    let world = World::new();
    let clock = world.clock.clone();
    let source = Sqs::new().divert(move |_: DivertedRecord| {
        clock.advance(Duration::from_mins(1));
        std::future::ready(Ok::<_, Failure>(()))
    });
    let captured = Captured::default();
    let guard = captured.start();
    let idempotency = world.idempotency().with_log(TracingObserver::new());
    let function = idempotency.on(source, &index(), world.handler()).unwrap();
    let event = batch([order("m-1", "a", "give up"), order("m-2", "b", "give up")]);
    assert_eq!(world.returned(&function, &event).await, ["m-2"]);
    drop(guard);
    let log = captured.text();
    assert!(log.contains("the sink was not called, because no time was left"), "{log}");
    assert!(!log.contains("the sink failed"), "{log}");
}

/// A handler that uses up its time leaves some for the sinks of other records, and for its own: also where the deadline is
/// unknown, or one that Lambda cannot mean.
#[tokio::test]
async fn a_handler_that_is_stopped_leaves_time_for_sinks() {
    for deadline in [World::new().clock.now().plus(Duration::from_secs(3)).as_millis(), 0, 600_000]
    {
        let (world, taken) = (World::new(), Taken::default());
        let source = Sqs::new().divert(taken.slow(&world, Duration::from_millis(400)));
        let operation = index().on_timeout(OnTimeout::FailPermanently);
        let function = world.on(source, &operation);
        let event = batch([order("m-1", "a", "sleep"), order("m-2", "b", "give up")]);
        let mut context = world.context();
        context.deadline = deadline;
        let answer = world.clock.drive(serve(function, &event.to_string(), context)).await.unwrap();
        let answer: serde_json::Value = serde_json::from_str(answer.get()).unwrap();
        assert!(ids(&answer).is_empty(), "{deadline}: {answer}");
        let reasons: Vec<_> = taken.records().into_iter().map(|record| record.reason).collect();
        assert_eq!(reasons[0], DivertReason::TimedOut);
        assert!(matches!(reasons[1], DivertReason::PermanentFailure { .. }), "{reasons:?}");
    }
}

/// Lambda stops the process as late as without a sink.
#[tokio::test]
async fn a_sink_moves_the_end_of_handlers_and_not_that_of_their_leases() {
    let (world, taken) = (World::new(), Taken::default());
    let function = world.on(Sqs::new().divert(taken.sink()), &index());
    let begun = world.clock.now();
    let event = batch([order("m-1", "a", "sleep")]);
    assert_eq!(world.returned(&function, &event).await, ["m-1"]);
    let took = world.clock.now().since(begun).as_millis();
    assert!((28_000..28_100).contains(&took), "{took}");
    let until = begun.plus(Duration::from_secs(31));
    let page = world.store.page(None, NonZeroUsize::MIN, until).await.unwrap();
    let leases: Vec<_> =
        page.items.into_iter().map(|(_, left)| left.unwrap().lease_until).collect();
    assert_eq!(leases, [Some(until)]);
}
