//! Diverting: records that will never be processed are put aside, so that no record waits behind them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency_core::{
    clock::Clock as _,
    failure::Failure,
    outcome::{DivertReason, Outcome},
    policy::{Lease, OnConflict, OnOutage, OnTimeout},
    record::Status,
    store::StoreErrorKind,
};
use lambda_idempotency_engine::observe::{Observer, Report};
use lambda_idempotency_testkit::{crashing::drop_after, faults::Fault};

use crate::support::{Rec, START, World, aside, assert_took, failing, key, labels, ok, rec, slow};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// A record whose handler fails permanently.
pub(crate) fn hopeless(label: &'static str) -> Rec {
    rec(label, |_, _| async { Err(Failure::permanent("never again")) })
}

/// Gives the record a sink that cannot be reached.
pub(crate) fn without_sink(record: Rec) -> Rec {
    record.sink(|_, _| async { Err(Failure::permanent("the sink is out of reach")) })
}

/// The reported reasons for diverting, and the handlers' errors.
#[derive(Clone, Default)]
struct Reasons(Arc<Mutex<Vec<Reason>>>);

type Reason = (Option<DivertReason>, Option<String>);

impl Observer for Reasons {
    fn reported(&self, report: &Report<'_>) {
        let said = report.failure.map(|failure| failure.error().to_string());
        self.0.lock().unwrap().push((report.aside.cloned(), said));
    }
}

fn permanent(error: &str, failed_attempts: u32) -> DivertReason {
    DivertReason::PermanentFailure { error_type: Some(error.into()), failed_attempts }
}

#[tokio::test]
async fn a_permanent_failure_is_diverted_and_its_group_continues_in_the_same_invocation() {
    let world = World::new();
    let batch = || vec![hopeless("a").group("g").aside(), ok("b").group("g")];
    assert_eq!(world.deliver(batch()).await, ["diverted", "executed"]);
    assert_eq!(world.deliver(batch()).await, ["replayed", "replayed"], "it is diverted once");
    world.ledger.assert_each_once(["aside: a", "b"]);
    assert_eq!(world.stored("a").await.unwrap().status, Status::PermanentlyFailed);
    assert_eq!(world.stored(&aside("a")).await.unwrap().status, Status::Completed);
}

#[tokio::test]
async fn the_sink_and_the_outcome_get_the_reason() {
    let mut world = World::new();
    world.policy.max_failed_attempts = Some(2);
    let panics = rec("b", |_, _| async { panic!("it panics") });
    let first = world.deliver(vec![failing("a").aside(), panics.aside()]).await;
    assert_eq!(first, ["failed", "failed"], "they may still succeed");
    let panics = rec("b", |_, _| async { panic!("it panics") });
    let batch = vec![failing("a").aside(), panics.aside(), hopeless("c").aside()];
    let outcomes = world.clock.drive(world.invoke(batch)).await;
    let expected = [permanent("a message", 2), permanent("a panic", 2), permanent("a message", 1)];
    for (outcome, expected) in outcomes.iter().zip(expected) {
        let Outcome::Diverted(reason) = outcome else { panic!("{outcome:?}") };
        assert_eq!(*reason, expected);
    }
    world.ledger.assert_each_once(["aside: a", "aside: b", "aside: c"]);
}

#[tokio::test]
async fn a_permanent_failure_found_in_the_store_is_diverted() {
    let world = World::new();
    assert_eq!(world.deliver(vec![hopeless("a")]).await, ["failed"], "this delivery has no sink");
    let batch = vec![ok("a").group("g").aside(), ok("b").group("g")];
    let outcomes = world.clock.drive(world.invoke(batch)).await;
    assert_eq!(labels(&outcomes), ["diverted", "executed"]);
    assert!(matches!(&outcomes[0], Outcome::Diverted(why) if *why == permanent("a message", 1)));
    world.ledger.assert_each_once(["aside: a", "b"]);
}

#[tokio::test]
async fn a_mismatch_is_diverted() {
    let world = World::new();
    assert_eq!(world.deliver(vec![ok("a").fingerprint("1")]).await, ["executed"]);
    let batch = || vec![ok("a").fingerprint("2").group("g").aside(), ok("b").group("g")];
    let outcomes = world.clock.drive(world.invoke(batch())).await;
    assert_eq!(labels(&outcomes), ["diverted", "executed"]);
    assert!(matches!(&outcomes[0], Outcome::Diverted(DivertReason::Mismatch)));
    assert_eq!(world.deliver(batch()).await, ["replayed", "replayed"]);
    world.ledger.assert_each_once(["a", "aside: a", "b"]);
}

#[tokio::test]
async fn a_record_is_returned_and_its_group_waits_until_the_sink_accepts_it() {
    let mut world = World::new();
    // The policy does not make a failure of the sink permanent.
    world.policy.max_failed_attempts = Some(1);
    for _ in 0..3 {
        let batch = vec![without_sink(failing("a")).group("g"), ok("b").group("g")];
        assert_eq!(world.deliver(batch).await, ["failed", "returned"]);
    }
    let batch = vec![ok("a").group("g").aside(), ok("b").group("g")];
    assert_eq!(world.deliver(batch).await, ["diverted", "executed"]);
}

#[tokio::test]
async fn a_sink_stopped_at_the_deadline_is_called_again() {
    let mut world = World::new();
    world.policy.on_timeout = OnTimeout::FailPermanently;
    let stuck = hopeless("a").sink(|_, _| std::future::pending());
    assert_eq!(world.deliver(vec![stuck]).await, ["timed_out"]);
    world.clock.advance(5 * SECOND);
    assert_eq!(world.deliver(vec![ok("a").aside()]).await, ["diverted"]);
    world.ledger.assert_once("aside: a");
}

#[tokio::test]
async fn a_permanent_timeout_is_diverted_at_the_next_delivery() {
    let mut world = World::new();
    world.policy.on_timeout = OnTimeout::FailPermanently;
    let batch = vec![slow("a", 60 * SECOND).group("g").aside(), ok("b").group("g")];
    assert_eq!(world.deliver(batch).await, ["timed_out", "returned"], "no time is left");
    let outcomes = world.deliver(vec![ok("a").group("g").aside(), ok("b").group("g")]).await;
    assert_eq!(outcomes, ["diverted", "executed"]);
    world.ledger.assert_each_once(["aside: a", "b"]);
}

/// The handler used the time that the sink would need.
#[tokio::test]
async fn without_time_for_the_sink_the_next_delivery_diverts_the_record() {
    let world = World::new();
    let late = rec("a", |world: World, _| async move {
        world.clock.advance(29_100 * SECOND / 1000);
        Err(Failure::permanent("too late"))
    });
    let reasons = Reasons::default();
    let engine = world.engine().with_observer(reasons.clone());
    let outcomes = world.clock.drive(world.invoke_by(&engine, vec![late.aside()])).await;
    assert_eq!(labels(&outcomes), ["returned"]);
    let reason = (Some(permanent("a message", 1)), Some("too late".to_owned()));
    assert_eq!(*reasons.0.lock().unwrap(), [reason], "the failure is not hidden");
    world.ledger.assert_never("aside: a");
    assert_eq!(world.deliver(vec![ok("a").aside()]).await, ["diverted"]);
}

#[tokio::test]
async fn a_diverted_record_whose_completion_is_lost_is_acknowledged() {
    let world = World::new();
    let refused = Fault::refuse(StoreErrorKind::Denied).that_writes(Status::Completed);
    world.store.inject(refused.always());
    let batch = vec![hopeless("a").group("g").aside(), hopeless("b").group("g").aside()];
    let outcomes = world.clock.drive(world.invoke(batch)).await;
    assert_eq!(labels(&outcomes), ["diverted", "diverted"], "the sink has them");
    assert!(outcomes.iter().all(Outcome::is_acknowledged));
}

#[tokio::test]
async fn invocations_of_one_process_divert_a_record_once() {
    let mut world = World::new();
    world.policy.on_conflict = OnConflict::Wait { up_to: 9 * SECOND };
    let engine = world.engine();
    let slow = rec("a", |world: World, _| async move {
        world.clock.sleep(SECOND).await;
        Err(Failure::permanent("never again"))
    });
    let both = futures_util::future::join(
        world.invoke_by(&engine, vec![slow.aside()]),
        world.invoke_by(&engine, vec![ok("a").aside()]),
    );
    let (one, two) = world.clock.drive(both).await;
    assert_eq!((labels(&one), labels(&two)), (vec!["diverted"], vec!["replayed"]));
    world.ledger.assert_each_once(["aside: a"]);
}

#[tokio::test]
async fn an_unprotected_attempt_that_fails_permanently_is_diverted() {
    let world = World::new();
    let batch = || vec![hopeless("a").unprotected().group("g").aside(), ok("b").group("g")];
    assert_eq!(world.deliver(batch()).await, ["diverted", "executed"]);
    // A redelivery looks like a record that was sent again, and neither may be lost.
    assert_eq!(world.deliver(batch()).await, ["diverted", "replayed"]);
    assert_eq!(world.ledger.executed("aside: a"), 2);
    world.ledger.assert_once("b");
    let retried = failing("c").unprotected().aside();
    assert_eq!(world.deliver(vec![retried]).await, ["failed"], "it may still succeed");
}

#[tokio::test]
async fn a_permanent_failure_that_is_not_recorded_is_not_diverted() {
    let world = World::new();
    world.store.inject(
        Fault::refuse(StoreErrorKind::Denied).that_writes(Status::PermanentlyFailed).always(),
    );
    assert_eq!(world.deliver(vec![hopeless("a").aside()]).await, ["failed"]);
    world.ledger.assert_never("aside: a");
}

/// Another worker took the key over meanwhile, and it may succeed.
#[tokio::test]
async fn a_failure_whose_lease_was_lost_is_not_diverted() {
    let world = World::new();
    let overtaken = rec("a", |world: World, _| async move {
        let mut record = world.stored("a").await.unwrap();
        record.owner = Some(lambda_idempotency_core::record::Owner::from_bits(7));
        world.store.inner().insert(key("a"), record);
        Err(Failure::permanent("never again"))
    });
    let outcomes = world.clock.drive(world.invoke(vec![overtaken.aside()])).await;
    assert!(matches!(&outcomes[0], Outcome::Failed { permanent: false, .. }), "{outcomes:?}");
    world.ledger.assert_never("aside: a");
}

#[tokio::test]
async fn after_a_worker_dies_in_the_sink_the_next_one_diverts() {
    let mut world = World::yielding();
    let mut polls = 0;
    loop {
        polls += 1;
        let stuck = hopeless("a").sink(|_, _| std::future::pending());
        assert!(drop_after(polls, world.invoke(vec![stuck])).await.is_none());
        let aside = world.stored(&aside("a")).await;
        if aside.is_some_and(|record| record.status == Status::InProgress) {
            break;
        }
        world = World { policy: world.policy, ..World::yielding() };
    }
    assert_eq!(world.deliver(vec![ok("a").aside()]).await, ["busy"]);
    world.clock.advance(40 * SECOND);
    assert_eq!(world.deliver(vec![ok("a").aside()]).await, ["diverted"]);
    world.ledger.assert_each_once(["aside: a"]);
}

#[tokio::test]
async fn an_outage_returns_a_record_to_divert_unless_the_policy_runs_unprotected() {
    let world = World::new();
    assert_eq!(world.deliver(vec![hopeless("a")]).await, ["failed"]);
    let outage = Fault::refuse(StoreErrorKind::Unavailable).for_key(&key(&aside("a")));
    world.store.inject(outage.always());
    assert_eq!(world.deliver(vec![ok("a").aside()]).await, ["unavailable"]);
    world.ledger.assert_never("aside: a");
    let mut world = world;
    world.policy.on_outage = OnOutage::RunUnprotected;
    assert_eq!(world.deliver(vec![ok("a").aside()]).await, ["diverted"]);
    world.ledger.assert_once("aside: a");
}

/// The record runs alone and without a claim, so other records must not wait for its settlement.
#[tokio::test]
async fn a_quarantined_record_that_fails_in_an_outage_is_diverted() {
    let mut world = World::new();
    let forever = rec("a", |_, _| std::future::pending::<Result<(), Failure>>());
    world.dies(vec![forever]).await;
    world.clock.advance(40 * SECOND);
    world.policy.on_outage = OnOutage::RunUnprotected;
    let claims = Fault::refuse(StoreErrorKind::Unavailable).that_writes(Status::InProgress);
    world.store.inject(claims.always());
    let batch = vec![hopeless("a").group("g").aside(), ok("b").group("g")];
    assert_eq!(world.deliver(batch).await, ["diverted", "unprotected"]);
    assert_took(&world, START, 40 * SECOND);
}

/// The record runs alone because it may have killed its worker; records that wait for it run after it.
#[tokio::test]
async fn a_quarantined_record_that_fails_permanently_is_diverted() {
    let world = World::new();
    let forever = rec("a", |_, _| std::future::pending::<Result<(), Failure>>());
    world.dies(vec![forever]).await;
    world.clock.advance(40 * SECOND);
    let batch = vec![hopeless("a").group("g").aside(), ok("b").group("g"), ok("c").group("h")];
    assert_eq!(world.deliver(batch).await, ["diverted", "executed", "executed"]);
    world.ledger.assert_each_once(["aside: a", "b", "c"]);
}

/// Late answers to renewals of the handler's lease are not taken for answers to those of the sink's.
#[tokio::test]
async fn a_sink_has_its_own_lease_that_is_renewed() {
    let mut world = World::new();
    world.policy.lease = Lease::Renewed { length: 3 * SECOND };
    let renewals = Fault::delay_answer(world.clock.clone(), 2 * SECOND / 5);
    world.store.inject(renewals.for_key(&key("a")).that_writes(Status::InProgress).nth(2).always());
    let slow = rec("a", |world: World, _| async move {
        // A renewal is due each second.
        world.clock.sleep(4 * SECOND + SECOND / 5).await;
        Err(Failure::permanent("never again"))
    });
    let slow = slow.sink(|world, _| async move {
        world.clock.sleep(7 * SECOND).await;
        world.ledger.record("aside: a", "");
        Ok(())
    });
    assert_eq!(
        world.deliver(vec![slow.group("g"), ok("b").group("g")]).await,
        ["diverted", "executed"]
    );
    world.ledger.assert_each_once(["aside: a", "b"]);
}
