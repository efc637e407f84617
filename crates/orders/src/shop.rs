//! What the handlers do: place an order.

use lambda_idempotency::{Call, DynamoDbStore, Failure, Idempotency, Operation};
use lambda_runtime::Error;

use crate::{
    orders::{Order, Orders},
    rehearsal::Rehearsal,
};

/// Everything a handler needs. Clones share it.
#[derive(Clone)]
pub(crate) struct Shop {
    orders: Orders,
    rehearsal: Rehearsal,
}

impl Shop {
    /// The shop that the environment describes, and what makes its handlers safe to call twice.
    pub(crate) async fn from_env() -> Result<(Self, Idempotency), Error> {
        let rehearsal = Rehearsal::from_env()?;
        let idempotency = match rehearsal.clock() {
            None => Idempotency::new(DynamoDbStore::from_env().await?),
            Some(clock) => {
                let store = DynamoDbStore::builder_from_env().await?.clock(clock).build()?;
                Idempotency::new(store).with_clock(clock)
            }
        };
        Ok((Self { orders: Orders::from_env().await?, rehearsal }, idempotency))
    }

    /// An operation, as it is rehearsed.
    pub(crate) fn rehearsed(&self, operation: Operation) -> Operation {
        self.rehearsal.operation(operation)
    }

    /// Runs once per order id.
    pub(crate) async fn place(&self, order: Order, call: Call) -> Result<(), Failure> {
        if order.quantity == 0 {
            // Trying again would not help: remembered, and answered to every duplicate.
            return Err(Failure::remember("an order of nothing"));
        }
        self.rehearsal.before(&order, &call).await?;
        if !self.rehearsal.place(&order, &call)? {
            self.orders.place(&order).await?;
        }
        self.rehearsal.after(&order, &call).await;
        Ok(())
    }
}
