//! The schedule of a run, which is decided before the run starts.
//!
//! A schedule follows from the settings alone: the orders, their copies and the positions of these in the
//! stream, what each order's handler does, when a process gets a signal, and when and how the store
//! fails. The interleaving does *not* follow from them: which process gets which batch, and which fault
//! a request meets.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use serde_json::{Value, json};

use crate::{
    kinds::{FaultKind, Mode, Origin},
    plan::Plan,
    random::Random,
    settings::Settings,
    store_faults::StoreFault,
    template::{Sent, Template},
};

/// By how much a process's clock may be off: two of them differ by less than the second that the
/// engine allows for.
const MOST_SKEW_MS: u64 = 450;
/// The first faulty order, and the distance to the next, until each kind has occurred once.
const FIRST: usize = 3;
const STRIDE: usize = 4;

#[derive(Clone, Debug, Hash)]
pub(crate) struct Schedule {
    pub(crate) orders: Vec<Order>,
    /// In the order in which they are sent.
    pub(crate) messages: Vec<Message>,
    pub(crate) store_faults: Vec<StoreFault>,
    /// By how much the clock of each process is off, in milliseconds.
    pub(crate) skews: Vec<i64>,
    /// How effects and completions are kept together. The rest follows from it, so digests do not need it.
    pub(crate) mode: Mode,
    /// The message of a function that follows no scripts.
    template: Option<Template>,
    /// How many message groups or shards there are.
    groups: usize,
}

/// A copy of an order.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) order: usize,
    /// How many messages were sent before it.
    place: usize,
    /// Empty for a function that follows no scripts: its messages are made of the template when they are sent.
    body: String,
}

impl Schedule {
    pub(crate) fn new(settings: &Settings) -> Self {
        let mut random = Random::new(settings.seed);
        let mut forced = Plan::all(settings).into_iter();
        let mut orders: Vec<Order> = Vec::new();
        let mut placed: Vec<(u64, Message)> = Vec::new();
        while placed.len() < settings.deliveries {
            let number = orders.len();
            let is_forced = number >= FIRST && (number - FIRST).is_multiple_of(STRIDE);
            let plan = match if is_forced { forced.next() } else { None } {
                Some(plan) => plan,
                None => Plan::random(settings, &mut random),
            };
            let order = Order::new(plan, settings, &mut random);
            let copies = copies(&mut random).min(settings.deliveries - placed.len());
            let base = placed.len() as u64;
            for copy in 0..copies {
                let distance = if copy == 0 { 0 } else { distance(&mut random) };
                let note = if random.one_in(10) { copy } else { 0 };
                let body = match &settings.template {
                    Some(_) => String::new(),
                    None => order.body(number, note),
                };
                let id = format!("m-{number}-{copy}");
                let message = Message { id, order: number, place: 0, body };
                placed.push((base + distance, message));
            }
            orders.push(order);
        }
        placed.sort_by_key(|(place, _)| *place);
        let skews = if settings.has(FaultKind::Skew) {
            let mut skew = || random.between(0, 2 * MOST_SKEW_MS) as i64 - MOST_SKEW_MS as i64;
            vec![0, MOST_SKEW_MS as i64, -(MOST_SKEW_MS as i64), skew(), skew()]
        } else {
            vec![0]
        };
        let store_faults = StoreFault::all(settings, &mut random);
        let (mode, template) = (settings.mode, settings.template.clone());
        // More than processes, so that a group that waits for a lease does not keep all of them idle.
        let groups = settings.processes.saturating_mul(2).max(1);
        let messages = Vec::new();
        let mut schedule = Self { orders, messages, store_faults, skews, mode, template, groups };
        let origin = schedule.origin();
        let messages = placed.into_iter().enumerate().map(|(place, (_, message))| Message {
            id: id_at(origin, place, message.order).unwrap_or(message.id),
            place,
            ..message
        });
        schedule.messages = messages.collect();
        schedule
    }

    pub(crate) fn origin(&self) -> Origin {
        self.template.as_ref().map_or(Origin::Sqs, Template::origin)
    }

    /// Whether the function follows no scripts.
    pub(crate) fn is_of_a_users_function(&self) -> bool {
        self.template.is_some()
    }

    /// The message group or the shard of an order. Copies of an order are in one, as a producer sends them.
    pub(crate) fn group(&self, order: usize) -> usize {
        order.checked_rem(self.groups).unwrap_or_default()
    }

    pub(crate) fn delivered(&self, message: &Message) -> Value {
        match &self.template {
            None => message.record(),
            Some(template) => {
                let group = self.group(message.order);
                template.message(
                    message.order,
                    Sent { id: &message.id, place: message.place as u64, group },
                )
            }
        }
    }

    /// Equal schedules have equal digests.
    pub(crate) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// A further copy of an order.
    pub(crate) fn probe(&self, order: usize) -> Option<Message> {
        let body = match &self.template {
            Some(_) => String::new(),
            None => self.orders.get(order)?.body(order, 0),
        };
        let place = self.messages.len().saturating_add(order);
        let id = id_at(self.origin(), place, order).unwrap_or_else(|| format!("p-{order}"));
        Some(Message { id, order, place, body })
    }
}

impl Message {
    /// The message of a scripted order as SQS delivers it.
    fn record(&self) -> Value {
        json!({
            "messageId": self.id,
            "body": self.body,
            "attributes": {},
            "messageAttributes": {},
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:orders",
            "awsRegion": "us-east-1",
        })
    }
}

/// An order: an idempotency key, and what happens to its first execution.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Order {
    pub(crate) plan: Plan,
    /// Further members of the payload: the script that the function follows.
    script: String,
}

impl Order {
    fn new(plan: Plan, settings: &Settings, random: &mut Random) -> Self {
        let script = plan.script(settings, random).to_string();
        Self { plan, script }
    }

    pub(crate) fn is_doomed(&self) -> bool {
        self.plan == Plan::Doomed
    }

    fn body(&self, number: usize, note: usize) -> String {
        let quantity = if self.is_doomed() { 0 } else { 1 };
        let mut body = json!({
            "orderId": id(number), "customer": "c-17", "sku": "mug-blue", "quantity": quantity,
            "note": note,
        });
        if let (Value::Object(body), Ok(Value::Object(script))) =
            (&mut body, serde_json::from_str(&self.script))
        {
            body.extend(script);
        }
        body.to_string()
    }
}

/// More orders than a run has.
const ORDERS: u64 = 10_000_000;

/// The id of a message where its form is given: the sequence number of a stream, which rises, or the UUID of a bus, whose
/// other ids the library does not log. It says which order the message is about.
fn id_at(origin: Origin, place: usize, order: usize) -> Option<String> {
    let (place, order) = (place as u64 + 1, order as u64);
    match origin {
        Origin::Kinesis | Origin::DynamoDb => {
            Some(place.saturating_mul(ORDERS).saturating_add(order).to_string())
        }
        Origin::EventBridge => Some(format!("{place:08x}-0000-4000-8000-{order:012x}")),
        Origin::Sqs | Origin::SqsFifo | Origin::Sns => None,
    }
}

/// The order of a message, by its id: `m-17-2`, `p-17`, a sequence number or a UUID.
pub(crate) fn order_of(message: &str) -> Option<usize> {
    if let Ok(sequence) = message.parse::<u64>() {
        return usize::try_from(sequence % ORDERS).ok();
    }
    match *message.split('-').collect::<Vec<_>>() {
        [_, _, _, _, order] => usize::from_str_radix(order, 16).ok(),
        [_, order, ..] => order.parse().ok(),
        _ => None,
    }
}

pub(crate) fn id(order: usize) -> String {
    format!("o-{order}")
}

pub(crate) fn number(id: &str) -> Option<usize> {
    id.strip_prefix("o-")?.parse().ok()
}

/// The number of copies of an order: mostly few, sometimes many.
fn copies(random: &mut Random) -> usize {
    match random.between(1, 20) {
        1..=7 => 1,
        8..=13 => 2,
        14..=16 => 3,
        17..=19 => usize::try_from(random.between(4, 6)).unwrap_or(4),
        _ => 12,
    }
}

/// How many messages after the first copy another one is sent: in the same batch, in a batch that another
/// process handles at the same time, or much later.
fn distance(random: &mut Random) -> u64 {
    match random.between(1, 5) {
        1 | 2 => random.between(0, 6),
        3 | 4 => random.between(7, 60),
        _ => random.between(61, 2000),
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
