//! Removes what was left from records: the messages that were sent, the payload that nobody needs.
//!
//! A statement for each, which names the two attributes that go, and no other. Where there are no statements, the item is read
//! again and written without them.

use aws_sdk_dynamodb::{
    operation::execute_statement::ExecuteStatementError, types::AttributeValue,
};
use lambda_idempotency_core::{
    browse::Left,
    clock::BoxFuture,
    key::Key,
    request_slots::Purpose,
    store::{Guard, RecordVersion, StoreErrorKind, Verdict, Write},
};

use crate::{
    batch::add,
    error::{self, Doing, Failure},
    guard::{predicate, terms},
    item::key_fields,
    retry::{Budget, backoff, bounded},
    sdk_error::sdk_failure,
    slots::leave,
    store::DynamoDbStore,
};

impl DynamoDbStore {
    /// One answer for each record, in order.
    pub(crate) async fn forget_all(
        &self,
        left: Left,
        records: &[(Key, RecordVersion)],
        budget: &Budget<'_>,
    ) -> Vec<Result<(), Failure>> {
        let mut requests: Vec<BoxFuture<'_, _>> = Vec::with_capacity(records.len());
        for (at, (key, seen)) in records.iter().enumerate() {
            requests.push(Box::pin(async move {
                let guard = Guard::Unchanged(seen.clone());
                let done = match self.config.statements() {
                    true => self.forget_one(left, key, &guard, budget).await,
                    false => self.rewrite(left, key, guard, budget).await,
                };
                vec![(at, done)]
            }));
        }
        let mut answers = bounded(requests).await;
        answers.sort_unstable_by_key(|(at, _)| *at);
        answers.into_iter().map(|(_, done)| done).collect()
    }

    async fn forget_one(
        &self,
        left: Left,
        key: &Key,
        guard: &Guard,
        budget: &Budget<'_>,
    ) -> Result<(), Failure> {
        let doing = Doing {
            config: &self.config,
            operation: "ExecuteStatement",
            permission: "PartiQLUpdate",
        };
        let mut backoff = backoff(&self.config);
        loop {
            if budget.left().is_zero() {
                return Err(error::too_late(&self.config));
            }
            let slot = self.slot(Purpose::Settle, budget).await?;
            let (text, parameters) = self.statement(left, key, guard);
            let request = self.client.execute_statement().statement(text);
            let request = request.set_parameters(Some(parameters));
            let answer = budget.attempt(request.send()).await;
            leave(slot).await;
            let failure = match answer {
                Err(late) => error::timed_out(doing, late),
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => {
                    let failure = sdk_failure(doing, &error);
                    let error = error.into_service_error();
                    if let ExecuteStatementError::ConditionalCheckFailedException(_) = error {
                        return Ok(());
                    }
                    failure
                }
            };
            self.heard(Some(&failure));
            if !(failure.retry && backoff.pause(budget).await) {
                return Err(failure);
            }
        }
    }

    fn statement(&self, left: Left, key: &Key, guard: &Guard) -> (String, Vec<AttributeValue>) {
        let names = &self.config.attributes;
        let (mut text, mut parameters) = (String::new(), Vec::new());
        let gone = match left {
            Left::Messages => &names.outbox,
            Left::Work => &names.payload,
        };
        add(&mut text, &["UPDATE \"", &self.config.table, "\" REMOVE \"", gone, "\""]);
        add(&mut text, &[" REMOVE \"", &names.unfinished, "\""]);
        for (position, (name, value)) in key_fields(names, key).into_iter().enumerate() {
            add(&mut text, &[if position > 0 { " AND \"" } else { " WHERE \"" }, name, "\" = ?"]);
            parameters.push(value);
        }
        predicate(terms(guard, names), &mut text, &mut parameters);
        (text, parameters)
    }

    async fn rewrite(
        &self,
        left: Left,
        key: &Key,
        guard: Guard,
        budget: &Budget<'_>,
    ) -> Result<(), Failure> {
        let found = self.read_all(std::iter::once(key), Purpose::Settle, budget).await.remove(key);
        let Some(record) = found.transpose()?.flatten().filter(|found| guard.holds(Some(found)))
        else {
            return Ok(());
        };
        let write = Write::new(key.clone(), guard, Some(left.forgotten_by(record)));
        match self.write_all(&[write], budget.call_deadline()).await.pop() {
            Some(Verdict::Unknown(error)) => {
                Err(Failure::new(error.kind(), "could not remove what was sent".to_owned())
                    .because(error.to_string()))
            }
            Some(_) => Ok(()),
            None => Err(Failure::new(StoreErrorKind::Unavailable, "no answer".to_owned())),
        }
    }
}
