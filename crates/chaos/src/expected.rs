//! What a run should come to, as far as an audit asks: the same of a schedule of the rig and of a run in an account.

use crate::{Mode, schedule::Schedule};

/// What was sent, and what it asks for.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    /// How effects and completions are kept together.
    pub(crate) mode: Mode,
    /// Whether the function is a user's own: it may work without keys, without the library even, and fail after its effect.
    pub(crate) is_users: bool,
    pub(crate) orders: Vec<ExpectedOrder>,
    /// The order of each message, in the order in which they were sent.
    pub(crate) sequence: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpectedOrder {
    /// One of its messages was sent: a run that is given up sends no more.
    pub(crate) is_sent: bool,
    /// It fails permanently.
    pub(crate) is_doomed: bool,
    /// Its message group or shard, where its source keeps an order.
    pub(crate) group: Option<usize>,
}

impl From<&Schedule> for Expected {
    fn from(schedule: &Schedule) -> Self {
        let keeps_order = schedule.origin().keeps_order();
        let orders = schedule.orders.iter().enumerate().map(|(number, order)| ExpectedOrder {
            is_sent: true,
            is_doomed: order.is_doomed(),
            group: keeps_order.then(|| schedule.group(number)),
        });
        Self {
            mode: schedule.mode,
            is_users: schedule.is_of_a_users_function(),
            orders: orders.collect(),
            sequence: schedule.messages.iter().map(|message| message.order).collect(),
        }
    }
}
