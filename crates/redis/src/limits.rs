//! How large a record may be.

use lambda_idempotency_core::store::StoreErrorKind;

use crate::{config::Config, error::Failure};

/// The largest record. The server could hold 512 MB, but it does one thing after the other, so a large record delays
/// all its other clients.
pub(crate) const LARGEST: usize = 8 * 1024 * 1024;

/// Refuses a record that is too large.
pub(crate) fn fit(config: &Config, size: usize) -> Result<(), Failure> {
    if size <= LARGEST {
        return Ok(());
    }
    let context = format!(
        "a record of {size} bytes for the Redis server {}, of which this store takes {LARGEST}: return less from the \
         handler, or keep the result elsewhere and return a reference",
        config.address
    );
    Err(Failure::new(StoreErrorKind::TooLarge, context))
}
