//! The reasons why a run cannot be carried out.

/// Why a run could not be carried out. Mistakes of the function are in the [`Report`](crate::Report).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The local Lambda or DynamoDB failed, or the function does not start.
    #[error(transparent)]
    Local(#[from] lambda_idempotency_local::Error),
    /// The rig's own ledger cannot be used.
    #[error("cannot use {0}")]
    Rig(String),
    /// The function never reported an effect, so there is nothing to audit.
    #[error(
        "the function reported no effect in {deliveries} deliveries ({}){}: correct that, or, if its handlers were called, \
         call `lambda_idempotency::testing::effect(&call, \"name\")` in them, right after the effect",
        outcomes.join(", "),
        problem.as_ref().map(|problem| format!("; the last problem was: {problem}")).unwrap_or_default()
    )]
    NoEffects {
        /// The number of deliveries.
        deliveries: u64,
        /// How they ended: `5 rejected`.
        outcomes: Vec<String>,
        /// Why the last record was not processed, if the function said so.
        problem: Option<String>,
    },
    /// The settings do not fit together.
    #[error("{0}")]
    Settings(String),
}
