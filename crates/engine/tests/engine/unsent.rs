//! Messages that cannot be sent, or were left by others: what becomes of their records, and of the records beside
//! them.

#![allow(clippy::panic, reason = "a test")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, Timestamp},
    outbox::{Message, OutgoingMessage, Relay, SendError, Sender},
    policy::Lease,
    record::{IdempotencyRecord, Owner, Status},
    store::StoreErrorKind,
};
use lambda_idempotency_engine::{
    call::Call,
    observe::{Observer, Report},
};
use lambda_idempotency_testkit::{clock::ManualClock, faults::Fault};

use crate::{
    post::{marks, post_in, publishing},
    support::{Rec, World, key, labels, rec},
};

const SECOND: Duration = Duration::from_secs(1);

/// A sender that hangs if a message goes to `hangs`, and panics if one goes to `panics`.
#[derive(Default)]
struct Fragile {
    sent: Mutex<Vec<String>>,
}

impl Fragile {
    fn bodies(&self) -> Vec<String> {
        let mut bodies = self.sent.lock().unwrap().clone();
        bodies.sort();
        bodies
    }
}

impl Sender for Fragile {
    fn send<'a>(
        &'a self,
        messages: &'a [OutgoingMessage],
        _deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        Box::pin(async move {
            for message in messages {
                match message.message().destination() {
                    "hangs" => std::future::pending().await,
                    "panics" => panic!("the sender panics"),
                    _ => self.sent.lock().unwrap().push(message.message().body().to_owned()),
                }
            }
            messages.iter().map(|_| Ok(())).collect()
        })
    }
}

fn to(label: &'static str, destination: &'static str, body: &'static str) -> Rec {
    rec(
        label,
        move |_, call: Call| async move { Ok(call.publish(Message::new(destination, body))?) },
    )
}

/// What a successor has completed and not sent.
async fn leave_messages(world: &World, label: &str) {
    let mut record = world.stored(label).await.unwrap();
    record.status = Status::Completed;
    record.owner = Some(Owner::from_bits(77));
    record.lease_until = None;
    record.outbox = Some(r#"[{"to":"queue","body":"theirs"}]"#.into());
    world.store.inner().insert(key(label), record);
}

#[tokio::test]
async fn a_handler_that_is_stopped_because_its_successor_completed_sends_what_that_has_left() {
    let mut world = World::new();
    world.policy.lease = Lease::Renewed { length: 6 * SECOND };
    let post = post_in(world);
    let overtaken = rec("a", |world: World, _| async move {
        leave_messages(&world, "a").await;
        world.clock.sleep(20 * SECOND).await;
        Ok(())
    });
    assert_eq!(post.deliver(vec![overtaken]).await, ["superseded"]);
    assert_eq!(post.wire.bodies(), ["theirs"]);
    assert!(!post.is_pending("a").await);
}

#[tokio::test]
async fn a_destination_that_hangs_or_panics_the_sender_keeps_no_other_records_messages() {
    for broken in ["hangs", "panics"] {
        let world = World::new();
        let sender = Arc::new(Fragile::default());
        let engine = world.engine().with_sender(Arc::clone(&sender));
        let records = vec![to("a", broken, "1"), to("b", "queue", "2"), to("c", "topic", "3")];
        let outcomes = world.clock.drive(world.invoke_by(&engine, records)).await;
        assert_eq!(labels(&outcomes), ["unsent", "executed", "executed"], "{broken}");
        assert_eq!(sender.bodies(), ["2", "3"], "{broken}");
    }
}

#[tokio::test]
async fn a_destination_that_hangs_or_panics_a_relay_keeps_no_other_messages() {
    for broken in ["hangs", "panics"] {
        let world = World::new();
        let sender = Arc::new(Fragile::default());
        for (label, to) in [("a", broken), ("b", "queue")] {
            let mut record =
                IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(1 << 40));
            record.outbox = Some(format!(r#"[{{"to":"{to}","body":"{label}"}}]"#).into());
            world.store.inner().insert(key(label), record);
        }
        let relay =
            Relay::new(world.store.clone(), Arc::clone(&sender)).with_clock(world.clock.clone());
        let deadline = world.clock.now().plus(60 * SECOND);
        let relayed = world.clock.drive(relay.run(None, deadline)).await.unwrap();
        assert_eq!((relayed.sent, relayed.unsent), (1, 1), "{broken}");
        assert_eq!(sender.bodies(), ["b"], "{broken}");
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
        let (world, reports) = (World::new(), Unrecorded::default());
        if is_refused {
            let refused = Fault::refuse(StoreErrorKind::Throttled).for_writes(marks());
            world.store.inject(refused.always());
        }
        let engine = world.engine().with_sender(Fragile::default()).with_observer(reports.clone());
        let batch = vec![to("a", "queue", "1")];
        let outcomes = world.clock.drive(world.invoke_by(&engine, batch)).await;
        assert_eq!(labels(&outcomes), ["executed"]);
        assert_eq!(*reports.0.lock().unwrap(), [is_refused]);
    }
}

/// A sender that takes 30 ms for each message and sends one after the other.
struct Steady(ManualClock, Arc<Mutex<Vec<usize>>>);

impl Sender for Steady {
    fn send<'a>(
        &'a self,
        messages: &'a [OutgoingMessage],
        _deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        Box::pin(async move {
            self.1.lock().unwrap().push(messages.len());
            let each = Duration::from_millis(30);
            self.0.sleep(each * u32::try_from(messages.len()).unwrap()).await;
            messages.iter().map(|_| Ok(())).collect()
        })
    }
}

/// All in one call would take 9 seconds, at this run and at every later one.
#[tokio::test]
async fn many_messages_are_sent_by_as_many_calls_as_they_need_time() {
    let world = World::new();
    let calls = Arc::<Mutex<Vec<usize>>>::default();
    let sender = Arc::new(Steady(world.clock.clone(), Arc::clone(&calls)));
    let labels_of = ["a", "b", "c"];
    let publishes = |label| {
        rec(label, |_, call: Call| async move {
            (0..100).try_for_each(|_| call.publish(Message::new("queue", "1")))?;
            Ok(())
        })
    };
    let engine = world.engine().with_sender(Arc::clone(&sender));
    let records = labels_of.map(publishes).into();
    let outcomes = world.clock.drive(world.invoke_by(&engine, records)).await;
    assert_eq!(labels(&outcomes), ["executed"; 3]);
    assert_eq!(*calls.lock().unwrap(), [100; 3]);

    let outbox = format!("[{}]", [r#"{"to":"queue","body":"1"}"#; 100].join(","));
    for label in labels_of {
        let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(1 << 40));
        record.outbox = Some(outbox.clone().into());
        world.store.inner().insert(key(label), record);
    }
    let relay = Relay::new(world.store.clone(), sender).with_clock(world.clock.clone());
    let deadline = world.clock.now().plus(60 * SECOND);
    let relayed = world.clock.drive(relay.run(None, deadline)).await.unwrap();
    assert_eq!((relayed.sent, relayed.unsent), (3, 0));
    assert_eq!(*calls.lock().unwrap(), [100; 6]);
}

/// Its sender may take their destinations for others.
#[tokio::test]
async fn a_relay_of_an_application_leaves_the_messages_of_others() {
    let world = World::new();
    for (label, application) in [("a", Some("shop")), ("b", Some("billing")), ("c", None)] {
        let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(1 << 40));
        record.outbox = Some(format!(r#"[{{"to":"queue","body":"{label}"}}]"#).into());
        record.application = application.map(Into::into);
        world.store.inner().insert(key(label), record);
    }
    let sender = Arc::new(Fragile::default());
    let relay =
        Relay::new(world.store.clone(), Arc::clone(&sender)).with_clock(world.clock.clone());
    let deadline = world.clock.now().plus(60 * SECOND);
    let ours = relay.with_application("shop");
    assert_eq!(world.clock.drive(ours.run(None, deadline)).await.unwrap().sent, 2);
    assert_eq!(sender.bodies(), ["a", "c"]);
    assert!(world.stored("b").await.unwrap().outbox.is_some());
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
        leave_messages(&world, "b").await;
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
