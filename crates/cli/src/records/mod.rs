//! `lambda-idempotency records`: looks at the idempotency records of a table, and changes them with care.
//!
//! Every change is a write under the guard `Unchanged` of what was shown: if a worker
//! has changed the record meanwhile, nothing is written.

mod change;
mod clock;
mod connect;
mod envelopes;
mod list;
mod servers;
mod table;
mod target;
mod verbs;
mod view;

use std::process::ExitCode;

use clap::{Args, Subcommand};

#[cfg(feature = "prove")]
pub(crate) use self::{connect::Found, table::problems as table_problems};
use crate::failure::Failure;

/// Look at the idempotency records of a store: what is stuck, why, and since when
///
/// The store is a DynamoDB table (`--table`), or a server of PostgreSQL or Redis (`--store`). In DynamoDB, reading needs `dynamodb:GetItem`, `BatchGetItem`, `Scan` (`Query` with a sort key), `DescribeTable` and
/// `DescribeTimeToLive`, changing what the function needs.
/// Credentials and Region are found as by the AWS SDK (environment variables, profiles with keys, roles). With IAM
/// Identity Center (SSO), run `eval "$(aws configure export-credentials --format env)"` first.
///
/// Commands that change something show what they would change, and do it with `--yes` only.
///
/// Results and messages are not shown unless you ask (`--show-result`). Keys are shown as they are stored: readable keys hold parts
/// of payloads.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: connect::Options,

    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  What failed permanently, and where are its logs?
    lambda-idempotency records list --state failed --table orders-idempotency

  Why is this event not processed?
    lambda-idempotency records show --event event.json --operation place-order --key orderId

  Have the failed messages of a dead-letter queue processed again, once their cause is removed
    lambda-idempotency records redrive dead.json --operation place-order --key orderId --yes

  Is the table as the store needs it?
    lambda-idempotency records table check --table orders-idempotency

  The same in PostgreSQL, with the password in a variable
    lambda-idempotency records list --store postgres://orders@db.example.com/orders --password-from-env PGPASSWORD

Exit code:
  0    done, or nothing to do; without `--yes`: it could be done
  1    there is no such record, a change was refused, or the table has a problem
  2    it could not be tried: bad arguments, no credentials, no such table
  130  interrupted";

#[derive(Subcommand)]
enum Verb {
    List(list::Arguments),
    Show(verbs::Show),
    Free(verbs::Free),
    Release(verbs::Release),
    Redrive(verbs::Redrive),
    Table(table::Arguments),
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let Arguments { connection, json, verb } = arguments;
    if let Verb::Table(arguments) = &verb {
        return table::run(&connection, arguments, json).await;
    }
    let index = match &verb {
        Verb::List(arguments) => arguments.index.as_deref(),
        _ => None,
    };
    let changes = !matches!(verb, Verb::List(_) | Verb::Show(_));
    let table = connection.connect(index, changes).await?;
    match verb {
        Verb::List(arguments) => list::run(&table, &arguments, json).await,
        Verb::Show(arguments) => verbs::show(&table, &arguments, json).await,
        Verb::Free(verb) => verb.run(&table, json).await,
        Verb::Release(verb) => verb.run(&table, json).await,
        Verb::Redrive(verb) => verb.run(&table, json).await,
        Verb::Table(_) => Ok(ExitCode::SUCCESS),
    }
}
