//! The parts of a call that its clones share: its steps, and the messages that it publishes. Each is made when it is first
//! used, since most handlers use neither.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
    time::Duration,
};

use lambda_idempotency_core::{outbox::Publisher, record::Json, store::StoreError};

use crate::steps::{KeptSteps, Steps};

/// The parts that one call has used so far.
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

/// The parts that one call has used, for the call, its clones and the engine.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<Used>>);

impl Shared {
    /// The store has this text of the steps.
    pub(crate) fn steps_are_in_store(&self, text: &Json) {
        if let Some(steps) = self.used_steps() {
            steps.are_in_store(text);
        }
    }

    /// The store keeps none of the steps that wait.
    pub(crate) fn steps_are_refused(&self, error: &StoreError) {
        if let Some(steps) = self.used_steps() {
            steps.are_refused(error);
        }
    }

    /// The steps, which are made now if nothing has used them.
    pub(super) fn steps(&self, kept: &KeptSteps) -> Arc<Steps> {
        let mut used = self.used();
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
        let mut used = self.used();
        let has_ended = used.has_ended;
        let publisher = used.publisher.get_or_insert_default();
        if has_ended {
            publisher.close();
        }
        Arc::clone(publisher)
    }

    /// The completion is to answer for this long.
    pub(super) fn retain_for(&self, retention: Duration) {
        self.used().retention = Some(retention);
    }

    /// How long the completion is to answer, if the call has said that.
    pub(crate) fn retention(&self) -> Option<Duration> {
        self.used().retention
    }

    /// Whether this thread polls the work of a step.
    pub(super) fn are_steps_working(&self) -> bool {
        self.used_steps().is_some_and(|steps| steps.are_working())
    }

    /// The handler is polled by this task.
    pub(crate) fn polled_by(&self, handler: &Waker) {
        let mut used = self.used();
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
            let mut used = self.used();
            used.has_ended = true;
            used.publisher.clone()?
        };
        publisher.close()
    }

    /// The handler has ended: what is left of it keeps no more steps.
    pub(crate) fn end(&self) {
        let steps = {
            let mut used = self.used();
            (used.has_ended, used.handler) = (true, None);
            used.steps.clone()
        };
        // Wakes those that wait, which is code of the user.
        if let Some(steps) = steps {
            steps.end();
        }
    }

    fn used_steps(&self) -> Option<Arc<Steps>> {
        self.used().steps.clone()
    }

    // A panic cannot leave it half-changed: nothing of the user runs under the lock.
    fn used(&self) -> MutexGuard<'_, Used> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        let (shared, next) = (Shared::default(), Shared::default());
        assert!(shared.used_steps().is_none() && shared.close().is_none());
        let clone = shared.clone();
        assert!(Arc::ptr_eq(&shared.steps(&kept()), &clone.steps(&kept())));
        assert!(Arc::ptr_eq(&shared.publisher(), &clone.publisher()));
        assert!(!Arc::ptr_eq(&shared.steps(&kept()), &next.steps(&kept())));
    }

    #[test]
    fn a_clone_that_outlives_the_handler_makes_nothing_that_is_open() {
        let shared = Shared::default();
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
        let shared = Shared::default();
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
        let (shared, woken) = (Shared::default(), Arc::new(Count(AtomicUsize::new(0))));
        shared.polled_by(&Waker::from(Arc::clone(&woken)));
        let Ok(Begun::Calls(called)) = shared.steps(&kept()).begin("one") else { panic!() };
        let mut ended = Box::pin(called.ended(RawValue::from_string("1".to_owned()).unwrap()));
        let mut context = std::task::Context::from_waker(Waker::noop());
        assert!(ended.as_mut().poll(&mut context).is_pending());
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        assert_eq!(shared.take_steps().as_deref(), Some(r#"{"one":1}"#));
    }
}
