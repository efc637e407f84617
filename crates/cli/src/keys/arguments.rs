//! The arguments of `keys`, and the operation that they describe, as a function would declare it.

use std::{path::PathBuf, str::FromStr};

use clap::Args;
use lambda_idempotency::{
    Operation,
    keys::{
        inspect::{self, AnySource},
        powertools::{HashFunction, PowertoolsKeys, PowertoolsLanguage},
        record,
    },
    source::Envelope,
};

use crate::failure::Failure;

/// Show which key each record of an event gets: a dry run, nothing is claimed and nothing is called
///
/// Reads each event with the code that runs in the function, and shows for each record its identity, the input and the
/// result of the key expression, their canonical bytes, the key as the store has it, and which records are duplicates of
/// each other.
///
/// IT PRINTS PAYLOADS AND RAW KEYS. Do not run it where output is logged.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Event files, in the shape that the function gets; `-` is standard input
    #[arg(required = true, value_name = "EVENT.json")]
    pub(crate) events: Vec<PathBuf>,

    /// Other events in which to look for duplicates of the first ones; may be repeated
    #[arg(long, value_name = "OTHER.json")]
    pub(crate) against: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) keys: KeyOptions,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// How keys are made: what the operation of the function says.
#[derive(Args, Debug)]
pub(crate) struct KeyOptions {
    /// The operation's name, which is in every key
    #[arg(long, value_name = "NAME")]
    pub(crate) operation: Option<String>,

    /// The key expression: on the payload or, after `record:`, on the raw record [default: the record's identity]
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) key: Option<String>,

    /// The fingerprint expression: what else must agree between two deliveries of a key
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) fingerprint: Option<String>,
}

/// Further settings that decide which records a table has, for commands that look them up.
#[derive(Args, Debug, Default)]
pub(crate) struct Stored {
    /// The envelopes around the payload, the outermost first; may be repeated: sns, eventbridge, s3
    #[arg(long, value_name = "ENVELOPE")]
    pub(crate) envelope: Vec<Wrapping>,

    /// Keys as another library makes them: powertools-python, powertools-typescript
    #[arg(long, value_name = "LIBRARY", requires = "powertools_prefix")]
    pub(crate) powertools: Option<PowertoolsLanguage>,

    /// The prefix of its keys, such as `orders-fn.app.process`
    #[arg(long, value_name = "TEXT", requires = "powertools")]
    pub(crate) powertools_prefix: Option<String>,

    /// Its hash function
    #[arg(long, value_name = "NAME", default_value = "md5", requires = "powertools")]
    pub(crate) hash_function: HashFunction,
}

const EXAMPLES: &str = "\
Examples:
  Which orders of a batch are the same?
    lambda-idempotency keys events/sqs-duplicates.json --operation place --key orderId

  Would today's event be taken for a duplicate of yesterday's, and do they agree?
    lambda-idempotency keys today.json --against yesterday.json \\
      --key '[tenant, order.id]' --fingerprint order.amount

Exit code:
  0  every record has a key
  1  some record has none: it is bad, or nothing in it is its key
  2  it could not be tried: bad arguments, a bad expression, bad JSON";

/// An envelope around a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wrapping(pub(crate) Envelope);

impl FromStr for Wrapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sns" => Ok(Self(Envelope::Sns)),
            "eventbridge" => Ok(Self(Envelope::EventBridge)),
            "s3" => Ok(Self(Envelope::S3)),
            _ => Err(format!("there is no envelope `{text}`: it is one of sns, eventbridge, s3")),
        }
    }
}

/// The operation's name without `--operation`.
pub(crate) const UNNAMED: &str = "operation";

/// The beginning of an expression on the record around the payload.
const ON_RECORD: &str = "record:";

/// The operation and its source, checked as when a function starts.
pub(crate) fn operation(
    options: &KeyOptions,
    stored: &Stored,
) -> Result<(Operation, AnySource), Failure> {
    let mut operation = Operation::new(options.operation.as_deref().unwrap_or(UNNAMED));
    let mut source = AnySource::new();
    if let Some(expression) = &options.key {
        match expression.trim().strip_prefix(ON_RECORD) {
            Some(on_record) => source = source.key(record(on_record.trim())),
            None => operation = operation.key(expression.trim()),
        }
    }
    if let Some(expression) = &options.fingerprint {
        match expression.trim().strip_prefix(ON_RECORD) {
            Some(on_record) => source = source.fingerprint(record(on_record.trim())),
            None => operation = operation.fingerprint(expression.trim()),
        }
    }
    for Wrapping(envelope) in &stored.envelope {
        source = source.envelope(*envelope);
    }
    if let Some(language) = stored.powertools {
        let prefix = stored.powertools_prefix.as_deref().unwrap_or_default();
        let powertools = PowertoolsKeys::of(language, prefix);
        operation = operation.powertools(powertools.hash_function(stored.hash_function));
    }
    inspect::check(&source, &operation)?;
    Ok((operation, source))
}
