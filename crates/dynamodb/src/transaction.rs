//! A completion and the effects of its handler, in one `TransactWriteItems`.
//!
//! The first item is the idempotency record, with its guard as the condition; the effects follow in their
//! order. If a request is sent again that was applied, the record's condition fails, and the record is recognised
//! by its owner.
//!
//! <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html>

use aws_sdk_dynamodb::{
    error::ProvideErrorMetadata,
    operation::transact_write_items::TransactWriteItemsError,
    types::{
        CancellationReason, Put, ReturnValuesOnConditionCheckFailure::AllOld, TransactWriteItem,
        Update,
    },
};
use lambda_idempotency_core::{
    effects::{RefusalReason, RefusedEffect},
    record::{IdempotencyRecord, Owner},
    retry::Budget,
    store::{StoreErrorKind, Write},
};

use crate::{
    effects::{DynamoDbEffects, plain_name},
    error::{self, Doing, Failure, sdk_failure, service_failure, unquoted},
    guard::{Condition, condition, is_update, update},
    item::{encode, primary_key},
    read::Projection,
    store::DynamoDbStore,
    write::{Member, Reply, met_by},
};

const OPERATION: &str = "TransactWriteItems";

/// The permission that the record needs. The effects need more, on their tables.
fn permission(write: &Write) -> &'static str {
    if is_update(write) { "UpdateItem" } else { "PutItem" }
}

impl DynamoDbStore {
    /// Sends one write with its effects, and waits for its answer.
    pub(crate) async fn write_transaction(
        &self,
        member: &Member<'_>,
        record: &IdempotencyRecord,
        effects: &DynamoDbEffects,
        budget: &Budget<'_>,
    ) -> Reply {
        let permission = permission(member.write);
        let doing = Doing { config: &self.config, operation: OPERATION, permission };
        let Some(record) = self.record(member, record) else {
            let context = format!("{doing} could not be put in a request");
            return Reply::Failed(Failure::new(StoreErrorKind::Refused, context));
        };
        let items = std::iter::once(record).chain(effects.items().iter().cloned());
        // The SDK would take the request's token from numbers that are the same in all processes restored from one
        // snapshot, and DynamoDB refuses a token that was sent with another request.
        let token = Owner::random().ok().map(|token| token.to_string());
        let request = self.client.transact_write_items().set_client_request_token(token);
        let request = request.set_transact_items(Some(items.collect()));
        match self.attempt(request.send(), budget).await {
            Err(late) => Reply::Failed(error::timed_out(doing, late)),
            Ok(Ok(_)) => Reply::Written,
            Ok(Err(error)) => {
                let failure = sdk_failure(doing, &error);
                match error.into_service_error() {
                    TransactWriteItemsError::TransactionCanceledException(canceled) => {
                        let reasons = canceled.cancellation_reasons.unwrap_or_default();
                        cancelled(member, doing, reasons)
                    }
                    refused => {
                        let of_record = is_of_record(doing, refused.message())
                            || self.has_no_records(refused.code(), member, budget).await;
                        match refusal(refused.code(), refused.message(), effects) {
                            Some(refused) if !failure.retry && !of_record => {
                                Reply::EffectRefused(refused)
                            }
                            _ => Reply::Failed(failure),
                        }
                    }
                }
            }
        }
    }

    /// Whether a table that was not found is the one of the records. DynamoDB does not say which table of a
    /// transaction it is, so the record is read.
    async fn has_no_records(
        &self,
        code: Option<&str>,
        member: &Member<'_>,
        budget: &Budget<'_>,
    ) -> bool {
        if code != Some("ResourceNotFoundException") {
            return false;
        }
        // In the slot of the transaction: with a second one for each, all calls could wait for each other.
        let answers =
            self.read_chunk(vec![&member.write.key], Projection::default(), None, budget).await;
        let mut failures = answers.iter().filter_map(|(_, answer)| answer.as_ref().err());
        failures.any(|failure| failure.kind() == StoreErrorKind::Misconfigured)
    }

    fn record(&self, member: &Member<'_>, record: &IdempotencyRecord) -> Option<TransactWriteItem> {
        let (attributes, key) = (&self.config.attributes, &member.write.key);
        let item = TransactWriteItem::builder();
        if is_update(member.write) {
            let (update, Condition { expression, names, values }) =
                update(attributes, member.write, record);
            let update = Update::builder()
                .table_name(&self.config.table)
                .set_key(Some(primary_key(attributes, key)))
                .update_expression(update)
                .condition_expression(expression)
                .set_expression_attribute_names(Some(names))
                .set_expression_attribute_values(values)
                .return_values_on_condition_check_failure(AllOld);
            return Some(item.update(update.build().ok()?).build());
        }
        let Condition { expression, names, values } = condition(&member.write.guard, attributes);
        let put = Put::builder()
            .table_name(&self.config.table)
            .set_item(Some(encode(attributes, key, record)))
            .condition_expression(expression)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(values)
            .return_values_on_condition_check_failure(AllOld);
        Some(item.put(put.build().ok()?).build())
    }
}

/// The answer to a transaction that was cancelled: nothing of it was applied. There is a reason for each
/// item, with the code `None` for those that were not to blame.
///
/// The record comes first. If its guard failed, its owner has lost the key, whatever its effects are; and
/// if another request was changing the record, it is not known yet who owns it.
fn cancelled(member: &Member<'_>, doing: Doing<'_>, reasons: Vec<CancellationReason>) -> Reply {
    let mut reasons = reasons.into_iter();
    let ours = reasons.next();
    if let Some(ours) = ours.filter(is_to_blame) {
        if ours.code() == Some("ConditionalCheckFailed") {
            return Reply::GuardFailed(met_by(member, ours.item));
        }
        return Reply::Failed(service_failure(doing, ours.code(), ours.message(), None));
    }
    let mut transient = None;
    for (position, reason) in reasons.enumerate().filter(|(_, reason)| is_to_blame(reason)) {
        let failure = service_failure(doing, reason.code(), reason.message(), None);
        if failure.retry {
            transient = Some(failure);
            continue;
        }
        return Reply::EffectRefused(refused_by(reason.code(), reason.message()).at(position));
    }
    let unexplained =
        || Failure::new(StoreErrorKind::Refused, format!("{doing} was cancelled without a reason"));
    Reply::Failed(transient.unwrap_or_else(unexplained))
}

fn is_to_blame(reason: &CancellationReason) -> bool {
    reason.code().is_some_and(|code| code != "None")
}

/// Why one item was refused.
fn refused_by(code: Option<&str>, message: Option<&str>) -> RefusedEffect {
    let is_size = message.is_some_and(|message| message.contains("size"));
    let refused = RefusedEffect::new(match code {
        Some("ConditionalCheckFailed") => {
            return RefusedEffect::new(RefusalReason::ConditionFailed);
        }
        Some("ItemCollectionSizeLimitExceeded") => RefusalReason::TooLarge,
        Some("ValidationError") if is_size => RefusalReason::TooLarge,
        Some("AccessDenied") => RefusalReason::Denied,
        _ => RefusalReason::Invalid,
    });
    refused.with_detail(detail(code, message))
}

/// Whether the permission that a message names is the one to write the record. A claim in a batch did not
/// need it.
fn is_of_record(doing: Doing<'_>, message: Option<&str>) -> bool {
    let denied = message.unwrap_or_default().split_once(" on resource: ");
    let Some((action, resource)) = denied else { return false };
    let resource = resource.split_whitespace().next().unwrap_or_default();
    action.ends_with(doing.permission)
        && resource.contains(":table/")
        && plain_name(resource) == plain_name(&doing.config.table)
}

/// Why the whole request was refused, if that is because of an effect. The record is written in the same
/// way as at its claim, so it is to blame only if [the message says so](is_of_record) or its table is gone.
fn refusal(
    code: Option<&str>,
    message: Option<&str>,
    effects: &DynamoDbEffects,
) -> Option<RefusedEffect> {
    let detail = detail(code, message);
    let (reason, detail) = match code? {
        "AccessDeniedException" => (RefusalReason::Denied, detail),
        "ValidationException" => (RefusalReason::Invalid, detail),
        "ResourceNotFoundException" => {
            let tables = effects.tables().join(", ");
            (
                RefusalReason::Invalid,
                format!("{detail}: of the tables of the effects ({tables}) one does not exist"),
            )
        }
        _ => return None,
    };
    Some(RefusedEffect::new(reason).with_detail(detail))
}

/// The words of DynamoDB, without data.
fn detail(code: Option<&str>, message: Option<&str>) -> String {
    let (code, message) = (code.unwrap_or("UnknownError"), unquoted(message.unwrap_or_default()));
    if message.is_empty() { code.to_owned() } else { format!("{code}: {message}") }
}
