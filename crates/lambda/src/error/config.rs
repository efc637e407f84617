//! Mistakes in how a function is put together.

use std::{fmt, sync::Arc, time::Duration};

use lambda_idempotency_keys::{
    ExpressionError,
    producer::{ExpressionUse, KeySpecError},
};

/// A mistake in how a function is put together; found when it starts.
///
/// Its `Debug` is its message, since that is what a `main` shows that returns it.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Two handlers have operations of one name, and would take each other's keys for their own.
    #[error(
        "two handlers have the operation name `{name}`; give each its own name or, if they do the \
         same work for records of several sources, register that work once with `.sources(..)`"
    )]
    DuplicateName {
        /// The name.
        name: Arc<str>,
    },
    /// One name is used for two things in one process, whose keys would be the same.
    #[error(
        "operation `{name}` is used for {} and for {}, which would be taken for the same work; give \
         one of them another name", .places[0], .places[1]
    )]
    NameInUse {
        /// The name.
        name: Arc<str>,
        /// What it is used for.
        places: [&'static str; 2],
    },
    /// Operations of one name have different handlers in two functions of one process.
    #[error(
        "operation `{name}` has two handlers, `{}` and `{}`, which would answer each other's \
         duplicates; give each piece of work its own name or, if it is the same for records of several \
         sources, register one handler with `.sources(..)`", .handlers[0], .handlers[1]
    )]
    TwoHandlers {
        /// The name.
        name: Arc<str>,
        /// The types of the handlers.
        handlers: [&'static str; 2],
    },
    /// Operations of one name have handlers of one type, behind which can be different functions.
    #[error(
        "operation `{name}` has two handlers of type `{handler}`, which may be different functions, and \
         would answer each other's duplicates; give the function itself as the handler, or each its own \
         name"
    )]
    UnknownHandler {
        /// The name.
        name: Arc<str>,
        /// The type of both.
        handler: &'static str,
    },
    /// The application has a name that records cannot bear.
    #[error("{name:?} (from {from}) cannot name an application: 1 to 128 visible ASCII characters")]
    Application {
        /// The name.
        name: Arc<str>,
        /// Where it is from.
        from: &'static str,
    },
    /// An operation for several sources, of which none is named.
    #[error(
        "operation `{operation}` has no source; name some with `Sources::new().sqs(..).sns(..)`"
    )]
    OperationWithoutSource {
        /// The operation.
        operation: Arc<str>,
    },
    /// One of the sources of an operation gives it another name.
    #[error(
        "operation `{operation}` is called `{other}` for {source_name}; the sources of one \
         operation share its name, another piece of work is registered by itself"
    )]
    SourceName {
        /// The operation.
        operation: Arc<str>,
        /// The source.
        source_name: &'static str,
        /// Its name there.
        other: Arc<str>,
    },
    /// An operation of several sources takes the default key of one of them, which records of the
    /// others never have.
    #[error(
        "operation `{operation}` has several sources and no key for {source_name}: what a source \
         calls its records is never what another calls them; name a part of the payload with \
         `.key(\"...\")`"
    )]
    SourceWithoutKey {
        /// The operation.
        operation: Arc<str>,
        /// The source.
        source_name: &'static str,
    },
    /// Two sources of an operation make their keys in different ways, so that they never agree.
    #[error(
        "operation `{operation}` makes other keys for {source_name} than for its first source: they \
         differ in `.{setting}(..)`; give both the same (of keys: as many parts, put together alike), or \
         set it on the operation itself, for all of its sources"
    )]
    SourceKeys {
        /// The operation.
        operation: Arc<str>,
        /// The source that differs from the first one.
        source_name: &'static str,
        /// The setting.
        setting: &'static str,
    },
    /// A setting that has no effect where the operation is used: a filter that would not filter, a
    /// hook that is never called.
    #[error(
        "operation `{operation}` is given to {source_name}, where its `.{setting}(..)` has no effect; \
         it has one for {places}: remove it, or use a clone of the operation that has it only there"
    )]
    Misplaced {
        /// The operation.
        operation: Arc<str>,
        /// The source, or `.event(..)`, `.http(..)`, `.run(..)`.
        source_name: &'static str,
        /// The setting.
        setting: &'static str,
        /// Where the setting has an effect.
        places: String,
    },
    /// A filter with a name that no record can be from.
    #[error(
        "operation `{operation}` has `.{setting}({name:?})`, which no record can match: {mistake}; \
         give the name alone, or the whole ARN where it has one"
    )]
    FilterName {
        /// The operation.
        operation: Arc<str>,
        /// The setting.
        setting: &'static str,
        /// What it was given.
        name: String,
        /// What is wrong with that.
        mistake: FilterMistake,
    },
    /// Two filters that no record passes both.
    #[error(
        "operation `{operation}` has `.{before}(..)` and another `.{setting}(..)`, and no record is \
         from both; keep one of them, and give the other to an operation of its own"
    )]
    Filters {
        /// The operation.
        operation: Arc<str>,
        /// The setting that came first.
        before: &'static str,
        /// The one that cannot go with it.
        setting: &'static str,
    },
    /// No event ever reaches a handler: one before it in the function takes them all.
    #[error(
        "operation `{operation}` is never reached: `{before}` comes before it and takes every \
         {source_name} event that is for it; say which records are whose (`.queue(\"...\")`, \
         `.detail_type(\"...\")`, ...), or put the narrower one first"
    )]
    OutOfReach {
        /// The operation.
        operation: Arc<str>,
        /// The source of both.
        source_name: &'static str,
        /// The operation that takes its events.
        before: Arc<str>,
    },
    /// A key or a fingerprint that is another one whenever its record is delivered again.
    #[error(
        "{what} of operation `{operation}`: `{expression}` holds `{member}`, which differs each time {source_name} \
         delivers a record; name what stays the same, such as a part of the payload or the record's id"
    )]
    Volatile {
        /// The operation.
        operation: Arc<str>,
        /// Which of its expressions.
        what: ExpressionUse,
        /// The expression.
        expression: String,
        /// The source.
        source_name: &'static str,
        /// The member of its records.
        member: &'static str,
    },
    /// An expression for requests looks at a record, and they have none.
    #[error(
        "{what} of operation `{operation}` looks at the record around the payload, and a request of \
         `.http(..)` has none: the expression sees the body; write it without `record`, or name the \
         header that holds the key with `.header(..)` of the layer"
    )]
    NoRecord {
        /// The operation.
        operation: Arc<str>,
        /// Which of its expressions.
        what: ExpressionUse,
    },
    /// A setting of the layer for HTTP requests that changes nothing, or switches the layer off.
    #[error(
        "the HTTP layer of operation `{operation}` has `.{setting}(..)` without effect: {why}; {remedy}"
    )]
    HttpLayer {
        /// The operation.
        operation: Arc<str>,
        /// The setting of the layer.
        setting: &'static str,
        /// Why it has no effect.
        why: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// Functions for expressions that nothing calls.
    #[error(
        "operation `{operation}` has `.functions(..)` without effect: it has no expression that could call \
         them; remove them, or use them in `.key(\"...\")` or `.fingerprint(\"...\")`"
    )]
    Functions {
        /// The operation.
        operation: Arc<str>,
    },
    /// The environment variable that is to hold a key expression is not set.
    #[error(
        "operation `{operation}` takes its key from the environment variable {variable}, which is \
         not set; set it, or name a default with `.key(\"...\")`"
    )]
    Variable {
        /// The operation.
        operation: Arc<str>,
        /// The variable.
        variable: String,
    },
    /// The key expression in an environment variable has a mistake.
    #[error("key of operation `{operation}`, from the environment variable {variable}: {source}")]
    VariableExpression {
        /// The operation.
        operation: Arc<str>,
        /// The variable.
        variable: String,
        /// The mistake and its place.
        source: ExpressionError,
    },
    /// A mistake in it of the keys: a name that cannot be used, an expression with a mistake,
    /// settings of keys that exclude one another.
    #[error(transparent)]
    KeySpec(#[from] KeySpecError),
    /// A record that expires at once protects from nothing.
    #[error(
        "operation `{operation}` retains its records for no time at all; \
         give `.retention(..)` the time for which duplicates are to be recognised"
    )]
    Retention {
        /// The operation.
        operation: Arc<str>,
    },
    /// A lease of so little time that it would be renewed all the time.
    #[error("operation `{operation}` has leases of {length:?}; they need at least 1 s")]
    Lease {
        /// The operation.
        operation: Arc<str>,
        /// The length asked for.
        length: Duration,
    },
    /// A permanent failure that is acknowledged unprocessed is not put aside.
    #[error(
        "operation `{operation}` has `.divert(..)` and `.on_permanent_failure(OnPermanentFailure::Acknowledge)`, which \
         would drop a permanent failure that could not be put aside at once; remove one of them"
    )]
    AcknowledgedAndDiverted {
        /// The operation.
        operation: Arc<str>,
    },
    /// A function without a source.
    #[error("the function handles no source; add one with `.sqs(..)`, `.sns(..)`, ...")]
    NoSource,
}

impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why no record can match the name that a filter has, such as [`Operation::queue`].
///
/// [`Operation::queue`]: crate::Operation::queue
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilterMistake {
    /// There is no name.
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
    /// Events name resources by their names or ARNs, not by URLs.
    #[error("it is a URL")]
    Url,
    /// The service does not allow these characters in a name.
    #[error("it has characters that such a name cannot have")]
    Characters,
    /// Topics of Kafka have no ARN in its records.
    #[error("it is an ARN, and topics of Kafka are known by their names")]
    KafkaArn,
}
