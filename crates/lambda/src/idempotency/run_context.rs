//! The context of a call of `run`.

use std::{fmt, sync::Arc};

use lambda_idempotency_core::clock::Timestamp;
use lambda_runtime::Context;

use crate::call::{Invoked, LastInvoked, Read, invocation_deadline};

/// The context of a call of [`Idempotency::run`](crate::Idempotency::run): its deadline and its
/// tenant.
///
/// Inside a Lambda function, give the invocation's context, `&event.context`. Elsewhere, give a
/// deadline, or [`without_deadline`](Self::without_deadline), by reference as well.
///
/// | from | deadline | tenant |
/// |---|---|---|
/// | [`lambda_runtime::Context`] | that of the invocation | the one that Lambda's [tenant isolation] names |
/// | [`Timestamp`](crate::clock::Timestamp) | this one | none |
/// | [`without_deadline`](Self::without_deadline) | 15 minutes after the call began | none |
///
/// A program that polls a queue itself can add how often it received the message: [`with_receives`](Self::with_receives). For
/// [`run_many`](crate::Idempotency::run_many), [`with_concurrency`](Self::with_concurrency) limits how many calls run at a
/// time.
///
/// [tenant isolation]: https://docs.aws.amazon.com/lambda/latest/dg/tenant-isolation.html
#[derive(Clone, Copy)]
pub struct RunContext<'a> {
    part: Within<'a>,
    /// 0 if it is not known.
    receives: u32,
    /// How many calls of `run_many` run at a time.
    concurrency: Option<usize>,
}

#[derive(Clone, Copy)]
enum Within<'a> {
    Invocation(&'a Context),
    Until(Timestamp),
    Alone,
}

impl RunContext<'_> {
    /// Neither an invocation nor a deadline: for programs outside Lambda, and for tests.
    ///
    /// The call then has 15 minutes, as the longest invocation of Lambda. Its claim holds the key that long, and other
    /// workers wait that long if this process dies. A [`Lease::Renewed`](crate::policy::Lease::Renewed) shortens this to seconds.
    ///
    /// Do not use it inside an invocation: the function would not be stopped before Lambda ends the
    /// invocation, and two tenants with equal payloads would share a key.
    #[must_use]
    pub const fn without_deadline() -> Self {
        Self::of(Within::Alone)
    }

    /// Says how often the source has delivered the payload, this time included: of a message of SQS, its
    /// `ApproximateReceiveCount`. For programs that poll a queue themselves.
    ///
    /// A redelivery is probably a duplicate. From 2 on, the key is therefore read before it is claimed: in
    /// DynamoDB, a duplicate costs a read unit in place of a write unit, and a new payload a read unit more. 0 is as if
    /// this was not called. [`Call::receives`](crate::Call::receives) returns the number.
    ///
    /// A wrong number costs requests and never changes an answer: the claim is conditional all the same.
    ///
    /// ```
    /// use lambda_idempotency::{Call, Failure, Idempotency, Operation, RunContext, RunError};
    /// # use lambda_idempotency::MemoryStore;
    ///
    /// async fn received(body: &serde_json::Value, receives: u32, idempotency: &Idempotency) -> Result<(), RunError> {
    ///     let place = Operation::new("place-order").key("orderId");
    ///     let context = RunContext::without_deadline().with_receives(receives);
    ///     let run = idempotency.run(&place, body, &context, async |_: Call| Ok::<_, Failure>(())).await?;
    ///     Ok(run.result)
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), RunError> {
    /// # let idempotency = Idempotency::new(MemoryStore::new());
    /// # received(&serde_json::json!({ "orderId": "o-1" }), 2, &idempotency).await
    /// # }
    /// ```
    ///
    /// [`Recovery::run`](crate::recovery::Recovery::run) has no use for it.
    #[must_use]
    pub const fn with_receives(self, receives: u32) -> Self {
        Self { receives, ..self }
    }

    /// How many calls of [`run_many`](crate::Idempotency::run_many) run at a time; 0 counts as 1. Default: 16. A call of
    /// [`run`](crate::Idempotency::run) is one.
    ///
    /// ```
    /// use lambda_idempotency::RunContext;
    ///
    /// // One at a time: each needs most of the machine's memory.
    /// let context = RunContext::without_deadline().with_concurrency(1);
    /// ```
    #[must_use]
    pub const fn with_concurrency(self, calls: usize) -> Self {
        Self { concurrency: Some(calls), ..self }
    }

    pub(crate) const fn concurrency(&self) -> Option<usize> {
        self.concurrency
    }

    pub(crate) const fn receives(&self) -> u32 {
        self.receives
    }

    pub(crate) fn invocation_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        match self.part {
            Within::Invocation(context) => invocation_deadline(context, now, Read::Within),
            Within::Until(invocation_deadline) => Some(invocation_deadline),
            Within::Alone => None,
        }
    }

    pub(crate) fn invoked(&self, last: &LastInvoked) -> Option<Arc<Invoked>> {
        match self.part {
            Within::Invocation(context) => Some(last.of(context)),
            Within::Until(_) | Within::Alone => None,
        }
    }
}

impl<'a> RunContext<'a> {
    const fn of(part: Within<'a>) -> Self {
        Self { part, receives: 0, concurrency: None }
    }

    pub(crate) fn request_id(&self) -> Option<&'a str> {
        match self.part {
            Within::Invocation(context) => Some(&context.request_id),
            Within::Until(_) | Within::Alone => None,
        }
    }

    pub(crate) fn tenant(&self) -> Option<&'a str> {
        match self.part {
            Within::Invocation(context) => context.tenant_id.as_deref(),
            Within::Until(_) | Within::Alone => None,
        }
    }
}

/// References that convert to a [`RunContext`]: to a [`lambda_runtime::Context`], a [`Timestamp`], or a [`RunContext`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the context of a call",
    label = "the context is expected here",
    note = "the arguments are: operation, payload, context, function",
    note = "in a Lambda function the context is `&event.context`; elsewhere it is a deadline (`&Timestamp`), or \
            `&RunContext::without_deadline()`"
)]
pub trait IntoRunContext<'a>: Into<RunContext<'a>> {}

#[diagnostic::do_not_recommend]
impl<'a, C: Into<RunContext<'a>>> IntoRunContext<'a> for C {}

impl<'a> From<&'a Context> for RunContext<'a> {
    fn from(context: &'a Context) -> Self {
        Self::of(Within::Invocation(context))
    }
}

/// The deadline of the call: the call has to finish until then, and its claim holds the key until
/// then.
impl From<&Timestamp> for RunContext<'_> {
    fn from(invocation_deadline: &Timestamp) -> Self {
        Self::of(Within::Until(*invocation_deadline))
    }
}

impl<'a> From<&RunContext<'a>> for RunContext<'a> {
    fn from(context: &RunContext<'a>) -> Self {
        *context
    }
}

/// Without the invocation's context, which can identify its caller.
impl fmt::Debug for RunContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let deadline = match self.part {
            Within::Invocation(context) => Some(Timestamp::from_millis(context.deadline)),
            Within::Until(deadline) => Some(deadline),
            Within::Alone => None,
        };
        f.debug_struct("RunContext").field("deadline", &deadline).finish_non_exhaustive()
    }
}
