//! An order, and what its handler does.

use serde_json::{Value, json};

use super::ids::id;
use crate::{Settings, plan::Plan, random::Random};

/// An order: an idempotency key, and what happens to its first execution.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Order {
    pub(crate) plan: Plan,
    /// Further members of the payload: the script that the function follows.
    script: String,
}

impl Order {
    pub(super) fn new(plan: Plan, settings: &Settings, random: &mut Random) -> Self {
        let script = plan.script(settings, random).to_string();
        Self { plan, script }
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
