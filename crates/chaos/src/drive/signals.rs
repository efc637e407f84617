//! Sends the signals that the plans of orders ask for.

use std::time::Duration;

use lambda_idempotency_local::Batch;

use super::rig::{Rig, request_id};
use crate::{
    ledger::{Line, Step},
    plan::Plan,
    schedule::order_of,
};

impl Rig<'_> {
    /// Adds an effect that a function reported on its output.
    pub(super) fn effect(&mut self, line: &Line) {
        let read = self.history.effect_alone(line);
        self.signal_at(line, read);
    }

    /// Sends the signal that the plan asks for at the first line of this kind.
    pub(super) fn signal_at(&mut self, line: &Line, read: Option<(usize, bool)>) {
        let Some((order, true)) = read else { return };
        let plan = self.schedule.orders.get(order).map(|order| &order.plan);
        if let Some(Plan::Signalled { at, fault, .. }) = plan
            && (*at == line.step || (*at, line.step) == (Step::Effect, Step::Collected))
            && self.signalled.insert(order)
        {
            self.injector.signal(self.local, line.pid, *fault);
        }
    }

    /// A user's function does not say when its handlers start, so a signal at the start comes some time after the
    /// first delivery.
    pub(super) fn signal_soon(&mut self, batch: &Batch) {
        if self.settings.template.is_none() {
            return;
        }
        for (id, _) in batch.records() {
            let Some(number) = id.and_then(order_of) else { continue };
            let plan = self.schedule.orders.get(number).map(|order| &order.plan);
            if let Some(Plan::Signalled { at: Step::Start, fault, .. }) = plan
                && self.signalled.insert(number)
            {
                let delay = Duration::from_millis(number as u64 * 7 % 40);
                self.injector.signal_later(delay, request_id(self.invocations), *fault);
            }
        }
    }
}
