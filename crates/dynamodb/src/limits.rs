//! DynamoDB's limits for keys and items.

use lambda_idempotency_core::{key::Key, store::StoreErrorKind};

use crate::{config::Config, error::Failure};

/// The largest item DynamoDB holds, names included.
pub(crate) const LARGEST: usize = 400 * 1024;

/// The longest partition key, and the longest sort key.
const LONGEST_KEYS: [usize; 2] = [2048, 1024];

/// Refuses a key that DynamoDB would refuse together with its whole batch.
pub(crate) fn fit_key(config: &Config, key: &Key) -> Result<(), Failure> {
    let [partition, sort] = LONGEST_KEYS;
    let longest = if config.attributes.sort_key.is_some() { sort } else { partition };
    match key.as_str().len() {
        length if (1..=longest).contains(&length) => Ok(()),
        length => {
            let context = format!(
                "a key of {length} bytes for DynamoDB table {}, which takes 1 to {longest}",
                config.table
            );
            Err(Failure::new(StoreErrorKind::Refused, context))
        }
    }
}
