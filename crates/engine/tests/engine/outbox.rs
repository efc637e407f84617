//! Messages that are stored with a completion, and sent before the delivery is acknowledged.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, Timestamp},
    failure::Failure,
    memory::MemoryEffects,
    outbox::{Message, OutgoingMessage, PublishError, Relay, SendError, Sender, messages},
    outcome::Outcome,
    policy::{OnConflict, OnFailure},
    record::{IdempotencyRecord, Status},
    store::{StoreErrorKind, Write},
};
use lambda_idempotency_engine::{batch::Engine, call::Call};
use lambda_idempotency_testkit::{
    clock::ManualClock,
    faults::{Call as StoreCall, Fault, GuardKind},
};

use crate::support::{Rec, World, key, labels, ok, rec};

const SECOND: Duration = Duration::from_secs(1);

/// A sender that a test can disturb.
pub(crate) struct Wire {
    clock: ManualClock,
    sent: Mutex<Vec<(String, String)>>,
    calls: Mutex<Vec<usize>>,
    refused: Mutex<Option<&'static str>>,
    takes: Mutex<Duration>,
}

impl Wire {
    /// The bodies of all messages that arrived, in this order.
    pub(crate) fn bodies(&self) -> Vec<String> {
        self.sent.lock().unwrap().iter().map(|(_, body)| body.clone()).collect()
    }

    /// The bodies, as a consumer that deduplicates by id sees them.
    fn consumed(&self) -> Vec<String> {
        let mut seen = Vec::new();
        let sent = self.sent.lock().unwrap();
        let new = sent.iter().filter(|(id, _)| {
            let is_new = !seen.contains(id);
            seen.push(id.clone());
            is_new
        });
        new.map(|(_, body)| body.clone()).collect()
    }

    /// Refuses messages with this body, or none.
    pub(crate) fn refuse(&self, body: Option<&'static str>) {
        *self.refused.lock().unwrap() = body;
    }

    pub(crate) fn take(&self, takes: Duration) {
        *self.takes.lock().unwrap() = takes;
    }

    /// How many messages each call had.
    fn calls(&self) -> Vec<usize> {
        self.calls.lock().unwrap().clone()
    }
}

impl Sender for Wire {
    fn send<'a>(
        &'a self,
        messages: &'a [OutgoingMessage],
        _deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        Box::pin(async move {
            let takes = *self.takes.lock().unwrap();
            if !takes.is_zero() {
                self.clock.sleep(takes).await;
            }
            self.calls.lock().unwrap().push(messages.len());
            let send = |message: &OutgoingMessage| {
                let body = message.message().body();
                if *self.refused.lock().unwrap() == Some(body) {
                    return Err(SendError::new("refused by the test"));
                }
                self.sent.lock().unwrap().push((message.id().to_owned(), body.to_owned()));
                Ok(())
            };
            messages.iter().map(send).collect()
        })
    }
}

pub(crate) struct Post {
    pub(crate) world: World,
    pub(crate) wire: Arc<Wire>,
    pub(crate) engine: Engine,
}

pub(crate) fn post() -> Post {
    post_in(World::new())
}

pub(crate) fn post_in(world: World) -> Post {
    let wire = Arc::new(Wire {
        clock: world.clock.clone(),
        sent: Mutex::default(),
        calls: Mutex::default(),
        refused: Mutex::default(),
        takes: Mutex::default(),
    });
    let engine = world.engine().with_sender(Arc::clone(&wire));
    Post { world, wire, engine }
}

impl Post {
    pub(crate) async fn outcomes(&self, records: Vec<Rec>) -> Vec<Outcome> {
        self.world.clock.drive(self.world.invoke_by(&self.engine, records)).await
    }

    pub(crate) async fn deliver(&self, records: Vec<Rec>) -> Vec<&'static str> {
        labels(&self.outcomes(records).await)
    }

    /// In a new process, which remembers nothing.
    async fn deliver_elsewhere(&self, records: Vec<Rec>) -> Vec<&'static str> {
        let engine = self.world.engine().with_sender(Arc::clone(&self.wire));
        labels(&self.world.clock.drive(self.world.invoke_by(&engine, records)).await)
    }

    pub(crate) async fn is_pending(&self, label: &str) -> bool {
        self.world.stored(label).await.is_some_and(|record| record.outbox.is_some())
    }

    fn writes(&self) -> Vec<Write> {
        let writes = self.world.store.history().into_iter().filter_map(|call| match call {
            StoreCall::Write { writes, .. } => Some(writes),
            _ => None,
        });
        writes.flatten().collect()
    }
}

/// A record whose handler publishes these bodies to a destination without order.
pub(crate) fn publishing(label: &'static str, bodies: &'static [&'static str]) -> Rec {
    rec(label, move |_, call| async move {
        for body in bodies {
            call.publish(Message::new("queue", *body))?;
        }
        Ok(())
    })
}

/// The same, to a destination that keeps the order of a group.
pub(crate) fn in_order(label: &'static str, bodies: &'static [&'static str]) -> Rec {
    rec(label, move |_, call| async move {
        for body in bodies {
            call.publish(Message::new("queue.fifo", *body).with_group("g"))?;
        }
        Ok(())
    })
}

fn completions() -> impl Fn(&Write) -> bool + Send + Sync + 'static {
    |write| {
        write
            .record
            .as_ref()
            .is_some_and(|record| record.status == Status::Completed && record.outbox.is_some())
    }
}

pub(crate) fn marks() -> impl Fn(&Write) -> bool + Send + Sync + 'static {
    |write| {
        write.record.as_ref().is_some_and(|record| record.status == Status::Completed)
            && matches!(write.guard, lambda_idempotency_core::store::Guard::Unchanged(_))
    }
}

#[tokio::test]
async fn messages_are_stored_with_the_completion_sent_and_marked_as_sent() {
    let post = post();
    let outcomes = post.deliver(vec![publishing("a", &["1", "2"]), ok("b")]).await;
    assert_eq!(outcomes, ["executed"; 2]);
    assert_eq!(post.wire.bodies(), ["1", "2"]);
    let of_a: Vec<_> = post.writes().into_iter().filter(|write| write.key == key("a")).collect();
    let stored: Vec<_> = of_a
        .iter()
        .map(|write| write.record.as_ref().is_some_and(|record| record.outbox.is_some()))
        .collect();
    assert_eq!(stored, [false, true, false], "claimed, completed, marked");
    let marked = post.world.stored("a").await.unwrap();
    let completed = of_a[1].record.clone().unwrap();
    assert_eq!((marked.status, &marked.result), (Status::Completed, &completed.result));
    assert_eq!((marked.outbox, marked.expires_at), (None, completed.expires_at));
    assert_eq!(post.deliver(vec![publishing("a", &["1", "2"])]).await, ["replayed"]);
    assert_eq!(post.deliver_elsewhere(vec![publishing("a", &["1", "2"])]).await, ["replayed"]);
    assert_eq!(post.wire.bodies(), ["1", "2"]);
}

#[tokio::test]
async fn nothing_is_sent_before_the_completion_is_stored() {
    let post = post();
    post.world
        .store
        .inject(Fault::refuse(StoreErrorKind::Throttled).for_writes(completions()).times(2));
    assert_eq!(post.deliver(vec![publishing("a", &["1"])]).await, ["executed"]);
    let history = post.writes();
    let tries = history.iter().filter(|write| completions()(write)).count();
    assert_eq!((tries, post.wire.bodies().len()), (3, 1));
}

#[tokio::test]
async fn messages_of_a_handler_that_did_not_return_are_dropped() {
    let mut world = World::new();
    world.policy.on_failure = OnFailure::FailPermanently;
    let post = post_in(world);
    let fails = rec("a", |_, call: Call| async move {
        call.publish(Message::new("queue", "a"))?;
        Err(Failure::transient("no luck"))
    });
    let panics = rec("b", |_, call: Call| async move {
        call.publish(Message::new("queue", "b"))?;
        panic!("no luck")
    });
    let hangs = rec("c", |world: World, call: Call| async move {
        call.publish(Message::new("queue", "c"))?;
        world.clock.sleep(60 * SECOND).await;
        Ok(())
    });
    let declines = publishing("d", &["d"]).declines();
    let outcomes = post.deliver(vec![fails, panics, hangs, declines]).await;
    assert_eq!(outcomes, ["failed", "failed", "timed_out", "declined"]);
    assert_eq!(post.wire.bodies(), [""; 0]);
    assert!(!post.is_pending("a").await && !post.is_pending("c").await);
}

#[tokio::test]
async fn a_delivery_whose_messages_cannot_be_sent_returns_and_the_next_one_sends_them() {
    let post = post();
    post.wire.refuse(Some("2"));
    let outcomes = post.outcomes(vec![publishing("a", &["1", "2"])]).await;
    let [Outcome::Unsent { error, result: Some(_) }] = &*outcomes else { panic!("{outcomes:?}") };
    assert_eq!(error.to_string(), "a message was not sent: refused by the test");
    assert!(!outcomes[0].is_acknowledged() && post.is_pending("a").await);

    assert_eq!(post.deliver(vec![publishing("a", &["1", "2"])]).await, ["unsent"]);
    post.wire.refuse(None);
    assert_eq!(post.deliver_elsewhere(vec![publishing("a", &["1", "2"])]).await, ["replayed"]);
    assert_eq!(post.world.ledger.executed("a"), 1, "the handler runs once");
    assert_eq!(post.wire.consumed(), ["1", "2"]);
    assert!(!post.is_pending("a").await);
}

#[tokio::test]
async fn ids_are_the_same_each_time_and_those_that_the_record_shows() {
    let post = post();
    post.wire.refuse(Some("2"));
    post.deliver(vec![in_order("a", &["1", "2"])]).await;
    let stored = messages(&key("a"), &post.world.stored("a").await.unwrap()).unwrap();
    post.wire.refuse(None);
    post.deliver(vec![in_order("a", &["1", "2"])]).await;
    let sent: Vec<_> = post.wire.sent.lock().unwrap().iter().map(|(id, _)| id.clone()).collect();
    assert_eq!(sent, [stored[0].id(), stored[0].id(), stored[1].id()]);
}

#[tokio::test]
async fn a_message_that_cannot_be_sent_holds_up_those_behind_it() {
    let post = post();
    post.wire.refuse(Some("2"));
    let records = vec![in_order("a", &["1", "2", "3"]), in_order("b", &["4", "5"])];
    assert_eq!(post.deliver(records).await, ["unsent", "executed"]);
    assert_eq!(post.wire.consumed(), ["1", "4", "5"]);
    post.wire.refuse(None);
    let records = vec![in_order("a", &["1", "2", "3"]), in_order("b", &["4", "5"])];
    assert_eq!(post.deliver(records).await, ["replayed"; 2]);
    assert_eq!(post.wire.consumed(), ["1", "4", "5", "2", "3"]);
}

#[tokio::test]
async fn messages_to_one_destination_of_records_that_complete_together_share_a_call() {
    let post = post();
    let records =
        vec![publishing("a", &["1", "2"]), in_order("b", &["3", "4"]), publishing("c", &["5"])];
    assert_eq!(post.deliver(records).await, ["executed"; 3]);
    let mut calls = post.wire.calls();
    assert_eq!(calls.pop(), Some(1), "in order, one message after the other");
    calls.sort_unstable();
    assert_eq!(calls, [1, 3], "a call for each destination");
}

#[tokio::test]
async fn copies_in_a_batch_wait_for_the_messages() {
    let post = post();
    post.wire.refuse(Some("1"));
    let records = || vec![publishing("a", &["1"]), publishing("a", &["1"])];
    assert_eq!(post.deliver(records()).await, ["unsent"; 2]);
    post.wire.refuse(None);
    assert_eq!(post.deliver(records()).await, ["replayed"; 2]);
    assert_eq!(post.wire.bodies(), ["1"]);
}

#[tokio::test]
async fn other_invocations_of_the_process_are_not_answered_before_the_messages_are_sent() {
    let mut world = World::yielding();
    world.policy.on_conflict = OnConflict::Wait { up_to: 20 * SECOND };
    let post = post_in(world);
    post.wire.take(2 * SECOND);
    post.wire.refuse(Some("1"));
    let one = post.world.invoke_by(&post.engine, vec![publishing("a", &["1"])]);
    let other = async {
        post.world.clock.sleep(SECOND).await;
        let outcomes = post.world.invoke_by(&post.engine, vec![publishing("a", &["1"])]).await;
        (outcomes, post.world.clock.now())
    };
    let begun = post.world.clock.now();
    let both = async { tokio::join!(one, other) };
    let (one, (other, ended)) = post.world.clock.drive(both).await;
    assert_eq!((labels(&one), labels(&other)), (vec!["unsent"], vec!["unsent"]));
    assert!(
        ended.since(begun) >= 4 * SECOND,
        "it has sent them itself, after the first had failed"
    );
    post.wire.refuse(None);
    assert_eq!(post.deliver(vec![publishing("a", &["1"])]).await, ["replayed"]);
    assert_eq!(post.wire.bodies(), ["1"]);
}

#[tokio::test]
async fn a_sender_that_does_not_answer_is_waited_for_until_the_response_is_due() {
    let post = post();
    post.wire.take(3600 * SECOND);
    let begun = post.world.clock.now();
    assert_eq!(post.deliver(vec![publishing("a", &["1"])]).await, ["unsent"]);
    assert!(post.world.clock.now().since(begun) <= 6 * SECOND);
    post.wire.take(Duration::ZERO);
    assert_eq!(post.deliver(vec![publishing("a", &["1"])]).await, ["replayed"]);
    assert_eq!(post.wire.bodies(), ["1"]);
}

/// Its handler is not run again for messages that were sent.
#[tokio::test]
async fn a_delivery_is_acknowledged_although_the_store_does_not_know_that_its_messages_are_sent() {
    let post = post();
    post.world.store.inject(Fault::refuse(StoreErrorKind::Throttled).for_writes(marks()).always());
    assert_eq!(post.deliver(vec![publishing("a", &["1"])]).await, ["executed"]);
    assert!(post.is_pending("a").await);
    post.world.store.heal();
    assert_eq!(post.deliver_elsewhere(vec![publishing("a", &["1"])]).await, ["replayed"]);
    assert_eq!((post.wire.bodies().len(), post.wire.consumed().len()), (2, 1));
    assert!(!post.is_pending("a").await);
}

#[tokio::test]
async fn a_completion_whose_answer_was_lost_has_its_messages_sent() {
    let post = post();
    post.world.store.inject(Fault::lose_answer().for_writes(completions()).times(2));
    assert_eq!(post.deliver(vec![publishing("a", &["1"])]).await, ["executed"]);
    assert_eq!(post.wire.bodies(), ["1"]);
    assert!(!post.is_pending("a").await);
}

#[tokio::test]
async fn messages_of_a_completion_that_could_not_be_recorded_are_sent_or_the_record_returns() {
    let post = post();
    post.world
        .store
        .inject(Fault::refuse(StoreErrorKind::Throttled).for_writes(completions()).always());
    let outcomes = post.outcomes(vec![publishing("a", &["1"])]).await;
    assert_eq!(labels(&outcomes), ["completion_lost"]);
    assert_eq!(post.wire.bodies(), ["1"]);
    post.wire.refuse(Some("2"));
    assert_eq!(post.deliver(vec![publishing("b", &["2"])]).await, ["unsent"]);
}

fn transactional() -> Post {
    let mut world = World::new();
    world.policy.transactional = true;
    post_in(world)
}

/// A record whose handler collects an effect and publishes a message.
fn committing() -> Rec {
    rec("a", |_, call: Call| async move {
        call.collect(|effects: &mut MemoryEffects| effects.add(|| ()))?;
        call.publish(Message::new("queue", "1"))?;
        Ok(())
    })
}

/// What was not committed was not done: a message would tell of it all the same.
#[tokio::test]
async fn nothing_is_sent_if_the_effects_were_not_committed() {
    let post = transactional();
    let refuse = Fault::refuse(StoreErrorKind::Throttled).for_writes(completions());
    post.world.store.inject(refuse.always());
    assert_eq!(post.deliver(vec![committing()]).await, ["uncommitted"]);
    assert_eq!(post.wire.bodies(), [""; 0]);
    post.world.store.heal();
    post.world.clock.advance(60 * SECOND);
    assert_eq!(post.deliver(vec![committing()]).await, ["executed"]);
    assert_eq!(post.wire.bodies(), ["1"]);
}

#[tokio::test]
async fn messages_of_a_commit_that_turns_out_to_be_applied_are_sent() {
    let post = transactional();
    post.world.store.inject(Fault::lose_answer().for_writes(completions()).always());
    assert_eq!(post.deliver(vec![committing()]).await, ["executed"]);
    assert_eq!(post.wire.bodies(), ["1"]);
    assert!(!post.is_pending("a").await);
    post.world.store.heal();
    assert_eq!(post.deliver(vec![committing()]).await, ["replayed"]);
    assert_eq!(post.world.ledger.executed("a"), 1);
}

#[tokio::test]
async fn nothing_behind_a_record_with_unsent_messages_starts_in_its_group() {
    let post = post();
    post.wire.refuse(Some("1"));
    let records = || vec![publishing("a", &["1"]).group("g"), publishing("b", &["2"]).group("g")];
    assert_eq!(post.deliver(records()).await, ["unsent", "returned"]);
    post.wire.refuse(None);
    assert_eq!(post.deliver(records()).await, ["replayed", "executed"]);
    assert_eq!(post.wire.bodies(), ["1", "2"]);
}

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

/// An operation that became optimistic meets what it completed before.
#[tokio::test]
async fn an_optimistic_attempt_sends_what_the_completion_that_it_meets_has_left() {
    let mut world = World::new();
    (world.policy.transactional, world.policy.optimistic) = (true, true);
    let post = post_in(world);
    let late = rec("a", |world: World, call: Call| async move {
        assert_eq!(call.publish(Message::new("queue", "ours")), Err(PublishError::Unprotected));
        let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(1 << 40));
        record.outbox = Some(r#"[{"to":"queue","body":"theirs"}]"#.into());
        world.store.inner().insert(key("a"), record);
        Ok(())
    });
    assert_eq!(post.deliver(vec![late]).await, ["superseded"]);
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
    assert_eq!((early.examined, early.sent, early.unsent), (3, 0, 0), "its worker may be sending");
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
    let writes = post.writes();
    let mark = writes.iter().find(|write| marks()(write)).unwrap();
    assert_eq!(GuardKind::from(&mark.guard), GuardKind::Unchanged);
    post.world.clock.advance(30 * 86_400 * SECOND);
    post.wire.refuse(Some("2"));
    assert_eq!(post.deliver_elsewhere(vec![publishing("a", &["2"])]).await, ["unsent"]);
    let later = post.world.stored("a").await;
    assert!(!mark.applies(later.as_ref()));
}
