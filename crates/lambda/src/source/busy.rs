//! Calls the user's hook for records whose keys are held by another worker.

use std::{fmt, future::pending, pin::pin, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, future::select, stream};
use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, Timestamp},
    contained::run,
    outcome::Outcome,
};
use lambda_idempotency_engine::call::RecordId;

use super::record::Record;
use crate::handler::{Callback, call_clone};

/// How long all hooks of an invocation may take together.
const MAX_TIME: Duration = Duration::from_secs(2);
/// How many hooks run at a time: each may open a connection, and a process may have 1024 open files.
const AT_ONCE: usize = 64;

/// A record that returns to its source because another worker holds its key.
#[derive(Clone)]
#[non_exhaustive]
pub struct BusyRecord {
    /// Which record.
    pub record: RecordId,
    /// The record as AWS delivers it, with the receipt handle of an SQS message. Contains the
    /// payload: do not log it.
    pub raw: String,
    /// The key is held up to and including this instant. An earlier delivery would be returned
    /// again.
    pub until: Timestamp,
    /// The time from now until then.
    pub wait: Duration,
}

/// Without the record itself, which must not be logged.
impl fmt::Debug for BusyRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BusyRecord")
            .field("record", &self.record)
            .field("until", &self.until)
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}

/// The user's hook, which is called with each [`BusyRecord`].
#[derive(Clone)]
pub(crate) struct Hook(Arc<HookFn>);

type HookFn = dyn Fn(BusyRecord) -> BoxFuture<'static, ()> + Send + Sync;

impl Hook {
    pub(crate) fn new(hook: impl Callback<BusyRecord, ()>) -> Self {
        Self(Arc::new(move |busy| call_clone(&hook, busy)))
    }

    /// Calls the hook for each busy record, some at a time. The time is limited, because a slow hook
    /// must not delay the response beyond the invocation's deadline.
    pub(crate) async fn call_for_busy(
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
        let time_left = invocation_deadline.map_or(MAX_TIME, |end| end.since(now) / 2);
        if busy.is_empty() || time_left.is_zero() {
            return;
        }
        let Self(hook) = self;
        let time = time_left.min(MAX_TIME);
        // One sleep for all: the clock may be put back meanwhile.
        let (until, end) = (now.plus(time), clock.sleep(time));
        // A panic in a hook is ignored: the outcomes are already decided.
        let calls = stream::iter(busy).for_each_concurrent(AT_ONCE, async |busy| {
            // While hooks return without waiting, nobody looks at the sleep.
            if clock.now() < until {
                run(|| hook(busy), pending()).await;
            }
        });
        select(pin!(calls), end).await;
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook").finish_non_exhaustive()
    }
}
