//! How deliveries end, and what follows for another delivery of the key in the same batch.

use crate::{
    packed::Payload,
    protocol::Rule,
    state::{Call, Flaw},
    step::{Ended, Step},
    witness::Event,
};

impl Step<'_> {
    /// A worker ends a delivery. As in the engine, a copy in the same batch has the same outcome. If the
    /// handler was not started, the copy makes a new claim. Another payload is a later delivery.
    pub(crate) fn end(&mut self, worker: usize, call: Call, ended: Ended, now: u8) {
        self.key.calls[worker] = None;
        self.ended = Some(ended);
        self.tell(call.payload, ended);
        let Some(follower) = call.follower else { return };
        let copy = follower == call.payload || !self.protocol.keeps(Rule::SharesWithCopiesOnly);
        if copy && ended != Ended::NotStarted {
            self.setup.witness.saw(Event::Coalesced);
            self.tell(follower, ended);
        } else {
            self.setup.witness.saw(Event::LaterInBatch);
            self.key.calls[worker] = Some(self.new_claim(follower, None, now));
        }
    }

    /// Tells the source how a delivery ended.
    pub(crate) fn tell(&mut self, payload: Payload, ended: Ended) {
        if let Ended::Acknowledged { lost } = ended {
            self.check_acknowledged(payload, lost);
        }
        let source = &mut self.key.source;
        match ended {
            // An ordered source redelivers from its checkpoint, also records that were acknowledged.
            _ if self.setup.ordered => source.queued[usize::from(payload)] += 1,
            Ended::Acknowledged { .. } => source.acknowledged += 1,
            Ended::PermanentlyFailed => source.failed_permanently += 1,
            Ended::Returned | Ended::NotStarted => source.queued[usize::from(payload)] += 1,
        }
    }

    /// I4: only a completed key is acknowledged, or one whose own completion could not be recorded.
    fn check_acknowledged(&mut self, payload: Payload, lost: bool) {
        let key = &self.key;
        if key.completed.contains(payload) || lost && key.effect.contains(payload) {
            return;
        }
        let another = key.completed.any();
        self.blame(if another { Flaw::AnsweredByAnother } else { Flaw::AcknowledgedTooSoon });
    }
}
