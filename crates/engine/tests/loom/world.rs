//! The world that is explored, once for each way to compile the source.

/// A handler was woken and is about to be polled, while another thread makes its data ready and wakes it.
/// In the end every wake was followed by a poll, so the last poll has seen the data.
macro_rules! world {
    () => {
        pub(crate) fn no_wake_is_lost() {
            use std::{
                sync::Arc,
                task::{Wake as _, Waker},
            };

            use loom::{
                sync::atomic::{AtomicUsize, Ordering},
                thread,
            };

            loom::model(|| {
                let woken = Arc::new(waking::Woken::default());
                let task = Arc::new(waking::HandlerWaker::new(0, Arc::clone(&woken)));
                let data = Arc::new(AtomicUsize::new(0));
                task.wake_by_ref();
                let (waker, written) = (Waker::from(Arc::clone(&task)), Arc::clone(&data));
                let other = thread::spawn(move || {
                    written.store(1, Ordering::Release);
                    waker.wake();
                });
                let mut seen = 0;
                let mut poll_woken = || {
                    while woken.next().is_some() {
                        task.begin_poll();
                        seen = data.load(Ordering::Acquire);
                    }
                };
                poll_woken();
                other.join().unwrap();
                // Now the data can be seen, but only a wake leads to another poll.
                poll_woken();
                assert_eq!(seen, 1, "a wake was lost");
            });
        }
    };
}
