//! The checks: each takes the parsed template, and returns the problems that it found.

use serde_json::Value;

use crate::{
    alarms, asynchronous, document::at, encryption, function, queue, retention, role, stream,
    tables,
};

pub(crate) type Problems = Vec<String>;

const CHECKS: [fn(&Value) -> Problems; 18] = [
    function::settings,
    function::environment,
    queue::events,
    queue::visibility,
    queue::dead_letters,
    queue::in_transit,
    asynchronous::events,
    encryption::at_rest,
    encryption::permissions,
    retention::problems,
    tables::tables,
    role::permissions,
    alarms::alarms,
    alarms::log_filters,
    alarms::durations,
    alarms::dashboard,
    stream::mapping,
    stream::permissions,
];

pub(crate) const FUNCTION: &str = "/Resources/OrdersFunction/Properties";
pub(crate) const QUEUE: &str = "/Resources/OrdersQueue/Properties";

pub(crate) fn problems(template: &Value) -> Problems {
    CHECKS.iter().flat_map(|check| check(template)).collect()
}

/// A problem, unless the template has `expected` at `pointer`.
pub(crate) fn expect(template: &Value, pointer: &str, expected: Value) -> Problems {
    let found = at(template, pointer);
    if *found == expected {
        return Problems::new();
    }
    vec![format!("{pointer} is {found}, must be {expected}")]
}
