//! What is counted.

use tokio::runtime::{Builder, Runtime};

use crate::invoking;
#[cfg(feature = "dynamodb")]
use crate::{by_hand, storing, ways};
#[cfg(not(feature = "dynamodb"))]
use crate::{delivering, extracting};

/// A part of the library.
pub(crate) struct Case {
    pub(crate) name: String,
    /// Makes what is needed; what it returns is counted.
    prepare: Box<dyn Fn() -> Work>,
}

pub(crate) type Work = Box<dyn FnOnce()>;

impl Case {
    pub(crate) fn new(name: impl Into<String>, prepare: impl Fn() -> Work + 'static) -> Self {
        Self { name: name.into(), prepare: Box::new(prepare) }
    }
}

pub(crate) fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime")
}

pub(crate) fn all() -> Vec<Case> {
    #[cfg(feature = "dynamodb")]
    let all =
        storing::cases().chain(invoking::cases()).chain(ways::cases()).chain(by_hand::cases());
    #[cfg(not(feature = "dynamodb"))]
    let all = extracting::cases().chain(delivering::cases()).chain(invoking::cases());
    all.collect()
}

/// Runs each case twice, and has the second run counted.
pub(crate) fn run() {
    for case in all() {
        (case.prepare)()();
        counted((case.prepare)());
    }
}

/// Valgrind counts here: `valgrind.rs` has the name.
#[inline(never)]
fn counted(work: Work) {
    std::hint::black_box(work)();
    std::hint::black_box(());
}
