//! Shared by the end-to-end tests and the examples: events in the format that AWS delivers,
//! and the environment of a function that places orders.

pub mod events;

use std::{path::Path, time::Duration};

use lambda_idempotency_local::{FunctionConfig, Table};

/// The table of idempotency records.
pub const CLAIMS: &str = "idempotency";
/// The table of orders.
pub const ORDERS: &str = "orders";

/// A timeout that is long enough on a busy machine. No test should wait until it passes.
pub const LONG: Duration = Duration::from_secs(60);

/// The tables of [`function`].
#[must_use]
pub fn tables() -> [Table; 2] {
    [Table::new(CLAIMS, "id").ttl("expiration"), Table::new(ORDERS, "orderId")]
}

/// The settings of a function that places orders, with a long timeout.
#[must_use]
pub fn function(binary: impl AsRef<Path>) -> FunctionConfig {
    FunctionConfig::new(binary)
        .name("orders")
        .timeout(LONG)
        .init_timeout(LONG)
        .env("IDEMPOTENCY_TABLE", CLAIMS)
        .env("ORDERS_TABLE", ORDERS)
}
