//! The orders of a run, and their messages, which it sends.

use std::collections::BTreeMap;

use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use lambda_idempotency_chaos::{EvidenceMessage, EvidenceOrder};
use serde_json::{Value, json};

use super::{
    arguments::Fault,
    stack::{Clients, Stack, failed},
};
use crate::failure::Failure;

/// How many message groups the FIFO queue gets.
const GROUPS: usize = 20;
/// The number of orders of a source for each one that asks for something unusual, once each kind has occurred.
const RARE: usize = 13;
/// The same until each kind has occurred.
const DENSE: usize = 5;

/// To which source a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum To {
    Queue,
    Fifo,
}

impl To {
    fn of(order: usize) -> Self {
        match order % 10 {
            0..6 => Self::Queue,
            _ => Self::Fifo,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Fifo => "FIFO queue",
        }
    }
}

/// A message that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) order: usize,
    pub(crate) copy: usize,
    pub(crate) to: To,
}

/// A run.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub(crate) run: String,
    acts: Vec<&'static str>,
    /// In the order in which they are sent.
    pub(crate) messages: Vec<Message>,
}

impl Orders {
    /// The same settings give the same orders.
    pub(crate) fn new(run: String, count: usize, faults: &[Fault]) -> Self {
        let asked: Vec<_> = faults.iter().flat_map(|fault| acts(*fault)).copied().collect();
        let acts = (0..count).map(|order| act(order, &asked)).collect();
        let mut messages: Vec<(usize, Message)> = Vec::new();
        for order in 0..count {
            let to = To::of(order);
            messages.push((4 * order, Message { order, copy: 0, to }));
            // In the same batch or beside it.
            if order % 3 == 0 {
                messages.push((4 * order + 30, Message { order, copy: 1, to }));
            }
            // Much later.
            if order % 7 == 1 {
                messages.push((4 * count + 100 + order, Message { order, copy: 2, to }));
            }
        }
        messages.sort_by_key(|(place, _)| *place);
        let messages = messages.into_iter().map(|(_, message)| message).collect();
        Self { run, acts, messages }
    }

    pub(crate) fn len(&self) -> usize {
        self.acts.len()
    }

    /// Whether its first attempt lets the invocation time out.
    pub(crate) fn blocks(&self, order: usize) -> bool {
        self.acts.get(order).is_some_and(|act| act.starts_with(BLOCK))
    }

    /// One more message of each of these orders, to where its first one went.
    pub(crate) fn again(orders: impl IntoIterator<Item = usize>) -> Vec<Message> {
        let message = |order| Message { order, copy: 3, to: To::of(order) };
        orders.into_iter().map(message).collect()
    }

    /// The act that each order asks for.
    pub(crate) fn evidence(&self) -> Vec<EvidenceOrder> {
        let order = |(number, act): (usize, &&'static str)| EvidenceOrder {
            fails_permanently: *act == FAIL,
            ends_process: act.starts_with(DIE),
            group: (To::of(number) == To::Fifo).then(|| self.group(number)),
        };
        self.acts.iter().enumerate().map(order).collect()
    }

    /// The payload of a message. `copy` is no part of the order's key, unless the function has that mistake.
    pub(crate) fn payload(&self, Message { order, copy, .. }: &Message) -> Value {
        json!({ "run": self.run, "order": order, "act": self.acts.get(*order), "copy": copy })
    }

    /// The message group of an order in the FIFO queue, among those of its run. An order that fails permanently has a
    /// group of its own: SQS counts receives of the messages behind it, too, and would make dead letters of them.
    pub(crate) fn group(&self, order: usize) -> usize {
        match self.acts.get(order) {
            Some(&FAIL) => GROUPS + order,
            _ => order / 10 % GROUPS,
        }
    }

    /// How many orders ask for what.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        for act in &self.acts {
            *counts.entry(*act).or_default() += 1;
        }
        counts
    }
}

const DIE: &str = "die";
const FAIL: &str = "fail";
const BLOCK: &str = "block";

/// The words of the function for a fault (`docs/prove/src/order.rs`).
fn acts(fault: Fault) -> &'static [&'static str] {
    match fault {
        Fault::Die => &[DIE, "die-late"],
        Fault::Hang => &["hang", "hang-late", BLOCK, "block-late"],
        Fault::Throw => &["throw"],
        Fault::Slow => &["slow"],
        Fault::Throttle => &["throttle"],
        Fault::DeadLetter => &[FAIL],
    }
}

/// The act that an order asks for: each kind occurs once at the beginning of its source, and seldom later. A batch of a
/// queue has two unusual messages at most, so that others need few receives.
fn act(order: usize, acts: &[&'static str]) -> &'static str {
    let (place, source) = (order / 10, order % 10);
    // Its number among the orders of its source.
    let number = match To::of(order) {
        To::Queue => 6 * place + source,
        To::Fifo => 4 * place + source - 6,
    };
    let each = if number < DENSE * acts.len() { DENSE } else { RARE };
    let nth = (number % each == 1).then_some(number / each);
    let chosen = nth.and_then(|nth| acts.get(nth.checked_rem(acts.len())?));
    chosen.copied().unwrap_or("place")
}

/// The most that SQS takes at once.
const BATCH: usize = 10;

/// Sends those of the messages that go there, in order.
pub(crate) async fn send(
    clients: &Clients,
    stack: &Stack,
    orders: &Orders,
    messages: &[Message],
    to: To,
) -> Result<Vec<EvidenceMessage>, Failure> {
    let own: Vec<&Message> = messages.iter().filter(|message| message.to == to).collect();
    let mut sent = Vec::new();
    for batch in own.chunks(BATCH) {
        let ids = match to {
            To::Queue => to_queue(clients, &stack.queue, orders, batch, false).await?,
            To::Fifo => to_queue(clients, &stack.fifo, orders, batch, true).await?,
        };
        if ids.len() < batch.len() {
            let text = format!("the {} took {} of {} messages", to.name(), ids.len(), batch.len());
            return Err(Failure::from(text).remedy(AGAIN));
        }
        let messages = batch.iter().zip(ids);
        sent.extend(messages.map(|(message, id)| EvidenceMessage {
            id,
            order: message.order,
            dead_lettered: false,
        }));
    }
    Ok(sent)
}

const AGAIN: &str =
    "What was sent is handled, and audited by nobody. Begin again: a run has orders of its own.";

async fn to_queue(
    clients: &Clients,
    queue: &str,
    orders: &Orders,
    batch: &[&Message],
    is_fifo: bool,
) -> Result<Vec<String>, Failure> {
    let mut request = clients.sqs.send_message_batch().queue_url(queue);
    for (place, message) in batch.iter().enumerate() {
        let mut entry = SendMessageBatchRequestEntry::builder()
            .id(place.to_string())
            .message_body(orders.payload(message).to_string());
        if is_fifo {
            // Each copy has an id of its own, so that the queue does not drop what the function has to recognise.
            let id = format!("{}-{}-{}", orders.run, message.order, message.copy);
            // Dead letters of another run hold up no group of this one.
            let group = format!("{}-{}", orders.run, orders.group(message.order));
            entry = entry.message_group_id(group).message_deduplication_id(id);
        }
        request = request.entries(entry.build()?);
    }
    let answer = request.send().await.map_err(|error| failed("SendMessageBatch", error))?;
    let taken = answer.successful.into_iter().map(|entry| (entry.id, entry.message_id));
    Ok(in_order(taken.collect()))
}

/// The ids of messages, in the order of their places in the batch.
fn in_order(mut taken: Vec<(String, String)>) -> Vec<String> {
    taken.sort_by_key(|(place, _)| place.parse::<usize>().unwrap_or(usize::MAX));
    taken.into_iter().map(|(_, id)| id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(count: usize) -> Orders {
        Orders::new("r".to_owned(), count, Fault::value_variants())
    }
    use clap::ValueEnum as _;

    #[test]
    fn each_source_gets_copies_and_each_act() {
        let orders = orders(400);
        for to in [To::Queue, To::Fifo] {
            let own = orders.messages.iter().filter(|message| message.to == to);
            let acts: std::collections::BTreeSet<_> =
                own.clone().map(|message| orders.acts[message.order]).collect();
            assert_eq!(acts.len(), 11, "{to:?}: {acts:?}");
            assert!(own.filter(|message| message.copy > 0).count() > 10, "{to:?}");
        }
        let plain = orders.counts()["place"];
        assert!(plain > 300, "{plain}");
    }

    #[test]
    fn without_faults_orders_ask_for_nothing() {
        let orders = Orders::new("r".to_owned(), 50, &[]);
        assert_eq!(orders.counts(), BTreeMap::from([("place", 50)]));
    }

    #[test]
    fn only_orders_of_the_fifo_queue_have_a_group_and_copies_are_in_it() {
        let orders = orders(100);
        for (number, order) in orders.evidence().iter().enumerate() {
            let own = orders.messages.iter().filter(|message| message.order == number);
            let are_fifo = own.map(|message| message.to == To::Fifo).collect::<Vec<_>>();
            assert!(are_fifo.iter().all(|fifo| *fifo == order.group.is_some()), "{number}");
        }
    }
}
