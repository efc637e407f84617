//! Counts events, because a model in which nothing happens would break no property.

use std::sync::atomic::{AtomicUsize, Ordering};

macro_rules! events {
    ($($event:ident)*) => {
        /// An event that a configuration may require.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Event {
            $($event,)*
        }

        /// All of them.
        pub(crate) const EVENTS: &[Event] = &[$(Event::$event),*];
    };
}

events! {
    Replayed Busy TakenOverAfterCrash TakenAfterRelease TakenAfterExpiry CompletionFenced
    CompletionUnderAbsent CompletionLost LostAnswerResolved StrayLanded CompletedSwept Undo
    FailureCounted PermanentFailure Renewed Mismatched MetForeign WaitedForResult
    TookOverAfterWaiting StoppedWithItsLease RenewalRefused Dropped StopSaid StrangerTookOver
    StrangerReplayed StrangerOvertaken
}

/// How often each [`Event`] occurred. The counts are not part of the states, because states that differ
/// only in past events are one state.
#[derive(Debug, Default)]
pub(crate) struct Witness([AtomicUsize; EVENTS.len()]);

impl Witness {
    pub(crate) fn saw(&self, event: Event) {
        self.0[event as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count(&self, event: Event) -> usize {
        self.0[event as usize].load(Ordering::Relaxed)
    }
}
