//! What goes wrong between a client and a server.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// Something that goes wrong with what passes a [`TcpProxy`](super::TcpProxy).
#[derive(Clone, Debug)]
pub struct TcpFault {
    action: Action,
    times: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Cut,
    LoseAnswer,
    DelayRequests(Duration),
    DelayAnswers(Duration),
    SwallowAnswers,
    Silence,
    Refuse,
}

impl TcpFault {
    /// Closes the connection before the request reaches the server.
    pub fn cut() -> Self {
        Self::new(Action::Cut)
    }

    /// Hands the request to the server, and closes the connection instead of answering.
    pub fn lose_answer() -> Self {
        Self::new(Action::LoseAnswer)
    }

    /// Hands the request to the server after this time, also if the client has gone away by then.
    pub fn delay(delay: Duration) -> Self {
        Self::new(Action::DelayRequests(delay))
    }

    /// Answers come so much later.
    pub fn delay_answers(delay: Duration) -> Self {
        Self::new(Action::DelayAnswers(delay))
    }

    /// The server gets everything, its answers are lost, and the connection stays open. No answer comes through a
    /// connection that has lost one, also after this fault has ended: TCP loses no bytes between others.
    pub fn swallow_answers() -> Self {
        Self::new(Action::SwallowAnswers)
    }

    /// Nothing passes in either direction, and nobody is told: a network that is gone. A connection that has lost
    /// something stays silent after this fault has ended.
    pub fn silence() -> Self {
        Self::new(Action::Silence)
    }

    /// Closes new connections at once, and others at their next request: a server that is gone.
    pub fn refuse() -> Self {
        Self::new(Action::Refuse)
    }

    fn new(action: Action) -> Self {
        Self { action, times: u64::MAX }
    }

    /// Only into so many requests or answers. Default: into all.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }
}

/// Names a fault that was added, to remove it or to ask how often it was injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpFaultId(usize);

/// The faults that a proxy injects. Each request and each answer gets the first that is about it.
#[derive(Debug, Default)]
pub struct TcpFaults {
    active: Mutex<Vec<Active>>,
    /// Most proxies have none most of the time.
    is_faulty: AtomicBool,
}

#[derive(Debug)]
struct Active {
    fault: TcpFault,
    injected: u64,
}

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OnRequest {
    Pass,
    Swallow,
    Cut,
    Delay(Duration),
    LoseAnswer,
}

/// What becomes of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OnAnswer {
    Pass,
    Swallow,
    Delay(Duration),
}

impl TcpFaults {
    /// Injects this fault from now on, also into open connections.
    pub fn add(&self, fault: TcpFault) -> TcpFaultId {
        let mut active = self.active();
        active.push(Active { fault, injected: 0 });
        self.is_faulty.store(true, Ordering::Relaxed);
        TcpFaultId(active.len() - 1)
    }

    /// Ends this fault.
    pub fn remove(&self, id: TcpFaultId) {
        if let Some(active) = self.active().get_mut(id.0) {
            active.fault.times = 0;
        }
    }

    /// Ends all faults.
    pub fn clear(&self) {
        self.active().iter_mut().for_each(|active| active.fault.times = 0);
        self.is_faulty.store(false, Ordering::Relaxed);
    }

    /// How many requests, answers and connections this fault was injected into.
    pub fn injected(&self, id: TcpFaultId) -> u64 {
        self.active().get(id.0).map_or(0, |active| active.injected)
    }

    fn active(&self) -> MutexGuard<'_, Vec<Active>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first of these faults that is about what `concerns` says; it is counted.
    fn first(&self, concerns: impl Fn(Action) -> bool) -> Option<Action> {
        if !self.is_faulty.load(Ordering::Relaxed) {
            return None;
        }
        let mut active = self.active();
        let concerned =
            |active: &&mut Active| active.fault.times > 0 && concerns(active.fault.action);
        let found = active.iter_mut().find(concerned)?;
        found.injected += 1;
        if found.fault.times != u64::MAX {
            found.fault.times -= 1;
        }
        Some(found.fault.action)
    }

    pub(super) fn refuses(&self) -> bool {
        self.first(|action| action == Action::Refuse).is_some()
    }

    pub(super) fn on_request(&self) -> OnRequest {
        let concerns = |action| !matches!(action, Action::DelayAnswers(_) | Action::SwallowAnswers);
        match self.first(concerns) {
            Some(Action::Cut | Action::Refuse) => OnRequest::Cut,
            Some(Action::LoseAnswer) => OnRequest::LoseAnswer,
            Some(Action::DelayRequests(delay)) => OnRequest::Delay(delay),
            Some(Action::Silence) => OnRequest::Swallow,
            _ => OnRequest::Pass,
        }
    }

    pub(super) fn on_answer(&self) -> OnAnswer {
        let concerns = |action| {
            matches!(action, Action::DelayAnswers(_) | Action::SwallowAnswers | Action::Silence)
        };
        match self.first(concerns) {
            Some(Action::DelayAnswers(delay)) => OnAnswer::Delay(delay),
            Some(_) => OnAnswer::Swallow,
            None => OnAnswer::Pass,
        }
    }
}
