//! The arguments of `prove`.

use std::time::Duration;

use clap::{Args, ValueEnum, value_parser};

use crate::arguments::time_to_work;

/// Prove in your own AWS account that no message is lost, and that no effect is doubled without a cause
///
/// It sends orders with known duplicates to the queue and the FIFO queue of a stack that
/// `docs/prove/template.yaml` has made. Orders make the stack's function die, hang, throw or be slow. When
/// nothing is in flight any more, it compares the stack's ledger of effects with its table, its dead-letter queues and
/// its log lines.
///
/// It says what it will do before it begins, and begins with `--yes` only. It calls nothing but the resources
/// of that stack, which it recognises by their tags. Region, credentials and endpoints are found as by the
/// AWS SDK.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The name of the stack
    #[arg(long, value_name = "NAME")]
    pub(crate) stack: String,

    /// How many orders are sent: half as many messages again, because they repeat
    #[arg(long, value_name = "N", default_value = "2000", value_parser = value_parser!(u16).range(10..=5000))]
    pub(crate) orders: u16,

    /// The faults, beside what a large run exceeds of the table's capacity [default: all]
    #[arg(long, value_enum, value_name = "FAULTS", value_delimiter = ',')]
    pub(crate) faults: Option<Vec<Fault>>,

    /// Give up if no message is acknowledged or dead-lettered for this long
    #[arg(long, value_name = "SECONDS", default_value = "900", value_parser = time_to_work)]
    pub(crate) patience: Duration,

    /// Begin; without it, only say what would be done
    #[arg(long)]
    pub(crate) yes: bool,
}

/// A fault of the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fault {
    /// The process ends, before the effect or after it
    Die,
    /// The handler waits past the end of its invocation, or blocks its thread until Lambda ends it
    Hang,
    /// The handler fails once
    Throw,
    /// The handler takes a second
    Slow,
    /// The handler uses up the write capacity of the table, so that DynamoDB throttles it
    Throttle,
    /// The handler fails permanently: its messages have to be in a dead-letter queue
    DeadLetter,
}

const EXAMPLES: &str = "\
Examples:
  What would be done
    lambda-idempotency prove --stack prove

  Do it
    lambda-idempotency prove --stack prove --yes

  Only processes that end, in a small run
    lambda-idempotency prove --stack prove --orders 200 --faults die --yes

Exit code:
  0  without --yes: it can be done. With it: nothing is lost or stuck, and every effect beyond the first has a cause
     that the documentation states
  1  a violation, a run that was given up, a fault that was not seen, or a problem of the table
  2  the run could not be carried out";
