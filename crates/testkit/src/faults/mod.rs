//! A store with injected faults.
//!
//! [`FaultyStore`] wraps any store, injects [`Fault`]s, and keeps a history of all calls.
//!
//! ```
//! use lambda_idempotency_core::{
//!     clock::Timestamp, key::Key, memory::MemoryStore, record::{IdempotencyRecord, Status},
//!     store::{Guard, Store, StoreErrorKind, Verdict, Write},
//! };
//! use lambda_idempotency_testkit::faults::{Fault, FaultyStore, GuardKind};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let store = FaultyStore::new(MemoryStore::new());
//! store.inject(Fault::lose_answer().guarded_by(GuardKind::Absent));
//!
//! let record = IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(60));
//! let claim = Write::new(Key::from_text("order-1"), Guard::Absent, Some(record));
//! let verdicts = store.write(std::slice::from_ref(&claim), Timestamp::from_secs(1)).await;
//! assert!(matches!(&verdicts[0], Verdict::Unknown(e) if e.kind() == StoreErrorKind::Unavailable));
//! assert_eq!(store.inner().len(), 1, "it was applied all the same");
//!
//! let verdicts = store.write(&[claim], Timestamp::from_secs(1)).await;
//! assert!(matches!(verdicts[0], Verdict::Found(Some(_))), "which the next try finds out");
//! assert_eq!(store.write_calls(), 2);
//! # }
//! ```

mod browsing;
mod fault;
mod history;
mod plan;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, Timestamp},
    key::Key,
    record::IdempotencyRecord,
    store::{Capabilities, Store, StoreError, StoreErrorKind, Verdict, Write},
};

pub use fault::{Fault, GuardKind};
pub use history::Call;

use fault::{Action, Target};
use plan::Plan;

/// Wraps a store, injects faults and keeps a history. Clones share the store.
pub struct FaultyStore<S> {
    shared: Arc<Shared<S>>,
}

struct Shared<S> {
    inner: S,
    state: Mutex<State>,
}

type Before = Arc<dyn Fn(&[Write]) + Send + Sync>;
type After = Arc<dyn Fn(&[Write], &[Verdict]) + Send + Sync>;

#[derive(Default)]
struct State {
    faults: Vec<Fault>,
    outage: bool,
    yields: bool,
    /// How long each call takes.
    takes: Option<Action>,
    history: Vec<Call>,
    /// Writes that the network repeats, each after a number of further write calls.
    echoes: Vec<(usize, Vec<Write>)>,
    before: Vec<Before>,
    after: Vec<After>,
}

impl<S: Store> FaultyStore<S> {
    /// Wraps `inner`, without faults.
    #[must_use]
    pub fn new(inner: S) -> Self {
        Self { shared: Arc::new(Shared { inner, state: Mutex::default() }) }
    }

    /// Makes every call wait once before it is applied and once before its response, so that
    /// concurrent calls interleave and [`crashing`](crate::crashing) can drop a call there.
    #[must_use]
    pub fn yielding(self) -> Self {
        self.lock().yields = true;
        self
    }

    /// Makes every call take this long on `clock`: half of it before it is applied, and half before its
    /// response. A store that answers at once hides what happens in between.
    #[must_use]
    pub fn taking(self, clock: impl Clock, round_trip: Duration) -> Self {
        let clock = Arc::new(clock);
        let (before, after) = (round_trip / 2, round_trip - round_trip / 2);
        self.lock().takes = Some(Action::Delay { clock, before, after });
        self
    }

    /// The inner store, to read or write without faults.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.shared.inner
    }

    /// Adds a fault. Faults are independent: several can apply to one call.
    pub fn inject(&self, fault: Fault) {
        self.lock().faults.push(fault);
    }

    /// Removes all faults, ends an outage, and drops writes that were to be repeated.
    pub fn heal(&self) {
        let mut state = self.lock();
        state.faults.clear();
        state.outage = false;
        state.echoes.clear();
    }

    /// Refuses every call until [`heal`](Self::heal).
    pub fn outage(&self) {
        self.lock().outage = true;
    }

    /// Calls `hook` with the writes of every call before they are applied.
    pub fn before(&self, hook: impl Fn(&[Write]) + Send + Sync + 'static) {
        self.lock().before.push(Arc::new(hook));
    }

    /// Calls `hook` with the writes of every call and the verdicts that its caller gets.
    pub fn after(&self, hook: impl Fn(&[Write], &[Verdict]) + Send + Sync + 'static) {
        self.lock().after.push(Arc::new(hook));
    }

    /// Every call so far, in the order they began.
    #[must_use]
    pub fn history(&self) -> Vec<Call> {
        self.lock().history.clone()
    }

    /// Clears the history and the counts.
    pub fn forget(&self) {
        self.lock().history.clear();
    }

    /// The number of write calls.
    #[must_use]
    pub fn write_calls(&self) -> usize {
        self.count(|call| usize::from(matches!(call, Call::Write { .. })))
    }

    /// The number of writes in all calls together.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.count(|call| if let Call::Write { writes, .. } = call { writes.len() } else { 0 })
    }

    /// The number of read calls.
    #[must_use]
    pub fn read_calls(&self) -> usize {
        self.count(|call| usize::from(matches!(call, Call::Read { .. })))
    }

    fn count(&self, of: impl Fn(&Call) -> usize) -> usize {
        self.lock().history.iter().map(of).sum()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn breathe(&self) {
        let yields = self.lock().yields;
        if yields {
            tokio::task::yield_now().await;
        }
    }
}

impl State {
    fn plan(&mut self, call: &[Target<'_>]) -> Plan {
        let mut plan = Plan::new(call.len());
        if let Some(takes) = &self.takes {
            plan.add(takes, &[]);
        }
        if self.outage {
            plan.refuse_all(StoreErrorKind::Unavailable);
        }
        for fault in &mut self.faults {
            if let Some(struck) = fault.strike(call) {
                plan.add(&fault.action, &struck);
            }
        }
        plan
    }

    /// Counts a write call, and returns the writes to repeat after it.
    fn due_echoes(&mut self) -> Vec<Vec<Write>> {
        let (due, later) = self.echoes.drain(..).partition::<Vec<_>, _>(|(left, _)| *left == 0);
        self.echoes = later.into_iter().map(|(left, writes)| (left - 1, writes)).collect();
        due.into_iter().map(|(_, writes)| writes).collect()
    }
}

impl<S: Store> Store for FaultyStore<S> {
    fn capabilities(&self) -> Capabilities {
        self.shared.inner.capabilities()
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        Box::pin(async move {
            let (index, before) = {
                let mut state = self.lock();
                state.history.push(Call::write(writes));
                (state.history.len() - 1, state.before.clone())
            };
            before.iter().for_each(|hook| hook(writes));
            self.breathe().await;

            let targets: Vec<_> = writes.iter().map(Target::Write).collect();
            let mut plan = self.lock().plan(&targets);
            plan.wait_before(call_deadline).await;
            let passing: Vec<Write> = plan.passing(writes);
            let answered = self.shared.inner.write(&passing, call_deadline).await;
            let echoes = {
                let mut state = self.lock();
                state.echoes.extend(plan.echoes(writes));
                state.due_echoes()
            };
            for echo in echoes {
                self.shared.inner.write(&echo, call_deadline).await;
            }
            self.breathe().await;
            plan.wait_after(call_deadline).await;

            let verdicts = plan.verdicts(answered);
            let after = {
                let mut state = self.lock();
                if let Some(call) = state.history.get_mut(index) {
                    call.answer(&verdicts);
                }
                state.after.clone()
            };
            after.iter().for_each(|hook| hook(writes, &verdicts));
            verdicts
        })
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        Box::pin(async move {
            self.lock().history.push(Call::Read { keys: keys.to_vec() });
            self.breathe().await;
            let targets: Vec<_> = keys.iter().map(Target::Read).collect();
            let mut plan = self.lock().plan(&targets);
            plan.wait_before(call_deadline).await;
            let answered = self.shared.inner.read(&plan.passing(keys), call_deadline).await;
            self.breathe().await;
            plan.wait_after(call_deadline).await;
            plan.answers(answered)
        })
    }
}

impl<S> Clone for FaultyStore<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<S: fmt::Debug> fmt::Debug for FaultyStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("FaultyStore")
            .field("inner", &self.shared.inner)
            .field("faults", &state.faults)
            .field("outage", &state.outage)
            .field("calls", &state.history.len())
            .finish_non_exhaustive()
    }
}
