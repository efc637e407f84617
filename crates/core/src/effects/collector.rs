//! Collects the effects of one call of a handler.

use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, ThreadId},
};

use super::content::{Effects, EffectsKind};

/// Collects the effects of one call of a handler, until the handler returns.
///
/// ```
/// use lambda_idempotency_core::effects::{CollectError, Collector, EffectsKind};
///
/// let collector = Collector::new(EffectsKind::of::<Vec<u8>>());
/// collector.collect(|effects: &mut Vec<u8>| effects.push(1))?;
/// collector.collect(|effects: &mut Vec<u8>| effects.push(2))?;
///
/// let effects = collector.close()?.expect("something was collected");
/// assert_eq!(effects.get::<Vec<u8>>(), Some(&vec![1, 2]));
/// let late = collector.collect(|effects: &mut Vec<u8>| effects.push(3));
/// assert_eq!(late, Err(CollectError::HandlerEnded));
/// # Ok::<(), CollectError>(())
/// ```
pub struct Collector {
    kind: EffectsKind,
    state: Mutex<Collection>,
    /// Wakes threads that wait for another one to have collected.
    collected: Condvar,
}

type Content = Option<Box<dyn Any + Send + Sync>>;

enum Collection {
    Open(Content),
    /// This thread adds to what was collected. No lock is held meanwhile: what it calls is user code.
    Collecting(ThreadId),
    /// User code panicked while it added, so what was collected may be incomplete.
    Incomplete,
    Closed,
}

impl Collector {
    /// An empty collector of effects of this kind.
    #[must_use]
    pub const fn new(kind: EffectsKind) -> Self {
        Self { kind, state: Mutex::new(Collection::Open(None)), collected: Condvar::new() }
    }

    /// Adds to the effects, which begin as the default of their type. Returns what `add` returns. Among several
    /// threads that collect, one adds at a time.
    ///
    /// If `add` panics, nothing of this collector is committed, even if the panic is caught: the effects may
    /// be incomplete.
    ///
    /// # Errors
    /// The store commits effects of another type, the handler has ended, an earlier `add` panicked, or this
    /// is called by an `add`.
    pub fn collect<T, R>(&self, add: impl FnOnce(&mut T) -> R) -> Result<R, CollectError>
    where
        T: Default + Any + Send + Sync,
    {
        let wanted = EffectsKind::of::<T>();
        let other = CollectError::OtherStore { store: self.kind, call: wanted };
        if wanted != self.kind {
            return Err(other);
        }
        let before = self.begin()?;
        let adding = catch_unwind(AssertUnwindSafe(|| {
            let mut content = before.unwrap_or_else(|| Box::new(T::default()));
            let added = content.downcast_mut().map(add);
            (content, added)
        }));
        let (added, next) = match adding {
            Ok((content, added)) => (Ok(added), Collection::Open(Some(content))),
            Err(thrown) => (Err(thrown), Collection::Incomplete),
        };
        let is_open = self.end(next);
        match added {
            Ok(added) if is_open => added.ok_or(other),
            Ok(_) => Err(CollectError::HandlerEnded),
            Err(thrown) => resume_unwind(thrown),
        }
    }

    /// Ends collecting; returns what was collected, if anything was.
    ///
    /// # Errors
    /// The effects may be incomplete: an `add` panicked, or still runs in another thread.
    pub fn close(&self) -> Result<Option<Effects>, CollectError> {
        let state = std::mem::replace(&mut *self.lock(), Collection::Closed);
        self.collected.notify_all();
        match state {
            Collection::Open(content) => {
                Ok(content.map(|content| Effects { content: Arc::from(content), kind: self.kind }))
            }
            Collection::Collecting(_) => Err(CollectError::StillCollecting),
            Collection::Incomplete => Err(CollectError::Incomplete),
            Collection::Closed => Ok(None),
        }
    }

    /// Takes what was collected, once no other thread adds to it.
    fn begin(&self) -> Result<Content, CollectError> {
        let me = thread::current().id();
        let mut state = self.lock();
        loop {
            match &mut *state {
                Collection::Open(content) => {
                    let content = content.take();
                    *state = Collection::Collecting(me);
                    return Ok(content);
                }
                Collection::Collecting(thread) if *thread == me => {
                    return Err(CollectError::Nested);
                }
                Collection::Collecting(_) => {
                    state = self.collected.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                Collection::Incomplete => return Err(CollectError::Incomplete),
                Collection::Closed => return Err(CollectError::HandlerEnded),
            }
        }
    }

    /// Gives back what was collected, or says that it is incomplete. Returns whether the collector is still open.
    fn end(&self, next: Collection) -> bool {
        let mut state = self.lock();
        let is_open = matches!(*state, Collection::Collecting(_));
        let unused = if is_open { std::mem::replace(&mut *state, next) } else { next };
        drop(state);
        self.collected.notify_all();
        drop(unused);
        is_open
    }

    // No user code runs while the lock is held.
    fn lock(&self) -> MutexGuard<'_, Collection> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Collector({})", self.kind.name())
    }
}

/// Why an effect could not be collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CollectError {
    /// The call commits no effects: its operation is not transactional, or it runs without a claim.
    #[error(
        "this call commits no effects: give its operation `.mode(Mode::Transactional)`, and run it with a claim"
    )]
    NotTransactional,
    /// The store commits effects of another type.
    #[error(
        "the store commits effects of type `{}`, and these are of type `{}`: collect them with the \
         method that belongs to the store", .store.name(), .call.name()
    )]
    OtherStore {
        /// The kind that the store commits.
        store: EffectsKind,
        /// The kind that was to be collected.
        call: EffectsKind,
    },
    /// The handler has returned or was stopped.
    #[error(
        "the handler of this call has ended, so its effects are not committed: collect them before it \
         returns"
    )]
    HandlerEnded,
    /// It was called by the function that another call of it was given.
    #[error(
        "effects are collected inside the closure that collects others: collect them one after the \
         other, outside of the closure"
    )]
    Nested,
    /// It was called in the work of a step. A later attempt gets the step's result and does not call its work,
    /// so it would be committed without the effect.
    #[error(
        "effects are collected in the work of a step, which later attempts do not call, so they would be missing \
         there: collect them in the handler, after the step"
    )]
    InStep,
    /// A function that added effects panicked, so that nothing of this call is committed.
    #[error(
        "a closure that collected effects of this call panicked, so they may be incomplete and are not \
         committed: let the handler fail, and correct the closure"
    )]
    Incomplete,
    /// The handler returned while another thread was collecting, so that nothing of this call is committed.
    #[error(
        "another thread was still collecting effects when the handler returned, so they are not \
         committed: wait in the handler for what it has started"
    )]
    StillCollecting,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_of_another_store_are_refused() {
        let collector = Collector::new(EffectsKind::of::<Vec<u8>>());
        let refused = collector.collect(|effects: &mut String| effects.push('a')).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the store commits effects of type `alloc::vec::Vec<u8>`, and these are of type \
             `alloc::string::String`: collect them with the method that belongs to the store"
        );
        assert_eq!(collector.close(), Ok(None), "nothing was collected");
    }

    fn numbers() -> Arc<Collector> {
        Arc::new(Collector::new(EffectsKind::of::<Vec<u8>>()))
    }

    fn closed(collector: &Collector) -> Result<Option<Vec<u8>>, CollectError> {
        let effects = collector.close()?;
        Ok(effects.map(|effects| effects.get::<Vec<u8>>().unwrap().clone()))
    }

    #[test]
    fn collecting_while_collecting_is_an_error_and_blocks_nobody() {
        let collector = numbers();
        let inner = collector.collect(|effects: &mut Vec<u8>| {
            effects.push(1);
            collector.collect(|effects: &mut Vec<u8>| effects.push(2))
        });
        assert_eq!(inner, Ok(Err(CollectError::Nested)));
        collector.collect(|effects: &mut Vec<u8>| effects.push(3)).unwrap();
        assert_eq!(closed(&collector), Ok(Some(vec![1, 3])));
    }

    #[test]
    fn after_a_panic_that_was_caught_nothing_is_committed() {
        let collector = numbers();
        collector.collect(|effects: &mut Vec<u8>| effects.push(1)).unwrap();
        let panics = || {
            collector.collect(|effects: &mut Vec<u8>| {
                effects.push(2);
                panic!("half done")
            })
        };
        let caught =
            catch_unwind(AssertUnwindSafe(panics)).map(|collected: Result<(), _>| collected);
        assert!(caught.is_err());
        let later = collector.collect(|effects: &mut Vec<u8>| effects.push(3));
        assert_eq!(later, Err(CollectError::Incomplete));
        assert_eq!(closed(&collector), Err(CollectError::Incomplete));
    }

    #[test]
    fn threads_collect_one_after_the_other() {
        let collector = numbers();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for n in 0..100 {
                        collector
                            .collect(|effects: &mut Vec<u8>| {
                                let seen = effects.len();
                                thread::yield_now();
                                effects.push(n);
                                assert_eq!(effects.len(), seen + 1);
                            })
                            .unwrap();
                    }
                });
            }
        });
        assert_eq!(closed(&collector).unwrap().unwrap().len(), 800);
    }

    #[test]
    fn the_end_of_the_handler_waits_for_no_thread_that_collects() {
        let (collector, (hold, held)) = (numbers(), std::sync::mpsc::channel::<()>());
        let (begun, wait) = std::sync::mpsc::channel();
        let slow = Arc::clone(&collector);
        let thread = thread::spawn(move || {
            slow.collect(|effects: &mut Vec<u8>| {
                begun.send(()).unwrap();
                held.recv().unwrap();
                effects.push(1);
            })
        });
        wait.recv().unwrap();
        assert_eq!(closed(&collector), Err(CollectError::StillCollecting));
        hold.send(()).unwrap();
        assert_eq!(thread.join().unwrap(), Err(CollectError::HandlerEnded));
        assert_eq!(closed(&collector), Ok(None));
    }
}
