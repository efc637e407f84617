//! The effects that a call collects, to be committed with its completion.

use std::{any::Any, sync::Arc};

use lambda_idempotency_core::effects::{CollectError, Collector, EffectsKind};

use super::Call;

/// # Effects
impl Call {
    /// Collects effects of a type that the store commits: `add` is called with all effects of this call so
    /// far, which begin as the default of their type. Nothing is sent. When the handler has returned
    /// `Ok`, they are committed in one transaction with the completion of the key: both or neither.
    /// Otherwise they are dropped.
    ///
    /// Stores have methods with better names for their effects: `transact` for DynamoDB.
    ///
    /// ```
    /// use lambda_idempotency_core::{effects::CollectError, memory::MemoryEffects};
    /// use lambda_idempotency_engine::call::Call;
    ///
    /// let (call, collected) = Call::test("o-1").with_effects::<MemoryEffects>();
    /// call.collect(|effects: &mut MemoryEffects| effects.add(|| println!("placed")))?;
    /// assert!(collected.close()?.is_some());
    ///
    /// let plain = Call::test("o-1").collect(|_: &mut MemoryEffects| ());
    /// assert_eq!(plain, Err(CollectError::NotTransactional));
    /// # Ok::<(), CollectError>(())
    /// ```
    ///
    /// # Errors
    /// The operation is not transactional, the call runs without a claim, the store commits effects of
    /// another type, or the handler has ended; or this is called in the work of a [step](Self::step), which
    /// later attempts do not call; or inside an `add`, or an earlier `add` panicked, and then the attempt
    /// fails, whatever the handler returns.
    pub fn collect<T, R>(&self, add: impl FnOnce(&mut T) -> R) -> Result<R, CollectError>
    where
        T: Default + Any + Send + Sync,
    {
        let effects = self.effects.as_ref().ok_or(CollectError::NotTransactional)?;
        if self.shared.are_steps_working() {
            return Err(CollectError::InStep);
        }
        effects.collect(add)
    }

    /// As if its operation were transactional, and its store committed effects of type `T`. What the
    /// handler collects is in the collector that is returned; close it to look.
    #[must_use]
    pub fn with_effects<T: Any + Send + Sync>(self) -> (Self, Arc<Collector>) {
        let effects = Arc::new(Collector::new(EffectsKind::of::<T>()));
        (self.collecting(Some(Arc::clone(&effects))), effects)
    }

    pub(crate) fn collecting(mut self, effects: Option<Arc<Collector>>) -> Self {
        self.effects = effects;
        self
    }

    pub(crate) const fn collector(&self) -> Option<&Arc<Collector>> {
        self.effects.as_ref()
    }
}
