//! Telling the user's code of records whose keys are held elsewhere.

use std::{
    fmt,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{FutureExt as _, future::join_all};
use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, Timestamp},
    outcome::Outcome,
};
use lambda_idempotency_engine::call::RecordId;

use crate::source::Record;

/// How long all hooks of an invocation may take together.
const LONGEST: Duration = Duration::from_secs(2);

/// A record that goes back to its source because another worker holds its key.
#[derive(Clone)]
#[non_exhaustive]
pub struct BusyRecord {
    /// Which record.
    pub record: RecordId,
    /// The record as AWS delivers it, with the receipt handle of an SQS message. Holds the payload:
    /// not for logs.
    pub raw: String,
    /// Up to and including this instant the key is held. An earlier delivery would go back again.
    pub until: Timestamp,
    /// How long that is from now.
    pub wait: Duration,
}

/// Without the record itself: that is for no log.
impl fmt::Debug for BusyRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BusyRecord")
            .field("record", &self.record)
            .field("until", &self.until)
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}

/// What is called with each [`BusyRecord`].
#[derive(Clone)]
pub(crate) struct Hook(Arc<Tell>);

type Tell = dyn Fn(BusyRecord) -> BoxFuture<'static, ()> + Send + Sync;

impl Hook {
    pub(crate) fn new<F, Fut>(hook: F) -> Self
    where
        F: Fn(BusyRecord) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        Self(Arc::new(move |busy| Box::pin(hook(busy))))
    }

    /// Calls the hook for each record that is busy, side by side, and not for long: what it does is
    /// a courtesy, and must not cost the answer.
    pub(crate) async fn tell(
        &self,
        clock: &dyn Clock,
        invocation_deadline: Option<Timestamp>,
        records: &[Record<'_>],
        outcomes: &[Outcome],
    ) {
        let now = clock.now();
        let busy = records.iter().zip(outcomes).filter_map(|(record, outcome)| match outcome {
            Outcome::Busy { until } => Some(BusyRecord {
                record: record.id.clone(),
                raw: record.raw.to_string(),
                until: *until,
                wait: until.since(now),
            }),
            _ => None,
        });
        let busy: Vec<_> = busy.collect();
        let left = invocation_deadline.map_or(LONGEST, |end| end.since(now) / 2);
        if busy.is_empty() || left.is_zero() {
            return;
        }
        let Self(hook) = self;
        // A hook that panics is as one that does nothing.
        let hooks = join_all(busy.into_iter().map(|busy| {
            let told = catch_unwind(AssertUnwindSafe(|| hook(busy)));
            async {
                if let Ok(told) = told {
                    let _ = AssertUnwindSafe(Telling(Some(told))).catch_unwind().await;
                }
            }
        }));
        let mut hooks = std::pin::pin!(hooks);
        let mut timer = clock.sleep(left.min(LONGEST));
        poll_fn(|context| match hooks.poll_unpin(context) {
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending => timer.poll_unpin(context),
        })
        .await;
    }
}

/// A hook on its way. One that takes too long is dropped, and its destructors may panic.
struct Telling(Option<BoxFuture<'static, ()>>);

impl Future for Telling {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().map_or(Poll::Ready(()), |told| told.poll_unpin(context))
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        let told = self.0.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(told)));
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook").finish_non_exhaustive()
    }
}
