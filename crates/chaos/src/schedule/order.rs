//! An order, what its handler does, and the messages that it publishes.

use serde_json::{Value, json};

use super::ids::id;
use crate::{
    FaultKind, Settings,
    ledger::Step,
    plan::Plan,
    random::Random,
    sending::{Sending, Trouble},
};

/// An order: an idempotency key, and what happens to its first execution.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Order {
    pub(crate) plan: Plan,
    /// The messages that it publishes.
    pub(crate) sending: Sending,
    /// Further members of the payload: the script that the function follows.
    script: String,
}

impl Order {
    pub(super) fn new(plan: Plan, number: usize, settings: &Settings, random: &mut Random) -> Self {
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

    pub(super) fn body(&self, number: usize, note: usize) -> String {
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
