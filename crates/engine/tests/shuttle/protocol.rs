//! What the explorations drive, so that a mutant can take its place.

use std::{marker::PhantomData, sync::Arc};

use crate::{
    clock::Timestamp,
    key::Key,
    process::{Boarding, Completed, Flights, Lead},
    record::Record,
};

/// The steps of the real code; a mutant gets one of them wrong.
pub(crate) trait Protocol: 'static {
    fn board(flights: &Arc<Flights>, key: &Key, now: Timestamp, until: Timestamp) -> Boarding {
        flights.board(key, now, until)
    }

    fn end(lead: Lead) {
        drop(lead);
    }

    /// What the end of an invocation does to the leads that it holds.
    fn cancel(lead: Lead) {
        Self::end(lead);
    }

    fn keep(completed: &Completed, key: &Key, record: &Arc<Record>, now: Timestamp) {
        completed.keep(key, record, now);
    }
}

pub(crate) struct Real;

impl Protocol for Real {}

/// A lead as an invocation holds it: it ends by [`Guard::end`], or with the invocation.
pub(crate) struct Guard<P: Protocol> {
    lead: Option<Lead>,
    protocol: PhantomData<fn(P)>,
}

impl<P: Protocol> Guard<P> {
    pub(crate) fn new(lead: Lead) -> Self {
        Self { lead: Some(lead), protocol: PhantomData }
    }

    pub(crate) fn learn(&mut self, record: Arc<Record>) {
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
