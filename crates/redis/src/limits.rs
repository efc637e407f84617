//! How large a record may be.

use lambda_idempotency_core::store::StoreErrorKind;

use crate::{config::Config, error::Failure, item::Fields};

/// The largest record. The server could hold 512 MB, but it does one thing after the other, so a large record delays
/// all its other clients.
pub(crate) const LARGEST: usize = 8 * 1024 * 1024;

/// The size of a record as it is sent, if it is not too large.
pub(crate) fn fit(config: &Config, fields: &Fields) -> Result<usize, Failure> {
    let size = fields.iter().map(|(name, value)| name.len().saturating_add(value.len())).sum();
    if size <= LARGEST {
        return Ok(size);
    }
    let context = format!(
        "a record of {size} bytes for the Redis server {}, of which this store takes {LARGEST}: return less from the \
         handler, or keep the result elsewhere and return a reference",
        config.address
    );
    Err(Failure::new(StoreErrorKind::TooLarge, context))
}
