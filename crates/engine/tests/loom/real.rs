//! The source as it is.

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
        flag.swap(value, ordering)
    }
}

world!();
