//! Shared by the scripted functions: a shop that places an order as the order's script says.
//!
//! Tests kill, delay and fail these functions, and read afterwards what they did. Further variables:
//!
//! | variable | effect |
//! |---|---|
//! | `IDEMPOTENCY_STORE` | the records are in this PostgreSQL or Redis server |
//! | `SCRIPTED_LEDGER` | orders are placed by appending to this file, instead of in the orders table |
//! | `SCRIPTED_TRANSACTION=1` | orders are placed in the transaction that completes their keys, also if there is a ledger |
//! | `SCRIPTED_OPTIMISTIC=1` | with `SCRIPTED_TRANSACTION=1`: keys are not claimed |
//! | `SCRIPTED_MUTEX=1` | keys only exclude each other: each message places its order |
//! | `SCRIPTED_RECOVERABLE=1` | claims keep their records |
//! | `SCRIPTED_RECOVERY=1` | with `SCRIPTED_RECOVERABLE=1`: no event is read, and each invocation recovers the records that are left, whatever their age (`scripted_orders` only) |
//! | `SCRIPTED_OUTSIDE=1` | with `SCRIPTED_TRANSACTION=1`: orders are placed in a transaction of the handler, before their keys are completed, to test that an audit notices it |
//! | `SCRIPTED_STEPS=1` | an order is placed in a step, and mailed in a second one, which is an order too: `mail ID`. With a ledger there is only the first, and what goes wrong before the order is placed goes wrong after it |
//! | `SCRIPTED_PARCELS_TABLE` | each order publishes a message, or as many as it says, which are sent to this table |
//! | `SCRIPTED_CLOCK_SKEW_MS` | the process's clock is ahead by this much, or behind if negative |
//! | `SCRIPTED_UNPROTECTED=1` | runs without a key, to test that an audit notices it |

mod ledger;
mod order;
mod parcels;
mod script;
mod store;

use lambda_idempotency::{
    Call, CallExt as _, Failure, Idempotency, Mode, Operation, policy::OnMissingKey,
};
use lambda_runtime::Error;

use ledger::{Ledger, attempt};
pub(crate) use order::Order;
use order::Orders;
use parcels::Parcels;

/// Everything a handler needs. Clones share it.
#[derive(Clone)]
pub(crate) struct Shop {
    orders: Orders,
    ledger: Option<Ledger>,
    unprotected: bool,
    transactional: bool,
    optimistic: bool,
    mutex: bool,
    outside: bool,
    in_steps: bool,
    /// Where messages go, if orders publish some.
    parcels: Option<String>,
}

impl Shop {
    /// The shop that the environment describes, and the `Idempotency` that protects its handlers.
    pub(crate) async fn from_env() -> Result<(Self, Idempotency), Error> {
        let idempotency = store::idempotency().await?;
        let shop = Self {
            orders: Orders::from_env().await?,
            ledger: Ledger::from_env()?,
            unprotected: is_set("SCRIPTED_UNPROTECTED"),
            transactional: is_set("SCRIPTED_TRANSACTION"),
            optimistic: is_set("SCRIPTED_OPTIMISTIC"),
            mutex: is_set("SCRIPTED_MUTEX"),
            outside: is_set("SCRIPTED_OUTSIDE"),
            in_steps: is_set("SCRIPTED_STEPS"),
            parcels: std::env::var("SCRIPTED_PARCELS_TABLE").ok(),
        };
        let idempotency = match &shop.parcels {
            Some(_) => idempotency.with_sender(Parcels::new().await),
            None => idempotency,
        };
        Ok((shop, idempotency))
    }

    /// The operation. If the environment asks for it, the operation is unprotected: its key expression selects
    /// nothing in any record.
    pub(crate) fn operation(&self, operation: Operation) -> Operation {
        if self.mutex {
            return operation.mode(Mode::Mutex);
        }
        if self.optimistic && !self.outside {
            return operation.mode(Mode::Optimistic);
        }
        if self.transactional && !self.outside {
            return operation.mode(Mode::Transactional);
        }
        if !self.unprotected {
            return operation;
        }
        operation.key("noRecordHasThis").on_missing_key(OnMissingKey::RunUnprotected)
    }

    /// Runs once for each order.
    pub(crate) async fn place(&self, order: Order, call: Call) -> Result<(), Failure> {
        if order.quantity == 0 {
            return Err(Failure::permanent("an order needs a quantity of at least 1"));
        }
        if let Some(ledger) = &self.ledger {
            ledger.write("start", &order, &call)?;
        }
        let in_step = self.ledger.as_ref().filter(|_| self.in_steps);
        if let Some(ledger) = in_step {
            call.step("place", |_| async {
                ledger.write("effect", &order, &call)?;
                order.script.after(&call).await;
                Ok(())
            })
            .await?;
            ledger.write("kept", &order, &call)?;
        }
        order.script.before(&call).await?;
        match &self.ledger {
            Some(_) if self.in_steps => {}
            Some(ledger) if self.transactional => {
                self.transact(&order, &call).await?;
                ledger.write("collected", &order, &call)?;
            }
            Some(ledger) => ledger.write("effect", &order, &call)?,
            None if self.in_steps => self.place_in_steps(&order, &call).await?,
            None if self.transactional => call.transact(self.orders.placing(&order)?)?,
            None => self.orders.place(&order).await?,
        }
        if let Some(table) = &self.parcels {
            for message in parcels::messages(table, &order) {
                call.publish(message)?;
            }
        }
        if in_step.is_none() {
            order.script.after(&call).await;
        }
        Ok(())
    }
}

impl Shop {
    async fn place_in_steps(&self, order: &Order, call: &Call) -> Result<(), Failure> {
        let placed: String = call
            .step("place", |_| async {
                self.orders.place(order).await?;
                Ok(order.order_id.clone())
            })
            .await?;
        let mail = order.mail(&placed);
        call.step("mail", |_| async { Ok(self.orders.place(&mail).await?) }).await
    }

    /// Places an order so that it can be audited: a counter of the order, and an item of this attempt.
    async fn transact(&self, order: &Order, call: &Call) -> Result<(), Failure> {
        let attempt = attempt(order, call);
        let effects = [self.orders.placing(order)?, self.orders.attempt(&attempt)?];
        if self.outside {
            return Ok(self.orders.commit(effects).await?);
        }
        for effect in effects {
            call.transact(effect)?;
        }
        Ok(())
    }
}

fn is_set(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|value| value == "1")
}
