//! Sends messages to the queue of the chaos rig: a connection for each message, a line, and a line as the answer.

use std::{process, time::Duration};

use futures_util::future::join_all;
use lambda_idempotency::{
    Call, DynamoDbStore, Failure,
    clock::Timestamp,
    outbox::{Message, OutgoingMessage, Relay, SendError, Sender},
    store::BoxFuture,
};
use lambda_runtime::Error;
use serde::Deserialize;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::order::Order;

/// How long the sender waits for an answer.
const PATIENCE: Duration = Duration::from_millis(400);

/// What a message says: its order, and which of the order's messages it is.
#[derive(Deserialize)]
struct Parcel {
    parcel: String,
}

/// The queue at an address.
#[derive(Clone)]
pub(super) struct Queue(String);

impl Queue {
    /// The queue that `SCRIPTED_QUEUE` names, if it is set.
    pub(super) fn from_env() -> Option<Self> {
        std::env::var("SCRIPTED_QUEUE").ok().map(Self)
    }

    /// Publishes the messages of an order: in one group, or without a group. A function without an outbox sends them
    /// here, before anything is committed.
    pub(super) async fn publish(&self, order: &Order, call: &Call) -> Result<(), Failure> {
        for part in 1..=order.messages {
            if super::is_set("SCRIPTED_DIRECT") {
                let id = format!("{}-{part}", order.order_id);
                self.deliver(&format!("{} {part}", order.order_id), &id).await?;
                continue;
            }
            let body = json!({ "parcel": format!("{} {part}", order.order_id) });
            let message = Message::new("parcels", body.to_string());
            call.publish(match order.grouped {
                true => message.with_group(&*order.order_id),
                false => message,
            })?;
        }
        Ok(())
    }

    async fn send(&self, message: &OutgoingMessage) -> Result<(), SendError> {
        let parcel = serde_json::from_str::<Parcel>(message.message().body());
        let parcel = parcel.map_err(|error| SendError::new("not a parcel").with_source(error))?;
        self.deliver(&parcel.parcel, message.id()).await
    }

    async fn deliver(&self, parcel: &str, id: &str) -> Result<(), SendError> {
        let line = format!("{parcel} {} {id}\n", process::id());
        let answer = async {
            let mut stream = TcpStream::connect(&self.0).await?;
            stream.write_all(line.as_bytes()).await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            Ok::<_, std::io::Error>(answer)
        };
        match timeout(PATIENCE, answer).await {
            Ok(Ok(answer)) if answer == "taken\n" => Ok(()),
            Ok(Ok(_)) => Err(SendError::new("the queue refused it, or closed the connection")),
            Ok(Err(error)) => Err(SendError::new("the queue cannot be reached").with_source(error)),
            Err(_) => Err(SendError::new("the queue did not answer in time")),
        }
    }
}

impl Sender for Queue {
    fn send<'a>(
        &'a self,
        messages: &'a [OutgoingMessage],
        _call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        Box::pin(join_all(messages.iter().map(|message| Self::send(self, message))))
    }
}

/// Sends all messages that are left in the table, whatever their age.
pub(super) async fn relay() -> Result<(), Error> {
    let queue = Queue::from_env().ok_or("set SCRIPTED_QUEUE to the address of the queue")?;
    let until = Timestamp::from_secs(u64::MAX / 2000);
    let store = DynamoDbStore::from_env().await?;
    let relay = Relay::new(store, queue).with_min_age(Duration::ZERO);
    match relay.run(None, until).await? {
        left if left.unsent + left.unrecorded + left.swept.unreadable > 0 => {
            Err(format!("{left:?}").into())
        }
        _ => Ok(()),
    }
}
