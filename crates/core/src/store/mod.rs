//! The contract of a store: conditional writes in a batch, and consistent reads.
//!
//! A [`Store`] makes no decisions. Each [`Write`] has the [`Guard`] that must hold for its key and
//! the record to put there. The store answers each with a verdict: [`Written`](Verdict::Written),
//! the record it [`Found`](Verdict::Found) instead, or [`Unknown`](Verdict::Unknown). Time, leases
//! and ownership are decided in [`admission`](crate::admission).
//!
//! To write a store, implement all three methods and run the conformance suite of the `testkit` crate
//! against it. There are no default methods, so that a store does not inherit a safety property by
//! accident. A store whose records people can list also implements [`Browse`](crate::browse::Browse).
//!
//! A store with transactions can commit [`Effects`](crate::effects::Effects) of the user together with a
//! write. It says so in its [`Capabilities`].

mod error;
mod write;

use std::sync::Arc;

use crate::{
    capabilities::Capabilities,
    clock::{BoxFuture, Timestamp},
    effects::RefusedEffect,
    key::Key,
    record::IdempotencyRecord,
};

pub use error::{StoreError, StoreErrorKind};
pub use write::{Extent, Guard, RecordVersion, Write};

/// A durable map from [`Key`] to [`IdempotencyRecord`] with conditional writes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a store of idempotency records",
    label = "not a store",
    note = "`from_env()` is awaited, and may fail: `DynamoDbStore::from_env().await?`"
)]
pub trait Store: Send + Sync + 'static {
    /// The features of the store beyond the rest of this contract. Does no I/O. A store without any of it
    /// returns [`Capabilities::NONE`]; a store around another returns that of the other.
    fn capabilities(&self) -> Capabilities;

    /// Applies each write if its guard holds, each atomically and independently of the others, and
    /// returns one verdict for each write, in the order of `writes`.
    ///
    /// No key occurs twice in one call. The store may repeat a write until `call_deadline`, since
    /// every write carries a token by which the store recognises it; a write whose result is not
    /// known by then is [`Verdict::Unknown`]. A call after its deadline may send nothing. One request without
    /// an answer must not take all of that time: the engine does not repeat the claim of a batch with
    /// one record.
    ///
    /// The [effects](Write::effects) of a write are applied if and only if the write is, in the same
    /// transaction. A store that cannot do that answers such a write with
    /// [`StoreError::without_effects`] and applies nothing: it never drops effects.
    ///
    /// If the store has a server-side expiry, it must not remove a record before its `expires_at`
    /// has passed on the server's clock.
    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>>;

    /// Reads each key with strong consistency. The results are in the order of `keys`.
    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>>;
}

impl<S: Store + ?Sized> Store for Arc<S> {
    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        (**self).write(writes, call_deadline)
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        (**self).read(keys, call_deadline)
    }
}

/// The result of a [`Write`].
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a verdict is taken apart at once; a box would be an allocation for each record found"
)]
pub enum Verdict {
    /// The guard held and the write was applied, now or by an earlier request of the same call; or
    /// it deletes a record that is already gone. The same write in a *new* call is
    /// [`Found`](Self::Found): [`admission`](crate::admission) recognises a worker's own writes. With
    /// effects it may also be `Written` again, without being applied again.
    Written,
    /// The guard did not hold; this is the record now stored. Also if an effect would have been refused.
    Found(Option<IdempotencyRecord>),
    /// The guard held, but an effect was refused. Neither the record nor any effect was applied.
    EffectRefused(RefusedEffect),
    /// The write was refused, or it is not known whether it was applied: see
    /// [`StoreError::may_have_applied`].
    Unknown(StoreError),
}

impl From<StoreError> for Verdict {
    fn from(error: StoreError) -> Self {
        Self::Unknown(error)
    }
}

/// A verdict is large, so what can fail with one returns it in a box.
impl From<Box<Verdict>> for Verdict {
    fn from(verdict: Box<Verdict>) -> Self {
        *verdict
    }
}
