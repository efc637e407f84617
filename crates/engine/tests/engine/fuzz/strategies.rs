//! Random scenarios.

use lambda_idempotency_core::{
    policy::{Lease, Mode, OnConflict, OnOutage, OnTimeout, Policy},
    store::StoreErrorKind,
};
use lambda_idempotency_testkit::faults::GuardKind;
use proptest::prelude::*;
use std::time::Duration;

use super::scenario::{
    End, Invocation, Kind, Line, Plan, Scenario, Step, StoreFault, Trouble, WireTrouble,
};

const MS: Duration = Duration::from_millis(1);

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Yield),
        6 => (1u64..3000).prop_map(Step::Sleep),
        2 => (3000u64..40_000).prop_map(Step::Sleep),
        2 => (1u64..9000).prop_map(Step::Block),
        1 => Just(Step::Panic),
        1 => Just(Step::Forever),
        1 => Just(Step::Kill),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    let end = prop_oneof![
        8 => Just(End::Ok),
        2 => Just(End::Transient),
        2 => Just(End::Permanent),
        1 => Just(End::Declined),
    ];
    let kind = prop_oneof![
        16 => Just(Kind::Keyed),
        1 => Just(Kind::Unprotected),
        2 => Just(Kind::Reject),
    ];
    let steps = || prop::collection::vec(step(), 0..3);
    (
        0u8..5,
        0u8..2,
        prop::option::of(0u8..2),
        0u32..3,
        kind,
        steps(),
        end,
        prop::bool::weighted(0.3),
    )
        .prop_map(|(key, payload, group, receives, kind, steps, end, lets_pass)| Plan {
            key,
            payload,
            group,
            receives,
            kind,
            steps,
            end,
            lets_pass,
        })
}

fn planned() -> impl Strategy<Value = Invocation> {
    (
        prop::collection::vec(plan(), 1..9),
        0usize..2,
        prop::option::weighted(0.2, 0usize..40),
        prop_oneof![3 => Just(0usize), 1 => 1usize..20],
    )
        .prop_map(|(records, process, dies_after, spurious)| Invocation {
            records,
            process,
            dies_after,
            spurious,
        })
}

fn fault() -> impl Strategy<Value = StoreFault> {
    let kind = prop_oneof![
        Just(StoreErrorKind::Unavailable),
        Just(StoreErrorKind::Throttled),
        Just(StoreErrorKind::Denied),
        Just(StoreErrorKind::TooLarge),
        Just(StoreErrorKind::Corrupt),
        Just(StoreErrorKind::Contended),
        Just(StoreErrorKind::ResultUnavailable),
    ];
    let what = prop_oneof![
        3 => kind.prop_map(Trouble::Refuse),
        3 => Just(Trouble::Lose),
        2 => (1u64..8000).prop_map(Trouble::Delay),
        2 => (1u64..8000).prop_map(Trouble::DelayAnswer),
        1 => (0usize..6).prop_map(Trouble::Duplicate),
    ];
    let guard = prop::option::of(prop_oneof![
        Just(GuardKind::Absent),
        Just(GuardKind::Unchanged),
        Just(GuardKind::OwnedBy)
    ]);
    (what, 1usize..8, 1usize..5, prop::option::of(0u8..5), guard, prop::bool::weighted(0.15))
        .prop_map(|(what, nth, times, key, guard, reads)| StoreFault {
            what,
            nth,
            times,
            key,
            guard,
            reads,
        })
}

fn policy() -> impl Strategy<Value = Policy> {
    let lease = prop_oneof![
        2 => Just(Lease::Invocation),
        1 => (1000u64..12_000).prop_map(|ms| Lease::Renewed { length: MS * u32::try_from(ms).unwrap() }),
    ];
    let conflict = prop_oneof![
        2 => Just(OnConflict::Return),
        1 => (0u32..20_000).prop_map(|ms| OnConflict::Wait { up_to: MS * ms }),
        1 => Just(OnConflict::Wait { up_to: Duration::MAX }),
    ];
    (
        lease,
        conflict,
        prop_oneof![Just(1usize), Just(2), Just(16), Just(usize::MAX)],
        (prop::option::of(1u32..4), prop::option::weighted(0.2, 1u32..4)),
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.2),
        prop_oneof![Just(20u64), Just(60), Just(900)],
    )
        .prop_map(
            |(lease, conflict, concurrency, (most, lost), times_out, outage, fallback)| {
                let mut policy = Policy::default();
                policy.lease = lease;
                policy.on_conflict = conflict;
                policy.concurrency = concurrency;
                policy.max_failed_attempts = most;
                policy.max_lost_attempts = lost;
                policy.fallback_timeout = Duration::from_secs(fallback);
                if times_out {
                    policy.on_timeout = OnTimeout::FailPermanently;
                }
                if outage {
                    policy.on_outage = OnOutage::RunUnprotected;
                }
                policy
            },
        )
}

fn publishes() -> impl Strategy<Value = Vec<Vec<Line>>> {
    let line = prop_oneof![Just(Line::Queue), Just(Line::Fifo)];
    let some = prop::collection::vec(prop::collection::vec(line, 0..4), 1..4);
    prop_oneof![2 => Just(vec![]), 1 => some]
}

fn wire() -> impl Strategy<Value = Vec<Option<WireTrouble>>> {
    let trouble = prop_oneof![
        1 => Just(WireTrouble::Panic),
        1 => Just(WireTrouble::PanicLater),
        1 => Just(WireTrouble::Hang),
        2 => (1u64..8000).prop_map(WireTrouble::Slow),
        1 => Just(WireTrouble::Refuse),
        2 => (0usize..8).prop_map(WireTrouble::RefuseOne),
        2 => Just(WireTrouble::Lose),
        1 => Just(WireTrouble::Short),
    ];
    let some = prop::collection::vec(prop::option::weighted(0.6, trouble), 1..8);
    prop_oneof![1 => Just(vec![]), 1 => some]
}

/// Completes afterwards, or commits effects, with a claim or without one.
fn in_a_mode(mut policy: Policy, mode: u8) -> Policy {
    if mode > 0 {
        policy.mode = Mode::Transactional;
        policy.on_outage = OnOutage::Return;
    }
    if mode > 1 {
        policy.mode = Mode::Optimistic;
        policy.lease = Lease::Invocation;
        policy.max_failed_attempts = None;
        policy.max_lost_attempts = None;
    }
    policy
}

/// What handlers publish, how their mode is, and what goes wrong when messages are sent.
fn posted(scenario: impl Strategy<Value = Scenario>) -> impl Strategy<Value = Scenario> {
    let mode = prop_oneof![3 => Just(0u8), 1 => Just(1u8), 1 => Just(2u8)];
    (scenario, publishes(), wire(), mode).prop_map(|(scenario, publishes, wire, mode)| Scenario {
        policy: in_a_mode(scenario.policy, mode),
        publishes,
        wire,
        ..scenario
    })
}

pub(super) fn scenario() -> impl Strategy<Value = Scenario> {
    posted(usual())
}

pub(super) fn killing() -> impl Strategy<Value = Scenario> {
    posted(killers())
}

pub(super) fn streaming() -> impl Strategy<Value = Scenario> {
    posted(streams())
}

fn usual() -> impl Strategy<Value = Scenario> {
    let waves = prop::collection::vec((0u64..60_000, prop::collection::vec(planned(), 1..3)), 1..4);
    let timeout = prop_oneof![
        1 => Just(None),
        2 => (1000u64..4000).prop_map(Some),
        4 => (4000u64..60_000).prop_map(Some),
    ];
    (
        policy(),
        prop::bool::weighted(0.2),
        counts(),
        timeout,
        any::<bool>(),
        any::<bool>(),
        prop_oneof![1 => Just(vec![]), 2 => prop::collection::vec(fault(), 1..4)],
        waves,
    )
        .prop_map(
            |(policy, is_whole, counts, timeout, fingerprints, cache, faults, mut waves)| {
                let invocations = waves.iter_mut().flat_map(|(_, wave)| wave);
                let plans = invocations.flat_map(|one: &mut Invocation| &mut one.records);
                // The whole batch is one order group.
                plans.filter(|_| is_whole).for_each(|plan| plan.group = Some(0));
                Scenario {
                    policy,
                    publishes: vec![],
                    wire: vec![],
                    counts,
                    timeout,
                    fingerprints,
                    cache,
                    faults,
                    waves,
                    all_start: false,
                }
            },
        )
}

fn counts() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![3 => Just(None), 2 => Just(Some(u32::MAX)), 1 => (1u32..5).prop_map(Some)]
}

/// A queue delivers the same records again and again, to three invocations of one process. Some kill it. Some
/// come again before the leases of the attempt before have ended.
fn killers() -> impl Strategy<Value = Scenario> {
    let record =
        (0usize..3, prop::bool::weighted(0.25), 0u64..2000, prop::option::weighted(0.2, 0u8..2));
    let gap = prop_oneof![2 => 30_000u64..60_000, 1 => 0u64..30_000];
    let rounds = prop::collection::vec((gap, any::<bool>()), 3..7);
    let usual = prop_oneof![Just(1usize), Just(2), Just(16)].prop_map(|concurrency| {
        let mut policy = Policy::default();
        policy.concurrency = concurrency;
        policy
    });
    let policy = prop_oneof![1 => usual, 1 => policy()];
    let faults = prop_oneof![2 => Just(vec![]), 1 => prop::collection::vec(fault(), 1..4)];
    (prop::collection::vec(record, 2..9), rounds, policy, counts(), faults).prop_map(
        |(records, rounds, policy, counts, faults)| {
            let invocation = |number: usize| Invocation {
                records: (0u8..)
                    .zip(&records)
                    .filter(|(_, (invocation, ..))| *invocation == number)
                    .map(|(key, (_, kills, takes, group))| {
                        let last = if *kills { Step::Kill } else { Step::Yield };
                        let mut plan = Plan::quick(key, 0);
                        plan.steps = vec![Step::Sleep(*takes), last];
                        plan.group = *group;
                        plan
                    })
                    .collect(),
                process: 0,
                dies_after: None,
                spurious: 0,
            };
            let shifted = |number: usize, shift: bool| (number + usize::from(shift)) % 3;
            let wave = |shift| {
                let all = (0..3).map(|number| invocation(shifted(number, shift)));
                all.filter(|invocation| !invocation.records.is_empty()).collect()
            };
            Scenario {
                policy,
                publishes: vec![],
                wire: vec![],
                counts,
                timeout: Some(20_000),
                fingerprints: false,
                cache: true,
                faults,
                waves: rounds.into_iter().map(|(gap, shift)| (gap, wave(shift))).collect(),
                all_start: false,
            }
        },
    )
}

/// What the handler of a record does at one of its deliveries.
fn behaviour() -> impl Strategy<Value = (Step, End)> {
    prop_oneof![
        6 => (0u64..2000).prop_map(|ms| (Step::Sleep(ms), End::Ok)),
        2 => Just((Step::Yield, End::Transient)),
        1 => Just((Step::Yield, End::Permanent)),
        1 => Just((Step::Yield, End::Declined)),
        1 => Just((Step::Forever, End::Ok)),
        2 => Just((Step::Kill, End::Ok)),
    ]
}

/// A stream delivers the same records again and again, in any order or as one order group, and does not count its
/// deliveries.
fn streams() -> impl Strategy<Value = Scenario> {
    let rounds = (1usize..7).prop_flat_map(|records| {
        let round = (0u64..60_000, prop::collection::vec(behaviour(), records));
        prop::collection::vec(round, 1..6)
    });
    let faults = prop_oneof![1 => Just(vec![]), 1 => prop::collection::vec(fault(), 1..4)];
    (policy(), any::<bool>(), any::<bool>(), rounds, faults).prop_map(
        |(policy, is_ordered, lets_pass, rounds, faults)| {
            let plan = |(key, (step, end)): (u8, (Step, End))| {
                let group = is_ordered.then_some(0);
                Plan { steps: vec![step], end, group, lets_pass, ..Plan::quick(key, 0) }
            };
            let wave = |behaviours: Vec<_>| {
                let records = (0u8..).zip(behaviours).map(plan).collect();
                vec![Invocation { records, process: 0, dies_after: None, spurious: 0 }]
            };
            Scenario {
                policy,
                publishes: vec![],
                wire: vec![],
                counts: None,
                timeout: Some(20_000),
                fingerprints: false,
                cache: true,
                faults,
                waves: rounds.into_iter().map(|(gap, round)| (gap, wave(round))).collect(),
                all_start: false,
            }
        },
    )
}

/// A queue delivers the same records together until those that do not kill are done. Some have come before others. There
/// is time for many handlers in an invocation, or for one round of them.
pub(super) fn starving() -> impl Strategy<Value = Scenario> {
    let record = (prop::bool::weighted(0.25), prop::option::weighted(0.5, 0u8..3), 0usize..5);
    let takes = prop_oneof![Just(100u64), Just(16_000)];
    let concurrency = prop_oneof![Just(1usize), Just(2), Just(16)];
    (prop::collection::vec(record, 2..11), takes, concurrency).prop_map(
        |(mut records, takes, concurrency)| {
            records.sort_by_key(|(_, _, joins)| *joins);
            let plan = |(key, (kills, group, _)): (u8, &(bool, Option<u8>, usize))| {
                let steps = match kills {
                    true => vec![Step::Sleep(takes / 2), Step::Kill],
                    false => vec![Step::Sleep(takes)],
                };
                Plan { steps, group: *group, lets_pass: false, ..Plan::quick(key, 0) }
            };
            let wave = |round: usize| {
                let all = (0u8..).zip(&records).filter(|(_, (_, _, joins))| *joins <= round);
                let records: Vec<Plan> = all.map(plan).collect();
                let wave = Invocation { records, process: 0, dies_after: None, spurious: 0 };
                (60_000, if wave.records.is_empty() { vec![] } else { vec![wave] })
            };
            let mut policy = Policy::default();
            policy.concurrency = concurrency;
            Scenario {
                policy,
                publishes: vec![],
                wire: vec![],
                counts: Some(u32::MAX),
                timeout: Some(30_000),
                fingerprints: false,
                cache: true,
                faults: vec![],
                waves: (0..80).map(wave).collect(),
                all_start: true,
            }
        },
    )
}
