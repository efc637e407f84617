//! The types that are shared with the threads that wake handlers. `tests/loom` compiles `waking.rs` with other types,
//! which show a thread every value that the processor may show it.

pub(super) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};

pub(super) use futures_util::task::AtomicWaker;
