//! Injects faults, each in its time: signals to processes, and faults of the store.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use lambda_idempotency_local::{FaultId, Local, Signal};

use crate::{FaultKind, plan::ProcessFault, store_faults::StoreFault};

/// How long a process that was stopped may run on before it is killed: long enough to finish.
const AFTERLIFE: Duration = Duration::from_secs(2);
/// How long after its death a process may be forgotten.
const FORGOTTEN: Duration = Duration::from_millis(100);

/// The faults that were injected, and what is due because of them.
#[derive(Debug, Default)]
pub(crate) struct Injector {
    due: Vec<(Instant, Due)>,
    /// Processes that we stopped, and whether they go on again.
    stopped: BTreeMap<u32, bool>,
    killed: BTreeSet<u32>,
    store_faults: Vec<(FaultKind, FaultId)>,
    counts: BTreeMap<FaultKind, u64>,
}

/// What is to be done later.
#[derive(Clone, Copy, Debug)]
enum Due {
    Continue(u32),
    Kill(u32),
    Forget(u32),
    Clear(FaultId),
}

impl Injector {
    /// Signals a process. One that is stopped stays so for this long.
    pub(crate) fn signal(
        &mut self,
        local: &Local,
        pid: u32,
        fault: ProcessFault,
        standstill: Duration,
    ) {
        let (signal, kind) = match fault {
            ProcessFault::Kill => (Signal::Kill, FaultKind::Kill),
            ProcessFault::Stop => (Signal::Stop, FaultKind::Stop),
        };
        if !local.signal(pid, signal) {
            return; // its invocation is over
        }
        self.count(kind);
        match fault {
            ProcessFault::Kill => {
                self.killed.insert(pid);
            }
            ProcessFault::Stop => {
                self.stopped.insert(pid, false);
                self.later(standstill, Due::Continue(pid));
            }
        }
    }

    /// Lets something befall the store.
    pub(crate) fn befall(&mut self, local: &Local, table: &str, store_fault: &StoreFault) {
        let (fault, lasting) = store_fault.fault();
        let id = local.dynamodb().faults().add(fault.table(table));
        self.store_faults.push((store_fault.kind(), id));
        if let Some(lasting) = lasting {
            self.later(lasting, Due::Clear(id));
        }
    }

    /// An invocation is over: whether its process was stopped during it.
    pub(crate) fn was_stopped(&mut self, pid: u32) -> bool {
        match self.stopped.get(&pid) {
            Some(true) => {
                self.stopped.remove(&pid);
                true
            }
            Some(false) => true,
            None => false,
        }
    }

    /// Whether it was us who killed the process.
    pub(crate) fn was_killed(&mut self, pid: u32) -> bool {
        self.stopped.remove(&pid);
        self.killed.remove(&pid)
    }

    /// A process missed its deadline. One that is stopped has its end coming; another one is killed
    /// at once, as in Lambda, or left running for a while, as in Managed Instances.
    pub(crate) fn overran(&mut self, pid: u32, left_running: bool) {
        self.count(FaultKind::Timeout);
        if self.stopped.get(&pid) != Some(&false) {
            self.later(if left_running { AFTERLIFE } else { Duration::ZERO }, Due::Kill(pid));
        }
    }

    /// Does what is due. Returns the processes that are gone.
    pub(crate) fn tick(&mut self, local: &Local) -> Vec<u32> {
        let now = Instant::now();
        let mut gone = Vec::new();
        for (_, due) in self.due.extract_if(.., |(at, _)| *at <= now).collect::<Vec<_>>() {
            match due {
                Due::Continue(pid) => {
                    local.signal(pid, Signal::Continue);
                    if let Some(goes_on) = self.stopped.get_mut(&pid) {
                        *goes_on = true;
                    }
                    self.later(AFTERLIFE, Due::Kill(pid));
                }
                Due::Kill(pid) if local.is_left_running(pid) => {
                    local.signal(pid, Signal::Kill);
                    self.later(FORGOTTEN, Due::Forget(pid));
                }
                Due::Kill(_) => {} // it was in time after all, and has other work now
                Due::Forget(pid) => {
                    self.stopped.remove(&pid);
                    gone.push(pid);
                }
                Due::Clear(id) => local.dynamodb().faults().remove(id),
            }
        }
        gone
    }

    /// Whether nothing is to come.
    pub(crate) fn is_over(&self) -> bool {
        self.due.is_empty()
    }

    /// How often each kind of fault was injected: processes signalled, deadlines missed, requests changed.
    pub(crate) fn counts(&self, local: &Local) -> BTreeMap<FaultKind, u64> {
        let mut counts = self.counts.clone();
        for (kind, id) in &self.store_faults {
            let injected = local.dynamodb().faults().injected(*id);
            if injected > 0 {
                *counts.entry(*kind).or_default() += injected;
            }
        }
        counts
    }

    fn count(&mut self, kind: FaultKind) {
        *self.counts.entry(kind).or_default() += 1;
    }

    fn later(&mut self, delay: Duration, due: Due) {
        self.due.push((Instant::now() + delay, due));
    }
}
