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
//! | [`Capabilities::effects`](crate::capabilities::Capabilities::effects) | which effects a store commits, if any |
//! | [`Collector`] | collects them while a handler runs |
//! | [`Effects`] | what was collected; only the store that defined the type looks inside |
//! | [`RefusedEffect`] | why a store applied neither the effects nor the write |

mod collector;
mod content;
mod refused;

pub use self::{
    collector::{CollectError, Collector},
    content::{Effects, EffectsKind},
    refused::{RefusalReason, RefusedEffect},
};
