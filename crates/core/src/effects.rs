//! Effects that a store commits together with a write: in one transaction, both or neither.
//!
//! A handler of a transactional operation does not change the user's tables itself. Its call collects
//! what is to be changed in a [`Collector`], as a value of a type that the store defines. When the
//! handler has returned, the value becomes [`Effects`], which are part of the
//! [`Write`](crate::store::Write) that completes the key. A worker that has lost its lease can then
//! change nothing at all, and a worker that dies has either done everything or nothing.
//!
//! | | |
//! |---|---|
//! | [`Capabilities::effects`](crate::store::Capabilities::effects) | which effects a store commits, if any |
//! | [`Collector`] | collects them while a handler runs |
//! | [`Effects`] | what was collected; only the store that defined the type looks inside |
//! | [`RefusedEffect`] | why a store applied neither the effects nor the write |

use std::{
    any::{Any, TypeId, type_name},
    fmt,
    hash::{Hash, Hasher},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, ThreadId},
};

/// Which effects a store commits: the type of their value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct EffectsKind {
    id: TypeId,
    name: &'static str,
}

impl EffectsKind {
    /// Effects of type `T`.
    #[must_use]
    pub fn of<T: Any + Send + Sync>() -> Self {
        Self { id: TypeId::of::<T>(), name: type_name::<T>() }
    }

    /// Whether these are effects of type `T`.
    #[must_use]
    pub fn is<T: Any + Send + Sync>(&self) -> bool {
        self.id == TypeId::of::<T>()
    }

    /// The name of the type, for messages.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

impl fmt::Debug for EffectsKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Effects to be committed together with a write. Cheap to clone; clones are equal, and other values
/// are not, whatever they hold. They never change, so a store can send them again.
///
/// `Debug` shows only their type, because they hold the application's data.
///
/// ```
/// use lambda_idempotency_core::effects::Effects;
///
/// let effects = Effects::new(vec!["add 1"]);
/// assert_eq!(effects.get::<Vec<&str>>(), Some(&vec!["add 1"]));
/// assert_eq!(effects.get::<String>(), None);
/// assert_eq!(effects, effects.clone());
/// ```
#[derive(Clone)]
pub struct Effects {
    content: Arc<dyn Any + Send + Sync>,
    kind: EffectsKind,
}

impl Effects {
    /// Effects of a type that a store commits.
    #[must_use]
    pub fn new<T: Any + Send + Sync>(content: T) -> Self {
        Self { content: Arc::new(content), kind: EffectsKind::of::<T>() }
    }

    /// The content, if it is of this type.
    #[must_use]
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.content.downcast_ref()
    }

    /// The type of the content.
    #[must_use]
    pub const fn kind(&self) -> EffectsKind {
        self.kind
    }

    fn address(&self) -> *const () {
        Arc::as_ptr(&self.content).cast()
    }
}

impl PartialEq for Effects {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.address(), other.address())
    }
}

impl Eq for Effects {}

impl Hash for Effects {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address().hash(state);
    }
}

impl fmt::Debug for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Effects({})", self.kind.name())
    }
}

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

/// An effect that the store refused. The guard of its write held, but neither the write nor any of its
/// effects was applied.
///
/// It is the failure of the handler: the key is released, and a later delivery calls the handler again.
/// `Display` holds no payload.
///
/// ```
/// use lambda_idempotency_core::effects::{RefusalReason, RefusedEffect};
///
/// let refused = RefusedEffect::new(RefusalReason::ConditionFailed).at(1);
/// assert_eq!(
///     refused.to_string(),
///     "nothing was committed: the condition of effect 2 did not hold; read in the handler what the \
///      condition depends on, and decide there"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedEffect {
    reason: RefusalReason,
    position: Option<usize>,
    detail: Option<Arc<str>>,
}

/// Why an effect was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalReason {
    /// Its condition did not hold.
    ConditionFailed,
    /// It, or all effects together, are more than the database takes in one transaction.
    TooLarge,
    /// The database does not understand it, or it does not fit its table.
    Invalid,
    /// The function may not do it.
    Denied,
    /// It takes longer than the call of the store had. A longer call may succeed.
    TooSlow,
}

impl RefusedEffect {
    /// A refusal for this reason.
    #[must_use]
    pub const fn new(reason: RefusalReason) -> Self {
        Self { reason, position: None, detail: None }
    }

    /// Says which effect was refused: its position in the order of collection, from 0.
    #[must_use]
    pub const fn at(mut self, position: usize) -> Self {
        self.position = Some(position);
        self
    }

    /// Adds what the database said. It must not hold a payload or a key.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<Arc<str>>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Why it was refused.
    #[must_use]
    pub const fn reason(&self) -> RefusalReason {
        self.reason
    }

    /// The position of the effect in the order of collection, from 0. `None` if it is not known which
    /// one was refused, or if it was all of them together.
    #[must_use]
    pub const fn position(&self) -> Option<usize> {
        self.position
    }
}

impl RefusalReason {
    /// The type of the handler's failure.
    #[must_use]
    pub const fn error_type(self) -> &'static str {
        match self {
            Self::ConditionFailed => "an effect whose condition did not hold",
            Self::TooLarge => "an effect that is too large",
            Self::Invalid => "an effect that is not valid",
            Self::Denied => "an effect that is not permitted",
            Self::TooSlow => "an effect that takes too long",
        }
    }
}

impl fmt::Display for RefusedEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing was committed: ")?;
        let which = match self.position {
            Some(position) => format!("effect {}", position + 1),
            None => "an effect".to_owned(),
        };
        match self.reason {
            RefusalReason::ConditionFailed => write!(
                f,
                "the condition of {which} did not hold; read in the handler what the condition \
                 depends on, and decide there"
            ),
            RefusalReason::TooLarge => write!(
                f,
                "{which} is more than the database takes in one transaction; collect less in a call"
            ),
            RefusalReason::Invalid => write!(
                f,
                "{which} is not valid for the database; check its table, its key and its expressions"
            ),
            RefusalReason::Denied => {
                write!(f, "{which} is not permitted; allow the function to do it to that table")
            }
            RefusalReason::TooSlow => write!(
                f,
                "{which} takes longer than the time that is left for it; let it do less in a call, or \
                 give the function more time"
            ),
        }?;
        match &self.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for RefusedEffect {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_the_type_of_effects_and_nothing_of_their_content() {
        let shown = format!("{:?}", Effects::new("s3cr3t".to_owned()));
        assert_eq!(shown, "Effects(alloc::string::String)");
    }

    #[test]
    fn only_clones_are_equal() {
        let (one, other) = (Effects::new(1_u8), Effects::new(1_u8));
        assert_eq!(one, one.clone());
        assert_ne!(one, other);
    }

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
