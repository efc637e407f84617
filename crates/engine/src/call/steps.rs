//! The steps of a call: parts of its work that run once per key over all attempts.

use std::{any::type_name, future::Future, sync::Arc};

use lambda_idempotency_core::failure::Failure;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

use super::{Call, Shared};
use crate::steps::{Begun, KeptSteps, StepError};

/// # Steps
impl Call {
    /// Runs a part of the handler's work once per key: the first attempt that gets there calls `work` and
    /// keeps what it returned with the claim; later attempts get that and do not call `work` again.
    ///
    /// ```
    /// use lambda_idempotency_engine::call::Call;
    /// use lambda_idempotency_core::failure::Failure;
    ///
    /// # async fn charge(amount: u32, key: &str) -> Result<String, std::io::Error> { Ok(format!("ch-{amount}")) }
    /// # async fn ship(charge: &str) -> Result<(), std::io::Error> { Ok(()) }
    /// async fn place(amount: u32, call: Call) -> Result<(), Failure> {
    ///     let charge = call
    ///         .step("charge", |key| async move { Ok(charge(amount, &key).await?) })
    ///         .await?;
    ///     // If this fails, the next attempt comes back here with the same charge.
    ///     call.step("ship", |_| async { Ok(ship(&charge).await?) }).await
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// place(7, Call::test("o-1")).await.unwrap();
    /// place(7, Call::test("o-1").with_step("charge", "ch-1")).await.unwrap();
    /// # }
    /// ```
    ///
    /// The step returns when the store has its result, so what comes after it relies on it. **A worker that
    /// dies between the effect and that write runs the step again.** `work` therefore gets the
    /// [`subkey`](Self::subkey) of the step's name, the same in every attempt: pass it to the other system
    /// as *its* idempotency key, and the effect happens once there, too.
    ///
    /// * **An error is not kept**: the handler decides what follows, and the next attempt calls the step
    ///   again. In the same attempt a step that failed, or was dropped before its work had returned, can be
    ///   called again.
    /// * **Names**: 1 to 64 visible ASCII characters, each once in an attempt. Steps may run at the same time.
    /// * **Results** are JSON. What is returned is read back from that, the first time, too. At most
    ///   [`MAX_STEPS`](crate::steps::MAX_STEPS) of them are kept for a key, with
    ///   [`MAX_STEP_BYTES`](crate::steps::MAX_STEP_BYTES) together.
    /// * **Effects and messages** of the call ([`collect`](Self::collect), [`publish`](Self::publish)) are
    ///   refused in `work`, since an attempt that does not call it would be completed without them. Add them
    ///   after the step.
    /// * **They are kept** until the key is completed or the record expires. With
    ///   fingerprints, another payload cannot have them: it is a mismatch while they are kept.
    /// * **Cost**: a write of the record for each step, or for several that end at the same time, and each
    ///   write of the record until its completion is larger by the results.
    ///
    /// Without a claim (a record without a key, or an outage, where a policy runs it unprotected) nothing is
    /// kept, and each attempt calls the step.
    ///
    /// # Errors
    /// What `work` returned, or a [`StepError`].
    pub async fn step<T, F, Fut>(&self, name: &str, work: F) -> Result<T, Failure>
    where
        T: Serialize + DeserializeOwned,
        F: FnOnce(String) -> Fut,
        Fut: Future<Output = Result<T, Failure>>,
    {
        let steps = self.shared.steps(&self.steps);
        match steps.begin(name)? {
            Begun::Before(result) => read(name, &result),
            Begun::Calls(mut called) => {
                let work = steps.working(|| work(self.subkey(name)));
                let returned = work.await.map(|value| to_raw_value(&value))?;
                called.has_run();
                let result = returned
                    .map_err(|_| StepError::Unserializable { name: Arc::clone(called.name()) })?;
                called.ended(result.clone()).await?;
                read(name, &result)
            }
        }
    }

    /// As if an attempt before had run this step, and it had returned this.
    ///
    /// # Panics
    /// If the result cannot be written as JSON.
    #[must_use]
    pub fn with_step(self, name: &str, result: impl Serialize) -> Self {
        #[expect(clippy::expect_used, reason = "for tests, where the value is a literal")]
        let result = to_raw_value(&result).expect("the result of a step is written as JSON");
        self.shared.steps(&self.steps).set(name, result);
        self
    }

    pub(crate) fn with_steps(mut self, steps: KeptSteps) -> Self {
        self.steps = steps;
        self
    }

    pub(crate) const fn shared(&self) -> &Shared {
        &self.shared
    }
}

/// Reads what is kept of a step. An error of serde quotes what it read, so only the place is said.
fn read<T: DeserializeOwned>(name: &str, result: &RawValue) -> Result<T, Failure> {
    serde_json::from_str(result.get()).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        StepError::Mismatch { name: name.into(), expected: type_name::<T>(), line, column }.into()
    })
}
