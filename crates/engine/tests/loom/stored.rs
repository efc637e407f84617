//! The flag is cleared by a store, which acquires nothing.

use loom::sync::atomic::{AtomicBool, Ordering};

mod sync {
    pub(super) use loom::sync::{Mutex, MutexGuard, atomic::Ordering};

    pub(super) use crate::types::AtomicWaker;

    pub(super) type AtomicBool = crate::types::Flag<super::Swap>;
}

#[path = "../../src/running/waking.rs"]
mod waking;

struct Swap;

impl crate::types::Swap for Swap {
    fn swap(flag: &AtomicBool, value: bool, ordering: Ordering) -> bool {
        if value {
            return flag.swap(value, ordering);
        }
        flag.store(value, Ordering::Release);
        true
    }
}

world!();
