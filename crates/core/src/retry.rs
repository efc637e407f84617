//! Requests that are repeated, for crates that implement a [`Store`](crate::store::Store).
//!
//! A call of a store has a deadline, and may send several requests until then. [`Budget`] limits each of them, and
//! [`Backoff`] pauses between them. Both read the time from the [`Clock`], so that tests control it.
//! A request that fails becomes a [`RequestFailure`], which says whether another may succeed, and [`Rounds`] keeps the writes
//! of a call until each has its verdict.
//!
//! ```
//! use std::{future::ready, time::Duration};
//!
//! use lambda_idempotency_core::{
//!     clock::{Clock as _, SystemClock},
//!     retry::{Backoff, Budget},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let call_deadline = SystemClock.now().plus(Duration::from_secs(5));
//! let budget = Budget::new(&SystemClock, Duration::from_secs(1), call_deadline);
//! let (first, most) = (Duration::from_millis(25), Duration::from_millis(400));
//! let mut backoff = Backoff::new((first, most), Duration::from_millis(20));
//! let answer = loop {
//!     match budget.attempt(budget.limit(), ready(42)).await {
//!         Ok(answer) => break Some(answer),
//!         Err(_) if backoff.pause(&budget).await => {}
//!         Err(_) => break None,
//!     }
//! };
//! assert_eq!(answer, Some(42));
//! # }
//! ```

use std::{
    error::Error,
    fmt,
    future::{Future, poll_fn},
    ops::DerefMut,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Poll, ready},
    time::Duration,
};

use crate::{
    clock::{Clock, SystemClock, Timestamp},
    record::IdempotencyRecord,
    store::{StoreError, StoreErrorKind, Verdict, Write},
};

/// How long one request may take before it is sent again.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);

/// The times of a store's requests.
#[derive(Clone)]
#[non_exhaustive]
pub struct Timing {
    /// How long one request may take before it is sent again. Default 1 s.
    pub attempt_timeout: Duration,
    /// The pause after a failed attempt, and the most it doubles to. Default 25 ms and 400 ms.
    pub backoff: (Duration, Duration),
    /// The clock. Default: the machine's.
    pub clock: Arc<dyn Clock>,
}

impl Default for Timing {
    fn default() -> Self {
        let clock = Arc::new(SystemClock);
        Self { attempt_timeout: ATTEMPT_TIMEOUT, backoff: Backoff::DEFAULT, clock }
    }
}

impl Timing {
    /// The time of one call of the store.
    #[must_use]
    pub fn budget(&self, call_deadline: Timestamp) -> Budget<'_> {
        Budget::new(&*self.clock, self.attempt_timeout, call_deadline)
    }

    /// The pauses between the requests of a call. `shortest` is the least time for a request.
    #[must_use]
    pub fn backoff(&self, shortest: Duration) -> Backoff {
        Backoff::new(self.backoff, shortest)
    }
}

impl fmt::Debug for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timing")
            .field("attempt_timeout", &self.attempt_timeout)
            .field("backoff", &self.backoff)
            .finish_non_exhaustive()
    }
}

/// The pauses between requests. They double, and half of each is random, so that workers that were refused at the same
/// time do not try again at the same time.
#[derive(Clone, Debug)]
pub struct Backoff {
    next: Duration,
    most: Duration,
    shortest: Duration,
    /// Where the random part of the next pause comes from; `None` is the operating system.
    seed: Option<u64>,
}

impl Backoff {
    /// The first pause of a store, and the longest, unless its builder says otherwise.
    pub const DEFAULT: (Duration, Duration) =
        (Duration::from_millis(25), Duration::from_millis(400));

    /// Pauses from `first`, which double up to `most`.
    ///
    /// `shortest` is the least time for a request. One with less time would most likely be cut off, and would make it
    /// unknown whether the write was applied, although the last request was known to be refused.
    #[must_use]
    pub fn new((first, most): (Duration, Duration), shortest: Duration) -> Self {
        Self { next: first.min(most), most, shortest, seed: None }
    }

    /// Takes the random part of each pause from `seed`, so that a simulation can be repeated. Default: from the
    /// operating system.
    #[must_use]
    pub const fn seeded(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Pauses and returns `true`, or returns `false` if no time would be left for another request.
    pub async fn pause(&mut self, budget: &Budget<'_>) -> bool {
        let half = self.next / 2;
        let pause = half.saturating_add(half.mul_f64(self.random_share()));
        self.next = self.next.saturating_mul(2).min(self.most);
        if pause.saturating_add(self.shortest) >= budget.left() {
            return false;
        }
        budget.clock.sleep(pause).await;
        true
    }

    /// Between 0 and 1.
    fn random_share(&mut self) -> f64 {
        let Some(seed) = &mut self.seed else { return random_share() };
        // The generator SplitMix64: <https://prng.di.unimi.it/splitmix64.c>.
        *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let high = u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap_or_default();
        f64::from(high) / f64::from(u32::MAX)
    }
}

/// Between 0 and 1, from the operating system. Without randomness the pause is only less well spread.
fn random_share() -> f64 {
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}

/// How long an answer that came in time may take to be read.
const GRACE: Duration = Duration::from_millis(1);

/// The time of one call of a store: a limit for each request, and the deadline of the call for all of them.
pub struct Budget<'a> {
    clock: &'a dyn Clock,
    call_deadline: Timestamp,
    /// The time limit of the next request, in milliseconds.
    patience: AtomicU64,
}

/// The answer to a request did not come within this time. The request may still take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOut(pub Duration);

impl<'a> Budget<'a> {
    /// The time until `call_deadline`, of which the first request may take `attempt_timeout`.
    #[must_use]
    pub fn new(clock: &'a dyn Clock, attempt_timeout: Duration, call_deadline: Timestamp) -> Self {
        let patience = u64::try_from(attempt_timeout.as_millis()).unwrap_or(u64::MAX);
        Self { clock, call_deadline, patience: AtomicU64::new(patience) }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The time left before the deadline.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.call_deadline.since(self.clock.now())
    }

    /// Until when the call has time.
    #[must_use]
    pub const fn call_deadline(&self) -> Timestamp {
        self.call_deadline
    }

    /// How long the next request may take.
    #[must_use]
    pub fn limit(&self) -> Duration {
        Duration::from_millis(self.patience.load(Ordering::Relaxed)).min(self.left())
    }

    /// Waits for `request` until `limit`, then drops it and doubles the [limit](Self::limit) of the next, so that a slow
    /// request (for instance 16 MB of results) is not cut off every time.
    ///
    /// # Errors
    /// [`TimedOut`]: there was no answer until `limit`.
    pub async fn attempt<F: Future>(
        &self,
        limit: Duration,
        request: F,
    ) -> Result<F::Output, TimedOut> {
        let answer = self.within(limit, request).await;
        if answer.is_err() {
            self.be_more_patient();
        }
        answer
    }

    /// Waits for `future` until `limit`, and leaves the limit of the next request as it is.
    ///
    /// # Errors
    /// [`TimedOut`]: it was not ready until `limit`.
    pub async fn within<F: Future>(
        &self,
        limit: Duration,
        future: F,
    ) -> Result<F::Output, TimedOut> {
        let (mut future, mut sleep) = (pin!(future), self.clock.sleep(limit));
        let mut is_over = false;
        // The answer first: one that came just in time counts.
        poll_fn(|cx| {
            if let Poll::Ready(answer) = future.as_mut().poll(cx) {
                return Poll::Ready(Ok(answer));
            }
            ready!(sleep.as_mut().poll(cx));
            if is_over {
                return Poll::Ready(Err(TimedOut(limit)));
            }
            // Some turns of the executor more. A process that had no processor for a while, or was frozen, finds its
            // timers over and its answers in the sockets, and the task that reads these may not have been polled yet. A
            // waker alone is not enough: a future that polls many others polls this one again before it returns.
            is_over = true;
            sleep = self.clock.sleep(GRACE);
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }

    /// How long something beside a request may take, for instance a connection: this usual time, doubled as often as the
    /// [limit](Self::limit) of requests was since the first one, which might take `attempt_timeout`, but three times at most.
    #[must_use]
    pub fn doubled(&self, usual: Duration, attempt_timeout: Duration) -> Duration {
        let patience = u128::from(self.patience.load(Ordering::Relaxed));
        let times = patience.checked_div(attempt_timeout.as_millis()).unwrap_or(1);
        usual.saturating_mul(u32::try_from(times.min(8)).unwrap_or(8)).min(self.left())
    }

    /// Doubles the limit of the next request.
    pub fn be_more_patient(&self) {
        let patience = self.patience.load(Ordering::Relaxed);
        self.patience.fetch_max(patience.saturating_mul(2), Ordering::Relaxed);
    }
}

impl fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("limit", &self.limit()).finish_non_exhaustive()
    }
}

/// A failed request of a store, and whether another may succeed. A store makes one from each error of its server, and
/// [reports](Self::report) the last one when the call ends.
///
/// `D` is what the store has to know of it besides, for instance that it has to connect again.
///
/// ```
/// use lambda_idempotency_core::retry::RequestFailure;
///
/// let failure: RequestFailure = RequestFailure::unanswered("writing to table orders: no answer within 1000 ms");
/// assert!(failure.retry && failure.report(false).may_have_applied());
/// ```
#[derive(Clone, Debug)]
pub struct RequestFailure<D = ()> {
    kind: StoreErrorKind,
    context: String,
    cause: Option<Cause>,
    /// Another request may succeed.
    pub retry: bool,
    /// The write may have been applied, or may still be applied.
    pub in_doubt: bool,
    /// A detail that the store has to know besides.
    pub detail: D,
}

/// The words of the server or the connection.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
struct Cause(String);

impl<D: Default> RequestFailure<D> {
    /// A request that was not applied, and that would fail again. `context` says what failed and what to do; it must not
    /// hold a payload or a raw key.
    #[must_use]
    pub fn new(kind: StoreErrorKind, context: impl Into<String>) -> Self {
        let (context, detail) = (context.into(), D::default());
        Self { kind, context, cause: None, retry: false, in_doubt: false, detail }
    }

    /// A request that was not applied, and that may succeed if it is sent again.
    #[must_use]
    pub fn transient(kind: StoreErrorKind, context: impl Into<String>) -> Self {
        Self { retry: true, ..Self::new(kind, context) }
    }

    /// A request without a response, or with one that says nothing. It may have been applied.
    #[must_use]
    pub fn unanswered(context: impl Into<String>) -> Self {
        Self { in_doubt: true, ..Self::transient(StoreErrorKind::Unavailable, context) }
    }
}

impl<D> RequestFailure<D> {
    /// Sets the class of the error.
    #[must_use]
    pub fn with_kind(self, kind: StoreErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// Sets whether the write may have been applied.
    #[must_use]
    pub fn with_doubt(self, in_doubt: bool) -> Self {
        Self { in_doubt, ..self }
    }

    /// Adds what the store has to know of it besides.
    #[must_use]
    pub fn with_detail(self, detail: D) -> Self {
        Self { detail, ..self }
    }

    /// Adds what the server or the connection said. It must not hold data: see [`unquoted`].
    #[must_use]
    pub fn because(self, cause: impl Into<String>) -> Self {
        Self { cause: Some(Cause(cause.into())), ..self }
    }

    /// The class of the error.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// The words of the server or the connection, if they are known.
    #[must_use]
    pub fn cause(&self) -> Option<&str> {
        self.cause.as_ref().map(|Cause(said)| said.as_str())
    }

    /// The error to report, given whether an earlier attempt was left in doubt.
    #[must_use]
    pub fn report(self, in_doubt: bool) -> StoreError {
        let context = if in_doubt && !self.in_doubt {
            let context = self.context;
            format!("an attempt had no answer and may have been applied; after it: {context}")
        } else {
            self.context
        };
        let error = StoreError::new(self.kind, context).with_doubt(in_doubt || self.in_doubt);
        match self.cause {
            Some(cause) => error.with_source(cause),
            None => error,
        }
    }
}

/// The message of a server up to its first quotation, because the rest may be data.
#[must_use]
pub fn unquoted(message: &str) -> &str {
    let quotes = ['\'', '"', '{', '[', '`', '«', '„', '»', '“', '”', '‘', '’'];
    let end = message.find(quotes).unwrap_or(message.len());
    message.get(..end).unwrap_or_default().trim_end()
}

/// An error and its causes in one line, for errors of connections, which quote no data.
#[must_use]
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// One write of a call, from the first request to its verdict.
#[derive(Debug)]
pub struct PendingWrite<'w> {
    /// Its position among the writes of the call.
    pub index: usize,
    /// The write.
    pub write: &'w Write,
    /// A request had no response, so it may have been applied.
    pub in_doubt: bool,
}

impl<'w> PendingWrite<'w> {
    /// A write that was not sent yet.
    #[must_use]
    pub const fn new(index: usize, write: &'w Write) -> Self {
        Self { index, write, in_doubt: false }
    }

    /// The verdict of a write that ends with this failure.
    #[must_use]
    pub fn unknown<D>(&self, failure: RequestFailure<D>) -> Verdict {
        Verdict::Unknown(failure.report(self.in_doubt))
    }

    /// Whether `found` was written by this write: an earlier request was applied and its response
    /// was lost. The token proves it, because no other write has it.
    #[must_use]
    pub fn is_own_work(&self, found: &IdempotencyRecord) -> bool {
        let has_token = found.owner.is_some() || found.last_owner.is_some();
        self.in_doubt && has_token && self.write.leaves(found)
    }
}

/// The writes of a call that have no verdict yet, and the verdicts of the others.
///
/// `M` is a store's own [`PendingWrite`], with what the store keeps of it besides, and `D` the detail of its
/// [`RequestFailure`]s. A round sends each write once: [`next`](Self::next) gives out the writes, and each of them goes back
/// by [`settle`](Self::settle), [`again`](Self::again) or [`fail`](Self::fail).
pub struct Rounds<M, D = ()> {
    /// How many writes the call has.
    writes: usize,
    /// The verdict of each write, from when the first has one.
    verdicts: Vec<Option<Verdict>>,
    pending: Vec<M>,
    /// The last failure of each write that is sent again.
    failures: Vec<(usize, RequestFailure<D>)>,
}

impl<'w, M, D> Rounds<M, D>
where
    M: DerefMut<Target = PendingWrite<'w>>,
    D: Clone,
{
    /// All writes of a call. `member` makes one of them, or says the verdict of one that cannot be sent.
    pub fn begin<V: Into<Verdict>>(
        writes: &'w [Write],
        member: impl Fn(PendingWrite<'w>) -> Result<M, V>,
    ) -> Self {
        let pending = Vec::with_capacity(writes.len());
        let mut rounds = Self { writes: writes.len(), verdicts: vec![], pending, failures: vec![] };
        for (index, write) in writes.iter().enumerate() {
            match member(PendingWrite::new(index, write)) {
                Ok(member) => rounds.pending.push(member),
                Err(verdict) => rounds.decide(index, verdict.into()),
            }
        }
        rounds
    }

    /// The writes to send now, after a pause if one of them failed; with no `backoff` there is no pause. `None` if all
    /// have their verdicts. If no time is left for another request, each of them ends with its last failure, or else with
    /// `too_late`.
    pub async fn next(
        &mut self,
        budget: &Budget<'_>,
        backoff: Option<&mut Backoff>,
        too_late: impl FnOnce() -> RequestFailure<D>,
    ) -> Option<Vec<M>> {
        if self.pending.is_empty() {
            return None;
        }
        let has_time = match backoff {
            Some(backoff) if !self.failures.is_empty() => backoff.pause(budget).await,
            _ => true,
        };
        if !has_time || budget.left().is_zero() {
            self.give_up(&too_late());
            return None;
        }
        self.failures.clear();
        Some(std::mem::take(&mut self.pending))
    }

    /// The class of the first failure of this round, if one was.
    #[must_use]
    pub fn failed(&self) -> Option<StoreErrorKind> {
        self.failures.first().map(|(_, failure)| failure.kind())
    }

    /// The failures of this round after which writes are sent again.
    pub fn failures(&self) -> impl Iterator<Item = &RequestFailure<D>> {
        self.failures.iter().map(|(_, failure)| failure)
    }

    /// The write has its verdict.
    pub fn settle(&mut self, member: &M, verdict: Verdict) {
        self.decide(member.index, verdict);
    }

    /// A verdict is large, so there is room for all from the first one on, and for none while all wait.
    fn decide(&mut self, index: usize, verdict: Verdict) {
        if self.verdicts.is_empty() {
            self.verdicts = (0..self.writes).map(|_| None).collect();
        }
        if let Some(of_write) = self.verdicts.get_mut(index) {
            *of_write = Some(verdict);
        }
    }

    /// The write is sent again in the next round.
    pub fn again(&mut self, member: M) {
        self.pending.push(member);
    }

    /// The write is sent again if that may succeed, and otherwise ends with this failure.
    pub fn fail(&mut self, mut member: M, failure: RequestFailure<D>) {
        if failure.retry {
            member.in_doubt |= failure.in_doubt;
            self.failures.push((member.index, failure));
            self.pending.push(member);
        } else {
            let verdict = member.unknown(failure);
            self.settle(&member, verdict);
        }
    }

    /// One verdict for each write of the call, in their order, after [`next`](Self::next) has returned `None`.
    #[must_use]
    pub fn verdicts(self) -> Vec<Verdict> {
        // Room for four, with which a vector begins, has the allocator merge all that is free.
        let mut verdicts = Vec::with_capacity(self.writes);
        verdicts.extend(self.verdicts.into_iter().flatten());
        verdicts
    }

    /// No time is left: each pending write ends with its last failure.
    fn give_up(&mut self, otherwise: &RequestFailure<D>) {
        for member in std::mem::take(&mut self.pending) {
            let own = self.failures.iter().find(|(index, _)| *index == member.index);
            let failure = own.map_or(otherwise, |(_, failure)| failure).clone();
            let verdict = member.unknown(failure);
            self.settle(&member, verdict);
        }
    }
}

impl<M, D> fmt::Debug for Rounds<M, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pending, verdicts) = (self.pending.len(), self.verdicts.iter().flatten().count());
        f.debug_struct("Rounds").field("pending", &pending).field("verdicts", &verdicts).finish()
    }
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
