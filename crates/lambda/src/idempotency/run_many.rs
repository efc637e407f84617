//! [`Idempotency::run_many`]: many payloads of one operation, in one batch.

use std::{future::ready, sync::Arc};

use lambda_idempotency_core::{clock::BoxFuture, failure::Failure};
use lambda_idempotency_engine::{
    batch::{Batch, Delivery},
    call::RecordId,
};
use serde::Serialize;

use super::{
    Idempotency,
    run::{Run, answer, job, work},
    run_context::{IntoRunContext, RunContext},
};
use crate::{
    call::Invoked,
    error::RunError,
    find_key::Extraction,
    handler::{Bypass, CallResult, HandlerFunction, handle_with_clone},
    operation::{Operation, Prepared},
};

impl Idempotency {
    /// Calls `function` once per key of each payload, as [`run`](Self::run) does for one. The results are in the order of the
    /// payloads.
    ///
    /// The payloads are one batch: their keys are claimed together, up to 25 in a request to DynamoDB, and what functions
    /// return at the same time is completed together. Sixteen functions run at a time, or
    /// as many as the [context](RunContext::with_concurrency) says. A function whose payload fails does not
    /// keep the others from running. Where several payloads have one key, one runs and the others get its result, as
    /// [replayed](Run::replayed). A call that cannot start before the deadline of the context ends as
    /// [`OutOfTime`](RunError::OutOfTime).
    ///
    /// ```
    /// use lambda_idempotency::{Call, Failure, Idempotency, MemoryStore, Operation, RunContext};
    ///
    /// #[derive(serde::Serialize)]
    /// struct Payment { id: u32, amount: u32 }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lambda_idempotency::RunError> {
    /// let idempotency = Idempotency::new(MemoryStore::new());
    /// let charge = Operation::new("charge").key("id");
    /// let payments = [(1, 50), (2, 70), (1, 50)].map(|(id, amount)| Payment { id, amount });
    ///
    /// let charged = async |payment: Payment, _: Call| Ok::<_, Failure>(payment.amount);
    /// let runs =
    ///     idempotency.run_many(&charge, payments, &RunContext::without_deadline(), charged).await;
    ///
    /// let runs = runs.into_iter().collect::<Result<Vec<_>, _>>()?;
    /// let charged: Vec<_> = runs.iter().map(|run| (run.result, run.replayed)).collect();
    /// assert_eq!(charged, [(50, false), (70, false), (50, true)]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Each call of `function` gets its payload by value, since the calls run beside each other. The receives of the context
    /// ([`with_receives`](RunContext::with_receives)) count for each payload.
    ///
    /// A function that itself calls [`run`](Self::run) for another of the payloads waits two seconds for it and is then
    /// [`Busy`](RunError::Busy). With [`OnConflict::Wait`](crate::policy::OnConflict::Wait) it waits as long as that says, and functions
    /// that take all the places can wait for each other all that time.
    ///
    /// Dropping the future is for its payloads what the end of a process is: up to a hundred of them are claimed, started or not,
    /// and stay busy until their lease ends. Each then counts a lost attempt, so choose a
    /// [`max_lost_attempts`](Operation::max_lost_attempts) of 3 or more.
    ///
    /// # Errors
    /// For each payload, as of [`run`](Self::run). A mistake in the operation is the error of each, and without payloads the
    /// list is empty in any case.
    // A boxed future, as of `run`.
    pub fn run_many<'a, 'c, C, P, R, F, E>(
        &'a self,
        operation: &Operation,
        payloads: impl IntoIterator<Item = P>,
        context: &'c C,
        function: F,
    ) -> BoxFuture<'a, Vec<Result<Run<R>, RunError>>>
    where
        &'c C: IntoRunContext<'a>,
        P: Serialize + Send + 'a,
        R: CallResult + 'a,
        F: HandlerFunction<P, Result<R, E>, Running: Send + 'a> + Clone + Send + Sync + 'a,
        E: Into<Failure> + 'a,
    {
        let payloads: Vec<P> = payloads.into_iter().collect();
        let context = context.into();
        match self.prepared_for_run(operation) {
            Ok(prepared) => {
                Box::pin(
                    async move { self.run_each(&prepared, payloads, context, &function).await },
                )
            }
            Err(mistake) => {
                let refused = payloads.iter().map(|_| Err(mistake.clone().into()));
                Box::pin(ready(refused.collect()))
            }
        }
    }

    async fn run_each<P, R, F, E>(
        &self,
        operation: &Prepared,
        payloads: Vec<P>,
        context: RunContext<'_>,
        function: &F,
    ) -> Vec<Result<Run<R>, RunError>>
    where
        P: Serialize + Send,
        R: CallResult,
        F: HandlerFunction<P, Result<R, E>, Running: Send> + Clone + Send + Sync,
        E: Into<Failure>,
    {
        let mut policy = operation.policy.clone();
        policy.concurrency = context.concurrency().unwrap_or(policy.concurrency);
        let texts: Vec<_> = payloads.iter().map(serde_json::to_string).collect();
        let values: Vec<Bypass<R>> = payloads.iter().map(|_| Bypass::default()).collect();
        let extraction = Extraction { operation, tenant: context.tenant() };
        let mut deliveries = Vec::with_capacity(payloads.len());
        let mut refused = Vec::with_capacity(payloads.len());
        for ((payload, text), value) in payloads.into_iter().zip(&texts).zip(&values) {
            let record = RecordId::new("run", Arc::clone(&operation.name));
            let job = job(
                operation,
                move |call| handle_with_clone(function, payload, call),
                value.clone(),
            );
            let text = text.as_deref().map_err(|_| RunError::Unserializable);
            let work = text.and_then(|text| work(&self.engine, &extraction, &record, text, job));
            let invoked = context.invoked(&self.last_invoked);
            let delivered = invoked.map(Invoked::without_record).unwrap_or_default();
            let delivered = delivered.receives(Some(context.receives()));
            let delivery = |work| Delivery::alone(record, delivered, work);
            refused.push(work.map(|work| deliveries.push(delivery(work))).err());
        }
        let deadline = context.invocation_deadline(self.engine.clock().now());
        let batch = Batch::for_operation(&operation.name, &policy, &operation.pace)
            .within(context.request_id(), deadline)
            .with(deliveries);
        let outcomes = self.engine.run_once(batch).await;
        let mut outcomes = outcomes.into_iter();
        let answers = refused.into_iter().zip(values).map(|(refused, value)| match refused {
            Some(refused) => Err(refused),
            None => answer(outcomes.next(), value.take()),
        });
        answers.collect()
    }
}
