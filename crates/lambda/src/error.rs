//! What can go wrong outside a single record.

use std::{fmt, sync::Arc, time::Duration};

use lambda_idempotency_core::{
    clock::Timestamp,
    failure::Failure,
    outcome::{Foreign, Rejection},
    store::StoreError,
};
use lambda_idempotency_keys::{ExpressionError, SecretError, producer::RecipeError};
use lambda_runtime::Diagnostic;

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
         that is for {places}: remove it, or use a clone of the operation that has it only there"
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
        "operation `{operation}` has `.{setting}({name:?})`, which {problem}, so no record would be \
         from there; give the name alone, or the whole ARN where it has one"
    )]
    FilterName {
        /// The operation.
        operation: Arc<str>,
        /// The setting.
        setting: &'static str,
        /// What it was given.
        name: String,
        /// What is wrong with that.
        problem: &'static str,
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
        "operation `{operation}` is never reached: `{before}` stands before it and takes every \
         {source_name} event that is for it; say which records are whose (`.from_queue(\"...\")`, \
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
    /// An expression has a mistake.
    #[error("{what} of operation `{operation}`: {source}")]
    Expression {
        /// The operation.
        operation: Arc<str>,
        /// Which of its expressions.
        what: &'static str,
        /// The mistake and its place.
        source: ExpressionError,
    },
    /// An expression selects the same from every record, which would make all of them one.
    #[error(
        "{what} of operation `{operation}`: `{expression}` selects the same from every record; \
         a field is written without quotes, or in double quotes"
    )]
    Constant {
        /// The operation.
        operation: Arc<str>,
        /// Which of its expressions.
        what: &'static str,
        /// The expression.
        expression: String,
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
        what: &'static str,
        /// The expression.
        expression: String,
        /// The source.
        source_name: &'static str,
        /// The member of its records.
        member: &'static str,
    },
    /// Keys of another library have no default.
    #[error(
        "operation `{operation}` has a dialect and no key: name one with `.key(\"...\")`; \
         `@` is the whole payload, as Powertools takes it without an expression"
    )]
    DialectKey {
        /// The operation.
        operation: Arc<str>,
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
        what: &'static str,
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
        "operation `{operation}` has `.functions(..)` without effect: {why}; \
         remove them, or use them in `.key(\"...\")` or `.fingerprint(\"...\")`"
    )]
    Functions {
        /// The operation.
        operation: Arc<str>,
        /// Why nothing calls them.
        why: &'static str,
    },
    /// A part of the key is optional, but there is no key expression.
    #[error(
        "operation `{operation}` says that part `{part}` of its key is optional, and names no key; \
         name one with `.key(\"...\")`"
    )]
    OptionalPart {
        /// The operation.
        operation: Arc<str>,
        /// The part.
        part: String,
    },
    /// A secret for keys that is too short.
    #[error("operation `{operation}`: {source}")]
    Secret {
        /// The operation.
        operation: Arc<str>,
        /// What is wrong with it.
        source: SecretError,
    },
    /// Keys that can be read hide nothing.
    #[error(
        "operation `{operation}` has a secret for its keys and wants them readable; choose one"
    )]
    ReadableSecret {
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
    /// What the key is made of does not exist before AWS delivers it.
    #[error(
        "operation `{operation}` has keys that no producer can compute: {why}, which AWS makes when \
         it delivers; name a part of the payload with `.key(\"...\")`"
    )]
    UnknownToProducers {
        /// The operation.
        operation: Arc<str>,
        /// What its key is taken from.
        why: &'static str,
    },
    /// A mistake that a recipe for keys can have too: a name that cannot be used, settings of keys that
    /// exclude one another.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// A record that expires at once protects from nothing.
    #[error(
        "operation `{operation}` retains its records for no time at all; \
         give `.retain(..)` the time for which duplicates are to be recognised"
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
        "operation `{operation}` has `.divert(..)` and `.on_remembered(Remembered::Acknowledge)`, which \
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

/// Why an invocation as a whole fails, so that Lambda or the source tries it again.
///
/// Converts to a [`Diagnostic`] whose `errorType` begins with `Idempotency.` and names the variant.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvocationError {
    /// The event is of no source that this function handles.
    #[error(
        "the event is from no source that this function handles ({expected}): {found}; \
         add the source, or a handler for other events with `.otherwise(..)`"
    )]
    UnknownEvent {
        /// What the function handles.
        expected: String,
        /// What the event looks like.
        found: String,
    },
    /// An answer cannot be written, or an event not be read, as JSON.
    #[error("{what} cannot be represented as JSON")]
    Json {
        /// Which.
        what: &'static str,
    },
    /// Records have to come again, and this is how their source is told.
    #[error("{failed} of {total} {source_name} record(s) must be delivered again: {problems}")]
    Records {
        /// The source.
        source_name: &'static str,
        /// How many.
        failed: usize,
        /// Of how many.
        total: usize,
        /// The first few, with what is wrong with each.
        problems: String,
    },
    /// The wrapped event could not be processed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The handler for other events failed.
    #[error("the handler for other events failed: {0}")]
    Otherwise(Failure),
}

impl From<InvocationError> for Diagnostic {
    fn from(error: InvocationError) -> Self {
        let kind = match &error {
            InvocationError::UnknownEvent { .. } => "UnknownEvent",
            InvocationError::Json { .. } => "Json",
            InvocationError::Records { .. } => "RecordsReturned",
            InvocationError::Run(run) => run.kind(),
            InvocationError::Otherwise(_) => "HandlerFailed",
        };
        Self { error_type: format!("Idempotency.{kind}"), error_message: error.to_string() }
    }
}

/// So that a handler which returns `Result<_, RunError>` has an `errorType` to alarm on, as
/// [`InvocationError`] has. In a `Box<dyn Error>` it would be the name of the box.
impl From<RunError> for Diagnostic {
    fn from(error: RunError) -> Self {
        InvocationError::Run(error).into()
    }
}

/// Why [`run`](crate::Idempotency::run) has no result.
///
/// Converts to a [`Diagnostic`] whose `errorType` begins with `Idempotency.`; so let the handler return
/// it, or an [`InvocationError`], rather than a boxed error.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The operation has a mistake.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The function failed.
    #[error("{0}")]
    Failed(Failure),
    /// An earlier call failed for good, and that is remembered.
    #[error("an earlier call with this key failed for good, with {}", .error.as_deref().unwrap_or("an error"))]
    Remembered {
        /// The type of the error.
        error: Option<Arc<str>>,
    },
    /// Another worker holds the key.
    #[error(
        "another worker is processing the same key, until {until} at the latest; try again then"
    )]
    Busy {
        /// Up to and including this instant.
        until: Timestamp,
    },
    /// The key was used with another payload.
    #[error("the key was used before with another payload; use a new key, or the same payload")]
    Mismatch,
    /// The key belongs to another application, with an operation of the same name in the same store.
    #[error("{0}")]
    Foreign(Foreign),
    /// The call was made by the function of the same operation for the same key, and would wait for
    /// itself.
    #[error(
        "operation `{operation}` is called inside itself for the same key, and would wait for itself; \
         give the inner work another operation name"
    )]
    Nested {
        /// The operation.
        operation: Arc<str>,
    },
    /// The payload has no key, or cannot be read.
    #[error("{0}")]
    Rejected(Rejection),
    /// The payload could not be turned into JSON to find its key in.
    #[error(
        "the payload cannot be serialized as JSON to find its key in; \
         correct its `Serialize`, or give maps keys that are texts"
    )]
    Unserializable,
    /// The store did not let the key be claimed; the function was not called.
    #[error("the key could not be claimed, and the function was not called: {0}")]
    Store(#[source] StoreError),
    /// There was too little time.
    #[error(
        "the invocation's deadline came before the function returned, or left no time to start it"
    )]
    OutOfTime,
    /// The function returned, but lost its lease to another worker meanwhile.
    #[error(
        "the lease was lost to another worker while the function ran; its result does not count"
    )]
    Fenced,
    /// Another worker holds the key, or there is none, and the policy says to skip the call then.
    #[error("the function was not called, as the operation's policy says")]
    Skipped,
    /// The work was done by an earlier call, whose result was not kept or has another type.
    #[error(
        "the work was done by an earlier call, but its result {0}; \
         it is not done again, and has to be found where the earlier call left it"
    )]
    ResultLost(&'static str),
}

impl RunError {
    /// One word for the kind of error.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Config(_) => "Config",
            Self::Failed(_) => "HandlerFailed",
            Self::Remembered { .. } => "Remembered",
            Self::Busy { .. } => "InProgress",
            Self::Mismatch => "Mismatch",
            Self::Foreign(_) => "Foreign",
            Self::Nested { .. } => "Nested",
            Self::Rejected(_) | Self::Unserializable => "Rejected",
            Self::Store(_) => "Store",
            Self::OutOfTime => "OutOfTime",
            Self::Fenced => "Fenced",
            Self::Skipped => "Skipped",
            Self::ResultLost(_) => "ResultLost",
        }
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Busy { .. } | Self::OutOfTime | Self::Fenced => true,
            Self::Failed(failure) => failure.is_retried(),
            Self::Store(error) => error.is_transient(),
            _ => false,
        }
    }
}
