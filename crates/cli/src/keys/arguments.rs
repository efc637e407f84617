//! The arguments of `keys`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use lambda_http::http::HeaderName;
use lambda_idempotency::{
    powertools::{HashFunction, PowertoolsLanguage},
    source::Envelope,
};

use super::scoped::{Scoped, scoped};

/// Show which key each record of an event gets: a dry run, nothing is claimed and nothing is called
///
/// Reads each event with the code that runs in the function, and shows for each record its identity, the input and the
/// result of the key expression, their canonical bytes, the key as the store has it, and which records are duplicates of
/// each other.
///
/// IT PRINTS PAYLOADS AND RAW KEYS. Do not run it where output is logged.
///
/// OPERATION, EXPRESSION and the like may be for one source only: `--key sns=order.id`. The sources are sqs, sns, s3,
/// kinesis, dynamodb, documentdb, kafka, activemq, rabbitmq, eventbridge, pipe, scheduler, invoke and http.
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

    /// Print warnings, duplicates and the summary only
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Print one JSON document instead of text
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) json: bool,
}

/// How keys are made: what the operation of the function says.
#[derive(Args, Debug)]
pub(crate) struct KeyOptions {
    /// The operation's name, which is in every key
    #[arg(long, value_name = "[SOURCE=]NAME", value_parser = scoped::<String>)]
    pub(crate) operation: Vec<Scoped<String>>,

    /// The key expression: JMESPath on the payload or, after `record:`, on the raw record [default: the record's
    /// identity]
    #[arg(long, value_name = "[SOURCE=]EXPRESSION", value_parser = scoped::<String>)]
    pub(crate) key: Vec<Scoped<String>>,

    /// The variable that holds the key expression; if it is not set, `--key` is used
    #[arg(long, value_name = "[SOURCE=]VARIABLE", value_parser = scoped::<String>)]
    pub(crate) key_from_env: Vec<Scoped<String>>,

    /// The fingerprint expression: what else must agree between two deliveries of a key
    #[arg(long, value_name = "[SOURCE=]EXPRESSION", value_parser = scoped::<String>)]
    pub(crate) fingerprint: Vec<Scoped<String>>,

    /// A part of the key that may be missing; may be repeated
    #[arg(long, value_name = "[SOURCE=]PART", value_parser = scoped::<String>)]
    pub(crate) optional: Vec<Scoped<String>>,

    /// The envelopes around the payload, the outermost first; may be repeated: sns, eventbridge, s3
    #[arg(long, value_name = "[SOURCE=]ENVELOPE", value_parser = scoped::<Wrapping>)]
    pub(crate) envelope: Vec<Scoped<Wrapping>>,

    /// Use the whole record as the payload, as with `whole_record` of a source
    #[arg(long)]
    pub(crate) whole_record: bool,

    /// What to do with records without a key
    #[arg(long, value_name = "POLICY", value_enum, default_value = "fail")]
    pub(crate) missing_key: Missing,

    /// Readable keys, if their parts are short and safe
    #[arg(long)]
    pub(crate) readable: bool,

    /// The variable that holds the secret of the keys, as for `KeyFormat::secret`
    #[arg(long, value_name = "VARIABLE", conflicts_with = "readable")]
    pub(crate) secret_from_env: Option<String>,

    /// Keys as another library makes them: powertools-python, powertools-typescript
    #[arg(long, value_name = "LIBRARY", requires = "powertools_prefix")]
    pub(crate) powertools: Option<PowertoolsLanguage>,

    /// The prefix of its keys, such as `orders-fn.app.process`
    #[arg(long, value_name = "TEXT", requires = "powertools")]
    pub(crate) powertools_prefix: Option<String>,

    /// Its hash function
    #[arg(long, value_name = "NAME", default_value = "md5", requires = "powertools")]
    pub(crate) hash_function: HashFunction,

    /// Accept expressions that can give distinct records one key, as Powertools does
    #[arg(long, requires = "powertools")]
    pub(crate) accept_collisions: bool,

    /// The header of HTTP requests that holds the key
    #[arg(long, value_name = "NAME", default_value = "idempotency-key")]
    pub(crate) header: HeaderName,

    /// All callers of HTTP requests share their keys, as with `HttpLayer::all_callers_are_one`
    #[arg(long)]
    pub(crate) all_callers_are_one: bool,

    /// Each path of HTTP requests has separate keys, as with `HttpLayer::one_key_for_each_path`
    #[arg(long, conflicts_with = "powertools")]
    pub(crate) one_key_for_each_path: bool,

    /// The invocation's request id, which is not in the event: the identity of a direct invocation
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    pub(crate) request_id: String,

    /// The tenant of the invocation, if the function isolates tenants
    #[arg(long, value_name = "ID")]
    pub(crate) tenant: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  Which orders of a batch are the same?
    lambda-idempotency keys events/sqs-duplicates.json --operation place --key orderId

  Would today's event be taken for a duplicate of yesterday's, and do they agree?
    lambda-idempotency keys today.json --against yesterday.json \\
      --key '[tenant, order.id]' --fingerprint order.amount

  A key for each source, one of them as the function reads it from its environment
    ORDERS_SQS_KEY=orderId lambda-idempotency keys events/sqs.json events/sns.json \\
      --key-from-env sqs=ORDERS_SQS_KEY --key sns=record:Sns.MessageId

  The keys that Powertools for Python makes
    lambda-idempotency keys events/sqs.json --key orderId \\
      --powertools powertools-python --powertools-prefix orders-fn.app.process

Exit code:
  0  every record has a key
  1  some record has none: it is bad, or nothing in it is its key
  2  it could not be tried: bad arguments, a bad expression, bad JSON";

/// An envelope around a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wrapping(pub(crate) Envelope);

impl Wrapping {
    /// Its name in the arguments.
    pub(crate) const fn name(self) -> &'static str {
        match self.0 {
            Envelope::Sns => "sns",
            Envelope::EventBridge => "eventbridge",
            Envelope::S3 => "s3",
            _ => "another",
        }
    }
}

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

/// What becomes of records without a key.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Missing {
    /// They are returned to their source
    Fail,
    /// They are handled each time
    RunUnprotected,
}
