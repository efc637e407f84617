//! The deadline of an invocation. It comes from outside, and tools that imitate Lambda send others than Lambda can mean.

use std::{
    env,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use lambda_idempotency_core::clock::Timestamp;
use lambda_runtime::Context;

/// By how much the clock that set a deadline may differ from this process's: far more than clocks on Lambda do.
const SKEW: Duration = Duration::from_mins(1);

/// When a deadline is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// When the invocation arrives, so it cannot be past.
    AtStart,
    /// At some time of the invocation, whose end may be past: Managed Instances do not stop it.
    Within,
}

/// When the invocation ends; `None` if the context has no deadline, or one that Lambda cannot mean. The first one of those is
/// said in the log.
pub(crate) fn invocation_deadline(
    context: &Context,
    now: Timestamp,
    read: Read,
) -> Option<Timestamp> {
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    if context.deadline == 0 {
        return None;
    }
    let deadline = Timestamp::from_millis(context.deadline);
    let believed = is_possible(deadline, now, read, longest());
    if !believed && !IS_SAID.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            deadline = context.deadline,
            now = now.as_millis(),
            "the deadline of the invocation, in milliseconds since 1970, is one that Lambda cannot mean, so it counts as \
             unknown: handlers get 15 minutes; some local tools send such deadlines, and otherwise the clock of this \
             machine is wrong"
        );
    }
    believed.then_some(deadline)
}

fn is_possible(deadline: Timestamp, now: Timestamp, read: Read, longest: Duration) -> bool {
    let is_past_possible = match read {
        // A deadline that is past would start nothing, at each delivery. If clocks differ, an unknown one does more.
        Read::AtStart => deadline > now,
        Read::Within => now.since(deadline) <= longest + SKEW,
    };
    is_past_possible && deadline.since(now) <= longest + SKEW
}

/// The longest invocation that Lambda allows:
/// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html>.
fn longest() -> Duration {
    let kind = env::var_os("AWS_LAMBDA_INITIALIZATION_TYPE");
    let is_managed_instance = kind.is_some_and(|kind| kind == "lambda-managed-instances");
    Duration::from_mins(if is_managed_instance { 90 } else { 15 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_that_lambda_cannot_mean_is_not_believed() {
        let now = Timestamp::from_secs(1_800_000_000);
        let [longest, long] = [15, 90].map(Duration::from_mins);
        let secs = Duration::from_secs;
        for (deadline, at_start, within, on_managed_instances) in [
            (Timestamp::from_millis(600_000), false, false, false),
            (Timestamp::from_millis(1_800_000_900), false, false, false),
            (Timestamp::from_secs(3_200_000_000), false, false, false),
            (Timestamp::from_millis(u64::MAX), false, false, false),
            (now.minus(longest + SKEW).minus(secs(1)), false, false, false),
            (now.minus(longest), false, true, false),
            (now.minus(SKEW), false, true, false),
            (now, false, true, false),
            (now.plus(secs(1)), true, true, true),
            (now.plus(longest + SKEW), true, true, true),
            (now.plus(longest + SKEW).plus(secs(1)), false, false, true),
            (now.plus(long + SKEW).plus(secs(1)), false, false, false),
        ] {
            let found = [
                is_possible(deadline, now, Read::AtStart, longest),
                is_possible(deadline, now, Read::Within, longest),
                is_possible(deadline, now, Read::AtStart, long),
            ];
            assert_eq!(found, [at_start, within, on_managed_instances], "{deadline:?}");
        }
    }
}
