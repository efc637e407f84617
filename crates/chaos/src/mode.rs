//! How the effects of the scripted function and the completions of its keys are kept together.

use crate::{FaultKind, named::named};

named! {
    "a mode";
    /// How effects and completions are kept together.
    #[derive(Default)]
    pub enum Mode {
        /// Claim and complete: the handler makes its effect, and the completion is recorded afterwards.
        #[default]
        Claim = "claim",
        /// The effect is committed in one transaction with the completion. No cause excuses a doubled effect then.
        Transaction = "transaction",
        /// The same without claims: the completion is inserted together with the effect. Handlers may run again, and no
        /// cause excuses a doubled effect.
        Optimistic = "optimistic",
        /// Claim and complete, and the effect is made in a step. No cause excuses an effect of an attempt that began when
        /// the result of the step was recorded.
        Steps = "steps",
    }
}

impl Mode {
    /// Whether effects are committed in one transaction with the completion.
    #[must_use]
    pub const fn commits(self) -> bool {
        matches!(self, Self::Transaction | Self::Optimistic)
    }

    /// The faults that the scripted function can get.
    pub fn faults(self) -> impl Iterator<Item = FaultKind> {
        let all = FaultKind::ALL.iter().copied();
        all.filter(move |kind| self.has(*kind))
    }

    pub(crate) fn has(self, kind: FaultKind) -> bool {
        match kind {
            FaultKind::Conflict => self.commits(),
            _ => true,
        }
    }
}
