//! How the effects of the scripted function and the completions of its keys are kept together.

use std::{fmt, str::FromStr};

use serde::Serialize;

use crate::{FaultKind, TestedStore};

/// How effects and completions are kept together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mode {
    /// Claim and complete: the handler makes its effect, and the completion is recorded afterwards.
    #[default]
    Claim,
    /// The effect is committed in one transaction with the completion. No cause excuses a doubled effect then.
    Transaction,
    /// The same without claims: the completion is inserted together with the effect. Handlers may run again, and no
    /// cause excuses a doubled effect.
    Optimistic,
    /// Claim and complete, and the effect is made in a step. No cause excuses an effect of an attempt that began when
    /// the result of the step was recorded.
    Steps,
}

impl Mode {
    /// All of them.
    pub const ALL: &'static [Self] =
        &[Self::Claim, Self::Transaction, Self::Optimistic, Self::Steps];

    /// Its name: `claim`, `transaction`, `optimistic` or `steps`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Transaction => "transaction",
            Self::Optimistic => "optimistic",
            Self::Steps => "steps",
        }
    }

    /// Whether effects are committed in one transaction with the completion.
    #[must_use]
    pub const fn commits(self) -> bool {
        matches!(self, Self::Transaction | Self::Optimistic)
    }

    /// The faults that the scripted function can get without messages, with its records in DynamoDB.
    pub fn faults(self) -> impl Iterator<Item = FaultKind> {
        let all = FaultKind::ALL.iter().copied();
        all.filter(move |kind| self.has(*kind) && TestedStore::DynamoDb.has(*kind))
    }

    pub(crate) fn has(self, kind: FaultKind) -> bool {
        match kind {
            FaultKind::Conflict => self.commits(),
            kind => !FaultKind::OF_MESSAGES.contains(&kind),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.iter().copied().find(|mode| mode.as_str() == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|mode| mode.as_str()).collect();
            format!("`{name}` is not a mode: use {}", names.join(", "))
        })
    }
}
