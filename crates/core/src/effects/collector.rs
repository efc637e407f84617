//! Collects the effects of one call of a handler.

use std::{
    any::Any,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{Effects, EffectsKind};

/// Collects the effects of one call of a handler, until the handler returns.
///
/// ```
/// use lambda_idempotency_core::effects::{CollectError, Collector, EffectsKind};
///
/// let collector = Collector::new(EffectsKind::of::<Vec<u8>>());
/// collector.collect(|effects: &mut Vec<u8>| effects.push(1))?;
/// collector.collect(|effects: &mut Vec<u8>| effects.push(2))?;
///
/// let effects = collector.close().expect("something was collected");
/// assert_eq!(effects.get::<Vec<u8>>(), Some(&vec![1, 2]));
/// let late = collector.collect(|effects: &mut Vec<u8>| effects.push(3));
/// assert_eq!(late, Err(CollectError::HandlerEnded));
/// # Ok::<(), CollectError>(())
/// ```
pub struct Collector {
    kind: EffectsKind,
    state: Mutex<State>,
}

enum State {
    Open(Option<Box<dyn Any + Send + Sync>>),
    Closed,
}

impl Collector {
    /// An empty collector of effects of this kind.
    #[must_use]
    pub const fn new(kind: EffectsKind) -> Self {
        Self { kind, state: Mutex::new(State::Open(None)) }
    }

    /// Adds to the effects, which begin as the default of their type. Returns what `add` returns.
    ///
    /// # Errors
    /// The store commits effects of another type, or the handler has ended.
    pub fn collect<T, R>(&self, add: impl FnOnce(&mut T) -> R) -> Result<R, CollectError>
    where
        T: Default + Any + Send + Sync,
    {
        let wanted = EffectsKind::of::<T>();
        let other = CollectError::OtherStore { store: self.kind, call: wanted };
        if wanted != self.kind {
            return Err(other);
        }
        match &mut *self.lock() {
            State::Open(content) => {
                let content = content.get_or_insert_with(|| Box::new(T::default()));
                content.downcast_mut().map(add).ok_or(other)
            }
            State::Closed => Err(CollectError::HandlerEnded),
        }
    }

    /// Ends collecting; returns what was collected, if anything was.
    pub fn close(&self) -> Option<Effects> {
        match std::mem::replace(&mut *self.lock(), State::Closed) {
            State::Open(content) => {
                content.map(|content| Effects { content: Arc::from(content), kind: self.kind })
            }
            State::Closed => None,
        }
    }

    // What `add` did before it panicked is not committed: the panic fails the handler.
    fn lock(&self) -> MutexGuard<'_, State> {
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
        "this call commits no effects: make its operation `.transactional()`, and run it with a claim"
    )]
    NotTransactional,
    /// The store commits effects of another type.
    #[error(
        "the store commits effects of type `{}`, and these are of type `{}`: collect them with the \
         method that belongs to the store", .store.name(), .call.name()
    )]
    OtherStore {
        /// What the store commits.
        store: EffectsKind,
        /// What was to be collected.
        call: EffectsKind,
    },
    /// The handler has returned or was stopped.
    #[error(
        "the handler of this call has ended, so its effects are not committed: collect them before it \
         returns"
    )]
    HandlerEnded,
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
        assert_eq!(collector.close(), None, "nothing was collected");
    }
}
