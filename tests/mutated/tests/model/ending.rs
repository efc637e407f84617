//! How deliveries end.

use crate::{
    packed::Payload,
    state::{Call, Flaw},
    step::{Ended, Step},
};

impl Step<'_> {
    /// A worker ends a delivery.
    pub(crate) fn end(&mut self, worker: usize, call: Call, ended: Ended) {
        self.key.calls[worker] = None;
        self.tell(call.payload, ended);
    }

    /// Tells the source how a delivery ended.
    pub(crate) fn tell(&mut self, payload: Payload, ended: Ended) {
        if let Ended::Acknowledged { lost } = ended {
            self.check_acknowledged(payload, lost);
        }
        let source = &mut self.key.source;
        match ended {
            Ended::Acknowledged { .. } => source.acknowledged += 1,
            Ended::PermanentlyFailed => source.failed_permanently += 1,
            Ended::Returned => source.queued[usize::from(payload)] += 1,
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
