//! Messages that cannot be sent, or that another attempt has left in a completed record: who sends them, a delivery, a
//! relay, or nobody while there is no sender.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency_core::{
    clock::Clock,
    outbox::{Message, PublishError},
    policy::Lease,
    store::StoreErrorKind,
};
use lambda_idempotency_engine::{
    call::Call,
    observe::{Observer, Report},
};
use lambda_idempotency_testkit::faults::{Fault, GuardKind};

use crate::{
    post::{leave_messages, marks, one, post, post_in, publishing},
    support::{Rec, World, key, labels, ok, rec},
};

const SECOND: Duration = Duration::from_secs(1);

/// A successor completes the key, and dies before it sends. Its messages are found by the completion, or by a renewal.
#[tokio::test]
async fn a_worker_that_lost_its_lease_sends_what_its_successor_has_left() {
    for stays in [Duration::ZERO, 20 * SECOND] {
        let mut world = World::new();
        world.policy.lease = Lease::Renewed { length: 6 * SECOND };
        let post = post_in(world);
        let overtaken = rec("a", move |world: World, call: Call| async move {
            call.publish(Message::new("queue", "ours"))?;
            leave_messages(&world, "a", one("queue", "theirs"));
            world.clock.sleep(stays).await;
            Ok(())
        });
        assert_eq!(post.deliver(vec![overtaken]).await, ["superseded"], "{stays:?}");
        assert_eq!(post.wire.bodies(), ["theirs"], "{stays:?}");
        assert!(!post.is_pending("a").await, "{stays:?}");
    }
}

fn to(label: &'static str, destination: &'static str, body: &'static str) -> Rec {
    rec(
        label,
        move |_, call: Call| async move { Ok(call.publish(Message::new(destination, body))?) },
    )
}

#[tokio::test]
async fn a_destination_that_hangs_or_panics_keeps_no_other_messages() {
    for broken in ["hangs", "panics"] {
        let post = post();
        let records = vec![to("a", broken, "1"), to("b", "queue", "2"), to("c", "topic", "3")];
        assert_eq!(post.deliver(records).await, ["unsent", "executed", "executed"], "{broken}");
        let mut bodies = post.wire.bodies();
        bodies.sort_unstable();
        assert_eq!(bodies, ["2", "3"], "{broken}");
        leave_messages(&post.world, "d", one("queue", "4"));
        post.world.clock.advance(900 * SECOND);
        let relayed = post.relay(None).await;
        assert_eq!((relayed.sent, relayed.unsent), (1, 1), "{broken}");
    }
}

/// Whether the reports say that what was done is not recorded.
#[derive(Clone, Default)]
struct Unrecorded(Arc<Mutex<Vec<bool>>>);

impl Observer for Unrecorded {
    fn reported(&self, report: &Report<'_>) {
        self.0.lock().unwrap().push(report.unrecorded.is_some());
    }
}

#[tokio::test]
async fn observers_learn_that_the_store_does_not_know_of_messages_that_were_sent() {
    for is_refused in [false, true] {
        let (post, reports) = (post(), Unrecorded::default());
        let world = &post.world;
        if is_refused {
            let refused = Fault::refuse(StoreErrorKind::Throttled).for_writes(marks());
            world.store.inject(refused.always());
        }
        let engine =
            world.engine().with_sender(Arc::clone(&post.wire)).with_observer(reports.clone());
        let batch = vec![to("a", "queue", "1")];
        let outcomes = world.clock.drive(world.invoke_by(&engine, batch)).await;
        assert_eq!(labels(&outcomes), ["executed"]);
        assert_eq!(*reports.0.lock().unwrap(), [is_refused]);
    }
}

/// All in one call would take 9 seconds, at this run and at every later one.
#[tokio::test]
async fn many_messages_are_sent_by_as_many_calls_as_they_need_time() {
    let post = post();
    post.wire.take_for_each(Duration::from_millis(30));
    let publishes = |label| {
        rec(label, |_, call: Call| async move {
            (0..100).try_for_each(|_| call.publish(Message::new("queue", "1")))?;
            Ok(())
        })
    };
    assert_eq!(post.deliver(["a", "b", "c"].map(publishes).into()).await, ["executed"; 3]);
    assert_eq!(post.wire.calls(), [100; 3]);
    let outbox = format!("[{}]", [r#"{"to":"queue","body":"1"}"#; 100].join(","));
    for label in ["a", "b", "c"] {
        leave_messages(&post.world, label, outbox.clone());
    }
    let relayed = post.relay(None).await;
    assert_eq!((relayed.sent, relayed.unsent), (3, 0));
    assert_eq!(post.wire.calls(), [100; 6]);
}

/// Its sender may take their destinations for others.
#[tokio::test]
async fn a_relay_of_an_application_leaves_the_messages_of_others() {
    let post = post();
    for (label, application) in [("a", Some("shop")), ("b", Some("billing")), ("c", None)] {
        let mut record = leave_messages(&post.world, label, one("queue", label));
        record.application = application.map(Into::into);
        post.world.store.inner().insert(key(label), record);
    }
    assert_eq!(post.relay(Some("shop")).await.sent, 2);
    assert_eq!(post.wire.bodies(), ["a", "c"]);
    assert!(post.is_pending("b").await);
}

/// The messages that the successor has left are sent slowly, and there is room for the record meanwhile.
#[tokio::test]
async fn a_record_whose_lease_was_lost_before_its_start_does_not_start_beside_its_successor() {
    let mut world = World::new();
    world.policy.lease = Lease::Renewed { length: 6 * SECOND };
    world.policy.concurrency = 1;
    let post = post_in(world);
    post.wire.take(5 * SECOND);
    let slow = rec("a", |world: World, _| async move {
        world.clock.sleep(SECOND).await;
        leave_messages(&world, "b", one("queue", "theirs"));
        // Its renewal, a second later, finds them.
        world.clock.sleep(3 * SECOND).await;
        Ok(())
    });
    let outcomes = post.deliver(vec![slow, publishing("b", &["ours"])]).await;
    assert_eq!(outcomes, ["executed", "replayed"]);
    post.world.ledger.assert_never("b");
    assert_eq!(post.wire.bodies(), ["theirs"]);
    assert!(!post.is_pending("b").await);
}

#[tokio::test]
async fn without_a_sender_or_a_claim_nothing_can_be_published() {
    let (world, post) = (World::new(), post());
    let refused = |expected: PublishError| {
        rec("a", move |_, call: Call| async move {
            assert_eq!(call.publish(Message::new("queue", "1")), Err(expected));
            Ok(())
        })
    };
    assert_eq!(world.deliver(vec![refused(PublishError::NoSender)]).await, ["executed"]);
    let unprotected = refused(PublishError::Unprotected).unprotected();
    assert_eq!(post.deliver(vec![unprotected]).await, ["unprotected"]);
    let kept = Arc::new(Mutex::new(None));
    let leaks = Arc::clone(&kept);
    let leaky = rec("b", |_, call: Call| async move {
        *leaks.lock().unwrap() = Some(call);
        Ok(())
    });
    assert_eq!(post.deliver(vec![leaky]).await, ["executed"]);
    let late = kept.lock().unwrap().take().unwrap();
    assert_eq!(late.publish(Message::new("queue", "1")), Err(PublishError::HandlerEnded));
    assert!(late.step("one", |_| async { Ok(()) }).await.is_err(), "nor is a step kept");
}

#[tokio::test]
async fn a_delivery_that_finds_messages_and_has_no_sender_returns() {
    let post = post();
    post.wire.refuse(Some("1"));
    post.deliver(vec![publishing("a", &["1"])]).await;
    assert_eq!(post.world.deliver(vec![ok("a")]).await, ["unsent"]);
    assert!(post.is_pending("a").await);
}

#[tokio::test]
async fn messages_that_cannot_be_read_are_kept_and_their_delivery_returns() {
    let post = post();
    post.deliver(vec![ok("a")]).await;
    let mut record = post.world.stored("a").await.unwrap();
    record.outbox = Some(r#"[{"to":"queue","body":"1","priority":9}]"#.into());
    post.world.store.inner().insert(key("a"), record);
    assert_eq!(post.deliver_elsewhere(vec![ok("a")]).await, ["unsent"]);
    assert!(post.is_pending("a").await);
}

#[tokio::test]
async fn a_relay_sends_what_no_delivery_sends() {
    let post = post();
    post.wire.refuse(Some("3"));
    let records = vec![publishing("a", &["1"]), publishing("b", &["3", "2"]), ok("c")];
    assert_eq!(post.deliver(records).await, ["executed", "unsent", "executed"]);
    let run = async || post.relay(None).await;
    let early = run().await;
    assert_eq!(
        (early.swept.examined, early.sent, early.unsent),
        (3, 0, 0),
        "its worker may be sending"
    );
    post.world.clock.advance(900 * SECOND);
    let refused = run().await;
    assert_eq!((refused.sent, refused.unsent), (0, 1));
    assert!(refused.error.is_some() && post.is_pending("b").await);
    post.wire.refuse(None);
    assert_eq!((run().await.sent, run().await.sent), (1, 0));
    assert_eq!(post.wire.consumed(), ["1", "2", "3"]);
    assert!(!post.is_pending("b").await);
    assert_eq!(post.deliver_elsewhere(vec![publishing("b", &["3", "2"])]).await, ["replayed"]);
    assert_eq!(post.wire.consumed(), ["1", "2", "3"]);
}

/// A mark that arrives late must not touch a later completion of the key.
#[tokio::test]
async fn a_mark_names_the_completion_that_it_marks() {
    let post = post();
    post.deliver(vec![publishing("a", &["1"])]).await;
    let writes = post.world.writes();
    let mark = writes.iter().find(|write| marks()(write)).unwrap();
    assert_eq!(GuardKind::from(&mark.guard), GuardKind::Unchanged);
    post.world.clock.advance(30 * 86_400 * SECOND);
    post.wire.refuse(Some("2"));
    assert_eq!(post.deliver_elsewhere(vec![publishing("a", &["2"])]).await, ["unsent"]);
    let later = post.world.stored("a").await;
    assert!(!mark.applies(later.as_ref()));
}
