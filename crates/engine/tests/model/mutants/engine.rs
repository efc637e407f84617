//! Engines that leave out one of the rules that the protocol's functions leave to them.

use crate::protocol::{Protocol, Rule};

/// Defines a mutant that leaves out a rule and is the real protocol otherwise.
macro_rules! without {
    ($($(#[$doc:meta])* $mutant:ident: $rule:ident;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $mutant;

        impl Protocol for $mutant {
            const WITHOUT: Option<Rule> = Some(Rule::$rule);
        }
    )*};
}

without! {
    /// Acknowledges a delivery because someone else is at work on its key.
    AcknowledgesBusy: BusyGoesBack;
    /// Starts the handler however late it learns that the key is its own.
    StartsLate: StartsInTime;
    /// Lets the handler run on when its lease has run out.
    RunsOnWithoutLease: StopsWithItsLease;
    /// Takes a refused renewal for a renewal.
    RunsOnThoughRefused: HeedsRefusals;
    /// Takes a renewal that nobody answered for a renewal.
    CountsOnDoubt: CountsOnNoDoubt;
    /// Renews for as long as the handler runs.
    RenewsForEver: KeepsTheCeiling;
    /// Answers every record of the key from the first, whatever its payload.
    CoalescesByKeyAlone: SharesWithCopiesOnly;
    /// Acknowledges copies as soon as the first of them runs.
    CoalescesAtTheStart: SharesAtTheEnd;
    /// Goes on with the next record of the group after one that goes back.
    GoesOnAfterFailure: StopsTheGroup;
    /// Tells an ordered source to go on behind the record that goes back.
    ReportsBehindTheFailure: ReportsTheFirst;
    /// Releases the key however often it has failed.
    NeverFailsPermanently: FailsTheExhausted;
    /// Releases the key of a handler that it drops.
    ReleasesWhatItDrops: LeavesTheLease;
    /// Runs a key whose last owner disappeared beside others.
    RunsQuarantinedAmongOthers: QuarantinedRunAlone;
}
