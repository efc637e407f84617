//! What was seen so far, for a run that is stopped in the middle, and for its page.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use lambda_idempotency_local::{DeliveryReport, EffectLine, InvocationReport, OutputLine};

use crate::report::Effect;

/// The invocations that have ended, and the effects that the function reported.
#[derive(Default)]
pub(crate) struct SoFar {
    invocations: Mutex<Vec<InvocationReport>>,
    effects: Mutex<Vec<Effect>>,
}

impl SoFar {
    pub(crate) fn add(&self, invocation: &InvocationReport) {
        self.invocations.lock().unwrap_or_else(PoisonError::into_inner).push(invocation.clone());
    }

    /// Adds the effect of a line, if it is about one.
    pub(crate) fn effect(&self, line: &OutputLine) -> bool {
        let Some(effect) = EffectLine::parse(&line.text) else { return false };
        let EffectLine { name, record, key_hash, .. } = effect;
        let effect = Effect { at: Instant::now(), pid: line.pid, record, key_hash, name };
        self.effects.lock().unwrap_or_else(PoisonError::into_inner).push(effect);
        true
    }

    /// A report of the invocations.
    pub(crate) fn report(&self) -> DeliveryReport {
        let mut report = DeliveryReport::default();
        report
            .invocations
            .clone_from(&self.invocations.lock().unwrap_or_else(PoisonError::into_inner));
        report
    }

    /// Takes the effects.
    pub(crate) fn effects(&self) -> Vec<Effect> {
        std::mem::take(&mut *self.effects.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
