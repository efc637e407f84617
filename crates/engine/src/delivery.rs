//! What the engine is given: a batch of deliveries, and what is to be done with each.

use std::sync::Arc;

use crate::{call::Call, delivered::Delivered, pace::Pace, record_id::RecordId};
use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    failure::Failure,
    outcome::{DivertReason, Rejected},
    policy::Policy,
    record::{Fingerprint, Json},
};
use lambda_idempotency_keys::Key;

/// A handler with its decoded payload, ready to be called once.
pub type Job<'a> = Box<dyn FnOnce(Call) -> BoxFuture<'a, Result<Returned, Failure>> + Send + 'a>;

/// What a handler returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Returned {
    /// Its result as JSON text, for later deliveries.
    Value(Json),
    /// Nothing that a later delivery would want.
    Nothing,
    /// A result that could not be serialized. The work is done all the same.
    Unserializable,
    /// Nothing: it only put aside a record that will never be processed, for this reason.
    Diverted(DivertReason),
    /// It turned the record away and did no work. The key is free again as if it had not been claimed:
    /// nothing is kept, and no failure is counted.
    Declined,
}

/// One delivery of one record.
pub struct Delivery<'a> {
    /// Which record.
    pub record: RecordId,
    /// How it was delivered, for its handler.
    pub delivered: Delivered,
    /// Its order group: records of one group are processed in the order of the batch, and none
    /// after one that is returned. `None` where the source keeps no order.
    pub group: Option<Arc<str>>,
    /// How often it was received, this time included; 0 if its source does not count that. Among records
    /// without a group, those received most often start first: they are closest to being given up by
    /// their source.
    pub receives: u32,
    /// What to do.
    pub work: Work<'a>,
    /// How the record is put aside if it fails permanently or its key belongs to another payload.
    /// `None` returns it to its source, again and again.
    pub divert: Option<Divert<'a>>,
}

impl Delivery<'_> {
    /// The same delivery without a claim.
    pub(super) fn without_protection(mut self) -> Self {
        self.work = match self.work {
            Work::Keyed { key, job, .. } | Work::Divert { aside: Aside { key, job }, .. } => {
                Work::Unprotected { identity: key, job }
            }
            work => work,
        };
        self
    }
}

/// Makes the work of putting a record aside, once it is known why.
///
/// The number is the fence of the final record of its idempotency key: of its permanent failure, or of
/// the other payload's outcome. It is the same at each delivery until that record is deleted or has
/// expired, and another one afterwards. `None` if the record ran without a claim.
pub type Divert<'a> = Box<dyn FnOnce(DivertReason, Option<u64>) -> Aside<'a> + Send + 'a>;

/// The work of putting a record aside. It is done once per key, as the work of a record is, but its
/// own failures are never permanent: the next delivery tries again. What ran without a claim is put
/// aside without one.
pub struct Aside<'a> {
    /// A key of its own: not the record's. Made of all that distinguishes this record and this failure
    /// from others: a record with the same key counts as put aside.
    pub key: Key,
    /// Puts the record aside, and returns [`Returned::Diverted`].
    pub job: Job<'a>,
}

/// What is to be done with a record.
pub enum Work<'a> {
    /// Once per key.
    Keyed {
        /// The idempotency key.
        key: Key,
        /// What must agree with other deliveries of the key.
        fingerprint: Option<Fingerprint>,
        /// The whole payload, to recognise copies where there is no fingerprint.
        payload: &'a str,
        /// The handler.
        job: Job<'a>,
    },
    /// At every delivery: it has no key, and the user said to run it.
    Unprotected {
        /// Identifies the record, for the subkeys of its call. It is not used for a claim.
        identity: Key,
        /// The handler.
        job: Job<'a>,
    },
    /// It cannot be processed and is put aside.
    Divert {
        /// How it is put aside.
        aside: Aside<'a>,
        /// The whole record, to recognise copies.
        payload: &'a str,
    },
    /// It cannot be processed.
    Reject(Rejected),
}

impl<'a> Work<'a> {
    /// The key under which it is done once.
    #[must_use]
    pub const fn key(&self) -> Option<&Key> {
        match self {
            Self::Keyed { key, .. } => Some(key),
            _ => None,
        }
    }

    /// The same work with this payload, to recognise copies. Only records with equal keys are compared.
    #[must_use]
    pub fn with_payload(mut self, text: &'a str) -> Self {
        if let Self::Keyed { payload, .. } = &mut self {
            *payload = text;
        }
        self
    }
}

/// The deliveries of one invocation.
pub struct Batch<'a> {
    /// The operation's name.
    pub operation: &'a str,
    /// The records, in the order of the event.
    pub deliveries: Vec<Delivery<'a>>,
    /// How they are treated.
    pub policy: &'a Policy,
    /// The request id of the invocation, if there is one.
    pub request_id: Option<&'a str>,
    /// When the invocation ends; `None` if that is not known.
    pub invocation_deadline: Option<Timestamp>,
    /// How long the operation's handlers take.
    pub pace: &'a Pace,
}
