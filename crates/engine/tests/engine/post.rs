//! An engine with a sender that tests can disturb, and records whose handlers publish messages.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, Timestamp},
    outbox::{Message, OutgoingMessage, SendError, Sender},
    outcome::Outcome,
    record::Status,
    store::Write,
};
use lambda_idempotency_engine::batch::Engine;
use lambda_idempotency_testkit::clock::ManualClock;

use crate::support::{Rec, World, labels, rec};

/// A sender that a test can disturb.
pub(crate) struct Wire {
    clock: ManualClock,
    pub(crate) sent: Mutex<Vec<(String, String)>>,
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
