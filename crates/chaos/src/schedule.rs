//! The schedule of a run, which is decided before the run starts.
//!
//! A schedule follows from the settings alone: the orders, their copies and the positions of these in the
//! stream, what each order's handler does, when a process gets a signal, and when and how the store
//! fails. The interleaving does *not* follow from them: which process gets which batch, and which fault
//! a request meets.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use serde_json::{Value, json};

use crate::{
    FaultKind, Mode, Origin, Settings, Template,
    ledger::Step,
    plan::Plan,
    random::Random,
    sending::{Sending, Trouble},
    store_faults::StoreFault,
    template::Sent,
};

/// By how much a process's clock may be off: two of them differ by less than the second that the
/// engine allows for.
const MOST_SKEW_MS: u64 = 450;
/// How many orders are given up by their source, at most.
const MOST_ABANDONED: usize = 50;
/// The first faulty order, and the distance to the next, until each kind has occurred once.
const FIRST: usize = 3;
const STRIDE: usize = 4;

/// A schedule.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Schedule {
    pub(crate) orders: Vec<Order>,
    /// In the order in which they are sent.
    pub(crate) messages: Vec<Message>,
    /// Of the last orders: they are delivered once, after everything else.
    pub(crate) abandoned: Vec<Message>,
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

/// An order: an idempotency key, and what happens to its first execution.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Order {
    pub(crate) plan: Plan,
    /// The messages that it publishes.
    pub(crate) sending: Sending,
    /// Further members of the payload: the script that the function follows.
    script: String,
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
            let order = Order::new(plan, number, settings, &mut random);
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
        let (messages, abandoned) = (Vec::new(), Vec::new());
        let mut schedule =
            Self { orders, messages, abandoned, store_faults, skews, mode, template, groups };
        let origin = schedule.origin();
        let messages = placed.into_iter().enumerate().map(|(place, (_, message))| Message {
            id: id_at(origin, place, message.order).unwrap_or(message.id),
            place,
            ..message
        });
        schedule.messages = messages.collect();
        schedule.abandon(settings, &mut random);
        schedule
    }

    /// Adds the orders that publish messages, and whose source gives them up after one delivery.
    fn abandon(&mut self, settings: &Settings, random: &mut Random) {
        if !settings.messages || !settings.has(FaultKind::Kill) {
            return;
        }
        for _ in 0..(settings.deliveries / 1000).clamp(2, MOST_ABANDONED) {
            let number = self.orders.len();
            self.orders.push(Order::new(Plan::Abandoned, number, settings, random));
            self.abandoned.extend(self.probe(number));
        }
    }

    /// What delivers the messages.
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

    /// A message as its source delivers it.
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

impl Order {
    fn new(plan: Plan, number: usize, settings: &Settings, random: &mut Random) -> Self {
        let mut script = plan.script(settings, random);
        let sending = sending(&plan, settings, random);
        if let (Value::Object(script), 1..) = (&mut script, sending.messages) {
            script.insert("messages".to_owned(), sending.messages.into());
            script.insert("grouped".to_owned(), is_grouped(number).into());
        }
        Self { plan, sending, script: script.to_string() }
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

/// The id of an order.
pub(crate) fn id(order: usize) -> String {
    format!("o-{order}")
}

/// The order with this id.
pub(crate) fn number(id: &str) -> Option<usize> {
    id.strip_prefix("o-")?.parse().ok()
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

/// Whether the messages of an order are sent one after the other, to a destination that keeps their order.
pub(crate) const fn is_grouped(order: usize) -> bool {
    order.is_multiple_of(2)
}

/// The messages of an order with this plan. Of those whose handlers do nothing unusual some cannot be sent at once.
fn sending(plan: &Plan, settings: &Settings, random: &mut Random) -> Sending {
    if !settings.messages || *plan == Plan::Doomed {
        return Sending::default();
    }
    let messages = usize::try_from(random.between(1, 3)).unwrap_or(1);
    let waits = match plan {
        Plan::Signalled { at: at @ (Step::Sending | Step::Sent), .. } => Some(*at),
        Plan::Abandoned => Some(Step::Sending),
        _ => None,
    };
    let kind = random.pick(FaultKind::OF_MESSAGES).copied();
    let is_faulty = *plan == Plan::Plain && random.one_in(12);
    let kind = kind.filter(|kind| is_faulty && settings.has(*kind));
    let part = usize::try_from(random.between(1, messages as u64)).unwrap_or(1);
    let times = random.between(1, 2);
    Sending { messages, trouble: kind.map(|kind| Trouble { part, kind, times }), waits }
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
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::store_faults::Trouble;

    fn schedule(seed: u64, faults: &[FaultKind]) -> Schedule {
        let faults = faults.iter().copied().collect();
        Schedule::new(&Settings { seed, faults, ..Settings::new("orders") })
    }

    #[test]
    fn a_seed_determines_the_schedule() {
        let digest = |seed| schedule(seed, FaultKind::ALL).digest();
        assert_eq!(digest(7), digest(7));
        assert_ne!(digest(7), digest(8));
    }

    #[test]
    fn every_fault_occurs_and_every_message_once() {
        let schedule = schedule(1, FaultKind::ALL);
        let plans: BTreeSet<_> = schedule.orders.iter().map(|order| &order.plan).collect();
        for plan in Plan::all(&Settings::new("orders")) {
            assert!(plans.contains(&plan), "{plan:?}");
        }
        let troubles: BTreeSet<_> = schedule.store_faults.iter().map(StoreFault::kind).collect();
        assert_eq!(troubles.len(), 5, "{troubles:?}");
        let ids: BTreeSet<_> = schedule.messages.iter().map(|message| &message.id).collect();
        assert_eq!((ids.len(), schedule.messages.len()), (2000, 2000));
        assert!(schedule.skews.iter().all(|skew| skew.unsigned_abs() <= MOST_SKEW_MS));
    }

    #[test]
    fn one_outage_lasts_beyond_the_deadline() {
        let schedule = schedule(1, &[FaultKind::Outage]);
        let longest =
            schedule.store_faults.iter().filter_map(|store_fault| match store_fault.trouble {
                Trouble::Outage { ms } => Some(ms),
                _ => None,
            });
        assert!(longest.max() > Some(2000));
    }

    #[test]
    fn a_messages_id_says_which_order_it_is_about() {
        let event =
            r#"{"Records":[{"eventSource":"aws:dynamodb","dynamodb":{"Keys":{"id":{"S":"p"}}}}]}"#;
        let stream = Template::of_event(event, "id").unwrap();
        let queue = Template::new(r#"{"id":1}"#, "id").unwrap();
        let event = r#"{"detail-type":"t","source":"s","detail":{"id":"p"}}"#;
        let bus = Template::of_event(event, "id").unwrap();
        for template in [stream, queue, bus] {
            let schedule = Schedule::new(&Settings::for_any_function("f", template));
            let ids: BTreeSet<_> = schedule.messages.iter().map(|message| &message.id).collect();
            assert_eq!(ids.len(), schedule.messages.len());
            for message in schedule.messages.iter().chain(&schedule.probe(17)) {
                assert_eq!(order_of(&message.id), Some(message.order), "{}", message.id);
            }
        }
    }

    #[test]
    fn a_schedule_without_faults_has_only_duplicates() {
        let schedule = schedule(1, &[]);
        assert!(schedule.store_faults.is_empty() && schedule.skews == [0]);
        assert!(schedule.orders.iter().all(|order| order.plan == Plan::Plain));
        assert!(schedule.orders.len() < 1000);
    }
}
