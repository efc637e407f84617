//! Messages that another attempt has left in a completed record, and who sends them: a delivery, a relay, or nobody
//! while there is no sender.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency_core::{
    clock::Clock,
    outbox::{Message, PublishError, Relay},
    record::Status,
};
use lambda_idempotency_engine::call::Call;
use lambda_idempotency_testkit::faults::GuardKind;

use crate::post::{marks, post, publishing};
use crate::support::{World, key, ok, rec};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_worker_that_lost_its_lease_sends_what_its_successor_has_left() {
    let post = post();
    let overtaken = rec("a", |world: World, call: Call| async move {
        call.publish(Message::new("queue", "ours"))?;
        // A successor completes the key, and dies before it sends.
        let mut record = world.stored("a").await.unwrap();
        record.status = Status::Completed;
        record.owner = Some(lambda_idempotency_core::record::Owner::from_bits(77));
        record.lease_until = None;
        record.outbox = Some(r#"[{"to":"queue","body":"theirs"}]"#.into());
        world.store.inner().insert(key("a"), record);
        Ok(())
    });
    assert_eq!(post.deliver(vec![overtaken]).await, ["superseded"]);
    assert_eq!(post.wire.bodies(), ["theirs"]);
    assert!(!post.is_pending("a").await);
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
    let store = post.world.store.clone();
    let relay = Relay::new(store, Arc::clone(&post.wire)).with_clock(post.world.clock.clone());
    let run = async || {
        let deadline = post.world.clock.now().plus(60 * SECOND);
        post.world.clock.drive(relay.run(None, deadline)).await.unwrap()
    };
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
