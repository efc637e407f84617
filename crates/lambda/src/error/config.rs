//! Mistakes in how a function is configured.

use std::{fmt, sync::Arc};

use lambda_idempotency_keys::{
    ExpressionError,
    producer::{ExpressionUse, KeySpecError},
};

use super::mistakes::{
    FilterMistake, HttpLayerMistake, MutexMistake, NoTransaction, OptimisticMistake,
    RecoveryMistake, SettingScope, SettingsMistake,
};
use crate::disabled::refusal;

/// A mistake in how a function is configured, found when it starts.
///
/// Its `Debug` is its message, because a `main` that returns an error prints its `Debug`.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Two handlers have operations of the same name, and would share their keys.
    #[error(
        "two handlers have the operation name `{name}`; give each its own name or, if they do the \
         same work for records of several sources, register that work once with `.sources(..)`"
    )]
    DuplicateName {
        /// The name.
        name: Arc<str>,
    },
    /// One name is used for two things in a process, so their keys would be the same.
    #[error(
        "operation `{name}` is used for {} and for {}, and their records would share keys; give \
         one of them another name", .uses[0], .uses[1]
    )]
    NameInUse {
        /// The name.
        name: Arc<str>,
        /// What it is used for.
        uses: [&'static str; 2],
    },
    /// One name is used for two layers of one kind, which may be around different services.
    #[error(
        "operation `{name}` has two layers of {layer}, whose services would answer each other's \
         duplicates; make the layer once and clone it or, for other work, give each operation its \
         own name"
    )]
    TwoLayers {
        /// The name.
        name: Arc<str>,
        /// `.event(..)` or `.http(..)`.
        layer: &'static str,
    },
    /// Operations of the same name have different handlers in two functions of a process.
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
    /// Two operations of the same name have handlers of one type whose values may do different work, such as closures
    /// that capture something, or function pointers.
    #[error(
        "operation `{name}` has two handlers of type `{handler}`, which may do different work because of what they \
         hold, and would answer each other's duplicates; build the function once and clone it, register one handler for \
         several sources with `.sources(..)`, or give each operation its own name"
    )]
    UnknownHandler {
        /// The name.
        name: Arc<str>,
        /// The type of both.
        handler: &'static str,
    },
    /// The application's name cannot be stored in idempotency records.
    #[error(
        "{name:?} (from {from}) cannot name an application; use 1 to 128 visible ASCII characters"
    )]
    Application {
        /// The name.
        name: Arc<str>,
        /// Where it was set.
        from: &'static str,
    },
    /// The value of an environment variable is not valid UTF-8 text.
    #[error("the environment variable {variable} is not valid UTF-8 text; correct it")]
    VariableNotText {
        /// The variable.
        variable: Arc<str>,
    },
    /// An environment variable that switches something on is neither on nor off.
    #[error(
        "the environment variable {variable} has an unknown value; set it to `1` or `true` to switch on what it is for, \
         and otherwise to `0` or `false`"
    )]
    Switch {
        /// The variable.
        variable: &'static str,
    },
    /// CloudWatch refuses this namespace of metrics.
    #[error(
        "{namespace:?} cannot be a namespace of metrics; CloudWatch allows 1 to 255 letters, digits, spaces and \
         `.-_/#:`, but not only spaces, and no `:` or `AWS/` at the beginning"
    )]
    MetricsNamespace {
        /// The namespace.
        namespace: Arc<str>,
    },
    /// `IDEMPOTENCY_DISABLED` has a value that does not turn the protection off here.
    #[error("{}", refusal(value, function.as_deref()))]
    Disabled {
        /// The value.
        value: Arc<str>,
        /// The name of the function, on Lambda.
        function: Option<Arc<str>>,
    },
    /// An operation for several sources names none.
    #[error(
        "operation `{operation}` has no source; name some with `Sources::new().sqs(..).sns(..)`"
    )]
    OperationWithoutSource {
        /// The operation.
        operation: Arc<str>,
    },
    /// One source of an operation changes the operation's name.
    #[error(
        "operation `{operation}` is renamed to `{other}` for {source_name}; all sources of an \
         operation share its name: remove the change, or register other work as a separate \
         operation"
    )]
    SourceName {
        /// The operation.
        operation: Arc<str>,
        /// The source.
        source_name: &'static str,
        /// Its name there.
        other: Arc<str>,
    },
    /// An operation of several sources has no key for one of them. The default key of one source
    /// never equals that of another.
    #[error(
        "operation `{operation}` has several sources and no key for {source_name}: default keys of \
         two sources never agree; name a part of the payload with `.key(\"...\")`"
    )]
    SourceWithoutKey {
        /// The operation.
        operation: Arc<str>,
        /// The source.
        source_name: &'static str,
    },
    /// Two sources of an operation make their keys or fingerprints in different ways, so these never agree.
    #[error(
        "operation `{operation}` makes different keys or fingerprints for {source_name} than for its first source, \
         because `.{setting}(..)` differs; give both sources the same setting (a key or a fingerprint: the same \
         number of parts in the same structure), or set it on the operation itself"
    )]
    SourceKeys {
        /// The operation.
        operation: Arc<str>,
        /// The source that differs from the first one.
        source_name: &'static str,
        /// The setting.
        setting: &'static str,
    },
    /// A setting of an operation cannot be what it is, because of its value or of another setting.
    #[error("operation `{operation}` cannot work as it is set: {mistake}")]
    Settings {
        /// The operation.
        operation: Arc<str>,
        /// Which setting, why, and what to do.
        mistake: SettingsMistake,
    },
    /// A setting has no effect where the operation is used, such as a filter that never applies or
    /// a hook that is never called.
    #[error(
        "operation `{operation}` has `.{setting}(..)`, which has no effect for {source_name}: \
         {scope}; remove it, or set it only on a clone of the operation that is used there"
    )]
    Misplaced {
        /// The operation.
        operation: Arc<str>,
        /// The source, or `.event(..)`, `.http(..)`, `.run(..)`.
        source_name: &'static str,
        /// The setting.
        setting: &'static str,
        /// Where the setting has an effect.
        scope: SettingScope,
    },
    /// An operation is transactional where its effects could not be committed.
    #[error("operation `{operation}` cannot be `.transactional()`: {mistake}")]
    Transaction {
        /// The operation.
        operation: Arc<str>,
        /// Why.
        mistake: NoTransaction,
    },
    /// A recovery has nothing to recover.
    #[error("this function cannot be recovered: {mistake}")]
    Recovery {
        /// Why.
        mistake: RecoveryMistake,
    },
    /// An operation is a mutex, and has a setting that has no effect then.
    #[error(
        "operation `{operation}` is a `.mutex()`, which keeps nothing of an attempt: {mistake}"
    )]
    Mutex {
        /// The operation.
        operation: Arc<str>,
        /// Which.
        mistake: MutexMistake,
    },
    /// An operation is optimistic, and has a setting that has no effect then.
    #[error("operation `{operation}` is `.optimistic()`, which claims no key: {mistake}")]
    Optimistic {
        /// The operation.
        operation: Arc<str>,
        /// Which.
        mistake: OptimisticMistake,
    },
    /// A filter has a name that no record can match.
    #[error(
        "operation `{operation}` has `.{setting}({name:?})`, which no record can match: {mistake}; \
         give the name alone, or the whole ARN where it has one"
    )]
    FilterName {
        /// The operation.
        operation: Arc<str>,
        /// The setting.
        setting: &'static str,
        /// The name.
        name: String,
        /// What is wrong with the name.
        mistake: FilterMistake,
    },
    /// No record can pass both of these filters.
    #[error(
        "operation `{operation}` has `.{before}(..)` and another `.{setting}(..)`, and no record \
         can match both; keep one, and move the other to a separate operation"
    )]
    Filters {
        /// The operation.
        operation: Arc<str>,
        /// The setting that was made first.
        before: &'static str,
        /// The setting that contradicts it.
        setting: &'static str,
    },
    /// No event ever reaches a handler, because an earlier one takes them all.
    #[error(
        "operation `{operation}` is never reached: `{before}` comes before it and takes all of its \
         {source_name} events; filter the records of each (`.queue(\"...\")`, \
         `.detail_type(\"...\")`, ...), or register the narrower operation first"
    )]
    OutOfReach {
        /// The operation.
        operation: Arc<str>,
        /// The source of both.
        source_name: &'static str,
        /// The operation that takes its events.
        before: Arc<str>,
    },
    /// A key or fingerprint contains a value that changes with each delivery of a record.
    #[error(
        "the {what} of operation `{operation}` does not recognise redeliveries: `{expression}` contains \
         `{member}`, which differs each time {source_name} delivers a record; use values that stay the same, such as a part of \
         the payload or the record's id"
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
    /// A key is selected from a whole message that may contain several notifications of S3.
    #[error(
        "the key of operation `{operation}` reads the whole message, with `{expression}`, and S3 may put several \
         notifications into one: they would have one key, and only the first would be processed; select the key from the \
         notification, such as `s3.object.key`, or take the message as one record with `.whole_record()`"
    )]
    OneKeyForSeveral {
        /// The operation.
        operation: Arc<str>,
        /// The expression.
        expression: String,
    },
    /// A handler gets the whole message once for each notification of S3 in it.
    #[error(
        "operation `{operation}` has `.whole_record()` and `.envelope(Envelope::S3)`, and S3 may put several notifications into \
         one message: each has a key of its own, and the handler would get the whole message for each; name a key of the \
         message, such as `.key(\"messageId\")`, or leave `.whole_record()` out"
    )]
    WholeMessageOfSeveral {
        /// The operation.
        operation: Arc<str>,
    },
    /// An expression for HTTP requests uses `record(..)`, which requests do not have.
    #[error(
        "the {what} of operation `{operation}` uses `record(..)`, which a request of `.http(..)` does \
         not have: the expression sees the body; write it without `record(..)`, or name the header \
         that holds the key with `.header(..)` of the layer"
    )]
    NoRecord {
        /// The operation.
        operation: Arc<str>,
        /// Which of its expressions.
        what: ExpressionUse,
    },
    /// A setting of the HTTP layer has no effect, or switches the layer off.
    #[error(
        "operation `{operation}` has an HTTP layer with a setting that cannot be used: {mistake}"
    )]
    HttpLayer {
        /// The operation.
        operation: Arc<str>,
        /// Which setting, why it has no effect, and what to do.
        mistake: HttpLayerMistake,
    },
    /// Custom functions that no expression calls.
    #[error(
        "operation `{operation}` has `.key_functions(..)`, but no expression that could call them; \
         remove it, or call the functions in `.key(\"...\")` or `.fingerprint(\"...\")`"
    )]
    Functions {
        /// The operation.
        operation: Arc<str>,
    },
    /// An operation skips records in which its key expression finds no key, but has no expression. A record without a
    /// default key is not what the operation is for, and to acknowledge it would lose it.
    #[error(
        "operation `{operation}` skips records without a key, but has no expression that could find \
         none; name one with `.key(\"...\")`, or remove `.on_missing_key(OnMissingKey::Skip)`"
    )]
    SkipsWithoutKey {
        /// The operation.
        operation: Arc<str>,
    },
    /// The environment variable for a key expression is not set.
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
    #[error(
        "the key of operation `{operation}`, which the environment variable {variable} holds, has a \
         mistake: {source}"
    )]
    VariableExpression {
        /// The operation.
        operation: Arc<str>,
        /// The variable.
        variable: String,
        /// The mistake and its position.
        source: ExpressionError,
    },
    /// A mistake in the operation's keys: an invalid name, a mistake in an expression, or settings
    /// that exclude each other.
    #[error(transparent)]
    KeySpec(#[from] KeySpecError),
    /// The retention is zero, so completions would expire at once.
    #[error(
        "operation `{operation}` has a retention of zero; give `.retention(..)` the time for which \
         duplicates are to be recognised"
    )]
    Retention {
        /// The operation.
        operation: Arc<str>,
    },
    /// The function has no source.
    #[error("the function has no source; add one with `.sqs(..)`, `.sns(..)`, ...")]
    NoSource,
}

impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
