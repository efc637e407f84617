//! Injects faults: sends signals to processes and activates faults of the store.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use lambda_idempotency_local::{FaultId, Invocation, InvocationResult, Local, Signal};

use crate::{history::End, kinds::FaultKind, store::Store, store_faults::StoreFault};

/// How long a process may run on after it was stopped, before it is killed: long enough to finish.
const RUN_ON: Duration = Duration::from_secs(2);
/// How often it is looked whether a process that was killed has ended.
const LOOK: Duration = Duration::from_millis(5);

/// The faults that were injected, and the steps that have to follow.
#[derive(Debug)]
pub(crate) struct Injector {
    /// How long a stopped process stays stopped.
    standstill: Duration,
    due: Vec<(Instant, Due)>,
    /// Processes that the rig stopped, and whether they were continued.
    stopped: BTreeMap<u32, bool>,
    killed: BTreeSet<u32>,
    store_faults: Vec<(FaultKind, FaultId)>,
    counts: BTreeMap<FaultKind, u64>,
}

/// A step to take later.
#[derive(Clone, Debug)]
enum Due {
    Signal { request: String, kind: FaultKind },
    Continue(u32),
    Kill(u32),
    Remove(u32),
    Heal(FaultId),
}

impl Injector {
    pub(crate) fn new(standstill: Duration) -> Self {
        Self {
            standstill,
            due: Vec::new(),
            stopped: BTreeMap::new(),
            killed: BTreeSet::new(),
            store_faults: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    /// Stops a process for a while, or kills it.
    pub(crate) fn signal(&mut self, local: &Local, pid: u32, kind: FaultKind) {
        let stops = kind == FaultKind::Stop;
        if !local.signal(pid, if stops { Signal::Stop } else { Signal::Kill }) {
            return; // its invocation has ended
        }
        self.count(kind);
        if stops {
            self.stopped.insert(pid, false);
            self.later(self.standstill, Due::Continue(pid));
        } else {
            self.killed.insert(pid);
        }
    }

    /// The same after a delay with the process that has this invocation, if it still has it.
    pub(crate) fn signal_later(&mut self, delay: Duration, request: String, kind: FaultKind) {
        self.later(delay, Due::Signal { request, kind });
    }

    pub(crate) fn store_fault(&mut self, store: &Store, store_fault: &StoreFault) {
        let (id, lasting) = store.inject(store_fault);
        self.store_faults.push((store_fault.kind(), id));
        if let Some(lasting) = lasting {
            self.later(lasting, Due::Heal(id));
        }
    }

    /// Called when an invocation has ended: whether its process was stopped during it.
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

    /// How an invocation ended. A process that the rig has killed is forgotten then.
    pub(crate) fn end_of(&mut self, invocation: &Invocation) -> End {
        match invocation.result {
            InvocationResult::TimedOut => End::TimedOut,
            InvocationResult::Exited { .. } => {
                self.stopped.remove(&invocation.pid);
                if self.killed.remove(&invocation.pid) { End::Killed } else { End::Crashed }
            }
            _ => End::Answered,
        }
    }

    /// Called when a process missed its deadline. A stopped process is killed later anyway; another one is
    /// killed now, as Lambda does, or left running for a while, as on Managed Instances.
    pub(crate) fn overran(&mut self, pid: u32, left_running: bool) {
        self.count(FaultKind::Timeout);
        if self.stopped.get(&pid) != Some(&false) {
            self.later(if left_running { RUN_ON } else { Duration::ZERO }, Due::Kill(pid));
        }
    }

    /// Takes the steps that are due. Returns the processes that have ended.
    pub(crate) fn tick(&mut self, local: &Local, store: &Store) -> Vec<u32> {
        let now = Instant::now();
        let mut gone = Vec::new();
        for (_, due) in self.due.extract_if(.., |(at, _)| *at <= now).collect::<Vec<_>>() {
            match due {
                Due::Signal { request, kind } => {
                    let running = local.in_flight();
                    if let Some(running) = running.iter().find(|one| one.request_id == request) {
                        self.signal(local, running.pid, kind);
                    }
                }
                Due::Continue(pid) => {
                    local.signal(pid, Signal::Continue);
                    if let Some(continued) = self.stopped.get_mut(&pid) {
                        *continued = true;
                    }
                    self.later(RUN_ON, Due::Kill(pid));
                }
                Due::Kill(pid) if local.is_left_running(pid) => {
                    local.signal(pid, Signal::Kill);
                    self.later(LOOK, Due::Remove(pid));
                }
                Due::Kill(_) => {} // it met its deadline after all, and serves another invocation now
                Due::Remove(pid) if local.is_left_running(pid) => {
                    self.later(LOOK, Due::Remove(pid));
                }
                Due::Remove(pid) => {
                    self.stopped.remove(&pid);
                    gone.push(pid);
                }
                Due::Heal(id) => store.heal(id),
            }
        }
        gone
    }

    /// Whether no step remains.
    pub(crate) fn is_over(&self) -> bool {
        self.due.is_empty()
    }

    /// How often each kind of fault was injected: processes signalled, deadlines missed, requests changed.
    pub(crate) fn counts(&self, store: &Store) -> BTreeMap<FaultKind, u64> {
        let mut counts = self.counts.clone();
        for (kind, id) in &self.store_faults {
            let injected = store.injected(*id);
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
