//! Runs the tasks of a simulation on one thread, in an order that is always the same.

use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Wake, Waker},
};

use crate::time::Timeline;

/// A task of the simulation.
pub type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// The tasks that can go on, first come, first served.
type Ready = Arc<Mutex<VecDeque<usize>>>;

struct Signal {
    task: usize,
    is_queued: AtomicBool,
    ready: Ready,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::Relaxed) {
            self.ready.lock().unwrap_or_else(PoisonError::into_inner).push_back(self.task);
        }
    }
}

/// Runs all tasks. When none of them can go on, the next event of `timeline` happens. Ends when no task and no
/// event is left, and says how many tasks wait for something that never happens.
pub fn run(timeline: &Timeline, tasks: Vec<Task<'_>>) -> usize {
    let ready = Ready::default();
    let mut tasks: Vec<_> = tasks
        .into_iter()
        .enumerate()
        .map(|(number, task)| {
            let ready = Arc::clone(&ready);
            let signal = Signal { task: number, is_queued: AtomicBool::new(false), ready };
            let signal = Arc::new(signal);
            signal.wake_by_ref();
            (Some(task), Arc::clone(&signal), Waker::from(signal))
        })
        .collect();
    loop {
        let next = ready.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(number) = next else {
            if timeline.advance() {
                continue;
            }
            return tasks.iter().filter(|(task, ..)| task.is_some()).count();
        };
        let (task, signal, waker) = &mut tasks[number];
        signal.is_queued.store(false, Ordering::Relaxed);
        if let Some(running) = task
            && running.as_mut().poll(&mut Context::from_waker(waker)).is_ready()
        {
            *task = None;
        }
    }
}
