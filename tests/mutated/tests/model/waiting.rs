//! Waiting for a busy key, as the engine does for sources with few retries: until the lease ends and the
//! worker can take over, until there is a result, or until the worker's own deadline.

use lambda_idempotency_core::{admission::Admission, clock::Timestamp};

use crate::{
    packed::{Cell, at, tick_of},
    state::{Call, Flaw, Job},
    step::{Ended, Step},
    witness::Event,
};

impl Step<'_> {
    /// Another worker holds the key.
    pub(crate) fn busy(&mut self, worker: usize, mut call: Call, found: Cell, until: Timestamp) {
        self.setup.witness.saw(Event::Busy);
        if !self.setup.waits {
            return self.end(worker, call, Ended::Returned);
        }
        call.token = 0;
        call.held = found;
        call.lease = tick_of(until);
        call.job = Job::Waiting;
        call.request = None;
        self.key.calls[worker] = Some(call);
    }

    /// A waiting worker reads the record again, and claims the key if it is free.
    pub(crate) fn look(&mut self, worker: usize, now: u8) {
        let waited = self.key.calls[worker].expect("the worker waits");
        let (found, call) = (self.key.store, self.new_claim(waited.payload, now));
        let Some(found) = found else {
            self.key.calls[worker] = Some(call);
            return;
        };
        let admission =
            (self.protocol.admit)(&self.claim_of(&call), Some(&found.unpack()), at(now));
        match admission {
            Admission::Busy { .. } if found == waited.held && now > waited.lease => {
                self.blame(Flaw::WaitedInVain);
            }
            Admission::Replay(_) => self.setup.witness.saw(Event::WaitedForResult),
            Admission::Try { .. } => self.setup.witness.saw(Event::TookOverAfterWaiting),
            _ => {}
        }
        self.refused(worker, call, Some(found), now);
    }

    /// The worker's deadline ends its wait.
    pub(crate) fn stop_waiting(&mut self, worker: usize) {
        let call = self.key.calls[worker].expect("the worker waits");
        self.end(worker, call, Ended::Returned);
    }
}
