//! What is counted.

use crate::{delivering, extracting, invoking, storing};

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

pub(crate) fn all() -> Vec<Case> {
    let parts = extracting::cases().chain(delivering::cases()).chain(storing::cases());
    parts.chain(invoking::cases()).collect()
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
