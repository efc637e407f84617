//! One write, as a `PutItem` or `DeleteItem` with its guard as the condition.
//!
//! If the condition fails, the response contains the stored item
//! (`ReturnValuesOnConditionCheckFailure = ALL_OLD`), which saves a read.

use aws_sdk_dynamodb::{
    operation::{delete_item::DeleteItemError, put_item::PutItemError},
    types::ReturnValuesOnConditionCheckFailure::AllOld,
};
use lambda_idempotency_core::store::Guard;

use crate::{
    error::{self, Doing},
    guard::{Condition, condition, terms},
    item::{Item, primary_key},
    member::{Answer, Lost, Member},
    retry::Budget,
    sdk_error::sdk_failure,
    store::DynamoDbStore,
};

impl DynamoDbStore {
    /// Sends one write and waits for its answer.
    pub(crate) async fn write_one(&self, member: &Member<'_>, budget: &Budget<'_>) -> Answer {
        match (member.item(&self.config), member.effects) {
            (Some(item), Some(effects)) => {
                self.write_transaction(member, item, effects, budget).await
            }
            (Some(item), None) => self.put(member, item, budget).await,
            (None, _) => self.delete(member, budget).await,
        }
    }

    async fn put(&self, member: &Member<'_>, item: Item, budget: &Budget<'_>) -> Answer {
        let Condition { expression, names, values } = self.condition(member);
        let request = self
            .client
            .put_item()
            .table_name(&self.config.table)
            .set_item(Some(item))
            .condition_expression(expression)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(values)
            .return_values_on_condition_check_failure(AllOld);
        let doing = Doing { config: &self.config, operation: "PutItem", permission: "PutItem" };
        match budget.attempt(request.send()).await {
            Err(late) => Answer::Failed(error::timed_out(doing, late)),
            Ok(Ok(_)) => Answer::Written,
            Ok(Err(error)) => {
                let failure = sdk_failure(doing, &error);
                match error.into_service_error() {
                    PutItemError::ConditionalCheckFailedException(lost) => {
                        Answer::Lost(lost_to(member, lost.item))
                    }
                    _ => Answer::Failed(failure),
                }
            }
        }
    }

    async fn delete(&self, member: &Member<'_>, budget: &Budget<'_>) -> Answer {
        let Condition { expression, names, values } = self.condition(member);
        let request = self
            .client
            .delete_item()
            .table_name(&self.config.table)
            .set_key(Some(primary_key(&self.config.attributes, &member.write.key)))
            .condition_expression(expression)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(values)
            .return_values_on_condition_check_failure(AllOld);
        let doing =
            Doing { config: &self.config, operation: "DeleteItem", permission: "DeleteItem" };
        match budget.attempt(request.send()).await {
            Err(late) => Answer::Failed(error::timed_out(doing, late)),
            Ok(Ok(_)) => Answer::Written,
            Ok(Err(error)) => {
                let failure = sdk_failure(doing, &error);
                match error.into_service_error() {
                    DeleteItemError::ConditionalCheckFailedException(lost) => {
                        Answer::Lost(lost_to(member, lost.item))
                    }
                    _ => Answer::Failed(failure),
                }
            }
        }
    }

    fn condition(&self, member: &Member<'_>) -> Condition {
        condition(terms(&member.write.guard, &self.config.attributes))
    }
}

/// What a write with a failed condition found. A response without an item means that there is none,
/// except under `Absent`, which fails only if there is an item: then the server ignored `ALL_OLD`,
/// and the item has to be read.
pub(crate) fn lost_to(member: &Member<'_>, item: Option<Item>) -> Lost {
    match (item, &member.write.guard) {
        (Some(item), _) => Lost::To(item),
        (None, Guard::Absent) => Lost::Unread,
        (None, Guard::OwnedBy(_) | Guard::Unchanged(_)) => Lost::ToNothing,
    }
}
