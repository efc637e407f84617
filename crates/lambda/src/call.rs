//! What a handler learns from a [`Call`] about the invocation on Lambda, and the deadline of one, which comes from outside:
//! tools that imitate Lambda send others than Lambda can mean.

use std::{
    any::Any,
    env,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lambda_idempotency_core::clock::Timestamp;
#[cfg(feature = "dynamodb")]
use lambda_idempotency_dynamodb::{DynamoDbEffects, TransactWriteItem};
use lambda_idempotency_engine::{
    call::{Call, RecordId},
    delivered::{Delivered, Invocation, Messaging},
};
#[cfg(feature = "postgres")]
use lambda_idempotency_postgres::{PostgresEffects, PostgresStatement};
use lambda_runtime::{Context, LambdaEvent};
use serde_json::value::RawValue;

#[cfg(feature = "postgres")]
use crate::error::ExecuteError;
#[cfg(feature = "dynamodb")]
use crate::error::TransactError;
use crate::source::{Record, messaging};

/// The methods of a [`Call`] that need the types of Lambda or of a store.
///
/// ```
/// use lambda_idempotency::{Call, CallExt as _, Failure};
///
/// #[derive(serde::Deserialize)]
/// struct Order { id: String }
///
/// async fn place(order: Order, call: Call) -> Result<(), Failure> {
///     let trace = call.context().and_then(|context| context.xray_trace_id.as_deref());
///     let tenant = call.attribute("tenant"); // a message attribute of SQS
///     let last = call.receives().is_some_and(|receives| receives >= 5);
///     // ...
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let mut context = lambda_runtime::Context::default();
/// context.request_id = "r-1".to_owned();
/// let call = Call::test("o-1").with_context(context).with_attribute("tenant", "acme").with_receives(5);
/// assert_eq!(call.request_id(), Some("r-1"));
/// place(Order { id: "o-1".to_owned() }, call).await.unwrap();
/// # }
/// ```
pub trait CallExt: sealed::Sealed {
    /// The invocation's context: request id, function ARN, X-Ray trace, tenant, client context.
    /// `None` for [`Idempotency::run`](crate::Idempotency::run) outside an invocation, and in tests
    /// that set no context.
    ///
    /// Its deadline is Lambda's; the handler is stopped a little before, at [`Call::handler_deadline`].
    fn context(&self) -> Option<&Context>;

    /// Sets the invocation's context, for the unit test of a handler.
    #[must_use]
    fn with_context(self, context: Context) -> Self;

    /// Collects a put, update, delete or condition check of the AWS SDK, and sends nothing. When the handler
    /// has returned `Ok`, all that it collected is committed in one `TransactWriteItems` with the completion
    /// of its key: both or neither. If it fails, panics or is stopped, nothing is.
    ///
    /// The operation has to have a [mode](crate::Mode) with effects. The guide has the
    /// [guarantees, limits and costs](crate::guide::choosing_a_mode).
    ///
    /// ```
    /// use aws_sdk_dynamodb::types::{AttributeValue, Delete, TransactWriteItem};
    /// use lambda_idempotency::{Call, CallExt as _, Failure, store::dynamodb::DynamoDbEffects};
    ///
    /// async fn forget(customer: String, call: Call) -> Result<(), Failure> {
    ///     let id = AttributeValue::S(customer);
    ///     let delete = Delete::builder().table_name("customers").key("id", id).build()?;
    ///     call.transact(TransactWriteItem::builder().delete(delete).build())?;
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// // The unit test of such a handler:
    /// let (call, collected) = Call::test("c-1").with_effects::<DynamoDbEffects>();
    /// forget("c-1".to_owned(), call).await.unwrap();
    /// let effects = collected.close().unwrap().unwrap();
    /// let items = effects.get::<DynamoDbEffects>().unwrap().items();
    /// assert_eq!(items[0].delete().unwrap().table_name(), "customers");
    /// # }
    /// ```
    ///
    /// # Errors
    /// The operation is not transactional, the call runs without a claim, the handler has ended, or the
    /// effect does not fit into the transaction with those before it.
    #[cfg(feature = "dynamodb")]
    fn transact(&self, item: TransactWriteItem) -> Result<(), TransactError>;

    /// Collects a statement of SQL for [`PostgresStore`](crate::PostgresStore), and sends nothing. When the handler
    /// has returned `Ok`, all statements that it collected are committed in one transaction with the completion of
    /// its key: both or neither. If it fails, panics or is stopped, nothing is.
    ///
    /// The operation has to have a [mode](crate::Mode) with effects. The guide has the
    /// [guarantees, limits and costs](crate::guide::choosing_a_mode).
    ///
    /// ```
    /// use lambda_idempotency::{
    ///     Call, CallExt as _, Failure, store::postgres::{PostgresEffects, PostgresStatement, PostgresValue},
    /// };
    ///
    /// async fn sell(item: String, call: Call) -> Result<(), Failure> {
    ///     let take = "UPDATE stock SET remaining = remaining - 1 WHERE item = $1 AND remaining > 0";
    ///     call.execute(PostgresStatement::new(take).bind(item).expect_rows(1))?;
    ///     Ok(())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// // The unit test of such a handler:
    /// let (call, collected) = Call::test("o-1").with_effects::<PostgresEffects>();
    /// sell("tea".to_owned(), call).await.unwrap();
    /// let effects = collected.close().unwrap().unwrap();
    /// let statements = effects.get::<PostgresEffects>().unwrap().statements();
    /// assert_eq!(statements[0].values(), [PostgresValue::from("tea")]);
    /// # }
    /// ```
    ///
    /// # Errors
    /// The operation is not transactional, the call runs without a claim, the handler has ended, or the
    /// statement cannot be an effect.
    #[cfg(feature = "postgres")]
    fn execute(&self, statement: PostgresStatement) -> Result<(), ExecuteError>;
}

impl CallExt for Call {
    fn context(&self) -> Option<&Context> {
        let invocation: &dyn Any = self.invocation()?;
        invocation.downcast_ref::<Invoked>().map(Invoked::context)
    }

    fn with_context(self, context: Context) -> Self {
        self.with_invocation(Invoked::without_event(context))
    }

    #[cfg(feature = "dynamodb")]
    fn transact(&self, item: TransactWriteItem) -> Result<(), TransactError> {
        Ok(self.collect(|effects: &mut DynamoDbEffects| effects.add(item))??)
    }

    #[cfg(feature = "postgres")]
    fn execute(&self, statement: PostgresStatement) -> Result<(), ExecuteError> {
        Ok(self.collect(|effects: &mut PostgresEffects| effects.add(statement))??)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for lambda_idempotency_engine::call::Call {}
}

/// An invocation, shared by its calls: the event and its context.
#[derive(Clone)]
pub(crate) struct Invoked {
    event: LambdaEvent<Box<RawValue>>,
    /// When it ends, if that is known.
    deadline: Option<Timestamp>,
}

impl Invoked {
    pub(crate) fn new(event: LambdaEvent<Box<RawValue>>, deadline: Option<Timestamp>) -> Arc<Self> {
        Arc::new(Self { event, deadline })
    }

    /// For events that are not lists of records, and where the handler gets the event in another
    /// way.
    pub(crate) fn without_event(context: Context) -> Arc<Self> {
        Self::new(LambdaEvent::new(RawValue::NULL.to_owned(), context), None)
    }

    pub(crate) fn payload(&self) -> &RawValue {
        &self.event.payload
    }

    pub(crate) fn context(&self) -> &Context {
        &self.event.context
    }

    /// The event; it is cloned only if other calls still share it.
    pub(crate) fn into_event(self: Arc<Self>) -> LambdaEvent<Box<RawValue>> {
        Arc::unwrap_or_clone(self).event
    }

    pub(crate) const fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    /// The facts about the delivery of one of its records, which may be the cause of the invocation.
    pub(crate) fn delivers(self: &Arc<Self>, record: &Record<'_>, is_cause: bool) -> Delivered {
        let delivered = Delivered::by(Arc::<Self>::clone(self))
            .record(&record.raw)
            .receives(record.receives)
            .reads(record.reads);
        if is_cause { delivered.in_trace_of_invocation() } else { delivered }
    }

    /// The invocation alone, for a call that gets its payload in another way.
    pub(crate) fn without_record(self: Arc<Self>) -> Delivered {
        Delivered::by(self).in_trace_of_invocation()
    }
}

/// The invocation to which calls of [`Idempotency::run`](crate::Idempotency::run) belong, which those of one invocation
/// share: a program may have very many at once.
#[derive(Clone, Default)]
pub(crate) struct LastInvoked(Arc<Mutex<Weak<Invoked>>>);

impl LastInvoked {
    /// The invocation of this context.
    pub(crate) fn of(&self, context: &Context) -> Arc<Invoked> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(invoked) = last.upgrade().filter(|invoked| invoked.context() == context) {
            return invoked;
        }
        let invoked = Invoked::without_event(context.clone());
        *last = Arc::downgrade(&invoked);
        invoked
    }
}

impl Invocation for Invoked {
    fn request_id(&self) -> &str {
        &self.context().request_id
    }

    fn event(&self) -> &str {
        self.payload().get()
    }

    fn trace_header(&self) -> Option<&str> {
        self.context().xray_trace_id.as_deref()
    }

    fn messaging<'r>(&self, record: &'r RecordId) -> Option<Messaging<'r>> {
        messaging(record)
    }
}

/// By how much the clock that set a deadline may differ from this process's: far more than clocks on Lambda do.
const SKEW: Duration = Duration::from_mins(1);

/// When a deadline is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// When the invocation arrives, so it cannot be past.
    AtStart,
    /// At some time of the invocation, whose end may be past: Managed Instances do not stop it.
    Within,
}

/// When the invocation ends; `None` if the context has no deadline, or one that Lambda cannot mean. The first one of those is
/// said in the log.
pub(crate) fn invocation_deadline(
    context: &Context,
    now: Timestamp,
    read: Read,
) -> Option<Timestamp> {
    static IS_SAID: AtomicBool = AtomicBool::new(false);
    if context.deadline == 0 {
        return None;
    }
    let deadline = Timestamp::from_millis(context.deadline);
    let believed = is_possible(deadline, now, read, longest());
    if !believed && !IS_SAID.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            deadline = context.deadline,
            now = now.as_millis(),
            "the deadline of the invocation, in milliseconds since 1970, is one that Lambda cannot mean, so it counts as \
             unknown: handlers get 15 minutes; some local tools send such deadlines, and otherwise the clock of this \
             machine is wrong"
        );
    }
    believed.then_some(deadline)
}

fn is_possible(deadline: Timestamp, now: Timestamp, read: Read, longest: Duration) -> bool {
    let is_past_possible = match read {
        // A deadline that is past would start nothing, at each delivery. If clocks differ, an unknown one does more.
        Read::AtStart => deadline > now,
        Read::Within => now.since(deadline) <= longest + SKEW,
    };
    is_past_possible && deadline.since(now) <= longest + SKEW
}

/// The longest invocation that Lambda allows:
/// <https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html>.
fn longest() -> Duration {
    let kind = env::var_os("AWS_LAMBDA_INITIALIZATION_TYPE");
    let is_managed_instance = kind.is_some_and(|kind| kind == "lambda-managed-instances");
    Duration::from_mins(if is_managed_instance { 90 } else { 15 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_of_an_invocation_share_its_context() {
        let of = |request_id: &str| {
            let mut context = Context::default();
            context.request_id = request_id.to_owned();
            context
        };
        let last = LastInvoked::default();
        let (one, same, next) = (last.of(&of("r-1")), last.of(&of("r-1")), last.of(&of("r-2")));
        assert!(Arc::ptr_eq(&one, &same));
        assert_eq!([one, next].each_ref().map(|one| one.request_id()), ["r-1", "r-2"]);
        let mut of_tenant = of("r-2");
        of_tenant.tenant_id = Some("t-1".to_owned());
        assert_eq!(
            last.of(&of_tenant).context().tenant_id.as_deref(),
            Some("t-1"),
            "all is compared"
        );
    }

    #[test]
    fn a_deadline_that_lambda_cannot_mean_is_not_believed() {
        let now = Timestamp::from_secs(1_800_000_000);
        let [longest, long] = [15, 90].map(Duration::from_mins);
        let secs = Duration::from_secs;
        for (deadline, at_start, within, on_managed_instances) in [
            (Timestamp::from_millis(600_000), false, false, false),
            (Timestamp::from_millis(1_800_000_900), false, false, false),
            (Timestamp::from_secs(3_200_000_000), false, false, false),
            (Timestamp::from_millis(u64::MAX), false, false, false),
            (now.minus(longest + SKEW).minus(secs(1)), false, false, false),
            (now.minus(longest), false, true, false),
            (now.minus(SKEW), false, true, false),
            (now, false, true, false),
            (now.plus(secs(1)), true, true, true),
            (now.plus(longest + SKEW), true, true, true),
            (now.plus(longest + SKEW).plus(secs(1)), false, false, true),
            (now.plus(long + SKEW).plus(secs(1)), false, false, false),
        ] {
            let found = [
                is_possible(deadline, now, Read::AtStart, longest),
                is_possible(deadline, now, Read::Within, longest),
                is_possible(deadline, now, Read::AtStart, long),
            ];
            assert_eq!(found, [at_start, within, on_managed_instances], "{deadline:?}");
        }
    }
}
