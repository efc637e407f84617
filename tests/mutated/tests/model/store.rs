//! A write reaches the store: whether it is applied, and whether the step breaks a property.

use crate::{
    packed::Cell,
    request::{Intent, Request},
    state::{Answer, Flaw},
    step::Step,
    witness::Event,
};

impl Step<'_> {
    /// The store applies a write if its guard holds, and answers.
    pub(crate) fn land(&mut self, request: &Request) -> Answer {
        let found = self.key.store;
        if !(self.protocol.applies)(&request.write(), found.map(Cell::unpack).as_ref()) {
            return Answer::Found(found);
        }
        if found != request.record {
            self.check_fence(found, request);
            self.check_final(found);
            self.check_history(found, request);
            self.check_order_of_fences(found, request);
            self.witness_change(found, request);
            self.key.store = request.record;
            if let Some(record) = request.record.filter(|record| record.completed()) {
                self.key.completed.add(record.payload());
            }
        }
        Answer::Written
    }

    /// Whether the store would apply this write, and change the record.
    pub(crate) fn would_change(&self, request: &Request) -> bool {
        self.key.store != request.record
            && (self.protocol.applies)(&request.write(), self.key.store.map(Cell::unpack).as_ref())
    }

    /// The server collects a record that has expired by its clock, which may be ahead.
    pub(crate) fn sweep(&mut self) {
        let Some(old) = self.key.store.take() else { return };
        if self.key.believers(self.time).any(|call| call.token == old.owner()) {
            self.blame(Flaw::SweptUnderHolder);
        }
        self.key.forgotten |= old.in_progress() && !self.key.strays.is_empty();
        if old.completed() {
            self.setup.witness.saw(Event::CompletedSwept);
        }
    }

    /// I2: a settlement changes only the record that its own claim wrote and still owns. If there is no
    /// record, a completion or permanent failure may be written.
    fn check_fence(&mut self, old: Option<Cell>, request: &Request) {
        let fenced = match (request.intent, old) {
            (Intent::Claim, _) | (Intent::Complete | Intent::FailPermanently, None) => true,
            (_, Some(old)) => old.in_progress() && old.owner() == request.by,
            (_, None) => false,
        };
        if !fenced {
            self.blame(Flaw::NotFenced);
        }
    }

    /// I3: a settled record stays until it has expired in true time.
    fn check_final(&mut self, old: Option<Cell>) {
        if old.is_some_and(|old| !old.in_progress() && self.time <= old.expires()) {
            self.blame(Flaw::NotFinal);
        }
    }

    /// The counts of failed and lost attempts are kept.
    fn check_history(&mut self, old: Option<Cell>, request: &Request) {
        let history = |cell: Option<Cell>| {
            let of = |cell: Cell| {
                (cell.failed_attempts(), cell.lost_attempts(), cell.consecutive_losses())
            };
            cell.map_or((0, 0, 0), of)
        };
        let own = |old: &Cell| request.record.is_none_or(|new| new.payload() == old.payload());
        let unsettled = old.filter(|old| old.in_progress());
        let unsettled = unsettled.filter(|old| !self.setup.applications || own(old));
        let (failed, lost, losses) = history(unsettled);
        let expected = match request.intent {
            Intent::Claim => {
                let disappeared =
                    u8::from(unsettled.is_some_and(|old| !old.unpack().is_given_up()));
                (failed, lost + disappeared, losses + disappeared)
            }
            Intent::Release => (failed + 1, lost, 0),
            Intent::LeaveStanding => (failed, lost + 1, 0),
            Intent::Undo | Intent::Renew(_) => (failed, lost, losses),
            Intent::Complete | Intent::FailPermanently => return,
        };
        // Higher counts are correct: a worker may know of attempts whose record was swept.
        let kept = history(request.record);
        let is_kept = kept.0 >= expected.0 && kept.1 >= expected.1 && kept.2 == expected.2;
        if !self.key.forgotten && !is_kept {
            self.blame(Flaw::CountsLost);
        }
    }

    /// While a record lives, each claim has a higher fence than the one before, and a settlement
    /// keeps it.
    fn check_order_of_fences(&mut self, old: Option<Cell>, request: &Request) {
        let Some((old, new)) = old.zip(request.record) else { return };
        let kept = match request.intent {
            Intent::Claim => new.fence() > old.fence(),
            _ => new.fence() == old.fence(),
        };
        if self.setup.fences && !kept {
            self.blame(Flaw::FenceFell);
        }
    }

    fn witness_change(&mut self, old: Option<Cell>, request: &Request) {
        let event = match (request.intent, old) {
            (Intent::Claim, None) => return,
            (Intent::Claim, Some(old)) if !old.in_progress() => Event::TakenAfterExpiry,
            (Intent::Claim, Some(old)) if old.unpack().is_given_up() => Event::TakenAfterRelease,
            (Intent::Claim, Some(old)) if old.owner() == 0 => Event::StrangerOvertaken,
            (Intent::Claim, Some(old)) => {
                if self.key.working().any(|call| call.token == old.owner()) {
                    return;
                }
                Event::TakenOverAfterCrash
            }
            (Intent::Complete, Some(_)) => return,
            (Intent::Complete, None) => Event::CompletionUnderAbsent,
            (Intent::FailPermanently, _) => Event::PermanentFailure,
            (Intent::Release, _) => Event::FailureCounted,
            (Intent::Undo, _) => Event::Undo,
            (Intent::LeaveStanding, _) => Event::StopSaid,
            (Intent::Renew(_), _) => Event::Renewed,
        };
        self.setup.witness.saw(event);
    }
}
