//! What the end-to-end tests and the examples share: events in the shape in which AWS delivers them,
//! and the surroundings of a function that places orders.

pub mod events;

use std::{path::Path, time::Duration};

use lambda_idempotency_local::{FunctionConfig, Table};

/// The table of idempotency records.
pub const CLAIMS: &str = "idempotency";
/// The table of orders.
pub const ORDERS: &str = "orders";

/// Longer than anything takes, however busy the machine: nothing should wait for it to pass.
pub const LONG: Duration = Duration::from_secs(60);

/// The tables of [`function`].
#[must_use]
pub fn tables() -> [Table; 2] {
    [Table::new(CLAIMS, "id").ttl("expiration"), Table::new(ORDERS, "orderId")]
}

/// The settings of a function that places orders, with time enough.
#[must_use]
pub fn function(binary: impl AsRef<Path>) -> FunctionConfig {
    FunctionConfig::new(binary)
        .name("orders")
        .timeout(LONG)
        .init_timeout(LONG)
        .env("IDEMPOTENCY_TABLE", CLAIMS)
        .env("ORDERS_TABLE", ORDERS)
}
