//! The kinds of faults and their names.

use crate::named::named;

named! {
    "a kind of fault";
    /// A kind of fault.
    pub enum FaultKind {
        /// `SIGKILL`, before the effect or between the effect and its completion.
        Kill = "kill",
        /// `SIGSTOP`, before the effect or after it, until the lease has expired and a successor may have
        /// taken the key; then the process continues.
        Stop = "stop",
        /// A handler takes longer than its invocation may, before its effect or after it. It awaits, so that
        /// the engine can drop it, or blocks the thread, so that the engine cannot.
        Timeout = "timeout",
        /// A handler returns an error a few times.
        Fail = "fail",
        /// A handler panics.
        Panic = "panic",
        /// A handler fails permanently: every copy has to end in the dead-letter queue.
        DeadLetter = "dead-letter",
        /// The store throttles: whole requests, and single members of a batch.
        Throttle = "throttle",
        /// The store answers 500, before the write is applied or after it.
        Error = "error",
        /// The store's connection closes, before the write is applied or after it.
        Drop = "drop",
        /// The store answers slowly, and still applies the write.
        Slow = "slow",
        /// The store is unavailable for a while, sometimes beyond the deadline of an invocation.
        Outage = "outage",
        /// The processes' clocks differ, within the clock skew.
        Skew = "skew",
        /// The store cancels transactions because of a conflict or of throttling of one of their items, or says that the
        /// same request is in progress. Only where effects are in the transaction.
        Conflict = "conflict",
    }
}

impl FaultKind {
    /// Those that need nothing of the function. For the others it has to follow a script.
    pub const FOR_ANY_FUNCTION: &'static [Self] = &[
        Self::Kill,
        Self::Stop,
        Self::Throttle,
        Self::Error,
        Self::Drop,
        Self::Slow,
        Self::Outage,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_parsed_to_its_fault() {
        for kind in FaultKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(*kind));
        }
        let error = "flood".parse::<FaultKind>().unwrap_err();
        assert!(error.contains("`flood`") && error.contains("outage"), "{error}");
    }
}
