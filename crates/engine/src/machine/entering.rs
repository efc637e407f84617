//! When this invocation takes its place in the process, waits for it, and gives it up.

use super::{
    Machine, Present,
    host::{Enter, Side},
};
use crate::rules::{Rule, keeps};
use lambda_idempotency_core::outcome::{NotStarted, Outcome};

/// The result of asking for a place.
enum Entering {
    Entered,
    Waits,
    /// It is too late.
    GivenUp,
}

impl Machine<'_> {
    /// Takes the place that the next step needs. Returns whether that step may go on; if not, the
    /// invocation waits.
    pub(super) fn takes_its_place(&mut self, present: &mut Present<'_>) -> bool {
        loop {
            let group = self.isolation.group_side();
            if group.is_none() && (self.quarantine.is_active() || !self.starts.has_any()) {
                return true;
            }
            match self.enter(group.unwrap_or(Side::Shared), present) {
                Entering::Waits if keeps(Rule::WaitsForItsPlace) => return false,
                Entering::Waits | Entering::Entered => {
                    let group = self.isolation.take_group();
                    self.claim_group(group, present);
                    return true;
                }
                Entering::GivenUp if group == Some(Side::Isolated) => {
                    for at in self.isolation.take_group() {
                        self.finish(at, Outcome::Returned(NotStarted::Isolation), present);
                    }
                }
                Entering::GivenUp => self.close(NotStarted::Deadline, present),
            }
        }
    }

    /// Asks for a place. The invocation first gives up the place that it has or waits for, so that
    /// invocations never wait for each other in a circle.
    fn enter(&mut self, side: Side, present: &mut Present<'_>) -> Entering {
        let (now, pace) = (present.now, present.host.pace());
        let until = self.leases.terms().ceiling(now);
        if self.isolation.has(side, until) {
            return Entering::Entered;
        }
        if self.isolation.has_other(side) {
            self.exit(present);
        }
        let budget = self.starts.budget();
        let patience = match side {
            Side::Shared => {
                let last = budget.entry_deadline(now, pace);
                self.isolation.patience().unwrap_or(last)
            }
            Side::Isolated => {
                let is_alone = self.records.all().len() == self.isolation.waiting();
                let last = match is_alone {
                    true => budget.entry_deadline(now, pace),
                    false => budget.isolation_deadline(now, pace),
                };
                self.isolation.patience_once(last)
            }
        };
        match present.host.enter(side, until, patience, now) {
            Enter::Entered => {
                self.isolation.entered(side, until);
                Entering::Entered
            }
            Enter::Waits { .. } if now >= patience => {
                self.exit(present);
                Entering::GivenUp
            }
            Enter::Waits { until } => {
                self.isolation.waits(side, until, patience);
                Entering::Waits
            }
        }
    }

    fn exit(&mut self, present: &mut Present<'_>) {
        present.host.exit();
        self.isolation.left();
    }

    /// Gives the place up when no claim and no handler needs it, now or in the next step. Records that wait
    /// for a busy key have no claim: they need none.
    pub(super) fn exit_when_idle(&mut self, present: &mut Present<'_>) {
        let is_idle = self.starts.is_empty()
            && self.claims.open() == 0
            && !self.quarantine.is_active()
            && self.settlements.are_slow(present.now);
        if is_idle && !self.isolation.is_outside() && keeps(Rule::ExitsWhenIdle) {
            self.exit(present);
        }
    }
}
