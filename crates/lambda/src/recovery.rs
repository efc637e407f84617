//! Runs again what nothing delivers again.

use std::{borrow::Cow, fmt, time::Duration};

use lambda_idempotency_core::{
    browse::{Browse, Cursor, Left, Swept},
    clock::Timestamp,
    outcome::{NotStarted, Outcome},
    record::{IdempotencyRecord, Json},
    store::StoreError,
    sweep::Sweep,
};
use lambda_idempotency_keys::Key;
use lambda_runtime::{Context, LambdaEvent};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    RunContext,
    call::Invoked,
    error::ConfigError,
    function::Function,
    idempotency::run_context::IntoRunContext,
    route::Route,
    source::{Event, Record},
};

/// Calls handlers for records whose worker has died, or whose attempt has failed, and which nothing delivers again:
/// asynchronous invocations whose retries are used up, messages that a queue has given up or lost by its
/// retention.
///
/// The records have to be kept with their claims ([`Sqs::recoverable`](crate::source::Sqs::recoverable), and so on). Run
/// it from a function with a schedule, with the same operations and handlers. Each run reads what is left in
/// the store ([`Browse::left`]), which is all of it where it has no index, or as far as its deadline allows, and gives each record that it finds to
/// its handler as its source did: the key is made again and has to be the same, and it is claimed under the same guards. So it is
/// safe beside deliveries and other recoveries: one of them works, and the others find its claim or its completion.
///
/// ```
/// use std::sync::Arc;
/// use lambda_idempotency::{
///     Call, Failure, Idempotency, MemoryStore, Operation, RunContext, recovery::Recovery, source::Sqs,
/// };
///
/// async fn place(order: serde_json::Value, call: Call) -> Result<(), Failure> {
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = Arc::new(MemoryStore::new());
/// let idempotency = Idempotency::new(Arc::clone(&store));
/// let operation = Operation::new("place-order").key("id");
/// let function = idempotency.on(Sqs::new().recoverable(64 * 1024), &operation, place)?;
///
/// // In the function with the schedule, where the context is `&event.context`:
/// let recovery = Recovery::new(store, function)?;
/// let recovered = recovery.run(None, &RunContext::without_deadline()).await?;
/// assert_eq!((recovered.recovered, recovered.given_up), (0, 0));
/// # Ok(())
/// # }
/// ```
pub struct Recovery<S> {
    store: S,
    function: Function,
    min_age: Duration,
    max_attempts: u32,
}

/// The result of a run of a [`Recovery`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// Records whose handler was called and succeeded.
    pub recovered: u64,
    /// Records whose handler did not succeed, or could not be called. A later run tries again, as long as there are
    /// attempts left and the failure is not permanent. Also records whose messages could not be sent: a
    /// [`Relay`](crate::outbox::Relay) sends them.
    pub failed: u64,
    /// Records that another worker held, or had completed, when this run came to them.
    pub overtaken: u64,
    /// Records that have used up their attempts. They are left as they are until they expire. Set an alarm on this
    /// number, and look at them.
    pub given_up: u64,
    /// Records that are not this function's: of another operation or application, or with a key that is not made as
    /// it was before.
    pub unknown: u64,
    /// How far it came.
    pub swept: Swept,
}

impl Recovered {
    /// Returns whether there is time for another one.
    fn count(&mut self, outcome: Option<Outcome>) -> bool {
        match outcome {
            Some(Outcome::Returned(NotStarted::Deadline)) => return false,
            None | Some(Outcome::Foreign(_)) => self.unknown += 1,
            Some(Outcome::Executed { .. } | Outcome::CompletionLost { .. }) => self.recovered += 1,
            Some(
                Outcome::Busy { .. }
                | Outcome::Replayed { .. }
                | Outcome::Superseded { .. }
                | Outcome::PermanentlyFailed { .. }
                | Outcome::Mismatch,
            ) => self.overtaken += 1,
            Some(outcome) => {
                self.failed += 1;
                return !matches!(outcome, Outcome::TimedOut { .. });
            }
        }
        true
    }
}

impl<S> Recovery<S> {
    /// Finds records in this store, which is the one of the function, and gives them to the function's handlers.
    ///
    /// # Errors
    /// No source of the function keeps its records, or idempotency is disabled.
    pub fn new(store: S, function: Function) -> Result<Self, ConfigError> {
        let is_kept = function.0.routes.iter().any(|route| route.settings.recoverable.is_some());
        let problem = if function.0.engine.is_unprotected() {
            "idempotency is disabled by `IDEMPOTENCY_DISABLED`, and without claims a record would be processed beside \
             another worker; remove that variable"
        } else if !is_kept {
            "none of its sources is `.recoverable(..)`, so no claim keeps a record; add that to one"
        } else {
            return Ok(Self { store, function, min_age: Duration::from_mins(15), max_attempts: 5 });
        };
        Err(ConfigError::setting(format!("this function cannot be recovered: {problem}")))
    }

    /// Leaves records alone whose lease has ended, or whose attempt has failed, less than this ago: their source may
    /// deliver them again, and they would be in each other's way. Default: 15 minutes. Nothing is done twice if it
    /// is too short. Where the operation's retention was changed since, or its keys are those of Powertools, the time
    /// counts from the claim of the failed attempt.
    #[must_use]
    pub fn with_min_age(self, min_age: Duration) -> Self {
        Self { min_age, ..self }
    }

    /// Gives a record up after so many attempts that failed or were lost, those of deliveries included. Default: 5.
    ///
    /// Without a limit a record that kills its process, or fails always, would be tried for ever: no source counts
    /// how often it was received.
    #[must_use]
    pub fn with_max_attempts(self, max_attempts: u32) -> Self {
        Self { max_attempts, ..self }
    }
}

impl<S: Browse> Recovery<S> {
    /// Goes through the store from `from`, or from its beginning, until its end or the deadline of the context.
    ///
    /// Handlers run one after the other: each of these records may be what killed its process. None begins if half of the
    /// time has passed before the first one, or less is left than twice what the longest one took: give
    /// [`swept.next`](Swept::next) to the next run.
    ///
    /// # Errors
    /// A page of the store could not be read. Earlier recoveries are recorded.
    pub async fn run<'c, C>(
        &self,
        from: Option<&Cursor>,
        context: &'c C,
    ) -> Result<Recovered, StoreError>
    where
        &'c C: IntoRunContext<'c>,
    {
        let context: RunContext<'c> = context.into();
        let deadline = context.invocation_deadline(self.now());
        let (until, request_id) = (deadline.map_or(0, Timestamp::as_millis), context.request_id());
        let clock = self.function.0.engine.clock();
        let (start, mut longest) = (self.now(), None);
        let mut recovered = Recovered::default();
        let mut sweep = Sweep::new(&self.store, clock, Left::Work, from, deadline);
        while let Some(page) = sweep.page().await? {
            let mut left = Vec::new();
            for (key, record) in page {
                if !self.is_left(&key, &record) {
                } else if attempts(&record) >= self.max_attempts {
                    recovered.given_up += 1;
                } else {
                    left.push((key, record));
                }
            }
            // A record with more attempts may be the one that kills the process.
            left.sort_by_key(|(_, record)| attempts(record));
            for (key, record) in left {
                let kept = record.payload.as_deref().and_then(|kept| event_of(kept, until));
                let Some(invoked) = kept.map(|kept| Invoked::new(kept, deadline)) else {
                    sweep.swept.unreadable += 1;
                    continue;
                };
                let now = self.now();
                // A handler that is stopped uses up an attempt. How long the first one takes is not known.
                let needs = longest.map_or_else(|| now.since(start), |longest| longest * 2);
                let is_late = deadline.is_some_and(|end| now.plus(needs) >= end);
                let (outcome, took) = if is_late {
                    (Some(Outcome::Returned(NotStarted::Deadline)), None)
                } else {
                    self.function.0.recover(&key, &record, &invoked, request_id).await.unzip()
                };
                if !recovered.count(outcome) {
                    // A recovered record is not found any more.
                    return Ok(Recovered { swept: sweep.end_before_page(), ..recovered });
                }
                longest = longest.max(took);
            }
        }
        Ok(Recovered { swept: sweep.swept, ..recovered })
    }

    fn now(&self) -> Timestamp {
        self.function.0.engine.clock().now()
    }

    /// Whether the record has ended without a completion, nobody has it in hand, and it can be run again.
    fn is_left(&self, key: &Key, record: &IdempotencyRecord) -> bool {
        let now = self.now();
        let claimed_at = record.provenance.as_ref().map(|provenance| provenance.claimed_at);
        let lease_until = record.lease_until.unwrap_or(record.expires_at);
        let given_up_at = self.given_up_at(key, record).filter(|then| *then <= now);
        let last = lease_until.max(claimed_at.max(given_up_at).unwrap_or_default());
        last.plus(self.min_age) < now && now <= record.expires_at
    }

    /// When the last attempt was given up, if it was: that write set the expiry, which is a whole second. Wrong, and in
    /// the future, where the operation had another retention then.
    fn given_up_at(&self, key: &Key, record: &IdempotencyRecord) -> Option<Timestamp> {
        let (operation, _) = key.as_str().rsplit_once('#')?;
        let mut routes = self.function.0.routes.iter();
        let route = routes.find(|route| *route.prepared.name == *operation)?;
        let then = record.expires_at.minus(route.policy.retention).minus(Duration::from_secs(1));
        record.is_given_up().then_some(then)
    }
}

/// How many attempts were made: a claim that was not given up is one that was lost.
fn attempts(record: &IdempotencyRecord) -> u32 {
    let lost = u32::from(!record.is_given_up());
    record.failed_attempts.saturating_add(record.lost_attempts).saturating_add(lost)
}

impl<S> fmt::Debug for Recovery<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recovery")
            .field("function", &self.function)
            .field("min_age", &self.min_age)
            .field("max_attempts", &self.max_attempts)
            .finish_non_exhaustive()
    }
}

/// The text. Later versions may add members, and ignore those that they do not know.
#[derive(Serialize)]
struct KeptEvent<'a> {
    /// The event.
    event: &'a RawValue,
    /// The request id, which identifies the records of some sources.
    request: &'a str,
    /// The tenant, which is part of every key.
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
}

#[derive(Deserialize)]
struct FoundEvent {
    event: Box<RawValue>,
    request: String,
    #[serde(default)]
    tenant: Option<String>,
}

impl Route {
    /// The text that the claim of this record keeps, if the source keeps it and the text is within its limit. Records that keep the
    /// whole event share its text, in `whole`: a copy for each could need more memory than the function has.
    pub(crate) fn kept(
        &self,
        event: &Event<'_>,
        record: &Record<'_>,
        context: &Context,
        whole: &mut Option<Json>,
    ) -> Option<Json> {
        let limit = self.settings.recoverable?;
        let alone = event.with_record_alone(&record.raw)?;
        let is_whole = matches!(alone, Cow::Borrowed(_));
        if is_whole && let Some(kept) = whole {
            return Some(kept.clone());
        }
        let (request, tenant) = (&*context.request_id, context.tenant_id.as_deref());
        let mut bytes = alone.get().len();
        // A whole event is not copied for each of its records in vain.
        if bytes <= limit {
            let kept = to_raw_value(&KeptEvent { event: &alone, request, tenant }).ok()?;
            bytes = kept.get().len();
            if bytes <= limit {
                let kept = Json::from(kept.get());
                if is_whole {
                    *whole = Some(kept.clone());
                }
                return Some(kept);
            }
        }
        tracing::warn!(
            operation = &*self.prepared.name,
            source = record.id.source,
            record = record.id.label(),
            bytes,
            limit,
            "the record is processed, but it is too large to be kept with its claim: if its worker dies and nothing \
             delivers it again, it cannot be recovered; set a higher limit with `.recoverable(..)` of the source"
        );
        None
    }
}

/// The event that a claim has kept, as it was delivered, for an invocation that ends at this time. `None` if
/// another version has kept it in a form that is not known.
fn event_of(kept: &str, deadline: u64) -> Option<LambdaEvent<Box<RawValue>>> {
    let found: FoundEvent = serde_json::from_str(kept).ok()?;
    let mut context = Context::default();
    context.request_id = found.request;
    context.tenant_id = found.tenant;
    context.deadline = deadline;
    Some(LambdaEvent::new(found.event, context))
}
