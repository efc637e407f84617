//! DynamoDB's limits for keys and items.

use lambda_idempotency_core::{key::Key, store::StoreErrorKind};

use crate::{
    attributes::{LONGEST_PARTITION, LONGEST_SORT_KEY},
    config::Config,
    error::Failure,
};

/// The largest item DynamoDB holds, names included.
pub(crate) const LARGEST: usize = 400 * 1024;

/// The most statements in a batch.
pub(crate) const MOST_STATEMENTS: usize = 25;

/// The most bytes of items in a batch of statements. DynamoDB documents no limit for this operation; this
/// is the one of its transactions.
pub(crate) const MOST_STATEMENT_BYTES: usize = 4 * 1024 * 1024;

/// Refuses a key that DynamoDB would refuse together with its whole batch.
pub(crate) fn fit_key(config: &Config, key: &Key) -> Result<(), Failure> {
    let has_sort_key = config.attributes.sort_key.is_some();
    let longest = if has_sort_key { LONGEST_SORT_KEY } else { LONGEST_PARTITION };
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
