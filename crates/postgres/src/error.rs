//! Errors that name the remedy and contain no data.
//!
//! The server's messages may quote values of the statement. This module passes on only the SQLSTATE, and the
//! message up to its first quotation, of classes whose messages are about the server and not about data.

use std::{error::Error as _, fmt};

use lambda_idempotency_core::store::{StoreError, StoreErrorKind};
use tokio_postgres::{
    Error,
    error::{DbError, Severity, SqlState},
};

use crate::{config::Config, pool::Unconnected, retry::TimedOut, row::Corrupt};

/// What an error names.
#[derive(Clone, Copy)]
pub(crate) struct Doing<'a> {
    pub(crate) config: &'a Config,
    /// What was done, as a verb: `write to`.
    pub(crate) operation: &'static str,
}

impl fmt::Display for Doing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} PostgreSQL table {}", self.operation, self.config.table.name())
    }
}

/// A failed request, and whether another may succeed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    kind: StoreErrorKind,
    context: String,
    cause: Option<Cause>,
    /// Another request may succeed.
    pub(crate) retry: bool,
    /// The write may have been applied, or may still be applied.
    pub(crate) in_doubt: bool,
    /// It is about the values that were sent, so another member may be to blame.
    pub(crate) of_values: bool,
    /// Other connections are of no use either.
    pub(crate) of_server: bool,
}

/// The message of PostgreSQL or of the connection.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
struct Cause(String);

impl Failure {
    pub(crate) fn new(kind: StoreErrorKind, context: String) -> Self {
        Self {
            kind,
            context,
            cause: None,
            retry: false,
            in_doubt: false,
            of_values: false,
            of_server: false,
        }
    }

    fn transient(kind: StoreErrorKind, context: String) -> Self {
        Self { retry: true, ..Self::new(kind, context) }
    }

    /// No response, or one that says nothing.
    fn unanswered(context: String) -> Self {
        Self { in_doubt: true, ..Self::transient(StoreErrorKind::Unavailable, context) }
    }

    pub(crate) fn timed_out(doing: Doing<'_>, TimedOut(limit): TimedOut) -> Self {
        Self::unanswered(format!("could not {doing}: no answer within {} ms", limit.as_millis()))
    }

    /// There was no connection in time, so nothing was sent.
    pub(crate) fn not_connected(doing: Doing<'_>, TimedOut(limit): TimedOut) -> Self {
        let limit = limit.as_millis();
        let context = format!(
            "could not {doing}: no connection within {limit} ms; check host, port and security group"
        );
        Self::transient(StoreErrorKind::Unavailable, context)
    }

    /// A failover has made this server a standby, or is about to replace it.
    fn read_only(doing: Doing<'_>) -> Self {
        let context = format!(
            "could not {doing}: the server is read-only; connect to the one that takes writes"
        );
        Self { of_server: true, ..Self::transient(StoreErrorKind::Unavailable, context) }
    }

    /// There was no time for even one request.
    pub(crate) fn too_late(config: &Config) -> Self {
        let context = format!("no time left to reach PostgreSQL table {}", config.table.name());
        Self::new(StoreErrorKind::Unavailable, context)
    }

    /// The server cannot keep idempotency records.
    pub(crate) fn unfit(config: &Config, why: &str) -> Self {
        let context = format!("PostgreSQL table {}: {why}", config.table.name());
        Self::new(StoreErrorKind::Misconfigured, context)
    }

    pub(crate) fn contended(config: &Config) -> Self {
        let table = config.table.name();
        let context = format!("a record in PostgreSQL table {table} came and went at each try");
        Self::new(StoreErrorKind::Contended, context)
    }

    pub(crate) fn corrupt(config: &Config, Corrupt { column, problem }: Corrupt) -> Self {
        let table = config.table.name();
        let context = format!(
            "a row in PostgreSQL table {table} is not an idempotency record: column `{column}` {problem}"
        );
        Self::new(StoreErrorKind::Corrupt, context)
    }

    pub(crate) const fn with_doubt(mut self, in_doubt: bool) -> Self {
        self.in_doubt = in_doubt;
        self
    }

    fn because(mut self, cause: String) -> Self {
        self.cause = Some(Cause(cause));
        self
    }

    pub(crate) const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// The error to report, given whether an earlier attempt was left in doubt.
    pub(crate) fn report(self, in_doubt: bool) -> StoreError {
        let context = if in_doubt && !self.in_doubt {
            let context = self.context;
            format!("an attempt had no answer and may have been applied; after it: {context}")
        } else {
            self.context
        };
        let error = StoreError::new(self.kind, context).with_doubt(in_doubt || self.in_doubt);
        match self.cause {
            Some(cause) => error.with_source(cause),
            None => error,
        }
    }
}

/// Why there was no connection. Nothing was sent.
pub(crate) fn connect_failure(doing: Doing<'_>, why: Unconnected) -> Failure {
    let failure = match why {
        Unconnected::NoPassword => Failure::transient(
            StoreErrorKind::Unavailable,
            format!("could not {doing}: the function given to `password` failed"),
        ),
        Unconnected::Closed => Failure::too_late(doing.config),
        Unconnected::Failed(error) => failure(doing, &error),
    };
    failure.with_doubt(false)
}

/// Classifies an error of a statement, which was not applied if the server says so.
pub(crate) fn failure(doing: Doing<'_>, error: &Error) -> Failure {
    match error.as_db_error() {
        Some(said) => server_failure(doing, said),
        None => {
            let failure = Failure::unanswered(format!("could not {doing}: the connection failed"));
            failure.because(chain(error))
        }
    }
}

/// Classifies an error of `BEGIN ... READ WRITE`, which a standby does not support.
pub(crate) fn begin_failure(doing: Doing<'_>, error: &Error) -> Failure {
    match error.as_db_error() {
        Some(said) if *said.code() == SqlState::FEATURE_NOT_SUPPORTED => {
            Failure::read_only(doing).because(told(said))
        }
        _ => failure(doing, error),
    }
}

/// Classifies an error of `COMMIT`. Only a rollback says for certain that nothing was applied.
pub(crate) fn commit_failure(doing: Doing<'_>, error: &Error) -> Failure {
    let failure = failure(doing, error);
    let rolled_back = error.as_db_error().is_some_and(|said| {
        let code = said.code();
        let class = code.code().get(..2);
        // Conflicts, and what constraints and triggers refuse that are checked at the end.
        matches!(class, Some("40" | "23" | "22" | "P0"))
            && *code != SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN
    });
    failure.with_doubt(!rolled_back)
}

/// Whether the server ends the connection after this error.
pub(crate) fn is_fatal(error: &Error) -> bool {
    error.as_db_error().is_none_or(|said| {
        !matches!(said.parsed_severity(), Some(Severity::Error | Severity::Warning))
    })
}

/// Classifies a SQLSTATE.
///
/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>
fn server_failure(doing: Doing<'_>, said: &DbError) -> Failure {
    let (code, table) = (said.code().code(), doing.config.table.name());
    let class = code.get(..2).unwrap_or_default();
    let failure = match code {
        "40001" | "40P01" | "55P03" => Failure::transient(
            StoreErrorKind::Contended,
            format!("could not {doing}: another transaction holds or changes the same rows"),
        ),
        "57014" => Failure::transient(
            StoreErrorKind::Unavailable,
            format!("could not {doing}: the server stopped the statement, which took too long"),
        ),
        "53300" => Failure::transient(
            StoreErrorKind::Unavailable,
            format!(
                "could not {doing}: the server has no connection left; put a proxy before it, or \
                 lower `max_connections` or the concurrency of the function"
            ),
        ),
        "25006" => Failure::read_only(doing),
        "3D000" => Failure::new(
            StoreErrorKind::Misconfigured,
            format!(
                "could not {doing}: the database does not exist; create it, or correct the URL"
            ),
        ),
        "42P01" | "42703" | "42P10" | "42804" | "42883" | "42601" | "3F000" => Failure::new(
            StoreErrorKind::Misconfigured,
            format!(
                "could not {doing}: table {table} does not exist, or has other columns; create it \
                 with `PostgresStore::migrate`, or with the text of `PostgresStore::schema`"
            ),
        ),
        "42501" => Failure::new(
            StoreErrorKind::Denied,
            format!(
                "could not {doing}: the role needs SELECT, INSERT, UPDATE and DELETE on {table}"
            ),
        ),
        "54000" => Failure {
            of_values: true,
            ..Failure::new(
                StoreErrorKind::TooLarge,
                format!("could not {doing}: the record is too large"),
            )
        },
        _ => match class {
            "28" => Failure::new(
                StoreErrorKind::Denied,
                format!(
                    "could not {doing}: the server refused the user or the password; check both, \
                     and whether the server wants TLS"
                ),
            ),
            // The server is starting, ending, or out of resources.
            "57" | "53" | "08" | "58" => Failure::transient(
                StoreErrorKind::Unavailable,
                format!("could not {doing}: the server cannot serve it now"),
            ),
            _ => Failure {
                of_values: matches!(class, "22" | "23" | "54"),
                ..Failure::new(StoreErrorKind::Refused, format!("could not {doing}: refused"))
            },
        },
    };
    failure.because(told(said))
}

/// The SQLSTATE, and the message if it is not about values.
pub(crate) fn told(said: &DbError) -> String {
    let code = said.code().code();
    let message = match code.get(..2) {
        Some(
            "08" | "0A" | "25" | "28" | "3D" | "3F" | "40" | "42" | "53" | "54" | "55" | "57"
            | "58",
        ) => unquoted(said.message()),
        _ => "",
    };
    if message.is_empty() { code.to_owned() } else { format!("{code}: {message}") }
}

/// The message up to its first quotation, because the rest may be data.
fn unquoted(message: &str) -> &str {
    let end = message.find(['\'', '"', '{', '[', '`', '«', '„', '»']).unwrap_or(message.len());
    message.get(..end).unwrap_or_default().trim_end()
}

/// An error of the connection and its causes. They do not quote the request.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
