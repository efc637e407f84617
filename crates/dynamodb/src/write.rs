//! The rounds of a call: send the pending writes, read the records of failed guards, and repeat
//! what may succeed.
//!
//! A write by itself is a `PutItem` or `DeleteItem`, or an `UpdateItem` if the rest of the record stays, with its guard as the
//! condition. If the condition fails, the response contains the stored item
//! (`ReturnValuesOnConditionCheckFailure = ALL_OLD`), which saves a read.

use std::{
    error::Error,
    ops::{Deref, DerefMut},
    time::Duration,
};

use aws_sdk_dynamodb::{
    error::{ProvideErrorMetadata, SdkError},
    operation::{
        delete_item::DeleteItemError, put_item::PutItemError, update_item::UpdateItemError,
    },
    types::{ReturnValuesOnConditionCheckFailure::AllOld, error::ConditionalCheckFailedException},
};
use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    effects::RefusedEffect,
    record::IdempotencyRecord,
    request_slots::Purpose,
    retry::{self, Budget, PendingWrite, TimedOut},
    store::{Extent, Guard, StoreError, StoreErrorKind, Verdict, Write},
};

use crate::{
    attributes::{Attributes, DataForm},
    config::Config,
    effects::DynamoDbEffects,
    error::{self, Doing, Failure, sdk_failure},
    guard::{Condition, condition, is_update, update},
    item::{Item, LARGEST, decode, encode, primary_key, size, size_at_most, value_size},
    limits::{backoff, bounded, fit_key, is_outage, leave},
    store::DynamoDbStore,
    value,
};

/// The most statements in a batch.
pub(crate) const MOST_STATEMENTS: usize = 25;

/// The most bytes of items in a batch of statements. DynamoDB documents no limit for this operation; this
/// is the one of its transactions.
pub(crate) const MOST_STATEMENT_BYTES: usize = 4 * 1024 * 1024;

/// The least number of writes that are sent as a batch. Measured: two claims
/// cost 146 us of processor in a batch and 231 us by themselves, ten 206 us and 871 us, at the same
/// latency. Only claims whose guard fails are faster as single writes, by one round trip, and they
/// are rare.
const BATCH_FROM: usize = 2;
/// How often a write is repeated if its guard fails but the record is gone when it is read.
const ROUNDS: u8 = 3;

/// The state of a call.
type Rounds<'w> = retry::Rounds<Member<'w>>;

impl DynamoDbStore {
    /// Applies each write; one verdict each, in order.
    pub(crate) async fn write_all(
        &self,
        writes: &[Write],
        call_deadline: Timestamp,
    ) -> Vec<Verdict> {
        let budget = self.config.timing.budget(call_deadline);
        let mut backoff = backoff(&self.config);
        let mut rounds = Rounds::begin(writes, |pending| Member::new(&self.config, pending));
        let too_late = || error::too_late(&self.config);
        while let Some(members) = rounds.next(&budget, Some(&mut backoff), too_late).await {
            // Writes whose guard failed, and whose record has to be read.
            let mut unread = Vec::new();
            for (member, answer) in self.send(members, &budget).await {
                unread.extend(take(&mut rounds, &self.config, member, answer));
            }
            if !unread.is_empty() {
                Box::pin(self.look_up(&mut rounds, unread, &budget)).await;
            }
            if let Some(kind) = rounds.failed() {
                tracing::debug!(table = %self.config.table, ?kind, "some writes failed");
            }
        }
        rounds.verdicts()
    }

    /// Sends each write once, in as few requests as possible.
    async fn send<'w>(
        &self,
        members: Vec<Member<'w>>,
        budget: &Budget<'_>,
    ) -> Vec<(Member<'w>, Reply)> {
        let parcels = parcels(members, self.config.statements()).into_iter();
        let request = |parcel| -> BoxFuture<'_, _> { Box::pin(self.send_parcel(parcel, budget)) };
        bounded(parcels.map(request).collect()).await
    }

    /// Sends these writes in a request.
    async fn send_parcel<'w>(
        &self,
        parcel: Vec<Member<'w>>,
        budget: &Budget<'_>,
    ) -> Vec<(Member<'w>, Reply)> {
        let before = budget.left();
        let slot = match self.slot(purpose(&parcel), budget).await {
            Ok(slot) => slot,
            Err(failure) => {
                let answer = |member| (member, Reply::Failed(failure.clone()));
                return parcel.into_iter().map(answer).collect();
            }
        };
        let waited = before.saturating_sub(budget.left());
        let limits = (budget.limit(), self.config.timing.attempt_timeout);
        let mut answers = match &*parcel {
            [member] => vec![Box::pin(self.write_one(member, budget)).await],
            members => Box::pin(self.write_batch(members, budget)).await,
        };
        leave(slot).await;
        self.blame(&mut answers, waited, limits);
        parcel.into_iter().zip(answers).collect()
    }

    /// Reads the records that the responses did not contain, all in one request.
    async fn look_up<'w>(
        &self,
        rounds: &mut Rounds<'w>,
        losers: Vec<Member<'w>>,
        budget: &Budget<'_>,
    ) {
        let keys = losers.iter().map(|member| &member.write.key);
        let answers = self.read_all(keys, &[], purpose(&losers), budget).await;
        for member in losers {
            match answers.get(&member.write.key) {
                Some(Ok(Some(found))) => {
                    let verdict = member.met(&self.config, found.clone());
                    rounds.settle(&member, verdict);
                }
                Some(Ok(None)) => met_nothing(rounds, &self.config, member),
                // The write was refused. Only the record that it met is not known.
                Some(Err(failure)) => {
                    let failure = failure.clone().with_doubt(false);
                    rounds.settle(&member, member.unknown(failure));
                }
                None => rounds.settle(&member, member.unknown(error::too_late(&self.config))),
            }
        }
    }
}

/// The purpose of a request with these writes, and of the one that reads what they found.
fn purpose(members: &[Member<'_>]) -> Purpose {
    if !members.iter().all(|member| member.write.is_claim()) {
        return Purpose::Settle;
    }
    // The lease of a claim that may have been applied runs out while others wait for slots.
    let are_in_doubt = members.iter().any(|member| member.in_doubt);
    if are_in_doubt { Purpose::Hurry } else { Purpose::Claim }
}

/// Handles the answer to a write. Returns the write if its guard failed and its record has to be read.
fn take<'w>(
    rounds: &mut Rounds<'w>,
    config: &Config,
    mut member: Member<'w>,
    answer: Reply,
) -> Option<Member<'w>> {
    match answer {
        Reply::Written => rounds.settle(&member, Verdict::Written),
        Reply::GuardFailed(Met::Item(item)) => {
            let verdict = match decode(&config.attributes, &item) {
                Ok(found) => member.met(config, found),
                Err(problem) => member.unknown(error::corrupt(config, problem)),
            };
            rounds.settle(&member, verdict);
        }
        Reply::GuardFailed(Met::Nothing) => met_nothing(rounds, config, member),
        Reply::GuardFailed(Met::Unread) => return Some(member),
        Reply::EffectRefused(refused) => rounds.settle(&member, Verdict::EffectRefused(refused)),
        Reply::Alone(refused) => {
            if let Some(code) = refused {
                // A single write may succeed where a statement is refused; if not, its error has more detail.
                tracing::warn!(table = %config.table, code, "a statement was refused");
            }
            member.alone = true;
            rounds.again(member);
        }
        Reply::Failed(failure) => rounds.fail(member, failure),
    }
    None
}

/// There is no record: a delete is done, a claim is sent again, and any other write found
/// nothing.
fn met_nothing<'w>(rounds: &mut Rounds<'w>, config: &Config, mut member: Member<'w>) {
    match (&member.write.guard, &member.write.record) {
        (_, None) => rounds.settle(&member, Verdict::Written),
        (Guard::Absent, Some(_)) => {
            member.guards_failed = member.guards_failed.saturating_add(1);
            if member.guards_failed < ROUNDS {
                rounds.again(member);
            } else {
                rounds.settle(&member, member.unknown(error::contended(config)));
            }
        }
        (Guard::OwnedBy(_) | Guard::Unchanged(_), Some(_)) => {
            rounds.settle(&member, Verdict::Found(None));
        }
    }
}

/// Groups the writes into requests.
fn parcels(members: Vec<Member<'_>>, statements: bool) -> Vec<Vec<Member<'_>>> {
    let together = members.iter().filter(|member| !member.is_alone()).count();
    let batched = statements && together >= BATCH_FROM;
    let mut parcels = Vec::new();
    let mut open: Vec<Member<'_>> = Vec::new();
    let mut bytes = 0usize;
    for member in members {
        if !batched || member.is_alone() {
            parcels.push(vec![member]);
            continue;
        }
        if open.len() >= MOST_STATEMENTS || bytes.saturating_add(member.size) > MOST_STATEMENT_BYTES
        {
            parcels.push(std::mem::take(&mut open));
            bytes = 0;
        }
        bytes = bytes.saturating_add(member.size);
        open.push(member);
    }
    parcels.push(open);
    parcels.retain(|parcel| !parcel.is_empty());
    parcels
}

impl DynamoDbStore {
    /// Notes whether DynamoDB answered a request with these writes. Where it did not, and other calls of this process are to
    /// blame, that is no outage: the request had only a part of this usual time.
    fn blame(&self, answers: &mut [Reply], waited: Duration, limits: (Duration, Duration)) {
        let is_silent = |answer: &Reply| matches!(answer, Reply::Failed(f) if is_outage(f));
        if !answers.iter().all(is_silent) {
            return self.slots.heard(true);
        }
        for answer in answers {
            if let Reply::Failed(failure) = answer
                && failure.kind() == StoreErrorKind::Unavailable
            {
                let kind = self.slots.unanswered(waited, limits);
                *failure = failure.clone().with_kind(kind);
            }
        }
    }
}

impl DynamoDbStore {
    /// Sends one write and waits for its answer.
    pub(crate) async fn write_one(&self, member: &Member<'_>, budget: &Budget<'_>) -> Reply {
        match (&member.write.record, member.effects) {
            (Some(record), Some(effects)) => {
                self.write_transaction(member, record, effects, budget).await
            }
            (Some(record), None) if is_update(member.write) => {
                self.update(member, record, budget).await
            }
            (Some(record), None) => self.put(member, record, budget).await,
            (None, _) => self.delete(member, budget).await,
        }
    }

    async fn put(
        &self,
        member: &Member<'_>,
        record: &IdempotencyRecord,
        budget: &Budget<'_>,
    ) -> Reply {
        let item = encode(&self.config.attributes, &member.write.key, record);
        let Condition { expression, names, values } =
            condition(&member.write.guard, &self.config.attributes);
        let request = self
            .client
            .put_item()
            .table_name(&self.config.table)
            .set_item(Some(item))
            .condition_expression(expression)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(values)
            .return_values_on_condition_check_failure(AllOld);
        let answer = self.attempt(request.send(), budget).await;
        self.reply(member, "PutItem", answer, |error| match error {
            PutItemError::ConditionalCheckFailedException(failed) => Some(failed),
            _ => None,
        })
    }

    /// Changes a part of a record, and leaves the rest as it is stored.
    async fn update(
        &self,
        member: &Member<'_>,
        record: &IdempotencyRecord,
        budget: &Budget<'_>,
    ) -> Reply {
        let (update, Condition { expression, names, values }) =
            update(&self.config.attributes, member.write, record);
        let request = self
            .client
            .update_item()
            .table_name(&self.config.table)
            .set_key(Some(primary_key(&self.config.attributes, &member.write.key)))
            .update_expression(update)
            .condition_expression(expression)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(values)
            .return_values_on_condition_check_failure(AllOld);
        let answer = self.attempt(request.send(), budget).await;
        self.reply(member, "UpdateItem", answer, |error| match error {
            UpdateItemError::ConditionalCheckFailedException(failed) => Some(failed),
            _ => None,
        })
    }

    async fn delete(&self, member: &Member<'_>, budget: &Budget<'_>) -> Reply {
        let Condition { expression, names, values } =
            condition(&member.write.guard, &self.config.attributes);
        let request = self
            .client
            .delete_item()
            .table_name(&self.config.table)
            .set_key(Some(primary_key(&self.config.attributes, &member.write.key)))
            .condition_expression(expression)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(values)
            .return_values_on_condition_check_failure(AllOld);
        let answer = self.attempt(request.send(), budget).await;
        self.reply(member, "DeleteItem", answer, |error| match error {
            DeleteItemError::ConditionalCheckFailedException(failed) => Some(failed),
            _ => None,
        })
    }

    /// The meaning of the answer to an operation. `failed` finds the error of a condition.
    fn reply<T, E>(
        &self,
        member: &Member<'_>,
        operation: &'static str,
        answer: Result<Result<T, SdkError<E>>, TimedOut>,
        failed: impl FnOnce(E) -> Option<ConditionalCheckFailedException>,
    ) -> Reply
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        let doing = Doing { config: &self.config, operation, permission: operation };
        match answer {
            Err(late) => Reply::Failed(error::timed_out(doing, late)),
            Ok(Ok(_)) => Reply::Written,
            Ok(Err(error)) => {
                let failure = sdk_failure(doing, &error);
                let failed = match error {
                    SdkError::ServiceError(service) => failed(service.into_err()),
                    _ => None,
                };
                failed.map_or(Reply::Failed(failure), |failed| {
                    Reply::GuardFailed(met_by(member, failed.item))
                })
            }
        }
    }
}

/// The item that a write with a failed condition found. A response without an item means that there is none,
/// except under `Absent`, which fails only if there is an item: then the server ignored `ALL_OLD`,
/// and the item has to be read.
pub(crate) fn met_by(member: &Member<'_>, item: Option<Item>) -> Met {
    match (item, &member.write.guard) {
        (Some(item), _) => Met::Item(item),
        (None, Guard::Absent) => Met::Unread,
        (None, Guard::OwnedBy(_) | Guard::Unchanged(_)) => Met::Nothing,
    }
}

/// The size below which an estimate is good enough. Twenty-five of them are far from the limit of a batch.
const SMALL: usize = 64 * 1024;

/// One write of a call, from the first attempt to its verdict.
pub(crate) struct Member<'w> {
    pub(crate) pending: PendingWrite<'w>,
    /// The effects that are applied with it, in a transaction.
    pub(crate) effects: Option<&'w DynamoDbEffects>,
    /// The size of its item: exact if that is large, also together with its effects, and otherwise a little more.
    pub(crate) size: usize,
    /// It was in a batch that was refused as a whole, so it is sent by itself.
    pub(crate) alone: bool,
    /// How often its guard failed on a record that was gone when it was read.
    pub(crate) guards_failed: u8,
}

/// The result of one request.
#[derive(Clone)]
pub(crate) enum Reply {
    /// It was applied.
    Written,
    /// Its guard did not hold.
    GuardFailed(Met),
    /// Its guard held, but an effect was refused, and nothing was applied.
    EffectRefused(RefusedEffect),
    /// It was not applied, or it is not known whether it was.
    Failed(Failure),
    /// It has to be sent by itself: its batch was refused as a whole, or its statement, with this code.
    Alone(Option<String>),
}

/// The finding of a write whose guard did not hold.
#[derive(Clone)]
pub(crate) enum Met {
    /// This item.
    Item(Item),
    /// No item.
    Nothing,
    /// The response does not say.
    Unread,
}

impl<'w> Member<'w> {
    /// The write, or its verdict if it cannot be sent.
    pub(crate) fn new(config: &Config, pending: PendingWrite<'w>) -> Result<Self, Box<Verdict>> {
        let write = pending.write;
        let effects = match &write.effects {
            None => None,
            Some(effects) => match effects.get::<DynamoDbEffects>() {
                Some(effects) if write.record.is_some() => Some(effects),
                _ => return Err(Box::new(Verdict::Unknown(StoreError::without_effects(write)))),
            },
        };
        let plain = Self::without_effects(config, pending, effects);
        let plain = plain.map_err(|failure| Box::new(Verdict::Unknown(failure.report(false))))?;
        let Some(effects) = effects else { return Ok(plain) };
        let result = size_of_result(&config.attributes, write);
        if let Some(refused) = effects.refusal(config, plain.size.saturating_sub(result)) {
            return Err(Box::new(Verdict::EffectRefused(refused)));
        }
        if effects.are_too_large_beside(plain.size) {
            let context = "a result that leaves no room for the effects in a transaction of 4 MB: \
                           return less from the handler, or collect less in a call";
            let error = StoreError::new(StoreErrorKind::TooLarge, context);
            return Err(Box::new(Verdict::Unknown(error)));
        }
        Ok(Self { effects: Some(effects), ..plain })
    }

    fn without_effects(
        config: &Config,
        pending: PendingWrite<'w>,
        effects: Option<&DynamoDbEffects>,
    ) -> Result<Self, Failure> {
        let write = pending.write;
        let has_room = |size| !effects.is_some_and(|effects| effects.are_too_large_beside(size));
        fit_key(config, &write.key)?;
        let form = config.attributes.data_form;
        let record = write.record.as_ref().filter(|_| write.extent() != Extent::Outbox);
        let outcome = record.and_then(|record| record.result.as_deref());
        if !outcome.is_none_or(|json| value::fits(form, json)) {
            let context = format!(
                "a result that DynamoDB table {} cannot keep as a separate value (too deep, or \
                 with numbers too large): return another, or keep results as JSON text",
                config.table
            );
            return Err(Failure::new(StoreErrorKind::TooLarge, context));
        }
        let size = match record {
            None => 0,
            Some(record) => match size_at_most(&config.attributes, &write.key, record) {
                most if most <= SMALL && has_room(most) => most,
                _ => size(&encode(&config.attributes, &write.key, record)),
            },
        };
        if size > LARGEST {
            let context = format!(
                "a record of {size} bytes for DynamoDB table {}, which holds {LARGEST}: return \
                 less from the handler, or keep the result elsewhere and return a reference",
                config.table
            );
            return Err(Failure::new(StoreErrorKind::TooLarge, context));
        }
        Ok(Self { pending, effects: None, size, alone: false, guards_failed: 0 })
    }

    /// Whether it must not share a request with others.
    pub(crate) const fn is_alone(&self) -> bool {
        self.alone || self.effects.is_some()
    }

    /// Whether `found` was written by this write: an earlier request was applied and its response
    /// was lost. The token proves it, because no other write has it.
    fn is_own_work(&self, config: &Config, found: &IdempotencyRecord) -> bool {
        if self.write.extent() != Extent::Record {
            return self.pending.is_own_work(found);
        }
        let has_token = found.owner.is_some() || found.last_owner.is_some();
        let Some(record) = self.write.record.as_ref().filter(|_| self.in_doubt && has_token) else {
            return false;
        };
        let names = &config.attributes;
        let wanted = decode(names, &encode(names, &self.write.key, record));
        let mut found = found.clone();
        wanted.is_ok_and(|mut wanted| {
            if names.data_form == DataForm::Native {
                // DynamoDB normalises the numbers of a native value.
                (wanted.result, found.result) = (None, None);
            }
            wanted == found
        })
    }

    /// The verdict of a write that found this record.
    pub(crate) fn met(&self, config: &Config, found: IdempotencyRecord) -> Verdict {
        if self.is_own_work(config, &found) {
            Verdict::Written
        } else {
            Verdict::Found(Some(found))
        }
    }
}

impl<'w> Deref for Member<'w> {
    type Target = PendingWrite<'w>;

    fn deref(&self) -> &Self::Target {
        &self.pending
    }
}

impl DerefMut for Member<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.pending
    }
}

/// The size of the result in its item.
fn size_of_result(names: &Attributes, write: &Write) -> usize {
    let result = write.record.as_ref().and_then(|record| record.result.as_deref());
    let value = result.map(|json| value::result(names.data_form, json));
    value.map_or(0, |value| names.data.len().saturating_add(value_size(&value)))
}

#[cfg(test)]
mod tests {
    use lambda_idempotency_core::key::Key;

    use super::*;

    /// How many of the members that have these sizes, 0 for one that is sent by itself, share each
    /// request.
    fn requests(sizes: &[usize], statements: bool) -> Vec<usize> {
        let write = Write::new(Key::from_text("op#a"), Guard::Absent, None);
        let member = |(index, size): (usize, &usize)| Member {
            pending: PendingWrite::new(index, &write),
            effects: None,
            size: *size,
            alone: *size == 0,
            guards_failed: 0,
        };
        let parcels = parcels(sizes.iter().enumerate().map(member).collect(), statements);
        parcels.iter().map(Vec::len).collect()
    }

    /// The calls that wait for a request are most of the memory of a program that makes very many at once.
    #[test]
    fn a_call_has_no_room_for_what_is_rare() {
        let size =
            size_of_future(|store: &'static DynamoDbStore| store.write_all(&[], Timestamp::EPOCH));
        assert!(size <= 512, "{size} bytes; 680 with the reading of records");
    }

    fn size_of_future<F>(_: impl Fn(&'static DynamoDbStore) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn writes_share_requests_of_25_and_of_four_megabytes() {
        let half = 2 * 1024 * 1024;
        for (sizes, expected) in [
            (&[1][..], &[1][..]),
            (&[1; 2], &[2]),
            (&[1; 26], &[25, 1]),
            (&[], &[]),
            // A write that was refused in a batch goes by itself, and so does the only other one.
            (&[1, 0, 1], &[1, 2]),
            (&[1, 0], &[1; 2]),
            (&[half, half, 1], &[2, 1]),
            (&[half, half + 1], &[1, 1]),
        ] {
            assert_eq!(requests(sizes, true), expected, "{sizes:?}");
        }
        assert_eq!(requests(&[1; 3], false), [1; 3], "without statements");
    }
}
