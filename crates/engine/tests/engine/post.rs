//! An engine with a sender that tests can disturb, and records whose handlers publish messages.

#![allow(clippy::panic, clippy::indexing_slicing, reason = "a test")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, Timestamp},
    outbox::{Message, OutgoingMessage, Relay, Relayed, SendError, Sender},
    outcome::Outcome,
    record::{IdempotencyRecord, Owner, Status},
    store::Write,
};
use lambda_idempotency_engine::batch::Engine;
use lambda_idempotency_testkit::clock::ManualClock;

use crate::support::{Rec, World, key, labels, rec};

/// A sender that a test can disturb. It hangs or panics if the first message of a call goes to a destination of that name.
pub(crate) struct Wire {
    clock: ManualClock,
    pub(crate) sent: Mutex<Vec<(String, String)>>,
    calls: Mutex<Vec<usize>>,
    refused: Mutex<Option<&'static str>>,
    takes: Mutex<Duration>,
    takes_each: Mutex<Duration>,
}

impl Wire {
    /// The bodies of all messages that arrived, in this order.
    pub(crate) fn bodies(&self) -> Vec<String> {
        self.sent.lock().unwrap().iter().map(|(_, body)| body.clone()).collect()
    }

    /// The bodies, as a consumer that deduplicates by id sees them.
    pub(crate) fn consumed(&self) -> Vec<String> {
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

    /// So long for each message of a call, one after the other.
    pub(crate) fn take_for_each(&self, takes: Duration) {
        *self.takes_each.lock().unwrap() = takes;
    }

    /// How many messages each call had.
    pub(crate) fn calls(&self) -> Vec<usize> {
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
            let each = *self.takes_each.lock().unwrap();
            if !each.is_zero() {
                self.clock.sleep(each * u32::try_from(messages.len()).unwrap()).await;
            }
            match messages[0].message().destination() {
                "hangs" => std::future::pending().await,
                "panics" => panic!("the sender panics"),
                _ => {}
            }
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

/// An engine with such a sender.
pub(crate) struct Post {
    pub(crate) world: World,
    pub(crate) wire: Arc<Wire>,
    pub(crate) engine: Engine,
}

impl Post {
    pub(crate) async fn outcomes(&self, records: Vec<Rec>) -> Vec<Outcome> {
        self.world.clock.drive(self.world.invoke_by(&self.engine, records)).await
    }

    pub(crate) async fn deliver(&self, records: Vec<Rec>) -> Vec<&'static str> {
        labels(&self.outcomes(records).await)
    }

    /// In a new process, which remembers nothing.
    pub(crate) async fn deliver_elsewhere(&self, records: Vec<Rec>) -> Vec<&'static str> {
        let engine = self.world.engine().with_sender(Arc::clone(&self.wire));
        labels(&self.world.clock.drive(self.world.invoke_by(&engine, records)).await)
    }

    /// A sweep over what others have left.
    pub(crate) async fn relay(&self, application: Option<&str>) -> Relayed {
        let (world, wire) = (&self.world, Arc::clone(&self.wire));
        let relay = Relay::new(world.store.clone(), wire).with_clock(world.clock.clone());
        let relay = match application {
            Some(name) => relay.with_application(name),
            None => relay,
        };
        let deadline = world.clock.now().plus(Duration::from_secs(60));
        world.clock.drive(relay.run(None, deadline)).await.unwrap()
    }

    pub(crate) async fn is_pending(&self, label: &str) -> bool {
        self.world.stored(label).await.is_some_and(|record| record.outbox.is_some())
    }
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
        takes_each: Mutex::default(),
    });
    let engine = world.engine().with_sender(Arc::clone(&wire));
    Post { world, wire, engine }
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

/// A completed record with messages, or what a successor has left.
pub(crate) fn leave_messages(world: &World, label: &str, outbox: String) -> IdempotencyRecord {
    let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(1 << 40));
    record.owner = Some(Owner::from_bits(77));
    record.outbox = Some(outbox.into());
    world.store.inner().insert(key(label), record.clone());
    record
}

/// One message of an outbox, as it is stored.
pub(crate) fn one(to: &str, body: &str) -> String {
    format!(r#"[{{"to":"{to}","body":"{body}"}}]"#)
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

pub(crate) fn completions() -> impl Fn(&Write) -> bool + Send + Sync + 'static {
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
