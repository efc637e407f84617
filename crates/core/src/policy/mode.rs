//! How keys are held.

use std::time::Duration;

/// How the keys of an operation are held, and what is kept of an attempt.
///
/// ```
/// use lambda_idempotency_core::policy::Mode;
///
/// assert_eq!(Mode::default(), Mode::Claim);
/// assert!(Mode::Optimistic.commits_effects() && !Mode::Optimistic.claims());
/// assert!(Mode::Mutex.claims() && !Mode::Mutex.keeps_completions());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// The key is claimed, the handler makes its effects itself, and its completion is recorded afterwards. If
    /// the worker dies between an effect and the completion, the effect may happen again.
    #[default]
    Claim,
    /// The key is claimed, and the [effects](crate::effects) that the call collects are committed in one
    /// transaction with the completion. They happen exactly once; the store has to commit effects.
    Transactional,
    /// The handler runs without a claim, and one transaction inserts the completion together with the
    /// [effects](crate::effects): see [`admission::Held`](crate::admission::Held). Of concurrent attempts one is
    /// committed, and nothing is recorded of an attempt that fails or dies, so leases are not renewed and failed
    /// attempts not counted.
    Optimistic,
    /// Keys only exclude each other: the key is claimed, and its record is deleted when the handler has ended,
    /// whether it succeeded or failed. Each delivery calls the handler, copies in a batch run one after the
    /// other, and no failure is recorded as permanent, whatever the other policies say.
    Mutex,
}

impl Mode {
    /// Whether calls collect effects, which are committed with their completion.
    #[must_use]
    pub const fn commits_effects(self) -> bool {
        matches!(self, Self::Transactional | Self::Optimistic)
    }

    /// Whether a key is claimed before its handler runs.
    #[must_use]
    pub const fn claims(self) -> bool {
        !matches!(self, Self::Optimistic)
    }

    /// The shortest time for which a completion must answer. Without a claim it is what excludes an attempt whose request
    /// is still under way: DynamoDB refuses requests that were signed more than 15 minutes ago.
    #[must_use]
    pub const fn least_retention(self) -> Duration {
        match self {
            Self::Optimistic => Duration::from_mins(15),
            Self::Claim | Self::Transactional | Self::Mutex => Duration::ZERO,
        }
    }

    /// Whether the record of a key outlasts the attempt, and answers later deliveries.
    #[must_use]
    pub const fn keeps_completions(self) -> bool {
        !matches!(self, Self::Mutex)
    }
}
