//! Engines that leave out one of their own rules.

use crate::protocol::{Decisions, Rule};

/// Defines a mutant that is the real protocol without one rule.
macro_rules! without {
    ($($(#[$doc:meta])* $mutant:ident: $rule:ident;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $mutant;

        impl Decisions for $mutant {
            const WITHOUT: Option<Rule> = Some(Rule::$rule);
        }
    )*};
}

without! {
    /// Acknowledges a delivery because another worker holds its key.
    AcknowledgesBusy: ReturnsBusy;
    /// Starts the handler however late it learns that its claim was granted.
    StartsLate: StartsInTime;
    /// Lets the handler run on after its lease has expired.
    RunsAfterItsLease: StopsWithItsLease;
    /// Treats a refused renewal as granted.
    IgnoresRefusedRenewals: StopsWhenRefused;
    /// Treats an unanswered renewal as granted.
    TrustsUnansweredRenewals: TrustsOnlyAnsweredRenewals;
    /// Renews for as long as the handler runs.
    RenewsForever: KeepsTheCeiling;
    /// Answers every record of the key from the first, whatever its payload.
    CoalescesByKeyAlone: SharesWithCopiesOnly;
    /// Acknowledges copies as soon as the first of them runs.
    CoalescesAtTheStart: SharesAtTheEnd;
    /// Goes on with the next record of the group after one that is returned.
    ContinuesAfterFailure: StopsTheGroup;
    /// Tells an ordered source to go on after the returned record.
    ReportsPastTheFailure: ReportsTheFirst;
    /// Releases the key however often it has failed.
    NeverFailsPermanently: FailsTheExhausted;
    /// Releases the key of a handler that it drops.
    ReleasesWhatItDrops: LeavesTheLease;
    /// Runs a key whose last attempt was lost beside others.
    RunsQuarantinedAmongOthers: QuarantinedRunAlone;
}
