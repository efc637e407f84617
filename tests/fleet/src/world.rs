//! What all parts of a simulation share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicUsize};

use crate::{
    figures::Figures,
    ledger::Ledger,
    queue::Queue,
    scenario::Scenario,
    table::Table,
    time::{Timeline, micros},
};

pub(crate) struct World {
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) timeline: Timeline,
    pub(crate) figures: Figures,
    pub(crate) table: Table,
    /// How many batches may be processed at once.
    pub(crate) pollers: AtomicUsize,
    queue: Mutex<Queue>,
    ledger: Mutex<Ledger>,
}

impl World {
    pub(crate) fn new(scenario: Scenario) -> Self {
        let scenario = Arc::new(scenario);
        let (timeline, figures) = (Timeline::default(), Figures::default());
        Self {
            table: Table::new(Arc::clone(&scenario), timeline.clone(), figures.clone()),
            timeline,
            figures,
            pollers: AtomicUsize::new(scenario.pollers.first.min(scenario.functions)),
            queue: Mutex::new(Queue::new(Arc::clone(&scenario))),
            ledger: Mutex::new(Ledger::for_keys(scenario.records)),
            scenario,
        }
    }

    pub(crate) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all is done, or will never be.
    pub(crate) fn is_over(&self) -> bool {
        self.queue().is_finished() || self.timeline.now() > micros(self.scenario.horizon())
    }
}
