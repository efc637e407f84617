//! The settings of a run, with the names that arguments and reports use.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use lambda_idempotency_local::Table;

use crate::{Error, Template};

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

/// The settings of a run. Two runs with the same settings have the same schedule.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The function, built: `scripted_orders` of the tests package, or any function if there is a
    /// [`template`](Self::template).
    pub binary: PathBuf,
    /// How many messages are sent. Each is delivered at least once.
    pub deliveries: usize,
    /// The seed of all random choices in the schedule.
    pub seed: u64,
    /// How many processes serve the queue at a time, besides those left running after their deadline.
    pub processes: usize,
    /// How effects and completions are kept together. With another mode than [`Mode::Claim`], the function is
    /// `scripted_orders`.
    pub mode: Mode,
    /// The kinds of faults to inject.
    pub faults: BTreeSet<FaultKind>,
    /// The function's timeout: short, because a lease lasts one second longer.
    pub timeout: Duration,
    /// How long a received message stays invisible: shorter than the timeout, which AWS would not
    /// allow, so that messages are delivered again while a process still handles them.
    pub visibility: Duration,
    /// If no message is acknowledged or dead-lettered for this long, the remaining ones are stuck. The run does not end
    /// before the first invocation has.
    pub patience: Duration,
    /// Further environment variables of the function.
    pub env: Vec<(String, String)>,
    /// Further tables of the function.
    pub tables: Vec<Table>,
    /// The message of a function that follows no scripts. Such a function reports its effects with
    /// `lambda_idempotency::testing::effect`, and gets only the faults of [`FaultKind::FOR_ANY_FUNCTION`].
    pub template: Option<Template>,
}

impl Settings {
    /// Two thousand deliveries to four processes, with every fault of claim and complete.
    #[must_use]
    pub fn new(binary: impl AsRef<Path>) -> Self {
        Self {
            binary: binary.as_ref().to_path_buf(),
            deliveries: 2000,
            seed: 1,
            processes: 4,
            mode: Mode::Claim,
            faults: Mode::Claim.faults().collect(),
            timeout: Duration::from_secs(2),
            visibility: Duration::from_millis(1500),
            patience: Duration::from_secs(120),
            env: Vec::new(),
            tables: Vec::new(),
            template: None,
        }
    }

    /// The same with every fault of this mode.
    #[must_use]
    pub fn with_mode(binary: impl AsRef<Path>, mode: Mode) -> Self {
        Self { mode, faults: mode.faults().collect(), ..Self::new(binary) }
    }

    /// The same with a user's function, which gets messages of this template, and every fault that any function can get.
    #[must_use]
    pub fn for_any_function(binary: impl AsRef<Path>, template: Template) -> Self {
        Self {
            faults: FaultKind::FOR_ANY_FUNCTION.iter().copied().collect(),
            template: Some(template),
            ..Self::new(binary)
        }
    }

    pub(crate) fn has(&self, kind: FaultKind) -> bool {
        self.faults.contains(&kind)
    }

    pub(crate) fn timeout_ms(&self) -> u64 {
        u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Settings {
    /// Whether these settings fit together. [`run`](crate::run) checks it as well; a program that builds the function
    /// first can say it before.
    ///
    /// # Errors
    /// Which setting does not fit, and what to do.
    pub fn check(&self) -> Result<(), Error> {
        problem(self).map_or(Ok(()), |problem| Err(Error::Settings(problem)))
    }
}

fn problem(settings: &Settings) -> Option<String> {
    let fault = |is_wrong: &dyn Fn(FaultKind) -> bool| {
        settings.faults.iter().copied().find(|kind| is_wrong(*kind))
    };
    if settings.template.is_some() {
        if let Some(kind) = fault(&|kind| !FaultKind::FOR_ANY_FUNCTION.contains(&kind)) {
            return Some(format!(
                "the fault `{kind}` needs a function that follows scripts: leave it out for your own function"
            ));
        }
        if settings.mode != Mode::Claim {
            let text = "modes other than `claim` are those of the scripted orders function: leave them out for your own \
                        function";
            return Some(text.to_owned());
        }
    }
    let kind = fault(&|kind| !settings.mode.has(kind))?;
    Some(format!(
        "the fault `{kind}` needs transactions: leave it out, or use the mode `transaction` or `optimistic`"
    ))
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
