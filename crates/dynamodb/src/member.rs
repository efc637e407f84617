//! One write of a call: the item to send, and the meaning of a response.

use std::ops::{Deref, DerefMut};

use lambda_idempotency_core::{
    effects::{RefusalReason, RefusedEffect},
    record::IdempotencyRecord,
    retry::PendingWrite,
    store::{StoreError, StoreErrorKind, Verdict},
};

use crate::{
    attributes::DataForm,
    config::Config,
    data,
    effects::DynamoDbEffects,
    error::Failure,
    item::{Item, decode, encode, size, size_at_most},
    limits::{LARGEST, fit_key},
};

/// The size below which an estimate is good enough. Twenty-five of them are far from the limit of a batch.
const SMALL: usize = 64 * 1024;

/// One write of a call, from the first attempt to its verdict.
pub(crate) struct Member<'w> {
    pub(crate) pending: PendingWrite<'w>,
    /// What is applied with it, in a transaction.
    pub(crate) effects: Option<&'w DynamoDbEffects>,
    /// The size of its item: exact if that is large or has effects beside it, and otherwise a little more.
    pub(crate) size: usize,
    /// It was in a batch that was refused as a whole, so it is sent by itself.
    pub(crate) alone: bool,
    /// How often its guard failed on a record that was gone when it was read.
    pub(crate) lost_attempts: u8,
}

/// The result of one request.
#[derive(Clone)]
pub(crate) enum Answer {
    /// It was applied.
    Written,
    /// Its guard did not hold.
    Lost(Lost),
    /// Its guard held, but an effect was refused, and nothing was applied.
    Refused(RefusedEffect),
    /// It was not applied, or it is not known whether it was.
    Failed(Failure),
    /// It has to be sent by itself: its batch was refused as a whole, or its statement, with this code.
    Alone(Option<String>),
}

/// What a write found whose guard did not hold.
#[derive(Clone)]
pub(crate) enum Lost {
    /// This item.
    To(Item),
    /// No item.
    ToNothing,
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
        let plain = Self::without_effects(config, pending);
        let plain = plain.map_err(|failure| Box::new(Verdict::Unknown(failure.report(false))))?;
        let Some(effects) = effects else { return Ok(plain) };
        if let Some(refused) = refusal(config, effects, &plain) {
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

    fn without_effects(config: &Config, pending: PendingWrite<'w>) -> Result<Self, Failure> {
        let write = pending.write;
        fit_key(config, &write.key)?;
        let form = config.attributes.data_form;
        let outcome = write.record.as_ref().and_then(|record| record.result.as_deref());
        if !outcome.is_none_or(|json| data::fits(form, json)) {
            let context = format!(
                "a result that DynamoDB table {} cannot keep as a separate value (too deep, or \
                 with numbers too large): return another, or keep results as JSON text",
                config.table
            );
            return Err(Failure::new(StoreErrorKind::TooLarge, context));
        }
        let size = match &write.record {
            None => 0,
            Some(record) => match size_at_most(&config.attributes, &write.key, record) {
                most if most <= SMALL && write.effects.is_none() => most,
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
        Ok(Self { pending, effects: None, size, alone: false, lost_attempts: 0 })
    }

    /// The item to store; `None` deletes.
    pub(crate) fn item(&self, config: &Config) -> Option<Item> {
        Some(encode(&config.attributes, &self.write.key, self.write.record.as_ref()?))
    }

    /// Whether it must not share a request with others.
    pub(crate) const fn is_alone(&self) -> bool {
        self.alone || self.effects.is_some()
    }

    /// Whether `found` was written by this write: an earlier request was applied and its response
    /// was lost. The token proves it, because no other write has it.
    fn is_own_work(&self, config: &Config, found: &IdempotencyRecord) -> bool {
        let has_token = found.owner.is_some() || found.last_owner.is_some();
        let wish = || decode(&config.attributes, &self.item(config)?).ok();
        // DynamoDB normalises the numbers of a native value.
        let plain = |record: &IdempotencyRecord| match config.attributes.data_form {
            DataForm::Json => record.clone(),
            DataForm::Native => {
                let mut plain = record.clone();
                plain.result = None;
                plain
            }
        };
        self.in_doubt && has_token && wish().as_ref().map(plain) == Some(plain(found))
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

/// Why these effects cannot be committed with this record, whatever its result.
fn refusal(
    config: &Config,
    effects: &DynamoDbEffects,
    member: &Member<'_>,
) -> Option<RefusedEffect> {
    if let Some(position) = effects.on_records(config) {
        let detail = format!("it would change idempotency records, in table {}", config.table);
        return Some(RefusedEffect::new(RefusalReason::Invalid).at(position).with_detail(detail));
    }
    effects.are_too_large_beside(size_without_result(config, member)).then(|| {
        let detail = "with the idempotency record, the effects of the call are larger than 4 MB";
        RefusedEffect::new(RefusalReason::TooLarge).with_detail(detail)
    })
}

/// The size of the item if the result is left out.
fn size_without_result(config: &Config, member: &Member<'_>) -> usize {
    let name: &str = &config.attributes.data;
    let data = member.item(config).and_then(|mut item| item.remove_entry(name));
    let data = data.map_or(0, |data| size(&Item::from([data])));
    member.size.saturating_sub(data)
}
