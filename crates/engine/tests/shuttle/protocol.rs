//! The steps that the explorations run, as a trait, so that a mutant can replace one.

use std::{marker::PhantomData, sync::Arc};

use crate::{
    clock::Timestamp,
    key::Key,
    process::{Completed, Joined, Leader, SingleFlight},
    record::IdempotencyRecord,
};

/// The steps of the real code; a mutant has a mistake in one of them.
pub(crate) trait Protocol: 'static {
    fn join(
        single_flight: &Arc<SingleFlight>,
        key: &Key,
        now: Timestamp,
        until: Timestamp,
    ) -> Joined {
        single_flight.join(key, now, until)
    }

    fn end(lead: Leader) {
        drop(lead);
    }

    /// Ends a lead because its invocation ends.
    fn cancel(lead: Leader) {
        Self::end(lead);
    }

    fn keep(completed: &Completed, key: &Key, record: &Arc<IdempotencyRecord>, now: Timestamp) {
        completed.keep(key, record, now);
    }
}

pub(crate) struct Real;

impl Protocol for Real {}

/// A lead that an invocation holds: it ends by [`Guard::end`], or with the invocation.
pub(crate) struct Guard<P: Protocol> {
    lead: Option<Leader>,
    protocol: PhantomData<fn(P)>,
}

impl<P: Protocol> Guard<P> {
    pub(crate) fn new(lead: Leader) -> Self {
        Self { lead: Some(lead), protocol: PhantomData }
    }

    pub(crate) fn learn(&mut self, record: Arc<IdempotencyRecord>) {
        self.lead.as_mut().unwrap().learn(record);
    }

    pub(crate) fn end(mut self) {
        P::end(self.lead.take().unwrap());
    }
}

impl<P: Protocol> Drop for Guard<P> {
    fn drop(&mut self) {
        if let Some(lead) = self.lead.take() {
            P::cancel(lead);
        }
    }
}
