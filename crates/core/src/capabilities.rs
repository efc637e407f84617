//! What a store can do beyond the contract that all stores keep.

use crate::effects::EffectsKind;

/// What a store can do beyond the contract that all stores keep: what
/// [`Store::capabilities`](crate::store::Store::capabilities) returns. The same at each call.
///
/// ```
/// use lambda_idempotency_core::{
///     capabilities::Capabilities, memory::{MemoryEffects, MemoryStore}, store::Store,
/// };
///
/// let memory = MemoryStore::new().capabilities();
/// assert!(memory.effects.is_some_and(|kind| kind.is::<MemoryEffects>()));
/// assert!(!memory.native_expiry);
/// assert_eq!(Capabilities::NONE.effects, None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Capabilities {
    /// Which effects the store commits together with a write, in one transaction; `None` if it has no
    /// transactions. Operations that are transactional need it.
    pub effects: Option<EffectsKind>,
    /// Whether the store's server removes expired records by itself, at some time after their expiry.
    /// Otherwise they stay until somebody removes them.
    pub native_expiry: bool,
}

impl Capabilities {
    /// A store that can do nothing beyond the contract.
    pub const NONE: Self = Self { effects: None, native_expiry: false };

    /// The same, with effects of type `T`, which the store commits together with a write.
    #[must_use]
    pub fn with_effects<T: std::any::Any + Send + Sync>(mut self) -> Self {
        self.effects = Some(EffectsKind::of::<T>());
        self
    }

    /// The same, with a server that removes expired records.
    #[must_use]
    pub const fn with_native_expiry(mut self) -> Self {
        self.native_expiry = true;
        self
    }
}
