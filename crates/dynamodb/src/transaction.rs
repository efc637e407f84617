//! A completion and the effects of its handler, in one `TransactWriteItems`.
//!
//! The first item is the idempotency record, with its guard as the condition; the effects follow in their
//! order. The request has a `ClientRequestToken` that follows from the write, so DynamoDB recognises a
//! request that is sent again, for ten minutes. After that, on servers that ignore the token, and if a store
//! around this one has encrypted the result anew, the record's own condition fails and the record is
//! recognised by its owner.
//!
//! <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html>

use aws_sdk_dynamodb::{
    error::ProvideErrorMetadata,
    operation::transact_write_items::TransactWriteItemsError,
    types::{
        CancellationReason, Put, ReturnValuesOnConditionCheckFailure::AllOld, TransactWriteItem,
    },
};
use lambda_idempotency_core::{
    clock::Timestamp,
    effects::{RefusalReason, RefusedEffect},
    key::Digest,
    retry::Budget,
    store::{Guard, StoreErrorKind, Write},
};

use crate::{
    config::Config,
    effects::{DynamoDbEffects, plain_name},
    error::{self, Doing, Failure, sdk_failure, service_failure, unquoted},
    guard::{Condition, condition, terms},
    item::Item,
    read::Projection,
    store::DynamoDbStore,
    write::{Member, Reply, met_by},
};

const OPERATION: &str = "TransactWriteItems";
/// The permission that the record needs. The effects need more, on their tables.
const PERMISSION: &str = "PutItem";

impl DynamoDbStore {
    /// Sends one write with its effects, and waits for its answer.
    pub(crate) async fn write_transaction(
        &self,
        member: &Member<'_>,
        item: Item,
        effects: &DynamoDbEffects,
        budget: &Budget<'_>,
    ) -> Reply {
        let doing = Doing { config: &self.config, operation: OPERATION, permission: PERMISSION };
        let Some(record) = self.record(member, item) else {
            let context = format!("{doing} could not be put in a request");
            return Reply::Failed(Failure::new(StoreErrorKind::Refused, context));
        };
        let items = std::iter::once(record).chain(effects.items().iter().cloned());
        let request = self
            .client
            .transact_write_items()
            .set_transact_items(Some(items.collect()))
            .set_client_request_token(request_token(member.write));
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
                        let of_record = is_of_record(doing.config, refused.message())
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

    fn record(&self, member: &Member<'_>, item: Item) -> Option<TransactWriteItem> {
        let Condition { expression, names, values } =
            condition(terms(&member.write.guard, &self.config.attributes));
        let put = Put::builder()
            .table_name(&self.config.table)
            .set_item(Some(item))
            .condition_expression(expression)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(values)
            .return_values_on_condition_check_failure(AllOld)
            .build()
            .ok()?;
        Some(TransactWriteItem::builder().put(put).build())
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

/// Whether the permission that a message names is the one to put the record. A claim in a batch did not
/// need it.
fn is_of_record(config: &Config, message: Option<&str>) -> bool {
    let message = message.unwrap_or_default();
    let Some((_, resource)) = message.split_once(":PutItem on resource: ") else { return false };
    let resource = resource.split_whitespace().next().unwrap_or_default();
    resource.contains(":table/") && plain_name(resource) == plain_name(&config.table)
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

/// The token by which DynamoDB recognises a request that is sent again: 32 hexadecimal digits. Two writes
/// of one claim have different tokens unless they are the same write. `None` without a claim; then the
/// record's condition alone keeps the write from being applied twice.
fn request_token(write: &Write) -> Option<String> {
    let record = write.record.as_ref()?;
    let mut digest = Digest::new(b"lambda-idempotency transaction 1");
    digest.part(record.owner?.to_string().as_bytes());
    digest.part(write.key.as_str().as_bytes());
    digest.part(match write.guard {
        Guard::Absent => b"absent",
        Guard::Unchanged(_) => b"unchanged",
        Guard::OwnedBy(_) => b"owned",
    });
    if let Guard::Unchanged(seen) = &write.guard {
        // All that its condition names: another condition is another request.
        digest.part(format!("{seen:?}").as_bytes());
    }
    digest.part(&record.fence.to_be_bytes());
    digest.part(&record.expires_at.as_millis().to_be_bytes());
    // A completion has its time here, which may be another one although the expiry, rounded up, is the same.
    digest.part(&record.lease_until.map_or(0, Timestamp::as_millis).to_be_bytes());
    for text in [&record.result, &record.steps, &record.outbox, &record.payload] {
        digest.part(text.as_deref().unwrap_or_default().as_bytes());
    }
    let mut token = digest.hex();
    token.truncate(32);
    Some(token)
}

#[cfg(test)]
mod tests {
    use lambda_idempotency_core::{
        key::Key,
        record::{IdempotencyRecord, Owner, Status},
    };

    use super::*;

    /// A text that is encrypted anew makes another request of the same settlement.
    #[test]
    fn writes_with_other_texts_have_other_tokens() {
        let token = |set: fn(&mut IdempotencyRecord)| {
            let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::from_millis(1));
            record.owner = Some(Owner::from_bits(1));
            set(&mut record);
            let guard = Guard::OwnedBy(Owner::from_bits(1));
            request_token(&Write::new(Key::from_text("k"), guard, Some(record))).unwrap()
        };
        let tokens = [
            token(|_| {}),
            token(|record| record.result = Some("1".into())),
            token(|record| record.steps = Some("1".into())),
            token(|record| record.outbox = Some("1".into())),
            token(|record| record.payload = Some("1".into())),
            token(|record| record.fence = 1),
            token(|record| record.lease_until = Some(Timestamp::from_millis(1000))),
        ];
        assert_eq!(token(|_| {}), tokens[0]);
        let different: std::collections::BTreeSet<_> = tokens.iter().collect();
        assert_eq!(different.len(), tokens.len());
    }
}
