//! Whether the work of a step is polled just now. What it would add to the completion, effects and messages, is
//! refused: an attempt that gets the step's result does not call its work, and would be completed without them.

use std::{pin::pin, thread};

use super::Steps;

impl Steps {
    /// Calls the work of a step and waits for it.
    pub(crate) async fn working<Fut: Future>(&self, work: impl FnOnce() -> Fut) -> Fut::Output {
        let work = {
            let _working = Working::on_this_thread(self);
            work()
        };
        let mut work = pin!(work);
        std::future::poll_fn(|context| {
            let _working = Working::on_this_thread(self);
            work.as_mut().poll(context)
        })
        .await
    }

    /// Whether this thread polls the work of a step. What runs beside a step, in the same handler, does not.
    pub(crate) fn are_working(&self) -> bool {
        self.lock().working.contains(&thread::current().id())
    }
}

/// This thread polls the work of a step, until this is dropped, also by a panic.
struct Working<'a>(&'a Steps);

impl<'a> Working<'a> {
    fn on_this_thread(steps: &'a Steps) -> Self {
        steps.lock().working.push(thread::current().id());
        Self(steps)
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let me = thread::current().id();
        if let Some(last) = state.working.iter().rposition(|thread| *thread == me) {
            state.working.swap_remove(last);
        }
    }
}
