use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use lambda_idempotency_local::{Invocation, InvocationResult, RecordLine, Usage};
use serde_json::{Value, json};

use super::*;
use crate::{FaultKind, Settings, schedule::Schedule, sending::Arrival};
use Answer::{Refused, Taken, Unanswered};

/// A run whose first order publishes messages. It is grouped.
struct World {
    schedule: Schedule,
    history: History,
    began: Instant,
}

/// An invocation that sends messages of the order: the part, the id, and the answer of the queue.
struct Sent<'a> {
    pid: u32,
    /// When it begins and ends, in milliseconds.
    time: (u64, u64),
    end: End,
    logged: &'a str,
    problem: Option<&'a str>,
    parts: &'a [(usize, &'a str, Answer)],
}

impl World {
    fn new(messages: usize) -> Self {
        let faults = BTreeSet::<FaultKind>::new();
        let settings = Settings { deliveries: 1, faults, ..Settings::new("orders") };
        let mut schedule = Schedule::new(&settings);
        schedule.orders[0].sending.messages = messages;
        Self { schedule, history: History::default(), began: Instant::now() }
    }

    fn arrive(&mut self, pid: u32, ms: u64, parts: &[(usize, &str, Answer)], placed: bool) {
        for &(part, id, answer) in parts {
            let (id, placed) = (id.to_owned(), Some(placed));
            let at = self.began + Duration::from_millis(ms);
            self.history.arrived(Arrival { order: 0, part, id, pid, answer, placed, at });
        }
    }

    fn send(&mut self, sent: Sent<'_>) {
        let Sent { pid, time, end, logged, problem, parts } = sent;
        self.arrive(pid, time.0 + 1, parts, true);
        let line = json!({
            "message": "record settled", "record": "m-0-0", "outcome": logged, "problem": problem,
        });
        let invocation = Invocation {
            request_id: "r".to_owned(),
            pid,
            began: self.began + Duration::from_millis(time.0),
            result: InvocationResult::Response(Value::Null),
            duration: Duration::from_millis(time.1 - time.0),
            records: RecordLine::parse(&line.to_string()).into_iter().collect(),
            dynamodb: Usage::default(),
            requests: Vec::new(),
        };
        self.history.ended(&invocation, end, false, false);
    }

    fn audit(&self) -> Findings {
        let mut findings = Findings::default();
        audit(&mut findings, &Expected::from(&self.schedule), &self.history);
        findings
    }

    fn offences(&self) -> Vec<Offence> {
        self.audit().violations.iter().map(|violation| violation.offence).collect()
    }
}

fn first<'a>(parts: &'a [(usize, &'a str, Answer)]) -> Sent<'a> {
    Sent { pid: 1, time: (0, 10), end: End::Answered, logged: "executed", problem: None, parts }
}

fn second<'a>(parts: &'a [(usize, &'a str, Answer)]) -> Sent<'a> {
    Sent { pid: 2, time: (20, 30), end: End::Answered, logged: "replayed", problem: None, parts }
}

#[test]
fn each_message_that_arrives_once_is_right() {
    let mut world = World::new(2);
    world.send(first(&[(1, "a", Refused), (1, "a", Taken), (2, "b", Taken)]));
    assert_eq!(world.offences(), []);
    let findings = world.audit();
    assert_eq!((findings.sent, findings.copies.len()), (2, 0));
}

#[test]
fn a_message_that_never_arrives_is_a_violation() {
    let mut world = World::new(2);
    world.send(first(&[(1, "a", Taken), (2, "b", Answer::Held)]));
    assert_eq!(world.offences(), [Offence::Unsent]);
    world.send(second(&[(2, "b", Taken)]));
    assert_eq!(world.offences(), []);
}

#[test]
fn a_message_of_an_order_that_is_not_placed_is_a_violation() {
    let mut early = World::new(1);
    early.arrive(1, 1, &[(1, "a", Taken)], false);
    assert_eq!(early.offences(), [Offence::SentEarly]);
    let mut failed = World::new(0);
    failed.send(first(&[(1, "a", Taken)]));
    assert_eq!(failed.offences(), [Offence::SentEarly]);
}

#[test]
fn two_ids_of_a_message_and_two_messages_with_an_id_are_violations() {
    let mut two = World::new(1);
    two.send(first(&[(1, "a", Unanswered)]));
    two.send(second(&[(1, "b", Taken)]));
    assert_eq!(two.offences(), [Offence::MessageId]);
    let mut shared = World::new(2);
    shared.send(first(&[(1, "a", Taken), (2, "a", Taken)]));
    assert_eq!(shared.offences(), [Offence::MessageId]);
}

#[test]
fn messages_of_a_group_in_another_order_are_a_violation() {
    let mut world = World::new(2);
    world.send(first(&[(2, "b", Taken), (1, "a", Taken)]));
    assert_eq!(world.offences(), [Offence::OutOfOrder]);
}

#[test]
fn a_copy_without_a_cause_is_a_violation() {
    let mut world = World::new(1);
    world.send(first(&[(1, "a", Taken)]));
    world.send(second(&[(1, "a", Taken)]));
    assert_eq!(world.offences(), [Offence::Copied]);
}

#[test]
fn a_copy_with_a_cause_is_counted() {
    let taken = [(1, "a", Taken)];
    let lost = [(1, "a", Unanswered)];
    let causes = [
        (CopyCause::Unanswered, Sent { ..first(&lost) }),
        (CopyCause::Ended, Sent { end: End::Killed, ..first(&taken) }),
        (CopyCause::Ended, Sent { end: End::TimedOut, ..first(&taken) }),
        (CopyCause::HeldUp, Sent { logged: "unsent", ..first(&taken) }),
        (CopyCause::AtOnce, Sent { time: (0, 25), ..first(&taken) }),
        (CopyCause::Unmarked, Sent { problem: Some("throttled"), ..first(&taken) }),
    ];
    for (cause, sent) in causes {
        let mut world = World::new(1);
        world.send(sent);
        world.send(second(&[(1, "a", Taken)]));
        assert_eq!(world.offences(), [], "{cause}");
        assert_eq!(world.audit().copies, [(cause, 1)].into());
    }
}

#[test]
fn a_request_that_fails_after_the_message_explains_a_copy_and_one_before_it_does_not() {
    for (ms, offences) in [(5, vec![]), (0, vec![Offence::Copied])] {
        let mut world = World::new(1);
        world.send(first(&[(1, "a", Taken)]));
        let failed = world.began + Duration::from_millis(ms);
        world.history.invocations[0].failed_requests.push(failed);
        world.send(second(&[(1, "a", Taken)]));
        assert_eq!(world.offences(), offences);
    }
}

/// The rig may see the end of a process before it sees what the process has sent.
#[test]
fn a_message_that_is_seen_after_the_end_of_its_process_belongs_to_its_last_invocation() {
    for (end, offences) in [
        (End::Killed, vec![]),
        (End::Crashed, vec![]),
        (End::TimedOut, vec![]),
        // It would get another invocation.
        (End::Answered, vec![Offence::Copied]),
    ] {
        let mut world = World::new(1);
        world.send(Sent { end, ..first(&[]) });
        world.arrive(1, 11, &[(1, "a", Taken)], true);
        world.send(second(&[(1, "a", Taken)]));
        assert_eq!(world.offences(), offences);
    }
}

/// The system gives the id of a process that has ended to another one.
#[test]
fn a_message_belongs_to_the_invocation_of_the_new_process_with_its_id() {
    for (end, offences) in [(End::Killed, vec![]), (End::Answered, vec![Offence::Copied])] {
        let mut world = World::new(1);
        world.send(Sent { end: End::Killed, ..first(&[]) });
        world.send(Sent { end, ..first(&[(1, "a", Taken)]) });
        world.send(second(&[(1, "a", Taken)]));
        assert_eq!(world.offences(), offences);
    }
}
