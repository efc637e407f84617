//! Several sources of one operation: see [`FunctionBuilder::sources`].
//!
//! [`FunctionBuilder::sources`]: crate::FunctionBuilder::sources

use std::fmt;

use crate::{operation::Operation, source::Source};

/// The sources that deliver records of one operation, for
/// [`FunctionBuilder::sources`](crate::FunctionBuilder::sources).
///
/// There is a method for each source. Its argument is a function that adjusts the operation for
/// that source; `|place| place` leaves it unchanged. A source may be added more than once, for
/// example for two queues.
#[must_use = "give them to `.sources(..)`"]
#[derive(Default)]
pub struct Sources {
    pub(crate) members: Vec<Member>,
}

/// One source, and how it adjusts the operation.
pub(crate) struct Member {
    pub(crate) source: Box<dyn Source>,
    pub(crate) adjust: Adjust,
}

type Adjust = Box<dyn FnOnce(Operation) -> Operation>;

impl Sources {
    /// No source yet.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with(
        mut self,
        source: Box<dyn Source>,
        adjust: impl FnOnce(Operation) -> Operation + 'static,
    ) -> Self {
        self.members.push(Member { source, adjust: Box::new(adjust) });
        self
    }
}

/// The names of the sources.
impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.members.iter().map(|member| member.source.name())).finish()
    }
}
