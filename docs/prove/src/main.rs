//! The function of `lambda-idempotency prove`: it does what each order says, also what should never happen. It dies,
//! hangs, throws, is slow and is throttled on purpose, and writes each start and each effect to the ledger of its stack.
//!
//! It calls two tables, and nothing else: that of its idempotency records, by the library and to use up its capacity,
//! and the ledger, by `PutItem`. Its role allows no more.
//!
//! | variable | meaning |
//! |---|---|
//! | `IDEMPOTENCY_TABLE`, `IDEMPOTENCY_APPLICATION` | as for every function |
//! | `PROVE_LEDGER` | the table of the ledger |
//! | `PROVE_MISTAKE` | `none`, or a mistake that `prove` has to find: `unprotected`, `early` or `key` |

mod burst;
mod ledger;
mod order;

use lambda_idempotency::{
    Call, Failure, Idempotency, Operation, policy::OnMissingKey, source::Sqs,
};
use lambda_runtime::{Error, tracing};

use crate::{
    ledger::Ledger,
    order::{Act, Order},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let ledger = Ledger::from_env().await?;
    let idempotency = Idempotency::from_env().await?;
    let mistake = std::env::var("PROVE_MISTAKE").unwrap_or_default();
    let mut place = Operation::new("prove");
    // The run is part of the key, so that one run finds nothing of another.
    let key = match mistake.as_str() {
        "unprotected" => {
            place = place.on_missing_key(OnMissingKey::RunUnprotected);
            "noOrderHasThis"
        }
        // Each copy is then another piece of work.
        "key" => "[run, order, copy]",
        _ => "[run, order]",
    };
    let is_early = mistake == "early";
    let handler = async move |order: Order, call: Call| ledger.place(order, &call, is_early).await;
    let function = idempotency.on(Sqs::new().key(key), &place, handler)?;
    // One invocation at a time: the lines of a sandbox in the ledger then belong to one invocation after the other.
    lambda_runtime::run(function).await
}

impl Ledger {
    /// Handles an order as it says.
    async fn place(&self, order: Order, call: &Call, is_early: bool) -> Result<(), Failure> {
        self.write("start", &order, call).await?;
        let act = order.act(call);
        if act == Act::Throttle {
            self.throttle().await;
        }
        act.before_the_effect().await?;
        if is_early {
            // A mistake: the order is acknowledged, and its effect comes with the next one.
            self.write_later(&order, call);
            return Ok(());
        }
        self.write("effect", &order, call).await?;
        act.after_the_effect().await;
        Ok(())
    }
}

impl Act {
    async fn before_the_effect(self) -> Result<(), Failure> {
        match self {
            Self::Fail => return Err(Failure::permanent("the order asks for a permanent failure")),
            Self::Throw => return Err(Failure::transient("the order asks for a failure")),
            Self::Die => std::process::abort(),
            Self::Hang => order::hang().await,
            Self::Block => order::block(),
            Self::Slow => order::pause().await,
            Self::Place | Self::Throttle | Self::DieLate | Self::HangLate | Self::BlockLate => {}
        }
        Ok(())
    }

    async fn after_the_effect(self) {
        match self {
            Self::DieLate => std::process::abort(),
            Self::HangLate => order::hang().await,
            Self::BlockLate => order::block(),
            _ => {}
        }
    }
}
