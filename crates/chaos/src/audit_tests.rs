use std::{collections::BTreeSet, time::Duration};

use lambda_idempotency_local::{Disposition, Invocation, InvocationResult, RecordLine, Usage};
use serde_json::json;

use super::*;
use crate::{
    FaultKind, Settings,
    ledger::{Line, Step},
    plan::Plan,
    schedule::Schedule,
};

/// A run with one order, and any number of deliveries.
struct World {
    schedule: Schedule,
    history: History,
    rows: Vec<Row>,
}

impl World {
    fn new() -> Self {
        let faults = BTreeSet::<FaultKind>::new();
        let settings = Settings { deliveries: 1, faults, ..Settings::new("orders") };
        let schedule = Schedule::new(&settings);
        assert_eq!(schedule.orders.len(), 1);
        let rows = vec![Row::new("place#aa", "COMPLETED")];
        Self { schedule, history: History::default(), rows }
    }

    fn line(&mut self, step: Step, message: &str, pid: u32, fence: u64) {
        let (order, message) = ("o-0".to_owned(), message.to_owned());
        let name = "placed".to_owned();
        self.history.line(&Line { step, order, message, pid, fence, name });
    }

    /// A handler starts and has its effect.
    fn run(&mut self, message: &str, pid: u32, fence: u64) {
        self.line(Step::Start, message, pid, fence);
        self.line(Step::Effect, message, pid, fence);
    }

    /// The invocation of the message ends, and has logged this outcome.
    fn end(&mut self, message: &str, pid: u32, end: End, logged: &str, disposition: Disposition) {
        self.end_with(message, pid, (end, false, false), ("aa", logged), disposition);
    }

    fn end_with(
        &mut self,
        message: &str,
        pid: u32,
        (end, stopped, overran): (End, bool, bool),
        (hash, logged): (&str, &str),
        disposition: Disposition,
    ) {
        let line = json!({
            "message": "record done", "record": message, "key_hash": hash, "outcome": logged,
        });
        let records: Vec<_> = RecordLine::parse(&line.to_string())
            .into_iter()
            .filter(|line| !line.outcome.as_str().is_empty())
            .collect();
        let invocation = Invocation {
            request_id: "r".to_owned(),
            pid,
            began: std::time::Instant::now(),
            result: InvocationResult::Response(json!(null)),
            duration: Duration::ZERO,
            records,
            dynamodb: Usage::default(),
            requests: Vec::new(),
        };
        self.history.ended(&invocation, end, stopped, overran);
        let doomed = self.schedule.orders[0].is_doomed();
        self.history.delivered(message, doomed, disposition);
    }

    fn offences(&self) -> Vec<Offence> {
        self.audit().violations.iter().map(|violation| violation.offence).collect()
    }

    fn audit(&self) -> Findings {
        audit(&Expected::from(&self.schedule), &self.history, &self.rows, 0)
    }
}

const NOTHING: &str = "";

#[test]
fn one_effect_and_a_replay_are_accepted() {
    let mut world = World::new();
    world.run("m-0-0", 1, 5);
    world.end("m-0-0", 1, End::Answered, "executed", Disposition::Done);
    world.end("m-0-1", 2, End::Answered, "replayed", Disposition::Done);
    let findings = world.audit();
    assert_eq!((findings.effects, findings.doubled.len()), (1, 0));
    assert_eq!(world.offences(), []);
}

#[test]
fn a_second_effect_without_a_cause_is_a_violation() {
    for logged in ["executed", "unprotected", "failed", "coalesced", "fenced", "superseded"] {
        let mut world = World::new();
        world.run("m-0-0", 1, 5);
        world.run("m-0-1", 2, 6);
        world.end("m-0-0", 1, End::Answered, "executed", Disposition::Done);
        world.end("m-0-1", 2, End::Answered, logged, Disposition::Done);
        assert_eq!(world.offences(), [Offence::Doubled], "{logged}");
    }
}

#[test]
fn a_second_effect_with_a_cause_is_counted() {
    let causes = [
        (End::Killed, false, false, NOTHING, Cause::Killed),
        (End::TimedOut, true, true, NOTHING, Cause::Stopped),
        (End::TimedOut, false, true, NOTHING, Cause::Overran),
        (End::Answered, true, false, "fenced", Cause::Stopped),
        (End::Answered, false, true, "superseded", Cause::Overran),
        (End::Answered, false, false, "timed_out", Cause::Cancelled),
        (End::Answered, false, false, "completion_lost", Cause::CompletionLost),
    ];
    for (end, stopped, overran, logged, cause) in causes {
        let mut world = World::new();
        world.run("m-0-0", 1, 5);
        world.end_with("m-0-0", 1, (end, stopped, overran), ("aa", logged), Disposition::Returned);
        world.run("m-0-0", 2, 6);
        world.end("m-0-0", 2, End::Answered, "executed", Disposition::Done);
        assert_eq!(world.audit().doubled.into_iter().collect::<Vec<_>>(), [(cause, 1)]);
        assert_eq!(world.offences(), [], "{cause}");
    }
}

/// A handler of a user may fail after its effect, and is tried again. The scripted one never does.
#[test]
fn a_users_handler_that_failed_after_its_effect_is_a_cause() {
    let mut world = World::new();
    world.run("m-0-0", 1, 5);
    world.end("m-0-0", 1, End::Answered, "failed", Disposition::Returned);
    world.run("m-0-0", 2, 6);
    world.end("m-0-0", 2, End::Answered, "executed", Disposition::Done);
    assert_eq!(world.offences(), [Offence::Doubled]);
    let expected = Expected { is_users: true, ..Expected::from(&world.schedule) };
    let findings = audit(&expected, &world.history, &world.rows, 0);
    assert!(findings.violations.is_empty(), "{findings:?}");
    assert_eq!(findings.doubled, [(Cause::HandlerFailed, 1)].into());
}

/// A death explains one additional effect, not two.
#[test]
fn a_cause_explains_only_its_own_effect() {
    let mut world = World::new();
    world.run("m-0-0", 1, 5);
    world.end("m-0-0", 1, End::Killed, NOTHING, Disposition::Returned);
    world.run("m-0-0", 2, 6);
    world.run("m-0-1", 3, 7);
    world.end("m-0-0", 2, End::Answered, "executed", Disposition::Done);
    world.end("m-0-1", 3, End::Answered, "executed", Disposition::Done);
    let findings = world.audit();
    assert_eq!(findings.doubled.get(&Cause::Killed), Some(&1));
    assert_eq!(world.offences(), [Offence::Doubled]);
}

/// A completed order must not start again, also if the second execution is killed.
#[test]
fn a_start_after_a_completion_is_a_violation() {
    let mut world = World::new();
    world.run("m-0-0", 1, 5);
    world.end("m-0-0", 1, End::Answered, "executed", Disposition::Done);
    world.run("m-0-1", 2, 6);
    world.end("m-0-1", 2, End::Killed, NOTHING, Disposition::Returned);
    assert_eq!(world.offences(), [Offence::RanAgain]);
}

#[test]
fn a_process_stopped_between_claim_and_start_may_start_late() {
    for (fence, offences) in [(4, &[][..]), (6, &[Offence::RanAgain])] {
        let mut world = World::new();
        world.run("m-0-0", 1, 5);
        world.end("m-0-0", 1, End::Answered, "executed", Disposition::Done);
        world.run("m-0-1", 2, fence);
        world.end_with(
            "m-0-1",
            2,
            (End::TimedOut, true, true),
            ("aa", NOTHING),
            Disposition::Returned,
        );
        assert_eq!(world.offences(), offences, "fence {fence}");
    }
}

/// A system that compares fences would refuse the late effect.
#[test]
fn an_effect_after_a_higher_fence_is_stale() {
    let mut world = World::new();
    world.line(Step::Start, "m-0-0", 1, 5);
    world.run("m-0-0", 2, 6);
    world.line(Step::Effect, "m-0-0", 1, 5);
    world.end_with("m-0-0", 1, (End::TimedOut, true, true), ("aa", NOTHING), Disposition::Returned);
    world.end("m-0-0", 2, End::Answered, "executed", Disposition::Done);
    let findings = world.audit();
    assert_eq!((findings.stale, findings.effects), (1, 2));
    assert_eq!(world.offences(), []);
}

#[test]
fn a_message_acknowledged_before_its_effect_is_lost() {
    let mut world = World::new();
    world.line(Step::Start, "m-0-0", 1, 5);
    world.end("m-0-0", 1, End::Answered, "executed", Disposition::Done);
    world.line(Step::Effect, "m-0-0", 1, 5);
    assert_eq!(world.offences(), [Offence::Lost]);
}

#[test]
fn only_orders_that_fail_permanently_may_be_dead_lettered() {
    let mut world = World::new();
    world.schedule.orders[0].plan = Plan::Doomed;
    world.rows = vec![Row::new("place#aa", "FAILED")];
    world.end("m-0-0", 1, End::Answered, "permanently_failed", Disposition::DeadLettered);
    assert_eq!(world.offences(), []);
    world.end("m-0-1", 1, End::Answered, "replayed", Disposition::Done);
    assert_eq!(world.offences(), [Offence::Lost]);

    let mut world = World::new();
    world.run("m-0-0", 1, 5);
    world.end("m-0-0", 1, End::Answered, "executed", Disposition::Done);
    world.end("m-0-1", 1, End::Answered, "busy", Disposition::DeadLettered);
    assert_eq!(world.offences(), [Offence::DeadLettered]);
}

#[test]
fn the_store_has_to_agree_with_the_history() {
    let rows = |status: &str| Row::new("place#aa", status);
    let other = Row::new("place#bb", "COMPLETED");
    let cases = [
        (vec![], Offence::Store),
        (vec![rows("FAILED")], Offence::Store),
        (vec![rows("INPROGRESS")], Offence::Stuck),
        (vec![rows("COMPLETED"), other], Offence::Store),
    ];
    for (rows, offence) in cases {
        let mut world = World::new();
        world.run("m-0-0", 1, 5);
        world.end("m-0-0", 1, End::Answered, "executed", Disposition::Done);
        world.rows = rows;
        assert_eq!(world.offences(), [offence], "{:?}", world.rows);
    }
}

#[test]
fn a_message_left_at_the_end_is_stuck() {
    let mut world = World::new();
    world.run("m-0-0", 1, 5);
    world.end("m-0-0", 1, End::Answered, "executed", Disposition::Done);
    let findings = audit(&Expected::from(&world.schedule), &world.history, &world.rows, 1);
    assert_eq!(findings.violations[0].offence, Offence::Stuck);
}

#[test]
fn two_keys_of_one_order_two_effects_with_one_fence_and_a_crash_are_violations() {
    let mut world = World::new();
    world.run("m-0-0", 1, 5);
    world.end("m-0-0", 1, End::Crashed, NOTHING, Disposition::Returned);
    world.run("m-0-0", 2, 5);
    world.end_with(
        "m-0-0",
        2,
        (End::Killed, false, false),
        ("bb", "executed"),
        Disposition::Returned,
    );
    world.end("m-0-0", 3, End::Answered, "replayed", Disposition::Done);
    let offences = [Offence::Crashed, Offence::Doubled, Offence::Fence, Offence::Store];
    assert_eq!(world.offences(), offences);
}

#[test]
fn a_violation_has_a_trace_of_its_executions() {
    let mut world = World::new();
    world.run("m-0-0", 1, 5);
    world.run("m-0-1", 2, 6);
    world.end("m-0-0", 1, End::Answered, "executed", Disposition::Done);
    world.end("m-0-1", 2, End::Answered, "executed", Disposition::Done);
    let findings = world.audit();
    let trace = &findings.violations[0].trace;
    assert_eq!(trace.len(), 2);
    assert!(trace[1].starts_with("m-0-1 in process 2: fence 6"), "{trace:?}");
}

#[test]
fn a_recorded_step_that_runs_again_is_a_violation_whatever_its_cause() {
    let mut world = World::new();
    world.schedule.mode = Mode::Steps;
    world.run("m-0-0", 1, 5);
    world.line(Step::Kept, "m-0-0", 1, 5);
    world.end("m-0-0", 1, End::Killed, NOTHING, Disposition::Returned);
    world.line(Step::Start, "m-0-0", 2, 6);
    world.line(Step::Kept, "m-0-0", 2, 6);
    world.end("m-0-0", 2, End::Answered, "executed", Disposition::Done);
    let findings = world.audit();
    assert_eq!((findings.answered_steps, findings.doubled.len()), (1, 0));
    assert_eq!(world.offences(), []);
    world.run("m-0-1", 3, 7);
    world.end("m-0-1", 3, End::Killed, NOTHING, Disposition::Returned);
    assert!(world.offences().contains(&Offence::Doubled));
}

#[test]
fn a_step_that_was_not_recorded_may_run_again_with_a_cause() {
    let causes = [
        (End::Killed, NOTHING, Cause::Killed),
        (End::Answered, "failed", Cause::StepNotKept),
        (End::Answered, "timed_out", Cause::Cancelled),
    ];
    for (end, logged, cause) in causes {
        let mut world = World::new();
        world.schedule.mode = Mode::Steps;
        world.run("m-0-0", 1, 5);
        world.end("m-0-0", 1, end, logged, Disposition::Returned);
        world.run("m-0-0", 2, 6);
        world.line(Step::Kept, "m-0-0", 2, 6);
        world.end("m-0-0", 2, End::Answered, "executed", Disposition::Done);
        assert_eq!(world.offences(), [], "{cause}");
        assert_eq!(world.audit().doubled, [(cause, 1)].into());
    }
    let mut world = World::new();
    world.run("m-0-0", 1, 5);
    world.end("m-0-0", 1, End::Answered, "failed", Disposition::Returned);
    world.run("m-0-0", 2, 6);
    world.end("m-0-0", 2, End::Answered, "executed", Disposition::Done);
    assert_eq!(world.offences(), [Offence::Doubled], "without a step");
}
