//! Why a store refused an effect.

use std::{fmt, sync::Arc};

/// An effect that the store refused. The guard of its write held, but neither the write nor any of its
/// effects was applied.
///
/// It is the failure of the handler: the key is released, and a later delivery calls the handler again.
/// `Display` holds no payload.
///
/// ```
/// use lambda_idempotency_core::effects::{RefusalReason, RefusedEffect};
///
/// let refused = RefusedEffect::new(RefusalReason::ConditionFailed).at(1);
/// assert_eq!(
///     refused.to_string(),
///     "nothing was committed: the condition of effect 2 did not hold; read in the handler what the \
///      condition depends on, and decide there"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedEffect {
    reason: RefusalReason,
    position: Option<usize>,
    detail: Option<Arc<str>>,
}

/// Why an effect was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalReason {
    /// Its condition did not hold.
    ConditionFailed,
    /// It, or all effects together, are more than the database takes in one transaction.
    TooLarge,
    /// The database does not understand it, or it does not fit its table.
    Invalid,
    /// The function may not do it.
    Denied,
    /// It takes longer than the call of the store had. A longer call may succeed.
    TooSlow,
}

impl RefusedEffect {
    /// A refusal for this reason.
    #[must_use]
    pub const fn new(reason: RefusalReason) -> Self {
        Self { reason, position: None, detail: None }
    }

    /// Says which effect was refused: its position in the order of collection, from 0.
    #[must_use]
    pub const fn at(mut self, position: usize) -> Self {
        self.position = Some(position);
        self
    }

    /// Adds what the database said. It must not hold a payload or a key.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<Arc<str>>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Why it was refused.
    #[must_use]
    pub const fn reason(&self) -> RefusalReason {
        self.reason
    }

    /// The position of the effect in the order of collection, from 0. `None` if it is not known which
    /// one was refused, or if it was all of them together.
    #[must_use]
    pub const fn position(&self) -> Option<usize> {
        self.position
    }
}

impl RefusalReason {
    /// The type of the handler's failure.
    #[must_use]
    pub const fn error_type(self) -> &'static str {
        match self {
            Self::ConditionFailed => "an effect whose condition did not hold",
            Self::TooLarge => "an effect that is too large",
            Self::Invalid => "an effect that is not valid",
            Self::Denied => "an effect that is not permitted",
            Self::TooSlow => "an effect that takes too long",
        }
    }
}

impl fmt::Display for RefusedEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing was committed: ")?;
        let which = match self.position {
            Some(position) => format!("effect {}", position + 1),
            None => "an effect".to_owned(),
        };
        match self.reason {
            RefusalReason::ConditionFailed => write!(
                f,
                "the condition of {which} did not hold; read in the handler what the condition \
                 depends on, and decide there"
            ),
            RefusalReason::TooLarge => write!(
                f,
                "{which} is more than the database takes in one transaction; collect less in a call"
            ),
            RefusalReason::Invalid => write!(
                f,
                "{which} is not valid for the database; check its table, its key and its expressions"
            ),
            RefusalReason::Denied => {
                write!(f, "{which} is not permitted; allow the function to do it to that table")
            }
            RefusalReason::TooSlow => write!(
                f,
                "{which} takes longer than the time that is left for it; let it do less in a call, or \
                 give the function more time"
            ),
        }?;
        match &self.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for RefusedEffect {}
