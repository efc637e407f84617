//! A settlement that the store did not apply, or of which that is not known.

use super::{Machine, Present, carried::Carried, outcomes::shrink, settlements::Settling};
use crate::rules::{Rule, keeps};
use lambda_idempotency_core::{
    admission::Settlement, failure::Failure, outcome::Outcome, store::StoreError,
};

impl Machine<'_> {
    /// Tries it again, or ends it without.
    pub(super) fn unsettled(
        &mut self,
        mut settling: Settling,
        error: StoreError,
        present: &mut Present<'_>,
    ) {
        settling.in_doubt |= settling.effects.is_some() && error.may_have_applied();
        if settling.in_doubt && !keeps(Rule::RepeatsTheCommit) {
            settling.effects = None;
        }
        let shrunk = shrink(&mut settling, &error);
        if shrunk || settling.is_retried(&error, present.now) {
            self.settlements.add(settling);
        } else if settling.effects.is_some() && !settling.in_doubt && !error.is_transient() {
            self.refused(settling, error, present);
        } else if settling.effects.is_some() && !self.is_reply_due(present.now) {
            self.leave_uncommitted(settling, error, present);
        } else {
            self.give_up(settling, error, present);
        }
    }

    /// Ends a commit that has no answer in time. The idempotency record says that the process lives, so the
    /// record is not quarantined; and a commit that is still on its way applies nothing after that.
    fn leave_uncommitted(
        &mut self,
        settling: Settling,
        error: StoreError,
        present: &mut Present<'_>,
    ) {
        let until = self.starts.budget().settle_deadline(present.now);
        let is_late = until <= present.now;
        if !keeps(Rule::ReturnsWhatIsUncommitted) || settling.assumed.is_some() || is_late {
            return self.give_up(settling, error, present);
        }
        present.host.returns(settling.at);
        let outcome = Outcome::Uncommitted { error: error.with_doubt(settling.in_doubt) };
        self.settlements.add(Settling {
            settlement: Settlement::LeaveStanding,
            effects: None,
            instead: None,
            outcome: Carried(outcome),
            due: present.now,
            since: present.now,
            until,
            tries: 0,
            again: 0,
            committed: Some(settling.outcome),
            ..settling
        });
    }

    /// The store refused a commit: nothing was applied, and it will not be. The key is free for the next
    /// delivery. The failure is the store's, so it is not permanent, whatever the policies say of the
    /// handler's.
    fn refused(&mut self, settling: Settling, error: StoreError, present: &mut Present<'_>) {
        let Settling { at, held, .. } = settling;
        let failed_attempts = held.failed_attempts().saturating_add(1);
        let failure = Failure::from(error);
        let settlement = Settlement::Release { error_type: failure.error_type().into() };
        let outcome = Outcome::Failed { failure, failed_attempts, permanent: false };
        self.settle(at, held, settlement, outcome, present);
    }

    /// A settlement that cannot be recorded. The key stays held until the lease ends.
    pub(super) fn give_up(
        &mut self,
        settling: Settling,
        error: StoreError,
        present: &mut Present<'_>,
    ) {
        // The outcome needs neither: messages that are not marked are sent again with the same ids, and the key of
        // what was to be forgotten is free when the lease ends.
        if matches!(settling.settlement, Settlement::MarkSent | Settlement::Forget) {
            if matches!(settling.settlement, Settlement::MarkSent) {
                self.records.at(settling.at).set_unrecorded(Some(error));
            }
            return self.finish(settling.at, settling.outcome.0, present);
        }
        let outcome = match settling.outcome.0 {
            Outcome::Executed { .. }
                if settling.effects.is_some() && keeps(Rule::ReturnsWhatIsUncommitted) =>
            {
                present.host.returns(settling.at);
                let in_doubt = settling.in_doubt || error.may_have_applied();
                Outcome::Uncommitted { error: error.with_doubt(in_doubt) }
            }
            Outcome::Executed { .. } => return self.publish_unrecorded(settling, error, present),
            // The sink has the record: if it were returned, it would be put aside again.
            diverted @ Outcome::Diverted(_) => {
                self.records.at(settling.at).set_unrecorded(Some(error));
                diverted
            }
            Outcome::Failed { failure, failed_attempts, .. } => {
                Outcome::Failed { failure, failed_attempts, permanent: false }
            }
            Outcome::TimedOut { .. } => Outcome::TimedOut { permanent: false },
            other => other,
        };
        self.finish(settling.at, outcome, present);
    }
}
