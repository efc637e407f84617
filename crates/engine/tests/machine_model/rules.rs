//! In place of `engine::rules`: a switch for each rule of the machine.

use std::cell::Cell;

/// A rule that the machine keeps, unless a mutant leaves it out. The names are those of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    WakesAFollowerOnce,
    SettlesUntilTheReply,
    RenewsWithinTheLease,
    UndoKeepsHistory,
    LearnsOnlyAnsweredWrites,
    QuarantinesAfterLosses,
    QuarantineStopsClaims,
    QuarantineWaitsForTheOthers,
    LostOnceRunTogether,
    SuspicionSplits,
    SuspectsTakeTurns,
    RecordsThatItStopped,
    UnprotectedIsNotShared,
    StopsWithoutLease,
    StopsTheGroup,
    ClosesBehindAFailure,
    CopiesNeedEqualContent,
    UndoesUnstartedClaims,
    StoppedKeepsItsLease,
    WakesForTheEnd,
    WakesForLeases,
    WakesWaitingRecords,
    StepsWaitForTheStore,
    CommitsEffects,
    RepeatsTheCommit,
    RefusedEffectsFail,
    ReturnsWhatIsUncommitted,
    SendsAfterTheCompletion,
    SendsBeforeItAcknowledges,
    SendsInOrder,
    MarksOnlyWhatIsSent,
    SendsWhatIsLeft,
    AnswersFromWhatItMeets,
    ForgetsWhatHasEnded,
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
pub(crate) fn leave_out(rule: Option<Rule>) {
    LEFT_OUT.set(rule);
}
