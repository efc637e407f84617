//! What the clones of a call share: its steps, and the messages that it publishes. Each is made when it is first
//! used, since most handlers use neither; the calls of a batch have their places for it in one allocation.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
    time::Duration,
};

use lambda_idempotency_core::{outbox::Publisher, record::Json, store::StoreError};

use crate::steps::{KeptSteps, Steps};

/// The places of the calls of a batch.
#[derive(Clone)]
pub(crate) struct AllShared(Arc<[Mutex<Used>]>);

impl AllShared {
    /// Places for this many calls.
    pub(crate) fn of(calls: usize) -> Self {
        Self((0..calls).map(|_| Mutex::default()).collect())
    }

    /// The place of one call, which has no other before.
    pub(crate) fn at(&self, at: usize) -> Shared {
        if at < self.0.len() { Shared { all: self.clone(), at } } else { Shared::alone() }
    }

    /// The store has this text of the steps of a call.
    pub(crate) fn steps_are_in_store(&self, at: usize, text: &Json) {
        if let Some(steps) = self.used(at).and_then(|used| used.steps.clone()) {
            steps.are_in_store(text);
        }
    }

    /// The store keeps none of the steps of a call that wait.
    pub(crate) fn steps_are_refused(&self, at: usize, error: &StoreError) {
        if let Some(steps) = self.used(at).and_then(|used| used.steps.clone()) {
            steps.are_refused(error);
        }
    }

    // A panic cannot leave it half-changed: nothing of the user runs under the lock.
    fn used(&self, at: usize) -> Option<MutexGuard<'_, Used>> {
        Some(self.0.get(at)?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What one call has used so far.
#[derive(Default)]
struct Used {
    steps: Option<Arc<Steps>>,
    publisher: Option<Arc<Publisher>>,
    /// How long the completion is to answer.
    retention: Option<Duration>,
    /// The handler, to be polled when a step has ended.
    handler: Option<Waker>,
    /// The handler has ended: what is made after that is closed.
    has_ended: bool,
}

/// The place of one call, for the call, its clones and the engine.
#[derive(Clone)]
pub(crate) struct Shared {
    all: AllShared,
    at: usize,
}

impl Shared {
    /// The place of a call that is in no batch.
    pub(crate) fn alone() -> Self {
        Self { all: AllShared::of(1), at: 0 }
    }

    /// The steps, which are made now if nothing has used them.
    pub(super) fn steps(&self, kept: &KeptSteps) -> Arc<Steps> {
        let Some(mut used) = self.all.used(self.at) else { return Steps::new(kept) };
        if let Some(steps) = &used.steps {
            return Arc::clone(steps);
        }
        let steps = Steps::new(kept);
        if let Some(handler) = &used.handler {
            steps.polled_by(handler);
        }
        if used.has_ended {
            steps.end();
        }
        Arc::clone(used.steps.insert(steps))
    }

    /// The publisher, which is made now if nothing has used it.
    pub(super) fn publisher(&self) -> Arc<Publisher> {
        let Some(mut used) = self.all.used(self.at) else { return Arc::default() };
        let has_ended = used.has_ended;
        let publisher = used.publisher.get_or_insert_default();
        if has_ended {
            publisher.close();
        }
        Arc::clone(publisher)
    }

    /// The completion is to answer for this long.
    pub(super) fn retain_for(&self, retention: Duration) {
        if let Some(mut used) = self.all.used(self.at) {
            used.retention = Some(retention);
        }
    }

    /// How long the completion is to answer, if the call has said that.
    pub(crate) fn retention(&self) -> Option<Duration> {
        self.all.used(self.at)?.retention
    }

    /// Whether this thread polls the work of a step.
    pub(super) fn are_steps_working(&self) -> bool {
        self.used_steps().is_some_and(|steps| steps.are_working())
    }

    /// The handler is polled by this task.
    pub(crate) fn polled_by(&self, handler: &Waker) {
        let Some(mut used) = self.all.used(self.at) else { return };
        used.handler = Some(handler.clone());
        if let Some(steps) = &used.steps {
            steps.polled_by(handler);
        }
    }

    /// The text of all steps, if one has ended since it was taken.
    pub(crate) fn take_steps(&self) -> Option<Json> {
        self.used_steps()?.take()
    }

    /// The handler has returned: returns the text of its messages, if it has published some.
    pub(crate) fn close(&self) -> Option<Json> {
        let publisher = {
            let mut used = self.all.used(self.at)?;
            used.has_ended = true;
            used.publisher.clone()?
        };
        publisher.close()
    }

    /// The handler has ended: what is left of it keeps no more steps.
    pub(crate) fn end(&self) {
        let steps = self.all.used(self.at).and_then(|mut used| {
            (used.has_ended, used.handler) = (true, None);
            used.steps.clone()
        });
        // Wakes those that wait, which is code of the user.
        if let Some(steps) = steps {
            steps.end();
        }
    }

    fn used_steps(&self) -> Option<Arc<Steps>> {
        self.all.used(self.at)?.steps.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        task::Wake,
    };

    use lambda_idempotency_core::outbox::{Message, PublishError};
    use serde_json::value::RawValue;

    use super::*;
    use crate::steps::{Begun, StepError};

    fn kept() -> KeptSteps {
        KeptSteps::Stored(None)
    }

    #[test]
    fn nothing_is_made_before_it_is_used_and_then_all_clones_have_it() {
        let (one, other) = (Shared::alone(), AllShared::of(2).at(1));
        for shared in [one, other] {
            assert!(shared.used_steps().is_none() && shared.close().is_none());
        }
        let all = AllShared::of(2);
        let (shared, clone, next) = (all.at(0), all.at(0).clone(), all.at(1));
        assert!(Arc::ptr_eq(&shared.steps(&kept()), &clone.steps(&kept())));
        assert!(Arc::ptr_eq(&shared.publisher(), &clone.publisher()));
        assert!(!Arc::ptr_eq(&shared.steps(&kept()), &next.steps(&kept())));
    }

    #[test]
    fn a_clone_that_outlives_the_handler_makes_nothing_that_is_open() {
        let shared = Shared::alone();
        let clone = shared.clone();
        assert_eq!(shared.close(), None);
        shared.end();
        let late = clone.publisher().publish(&Message::new("q", "1"));
        assert_eq!(late, Err(PublishError::HandlerEnded));
        let late = clone.steps(&kept()).begin("late");
        assert!(matches!(late, Err(StepError::HandlerEnded { .. })));
    }

    #[test]
    fn a_message_of_a_clone_is_closed_with_the_handler() {
        let shared = Shared::alone();
        shared.clone().publisher().publish(&Message::new("q", "1")).unwrap();
        assert_eq!(shared.close().as_deref(), Some(r#"[{"body":"1","to":"q"}]"#));
        assert_eq!(shared.close(), None);
    }

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Steps that another task makes while the handler waits for it: without the wake, nobody would store them.
    #[test]
    fn the_handler_is_woken_by_a_step_that_is_made_after_it_was_polled() {
        let (shared, woken) = (Shared::alone(), Arc::new(Count(AtomicUsize::new(0))));
        shared.polled_by(&Waker::from(Arc::clone(&woken)));
        let Ok(Begun::Calls(called)) = shared.steps(&kept()).begin("one") else { panic!() };
        let mut ended = Box::pin(called.ended(RawValue::from_string("1".to_owned()).unwrap()));
        let mut context = std::task::Context::from_waker(Waker::noop());
        assert!(ended.as_mut().poll(&mut context).is_pending());
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        assert_eq!(shared.take_steps().as_deref(), Some(r#"{"one":1}"#));
    }
}
