//! The kinds of faults, modes and sources, with the names that arguments and reports use.

/// An enum with `ALL`, `as_str`, `Display`, `FromStr` and `Serialize` by the names of its variants. The text before it
/// says what it is, for errors.
macro_rules! named {
    (
        $what:literal;
        $(#[$attribute:meta])*
        pub enum $Name:ident { $($(#[$of:meta])* $variant:ident = $name:literal,)* }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $Name { $($(#[$of])* $variant,)* }

        impl $Name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $Name {
            type Err = String;

            fn from_str(name: &str) -> Result<Self, String> {
                Self::ALL.iter().copied().find(|one| one.as_str() == name).ok_or_else(|| {
                    let names: Vec<_> = Self::ALL.iter().map(|one| one.as_str()).collect();
                    format!("`{name}` is not {}: use {}", $what, names.join(", "))
                })
            }
        }

        impl serde::Serialize for $Name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

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
    /// The faults that need nothing of the function. For the others it has to follow a script.
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

named! {
    "a mode";
    /// How effects and completions are kept together.
    #[derive(Default)]
    pub enum Mode {
        /// Claim and complete: the handler makes its effect, and the completion is recorded afterwards.
        #[default]
        Claim = "claim",
        /// The effect is committed in one transaction with the completion. No cause excuses a doubled effect then.
        Transaction = "transaction",
        /// The same without claims: the completion is inserted together with the effect. Handlers may run again, and no
        /// cause excuses a doubled effect.
        Optimistic = "optimistic",
        /// Claim and complete, and the effect is made in a step. No cause excuses an effect of an attempt that began when
        /// the result of the step was recorded.
        Steps = "steps",
    }
}

impl Mode {
    /// Whether effects are committed in one transaction with the completion.
    #[must_use]
    pub const fn commits(self) -> bool {
        matches!(self, Self::Transaction | Self::Optimistic)
    }

    /// The faults that the scripted function can get.
    pub fn faults(self) -> impl Iterator<Item = FaultKind> {
        let all = FaultKind::ALL.iter().copied();
        all.filter(move |kind| self.has(*kind))
    }

    pub(crate) fn has(self, kind: FaultKind) -> bool {
        match kind {
            FaultKind::Conflict => self.commits(),
            _ => true,
        }
    }
}

named! {
    "a source";
    /// The service that delivers the messages of a run, by the names of `lambda-idempotency event`.
    #[derive(Default)]
    pub enum Origin {
        /// A standard queue.
        #[default]
        Sqs = "sqs",
        /// A FIFO queue, with several message groups.
        SqsFifo = "sqs-fifo",
        /// A topic: an asynchronous invocation for each message.
        Sns = "sns",
        /// An event bus: an asynchronous invocation for each event.
        EventBridge = "eventbridge",
        /// A stream with several shards.
        Kinesis = "kinesis",
        /// The stream of a table, with several shards.
        DynamoDb = "dynamodb",
    }
}

impl Origin {
    /// Whether it delivers the messages of a group in order.
    #[must_use]
    pub const fn keeps_order(self) -> bool {
        matches!(self, Self::SqsFifo | Self::Kinesis | Self::DynamoDb)
    }
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
