//! A switch for each rule of the machine that one line keeps.

use std::cell::Cell;

/// A rule that the machine keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A follower that the clock has woken is not woken again when its leader ends.
    WakesAFollowerOnce,
    /// Settlements are sent until the answer is due, also after the handlers' stop.
    SettlesUntilTheReply,
    /// A renewal's call ends with the lease that it is to extend.
    RenewsWithinTheLease,
    /// A claim in doubt is undone, and what was known before stays known.
    UndoKeepsHistory,
    /// A write without an answer changes nothing that this process knows of a key.
    LearnsOnlyAnsweredWrites,
    /// A record whose last attempts were lost is quarantined.
    QuarantinesAfterLosses,
    /// Nothing is claimed while a quarantine group has its turn.
    QuarantineStopsClaims,
    /// A quarantine group has its turn when nothing else runs.
    QuarantineWaitsForTheOthers,
    /// Records that were lost once and received since without an attempt run together.
    LostOnceRunTogether,
    /// The more its records are suspected, the smaller a quarantine group is.
    SuspicionSplits,
    /// Suspects go before the other records at every second receive.
    SuspectsTakeTurns,
    /// The idempotency record says that its handler was stopped by its own worker.
    RecordsThatItStopped,
    /// Copies are not answered by what ran without protection.
    UnprotectedIsNotShared,
    /// A handler is stopped when its lease has run out.
    StopsWithoutLease,
    /// Nothing of a group goes on after a record that is returned.
    StopsTheGroup,
    /// Where a failure ends the batch, nothing behind the record that failed is started.
    ClosesBehindAFailure,
    /// A copy has the fingerprint (or, without one, the payload) of the other record, not just its key.
    CopiesNeedEqualContent,
    /// A claim is undone when its record is not started.
    UndoesUnstartedClaims,
    /// A handler that is stopped leaves its lease standing, since its effect may be on its way.
    StoppedKeepsItsLease,
    /// The ends of the handlers' time and of the invocation's are instants to wake at.
    WakesForTheEnd,
    /// The end of a lease is an instant to wake at.
    WakesForLeases,
    /// A record that waits for a busy key is looked at again.
    WakesWaitingRecords,
    /// A handler goes on after a step only when the store has its result.
    StepsWaitForTheStore,
    /// What a call collected is part of its completion.
    CommitsEffects,
    /// A commit without an answer is sent again with its effects.
    RepeatsTheCommit,
    /// A refused effect is the failure of its handler.
    RefusedEffectsFail,
    /// A delivery is returned if it is not known whether its effects were committed.
    ReturnsWhatIsUncommitted,
    /// Messages are sent after the completion that stores them.
    SendsAfterTheCompletion,
    /// A completion's messages are sent before its delivery is acknowledged.
    SendsBeforeItAcknowledges,
    /// A message is sent when those before it are, where its destination keeps an order.
    SendsInOrder,
    /// Messages are recorded as sent only if all were.
    MarksOnlyWhatIsSent,
    /// A delivery that finds a completion with messages sends them.
    SendsWhatIsLeft,
    /// A completion without a claim is answered from the record that it meets.
    AnswersFromWhatItMeets,
    /// Nothing is kept of an attempt of a mutex that has ended.
    ForgetsWhatHasEnded,
    /// Copies are not answered by each other where keys only exclude each other.
    CopiesOfAMutexRun,
}

thread_local! {
    static LEFT_OUT: Cell<Option<Rule>> = const { Cell::new(None) };
}

/// Whether the machine keeps this rule.
pub(crate) fn keeps(rule: Rule) -> bool {
    LEFT_OUT.get() != Some(rule)
}

/// Leaves a rule out on this thread. The checker starts its own threads, so each step calls this first.
pub fn leave_out(rule: Option<Rule>) {
    LEFT_OUT.set(rule);
}
