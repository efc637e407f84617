//! The idempotency protocol. Knows no AWS and no Lambda.

pub mod admission;
pub mod clock;
pub mod key;
pub mod memory;
pub mod record;
pub mod store;
