//! Details of configuration errors: what is wrong with a filter, a setting or an HTTP layer.

use std::{fmt, time::Duration};

use crate::envelope::Envelope;

/// Why no record can match the name of a filter such as [`Operation::queue`].
///
/// [`Operation::queue`]: crate::Operation::queue
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilterMistake {
    /// The name is empty.
    #[error("it is empty")]
    Empty,
    /// There is a space before or after the name.
    #[error("it begins or ends with a space")]
    Spaces,
    /// The ARN is that of a resource of another service.
    #[error("it is the ARN of another service")]
    OtherService,
    /// It begins like an ARN, but has no resource or has a wildcard.
    #[error("it is not a whole ARN")]
    PartOfArn,
    /// Events identify resources by name or ARN, not by URL.
    #[error("it is a URL")]
    Url,
    /// The service does not allow these characters in a name.
    #[error("it has characters that such a name cannot have")]
    Characters,
    /// Kafka records contain the topic's name, not an ARN.
    #[error("it is an ARN, but Kafka records contain the topic's name")]
    KafkaArn,
}

/// Why the effects of a transactional operation could not be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoTransaction {
    /// The store has no transactions.
    #[error("its store has no transactions; use `DynamoDbStore` or `PostgresStore`")]
    Store,
    /// A policy runs handlers without a claim.
    #[error(
        "its policy `.{setting}(..)` runs handlers without a claim, and then there is no completion to \
         commit effects with; return such records instead"
    )]
    Unprotected {
        /// The policy.
        setting: &'static str,
    },
    /// Its policy for conflicts is `OnConflict::Skip`.
    #[error(
        "its policy `.on_conflict(OnConflict::Skip)` acknowledges a delivery whose key is held, and the key \
         of a record that was returned uncommitted stays held until its lease ends: its next delivery \
         would be lost; return such records, or let them wait"
    )]
    Skips,
    /// `IDEMPOTENCY_DISABLED` is set.
    #[error(
        "IDEMPOTENCY_DISABLED is set, and without a claim there is no completion to commit effects with; \
         remove the variable"
    )]
    Disabled,
}

/// Why a [`Recovery`](crate::Recovery) cannot recover anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecoveryMistake {
    /// No claim keeps a record.
    #[error(
        "none of its operations is `.recoverable()`, so no claim keeps a record; add that to one"
    )]
    NothingKept,
    /// The function runs its handlers without claims.
    #[error(
        "idempotency is disabled by `IDEMPOTENCY_DISABLED`, and without claims a record would be processed \
         beside another worker; remove that variable"
    )]
    Disabled,
}

/// What an operation lacks, or which of its settings cannot be with [`Operation::mutex`](crate::Operation::mutex).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MutexMistake {
    /// It has no effect.
    #[error(
        "`.{setting}(..)` has no effect, because each delivery calls the handler and no failure is recorded; \
         remove it, or remove `.mutex()`"
    )]
    NoEffect {
        /// The setting.
        setting: &'static str,
    },
    /// Each record has a key of its own.
    #[error(
        "without `.key(..)` the key of a record is its own identity, which excludes no other record; name what is \
         protected with `.key(\"...\")`, or remove `.mutex()`"
    )]
    NoKey,
    /// Different records have one key.
    #[error(
        "the next record of a key replaces the one that `.recoverable()` has kept, which could not be recovered \
         any more; remove it, or remove `.mutex()`"
    )]
    Recoverable,
}

/// Which setting of an operation cannot be with [`Operation::optimistic`](crate::Operation::optimistic).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptimisticMistake {
    /// It has no effect.
    #[error(
        "`.{setting}(..)` has no effect, because no lease is held and nothing is recorded of an attempt that \
         fails; remove it, or use `.transactional()`"
    )]
    NoEffect {
        /// The setting.
        setting: &'static str,
    },
    /// A record has to outlive the requests that it excludes.
    #[error(
        "its retention is less than {} minutes, so that a request that arrives late could be applied after \
         it; set a longer `.retention(..)`, or use `.transactional()`", .least.as_secs() / 60
    )]
    Retention {
        /// The shortest one.
        least: Duration,
    },
}

/// Why a setting of an operation cannot be what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsMistake {
    /// One name is used with two modes, and the keys of both are the same.
    #[error(
        "it has {} at one place and {} at another, with the same keys, and each would be answered from what the other \
         keeps; set the mode on the operation itself, or give other work another name", .modes[0], .modes[1]
    )]
    TwoModes {
        /// The modes.
        modes: [&'static str; 2],
    },
    /// A setting has no effect because of another one.
    #[error("`.{setting}(..)` has no effect beside `.{other}(..)`: {reason}; remove one of them")]
    NoEffectBeside {
        /// The setting.
        setting: &'static str,
        /// The other one.
        other: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// An envelope is named where it never is: a second time, or in a notification of S3.
    #[error(
        "it has `.envelope(Envelope::{inner:?})` after `.envelope(Envelope::{outer:?})`, and no record has it there; \
         name each envelope once, the outermost first"
    )]
    Envelopes {
        /// The envelope that was named first.
        outer: Envelope,
        /// The envelope that cannot be in it.
        inner: Envelope,
    },
    /// `.divert(..)` and `OnPermanentFailure::Acknowledge` contradict each other.
    #[error(
        "it has `.divert(..)` and `.on_permanent_failure(OnPermanentFailure::Acknowledge)`, which would lose a \
         permanently failed record if the sink fails; remove one of them"
    )]
    AcknowledgedAndDiverted,
    /// A length is out of its bounds.
    #[error(
        "its `.{setting}(..)` has {length:?}, and may have {} s to {} s: a shorter lease would be renewed all the time, \
         and with a longer time the key of a worker that has died stays held", .least.as_secs(), .most.as_secs()
    )]
    Length {
        /// The setting.
        setting: &'static str,
        /// The length asked for.
        length: Duration,
        /// The shortest.
        least: Duration,
        /// The longest.
        most: Duration,
    },
}

/// Where a setting of an operation has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingScope {
    /// For these event sources.
    Sources(&'static [&'static str]),
    /// For all event sources.
    AllSources,
    /// For all event sources and `.run_many(..)`.
    AllSourcesAndRunMany,
    /// Everywhere except `.http(..)`.
    AllButHttp,
    /// Everywhere except `.event(..)`.
    AllButEvent,
}

impl fmt::Display for SettingScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sources(sources) => write!(f, "it has an effect for {}", sources.join(", ")),
            Self::AllSources => {
                f.write_str("it has an effect for event sources (`.sqs(..)`, `.kinesis(..)`, ...)")
            }
            Self::AllSourcesAndRunMany => f.write_str(
                "it has an effect for event sources (`.sqs(..)`, `.kinesis(..)`, ...) and `.run_many(..)`",
            ),
            Self::AllButHttp => {
                f.write_str("it has an effect for event sources, `.event(..)` and `.run(..)`")
            }
            Self::AllButEvent => f.write_str(
                "it has an effect where handlers have a `Call`: for event sources, \
                             `.http(..)` and `.run(..)`",
            ),
        }
    }
}

/// Why a setting of the HTTP layer is refused, and what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HttpLayerMistake {
    /// A header is named, but keys are not read from headers.
    #[error(
        "`.header(..)` has no effect, because the operation takes its key from the body; remove it, \
         or the operation's `.key(..)`"
    )]
    HeaderIsNotRead,
    /// Each path is to have its own keys, but the keys are those of Powertools.
    #[error(
        "`.one_key_for_each_path(..)` has no effect, because Powertools keys cannot contain a path; \
         remove it, or `.powertools(..)`"
    )]
    PathInPowertoolsKey,
    /// A key counts for one caller, but the keys are those of Powertools, which cannot contain the caller.
    #[error(
        "each request would be refused, because Powertools keys cannot contain its caller; let all callers share \
         their keys with `PowertoolsKeys::accept_collisions`, or remove `.powertools(..)`"
    )]
    CallerInPowertoolsKey,
    /// Each path is to have its own keys, but clients choose the keys.
    #[error(
        "`.one_key_for_each_path(..)` has no effect, because clients choose the keys in the header, \
         and choose another key for another path; remove it, or take the key from the body with the \
         operation's `.key(..)`"
    )]
    PathWithHeader,
    /// No method is named.
    #[error(
        "`.methods(..)` names no method, so no request would be deduplicated; name one, or leave \
         the layer out"
    )]
    NoMethod,
}
