//! The steps of one call: which have ended, in this attempt or before, which of them the store has, and why one fails.
//!
//! A step that ends adds its result here and waits. The driver takes the text of all results after it has polled
//! the handler, the machine writes it, and the answer of the store lets the step return.

use std::{
    collections::BTreeMap,
    fmt,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
    thread::{self, ThreadId},
};

use lambda_idempotency_core::{record::Json, store::StoreError};
use serde_json::value::RawValue;

/// The longest name of a step, in bytes.
const LONGEST_NAME: usize = 64;

/// The steps of one call of a handler. The call and its clones share them.
pub(crate) struct Steps {
    /// Whether results are written to the store before steps return.
    are_stored: bool,
    /// Why none may be called, if so.
    refusal: Option<Refusal>,
    state: Mutex<StepsState>,
}

#[derive(Default)]
struct StepsState {
    /// As it was read with the claim, until the first step asks.
    before: Option<Json>,
    /// From then on.
    results: Option<Results>,
    /// The steps that this attempt has called: whether each has ended.
    called: BTreeMap<Arc<str>, bool>,
    /// The text of all results, after each step that ended in this attempt.
    texts: Vec<Json>,
    /// How many of them the driver has taken.
    taken: usize,
    /// How many of them the store has.
    stored: usize,
    /// Why it does not keep the others.
    refused: Option<StoreError>,
    has_ended: bool,
    /// Steps that wait for the store.
    waiting: Vec<Waker>,
    /// The handler, to be polled so that the driver comes by.
    handler: Option<Waker>,
    /// The threads that poll the work of a step just now; a thread is there once for each step inside another.
    working: Vec<ThreadId>,
}

/// The steps of a call that are kept.
#[derive(Clone)]
pub(crate) enum KeptSteps {
    /// The call's key is claimed: all of them. With what the attempts before have stored.
    Stored(Option<Json>),
    /// The call has no claim: they are called in each attempt.
    NotStored,
    /// The call's operation cannot keep them: none may be called.
    Refused(Refusal),
}

/// Why no step of a call may be called: nothing would keep its result.
#[derive(Clone, Copy)]
pub(crate) enum Refusal {
    /// The operation is optimistic.
    Unclaimed,
    /// The operation is a mutex.
    Mutex,
}

impl Refusal {
    const fn of(self, name: Arc<str>) -> StepError {
        match self {
            Self::Unclaimed => StepError::Unclaimed { name },
            Self::Mutex => StepError::Mutex { name },
        }
    }
}

/// How a step begins.
pub(crate) enum Begun {
    /// An attempt before has called it: its result.
    Before(Box<RawValue>),
    /// It is to be called.
    Calls(CalledStep),
}

/// A step that is called. If it does not end, because it fails or is dropped, it can be called again.
pub(crate) struct CalledStep {
    steps: Arc<Steps>,
    name: Arc<str>,
    has_ended: bool,
}

impl Steps {
    pub(crate) fn new(kept: &KeptSteps) -> Arc<Self> {
        let (are_stored, before, refusal) = match kept {
            KeptSteps::Stored(before) => (true, before.clone(), None),
            KeptSteps::NotStored => (false, None, None),
            KeptSteps::Refused(refusal) => (false, None, Some(*refusal)),
        };
        let state = Mutex::new(StepsState { before, ..StepsState::default() });
        Arc::new(Self { are_stored, refusal, state })
    }

    /// Sets what an attempt before has stored, for tests.
    pub(crate) fn set(&self, name: &str, result: Box<RawValue>) {
        let mut state = self.lock();
        state.results.get_or_insert_default().insert(name.into(), result);
    }

    /// Begins a step, if it may be called.
    pub(crate) fn begin(self: &Arc<Self>, name: &str) -> Result<Begun, StepError> {
        let is_visible = name.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_visible || !(1..=LONGEST_NAME).contains(&name.len()) {
            return Err(StepError::Name { length: name.len() });
        }
        let name: Arc<str> = name.into();
        if let Some(refusal) = self.refusal {
            return Err(refusal.of(name));
        }
        let mut state = self.lock();
        if state.has_ended {
            return Err(StepError::HandlerEnded { name });
        }
        if state.called.contains_key(&name) {
            return Err(StepError::Twice { name });
        }
        let (known, kept) = {
            let results = state.results()?;
            (results.get(&name).map(ToOwned::to_owned), results.len())
        };
        if let Some(result) = known {
            state.called.insert(name, true);
            return Ok(Begun::Before(result));
        }
        let running = state.called.values().filter(|has_ended| !**has_ended).count();
        if kept + running >= MAX_STEPS {
            return Err(StepError::TooMany { name });
        }
        state.called.insert(Arc::clone(&name), false);
        Ok(Begun::Calls(CalledStep { steps: Arc::clone(self), name, has_ended: false }))
    }

    /// The handler is polled by this task.
    pub(crate) fn polled_by(&self, handler: &Waker) {
        self.lock().handler = Some(handler.clone());
    }

    /// The text of all results, if a step has ended since it was taken.
    pub(crate) fn take(&self) -> Option<Json> {
        let mut state = self.lock();
        let last = state.texts.get(state.taken..)?.last()?.clone();
        state.taken = state.texts.len();
        Some(last)
    }

    /// The store has this text.
    pub(crate) fn are_in_store(&self, text: &Json) {
        let mut state = self.lock();
        let Some(last) = state.texts.iter().rposition(|one| one == text) else { return };
        state.stored = state.stored.max(last + 1);
        wake(state);
    }

    /// The store keeps none of the results that wait.
    pub(crate) fn are_refused(&self, error: &StoreError) {
        let mut state = self.lock();
        if state.stored < state.texts.len() {
            state.refused = Some(error.clone());
            wake(state);
        }
    }

    /// The handler has ended: what is left of it keeps no more steps.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        (state.has_ended, state.handler) = (true, None);
        wake(state);
    }

    // A panic cannot leave it half-changed: nothing of the user runs under the lock.
    fn lock(&self) -> MutexGuard<'_, StepsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(mut state: MutexGuard<'_, StepsState>) {
    let waiting = std::mem::take(&mut state.waiting);
    drop(state);
    waiting.into_iter().for_each(Waker::wake);
}

impl StepsState {
    fn results(&mut self) -> Result<&mut Results, StepError> {
        let results = match self.results.take() {
            Some(results) => results,
            None => Results::parse(self.before.as_ref())?,
        };
        Ok(self.results.insert(results))
    }

    /// Adds a result. Returns how many steps of this attempt have ended.
    fn add(&mut self, name: &Arc<str>, result: Box<RawValue>) -> Result<usize, StepError> {
        let results = self.results()?;
        results.insert(Arc::clone(name), result);
        let text = results.text()?;
        if text.len() > MAX_STEP_BYTES {
            results.remove(name);
            return Err(StepError::TooLarge { name: Arc::clone(name), bytes: text.len() });
        }
        self.texts.push(text);
        self.refused = None;
        Ok(self.texts.len())
    }
}

impl CalledStep {
    pub(crate) const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The step has run: it is not to be called again in this attempt, even if its result is not kept.
    pub(crate) const fn has_run(&mut self) {
        self.has_ended = true;
    }

    /// The step has returned this. Ends when the store has it.
    pub(crate) async fn ended(mut self, result: Box<RawValue>) -> Result<(), StepError> {
        self.has_run();
        let number = {
            let mut state = self.steps.lock();
            if state.has_ended {
                return Err(StepError::HandlerEnded { name: Arc::clone(&self.name) });
            }
            let number = state.add(&self.name, result)?;
            state.called.insert(Arc::clone(&self.name), true);
            if let Some(handler) = state.handler.as_ref().filter(|_| self.steps.are_stored) {
                handler.wake_by_ref();
            }
            number
        };
        if !self.steps.are_stored {
            return Ok(());
        }
        std::future::poll_fn(|context| {
            let mut state = self.steps.lock();
            let name = || Arc::clone(&self.name);
            if state.stored >= number {
                Poll::Ready(Ok(()))
            } else if let Some(source) = state.refused.clone() {
                Poll::Ready(Err(StepError::NotKept { name: name(), source }))
            } else if state.has_ended {
                Poll::Ready(Err(StepError::HandlerEnded { name: name() }))
            } else {
                if !state.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                    state.waiting.push(context.waker().clone());
                }
                Poll::Pending
            }
        })
        .await
    }
}

impl Drop for CalledStep {
    fn drop(&mut self) {
        if !self.has_ended {
            self.steps.lock().called.remove(&self.name);
        }
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steps").field("are_stored", &self.are_stored).finish_non_exhaustive()
    }
}

/// The results of steps that have ended, by name. They are stored as a JSON object, which nothing else in this project reads.
#[derive(Clone, Default)]
struct Results(BTreeMap<Arc<str>, Box<RawValue>>);

impl Results {
    /// Reads what an attempt before has stored.
    fn parse(text: Option<&Json>) -> Result<Self, StepError> {
        let Some(text) = text else { return Ok(Self::default()) };
        serde_json::from_str(text).map(Self).map_err(|_| StepError::Unreadable)
    }

    fn text(&self) -> Result<Json, StepError> {
        serde_json::to_string(&self.0).map(Json::from).map_err(|_| StepError::Unreadable)
    }

    fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.get(name).map(|result| &**result)
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn insert(&mut self, name: Arc<str>, result: Box<RawValue>) {
        self.0.insert(name, result);
    }

    fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }
}

impl Steps {
    /// Calls the work of a step and waits for it. Effects and messages that the work adds are refused: an attempt that gets
    /// the step's result does not call its work, and would be completed without them.
    pub(crate) async fn working<Fut: Future>(&self, work: impl FnOnce() -> Fut) -> Fut::Output {
        let work = {
            let _working = Working::on_this_thread(self);
            work()
        };
        let mut work = pin!(work);
        std::future::poll_fn(|context| {
            let _working = Working::on_this_thread(self);
            work.as_mut().poll(context)
        })
        .await
    }

    /// Whether this thread polls the work of a step. Code that runs beside a step, in the same handler, does not.
    pub(crate) fn are_working(&self) -> bool {
        self.lock().working.contains(&thread::current().id())
    }
}

/// This thread polls the work of a step, until this is dropped, also by a panic.
struct Working<'a>(&'a Steps);

impl<'a> Working<'a> {
    fn on_this_thread(steps: &'a Steps) -> Self {
        steps.lock().working.push(thread::current().id());
        Self(steps)
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let me = thread::current().id();
        if let Some(last) = state.working.iter().rposition(|thread| *thread == me) {
            state.working.swap_remove(last);
        }
    }
}

/// How many steps of a key are kept.
pub const MAX_STEPS: usize = 32;

/// How many bytes the steps of a key may have together, as JSON with their names. Each write of the record
/// repeats them until the key is completed.
pub const MAX_STEP_BYTES: usize = 32 * 1024;

/// Why a step of a call could not run, or why its result could not be kept or answered. Where its text does not
/// say otherwise, the step was not called.
///
/// It holds no result; the step's name is the one in the code.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// Its name cannot be stored.
    #[error(
        "the name of a step has {length} bytes or a character that is not visible ASCII: give it a name of 1 to \
         64 visible ASCII characters"
    )]
    Name {
        /// How many bytes the name has.
        length: usize,
    },
    /// Another step of this call has the name.
    #[error(
        "the step `{name}` was already called in this attempt, and a result is kept once for each name: give \
         each step of a call a name of its own"
    )]
    Twice {
        /// The name.
        name: Arc<str>,
    },
    /// The key has as many steps as can be kept.
    #[error(
        "the step `{name}` would be one more than the {MAX_STEPS} that are kept for a key: do several things in \
         one step, or give parts of the work keys of their own"
    )]
    TooMany {
        /// The step.
        name: Arc<str>,
    },
    /// Its result, with those of the other steps, is more than is kept. The step was called, and what it did
    /// has happened; the next attempt calls it again.
    #[error(
        "the step `{name}` has run, but its result brings the steps of its key to {bytes} bytes, and at most \
         {MAX_STEP_BYTES} are kept; the next attempt runs it again. Return only what a later attempt needs, \
         such as an id"
    )]
    TooLarge {
        /// The step.
        name: Arc<str>,
        /// How many bytes the steps of the key would have.
        bytes: usize,
    },
    /// Its result cannot be written as JSON. The step was called, and what it did has happened; the next
    /// attempt calls it again.
    #[error(
        "the step `{name}` has run, but its result cannot be written as JSON; the next attempt runs it again. \
         Return a type that serde can write, with text as the keys of its maps"
    )]
    Unserializable {
        /// The step.
        name: Arc<str>,
    },
    /// Its kept result is not of the type that it returns. The step was called, in this attempt or in one
    /// before, and is not called again.
    #[error(
        "what is kept of the step `{name}` cannot be read as `{expected}` (line {line}, column {column}). It is \
         not run again: accept the type that an earlier version returned, or give the changed step another name"
    )]
    Mismatch {
        /// The step.
        name: Arc<str>,
        /// The type that it returns now.
        expected: &'static str,
        /// The line in the JSON of its result, from 1.
        line: usize,
        /// The column.
        column: usize,
    },
    /// The operation is optimistic, so there is no claim that could keep the result.
    #[error(
        "the step `{name}` cannot be kept, because the operation is optimistic and claims no key; use \
         `.mode(Mode::Transactional)`, or do without steps"
    )]
    Unclaimed {
        /// The step.
        name: Arc<str>,
    },
    /// The operation is a mutex, which keeps nothing of an attempt.
    #[error(
        "the step `{name}` cannot be kept, because the operation has `.mode(Mode::Mutex)`, which keeps nothing of an \
         attempt; use an operation that is not a mutex, or do without steps"
    )]
    Mutex {
        /// The step.
        name: Arc<str>,
    },
    /// The kept steps of the key cannot be read at all. No step is called.
    #[error(
        "what is kept of this key's steps cannot be read: its attribute was changed, or a later version of this \
         library wrote it. Look at the record, and free its key if its steps may run again"
    )]
    Unreadable,
    /// The store refused to keep its result. The step was called, and what it did has happened; unless another
    /// write of this attempt keeps it, the next attempt calls it again.
    #[error(
        "the step `{name}` has run, but the store refused to keep its result; the next attempt may run it again"
    )]
    NotKept {
        /// The step.
        name: Arc<str>,
        /// Why.
        source: StoreError,
    },
    /// The handler has returned or was stopped, so no step is kept any more.
    #[error(
        "the handler of this call has ended, so the step `{name}` is not kept: await steps before the handler \
         returns"
    )]
    HandlerEnded {
        /// The step.
        name: Arc<str>,
    },
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
