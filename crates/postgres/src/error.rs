//! Errors that name the remedy and contain no data.
//!
//! The server's messages may quote values of the statement. This module passes on only the SQLSTATE, and the
//! message up to its first quotation, of classes whose messages are about the server and not about data.

use std::{fmt, time::Duration};

use lambda_idempotency_core::{
    request_slots::{Purpose, RequestSlots},
    retry::{self, TimedOut, chain, unquoted},
    settings::NoPassword,
    store::StoreErrorKind,
};
use tokio_postgres::{
    Error,
    error::{DbError, Severity, SqlState},
};

use crate::{config::Config, item::Corrupt};

/// The operation that errors name.
#[derive(Clone, Copy)]
pub(crate) struct Doing<'a> {
    pub(crate) config: &'a Config,
    pub(crate) purpose: Purpose,
    /// The operation, as a verb: `write to`.
    pub(crate) operation: &'static str,
}

impl fmt::Display for Doing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} PostgreSQL table {}", self.operation, self.config.table.name())
    }
}

/// A failed request, and whether another may succeed.
pub(crate) type Failure = retry::RequestFailure<Scope>;

/// The subject of a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    #[default]
    Request,
    /// The values that were sent, so another write of the transaction may be to blame.
    Values,
    /// The server, so other connections are of no use either.
    Server,
    /// Other calls of this process, which had the connections.
    Process,
}

pub(crate) fn timed_out(doing: Doing<'_>, TimedOut(limit): TimedOut) -> Failure {
    Failure::unanswered(format!("could not {doing}: no answer within {} ms", limit.as_millis()))
}

/// The server did not end an effect in this time, so nothing was applied.
pub(crate) fn slow_effect(doing: Doing<'_>, limit: Duration) -> Failure {
    let limit = limit.as_millis();
    unavailable(format!(
        "could not {doing}: an effect took longer than {limit} ms; `attempt_timeout` is the time for the first try"
    ))
}

/// Other calls had the connections for so long, so nothing was sent.
pub(crate) fn all_in_use(doing: Doing<'_>, TimedOut(limit): TimedOut) -> Failure {
    let (millis, all) = (limit.as_millis(), doing.config.max_connections);
    let most = RequestSlots::most_of(all, doing.purpose);
    let connections = if most == all {
        format!("all connections ({all})")
    } else {
        format!("{most} of {all} connections, all but those kept for completions,")
    };
    unavailable(format!(
        "could not {doing}: {connections} were in use for {millis} ms; raise `max_connections`, or make fewer calls at a time"
    ))
}

/// The connection was not there in time, so nothing was sent.
pub(crate) fn not_connected(doing: Doing<'_>, TimedOut(limit): TimedOut) -> Failure {
    let millis = limit.as_millis();
    unavailable(if limit < doing.config.connecting() {
        format!(
            "could not {doing}: there was no connection in the last {millis} ms of the call; if calls with more time \
             have none either, check host, port and security group"
        )
    } else {
        format!(
            "could not {doing}: no connection within {millis} ms; check host, port and security group"
        )
    })
}

/// A failover has made this server a standby, or is about to replace it. Or an administrator has set the database so, perhaps
/// because it moves to another server: then nothing is read here either.
pub(crate) fn read_only(doing: Doing<'_>) -> Failure {
    if doing.config.reads_only {
        let context = format!("could not {doing}: the store was built with `read_only`");
        return Failure::new(StoreErrorKind::Refused, context);
    }
    let context = format!(
        "could not {doing}: the session is read-only, on a standby, or by `default_transaction_read_only` of the server, \
         the database or the role; connect to the server that takes writes"
    );
    unavailable(context).with_detail(Scope::Server)
}

/// There was no time for even one request.
pub(crate) fn too_late(config: &Config) -> Failure {
    let context = format!("no time left to reach PostgreSQL table {}", config.table.name());
    Failure::new(StoreErrorKind::Unavailable, context)
}

/// The server cannot keep idempotency records.
pub(crate) fn unfit(config: &Config, why: &str) -> Failure {
    let context = format!("PostgreSQL table {}: {why}", config.table.name());
    Failure::new(StoreErrorKind::Misconfigured, context)
}

pub(crate) fn contended(config: &Config) -> Failure {
    let table = config.table.name();
    let context = format!(
        "a record in PostgreSQL table {table} was created and deleted between the requests of this call, again and again"
    );
    Failure::new(StoreErrorKind::Contended, context)
}

pub(crate) fn corrupt(config: &Config, Corrupt { column, problem }: Corrupt) -> Failure {
    let table = config.table.name();
    let context = format!(
        "a row in PostgreSQL table {table} is not an idempotency record: column `{column}` {problem}"
    );
    Failure::new(StoreErrorKind::Corrupt, context)
}

/// It was not applied, and may be sent again.
fn unavailable(context: String) -> Failure {
    Failure::transient(StoreErrorKind::Unavailable, context)
}

/// There is no password for a connection, so none was made.
pub(crate) fn no_password(doing: Doing<'_>, why: NoPassword) -> Failure {
    unavailable(format!("could not {doing}: {why}"))
}

/// Why there is no connection.
pub(crate) enum Unconnected {
    /// The server could not be reached, or refused.
    Failed(Error),
    /// The database has this encoding, which cannot hold each text.
    Encoding(String),
}

impl Unconnected {
    /// Whether the server refused the password, which may have been changed since it was loaded: `28P01`, and `28000` where
    /// it asks another service.
    pub(crate) fn is_of_password(&self) -> bool {
        let Self::Failed(error) = self else { return false };
        error.code().is_some_and(|code| code.code().starts_with("28"))
    }
}

/// Why there was no connection. Nothing was sent.
pub(crate) fn connect_failure(doing: Doing<'_>, why: Unconnected) -> Failure {
    let failure = match why {
        Unconnected::Encoding(encoding) => Failure::new(
            StoreErrorKind::Misconfigured,
            format!(
                "could not {doing}: its database has the encoding {encoding}, which cannot hold all texts; use one \
                 with UTF8: CREATE DATABASE .. ENCODING 'UTF8' TEMPLATE template0"
            ),
        ),
        Unconnected::Failed(error) => match error.as_db_error() {
            None => {
                let cause = chain(&error);
                let remedy = if cause.contains("server does not support TLS") {
                    "the server takes no encrypted connections; turn on its `ssl`, or, if it is a local one, end the URL \
                     with ?sslmode=disable"
                } else {
                    "check host, port, security group and certificates"
                };
                unavailable(format!("could not {doing}: no connection; {remedy}")).because(cause)
            }
            Some(_) => failure(doing, &error),
        },
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

/// Classifies an error of `BEGIN`. A standby knows no `SERIALIZABLE`.
pub(crate) fn begin_failure(doing: Doing<'_>, error: &Error) -> Failure {
    match error.as_db_error() {
        Some(said) if *said.code() == SqlState::FEATURE_NOT_SUPPORTED => {
            read_only(doing).because(told(said))
        }
        _ => failure(doing, error),
    }
}

/// Classifies an error of `COMMIT`. Only a rollback says for certain that nothing was applied: an error of the server itself
/// that does not end the connection. It names the routine that reported it; proxies name none, and are believed for
/// conflicts and constraints only.
pub(crate) fn commit_failure(doing: Doing<'_>, error: &Error) -> Failure {
    let failure = failure(doing, error);
    let rolled_back = error.as_db_error().is_some_and(|said| {
        let code = said.code();
        let class = code.code().get(..2);
        let is_of_server = !ends_connection(error) && said.routine().is_some();
        (is_of_server || matches!(class, Some("40" | "23" | "22" | "P0")))
            && (is_raised(said) || *code != SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN)
    });
    failure.with_doubt(!rolled_back)
}

/// Why the server gave up an effect.
pub(crate) enum Cause {
    /// It ran into the time limit of its transaction.
    TimeLimit,
    /// Other transactions, or a server without resources.
    Others,
    /// The statement itself, or what it calls.
    Statement,
}

/// Finds out why the server gave up an effect: by the severity, and by what the server says of the statement.
///
/// An error that ends the connection is not the statement's: an administrator has ended the session, or the server ends. Each SQLSTATE
/// may also be raised by a function, and the routine of the server that reports it tells the difference.
pub(crate) fn cause(said: &DbError) -> Cause {
    let by_itself = matches!(said.routine(), None | Some("ProcessInterrupts" | "DeadLockReport"));
    let code = said.code().code();
    match (code, code.get(..2)) {
        // The second is `transaction_timeout` of PostgreSQL 17.
        ("57014" | "25P04", _) if by_itself => Cause::TimeLimit,
        _ if is_fatal(said) => Cause::Others,
        _ if is_raised(said) => Cause::Statement,
        ("40P01", _) if by_itself => Cause::Others,
        // `lock_timeout`, or `NOWAIT` in the statement: then another routine reports it.
        ("55P03", _) => Cause::Others,
        // Transactions at the same time, at a level of isolation above READ COMMITTED.
        ("40001", _) => Cause::Others,
        // A limit that the server sets to one statement, for example `temp_file_limit`.
        ("53400", _) => Cause::Statement,
        // A file that the statement names; and values that it has not got.
        ("58P01" | "58P02" | "08P01", _) => Cause::Statement,
        // The server, its disk or a proxy is out of resources, or a server that the statement asks is away.
        (_, Some("53" | "58" | "08")) => Cause::Others,
        _ => Cause::Statement,
    }
}

/// Whether a function in PL/pgSQL raised it, with whichever SQLSTATE.
pub(crate) fn is_raised(said: &DbError) -> bool {
    said.routine() == Some("exec_stmt_raise")
}

/// Whether the connection ends with this error.
pub(crate) fn ends_connection(error: &Error) -> bool {
    error.as_db_error().is_none_or(is_fatal)
}

/// Whether the server ends the connection after this error: it is fatal, a panic, or of a severity that is not known.
fn is_fatal(said: &DbError) -> bool {
    !matches!(said.parsed_severity(), Some(Severity::Error | Severity::Warning))
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
        "57014" => unavailable(format!(
            "could not {doing}: the server stopped the statement, which took too long"
        )),
        // `idle_in_transaction_session_timeout`, and `transaction_timeout` of PostgreSQL 17.
        "25P03" | "25P04" => unavailable(format!(
            "could not {doing}: the server ended the transaction, which took too long"
        )),
        "53300" => unavailable(format!(
            "could not {doing}: the server has no connection left; put a proxy before it, or \
                 lower `max_connections` or the concurrency of the function"
        )),
        "25006" => read_only(doing),
        "3D000" => Failure::new(
            StoreErrorKind::Misconfigured,
            format!(
                "could not {doing}: the database does not exist; create it, or correct the URL"
            ),
        ),
        "42P10" => Failure::new(
            StoreErrorKind::Misconfigured,
            format!(
                "could not {doing}: table {table} has no primary key, so that two workers could have one key; add it: ALTER \
                 TABLE .. ADD PRIMARY KEY (key)"
            ),
        ),
        "42P01" | "42703" | "42804" | "42883" | "42601" | "3F000" => Failure::new(
            StoreErrorKind::Misconfigured,
            format!(
                "could not {doing}: table {table} does not exist, or has other columns; create it \
                 with `PostgresStore::migrate`, or with the text of `PostgresStore::schema`"
            ),
        ),
        "42501" => Failure::new(
            StoreErrorKind::Denied,
            if doing.config.reads_only {
                format!("could not {doing}: the role needs SELECT on {table}")
            } else {
                format!(
                    "could not {doing}: the role needs SELECT, INSERT, UPDATE and DELETE on {table}, and no row \
                     security may refuse its rows"
                )
            },
        ),
        "54000" => {
            let context = format!("could not {doing}: the record is too large");
            Failure::new(StoreErrorKind::TooLarge, context).with_detail(Scope::Values)
        }
        _ => match class {
            "28" => Failure::new(
                StoreErrorKind::Denied,
                format!(
                    "could not {doing}: the server refused the user or the password; check both, \
                     and whether the server wants TLS"
                ),
            ),
            // The server is starting, ending, or out of resources.
            "57" | "53" | "08" | "58" => {
                unavailable(format!("could not {doing}: the server cannot serve it now"))
            }
            "22" | "23" | "54" => refused(doing).with_detail(Scope::Values),
            _ => refused(doing),
        },
    };
    failure.because(told(said))
}

fn refused(doing: Doing<'_>) -> Failure {
    Failure::new(StoreErrorKind::Refused, format!("could not {doing}: refused"))
}

/// The SQLSTATE, and the message if it is not about values.
///
/// A message with a context comes from a function or trigger, perhaps of the user, who may write data into it whatever
/// the SQLSTATE is.
pub(crate) fn told(said: &DbError) -> String {
    let code = said.code().code();
    let message = match code.get(..2) {
        Some(
            "08" | "0A" | "25" | "28" | "3D" | "3F" | "40" | "42" | "53" | "54" | "55" | "57"
            | "58",
        ) if said.where_().is_none() => unquoted(said.message()),
        _ => "",
    };
    if message.is_empty() { code.to_owned() } else { format!("{code}: {message}") }
}
