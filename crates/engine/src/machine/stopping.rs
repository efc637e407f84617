//! Ends the time for handlers, or the whole invocation.

use super::{Machine, Present, messages, record::Stage, rule::Event};
use lambda_idempotency_core::outcome::NotStarted;

impl Machine<'_> {
    /// Stops handlers whose lease has ended, and records that would start without one. The process was
    /// suspended, its processor was busy, or the lease could not be renewed. A successor may have taken the
    /// key over.
    pub(super) fn stop_overdue(&mut self, present: &mut Present<'_>) {
        if present.now > self.leases.terms().end() {
            self.stop(present);
        }
        for kept in self.leases.take_lapsed(present.now) {
            self.run(kept.at, Event::Lapsed, present);
        }
    }

    /// Stops the handlers: none starts any more. A running handler is dropped and its claim stays
    /// until the lease ends; a record whose handler has not begun is returned to its source.
    pub(super) fn stop(&mut self, present: &mut Present<'_>) {
        if !self.starts.stop() {
            return;
        }
        for at in self.records.in_stage(Stage::Running) {
            self.run(at, Event::Stop, present);
        }
        if self.starts.close(NotStarted::Deadline) {
            for at in self.not_begun() {
                self.run(at, Event::Close(NotStarted::Deadline), present);
            }
        }
    }

    /// Ends claiming with the time for handlers: a claim in doubt is undone as long as there is time.
    pub(super) fn end_claims(&mut self, present: &mut Present<'_>) {
        let answers = self.claims.stop();
        self.answered(answers, present);
        self.send_claims(present);
    }

    /// Ends the invocation: its response is due.
    pub(super) fn abandon(&mut self, present: &mut Present<'_>) {
        self.stop(present);
        for at in self.claims.abandon() {
            self.run(at, Event::Unanswered, present);
        }
        for outbox in self.outboxes.abandon() {
            let too_late = Err(messages::too_late());
            self.run(outbox.at, Event::Sent(outbox, too_late), present);
        }
        for settling in self.settlements.abandon() {
            self.run(settling.at, Event::Unsettled(settling), present);
        }
    }
}
