use serde_json::json;

use super::*;

/// A run of one order with two messages, `a` and `b`.
struct World(Evidence);

impl World {
    fn new(order: EvidenceOrder) -> Self {
        let message =
            |id: &str| EvidenceMessage { id: id.to_owned(), order: 0, dead_lettered: false };
        Self(Evidence {
            orders: vec![order],
            messages: vec![message("a"), message("b")],
            observed: Vec::new(),
            records: vec![("place#aa".to_owned(), "COMPLETED".to_owned())],
        })
    }

    fn handler(&mut self, sandbox: u32, message: &str, fence: u64, is_effect: bool) {
        let what = What::Handler { is_effect, order: 0, message: message.to_owned(), fence };
        self.0.observed.push(Observed { sandbox, what });
    }

    fn executes(&mut self, sandbox: u32, message: &str, fence: u64) {
        self.handler(sandbox, message, fence, false);
        self.handler(sandbox, message, fence, true);
    }

    fn ends(&mut self, sandbox: u32, ended: Ended, logged: &[(&str, &str)]) {
        let line = |(record, outcome): &(&str, &str)| {
            let line = json!({
                "message": "record done", "record": record, "key_hash": "aa", "outcome": outcome,
            });
            RecordLine::parse(&line.to_string()).unwrap()
        };
        let lines = logged.iter().map(line).collect();
        self.0.observed.push(Observed { sandbox, what: What::Ended(ended, lines) });
    }

    fn offences(&self) -> Vec<Offence> {
        self.0.audit().violations.iter().map(|violation| violation.offence).collect()
    }
}

fn plain() -> World {
    World::new(EvidenceOrder::default())
}

#[test]
fn a_second_effect_needs_a_cause() {
    for (ended, cause) in [
        (Ended::Died, Some(crate::Cause::Killed)),
        (Ended::TimedOut, Some(crate::Cause::Overran)),
        (Ended::Answered, None),
    ] {
        let order = EvidenceOrder { ends_process: true, ..EvidenceOrder::default() };
        let mut world = World::new(order);
        world.executes(1, "a", 5);
        world.ends(1, ended, &[]);
        world.executes(2, "a", 6);
        world.ends(2, Ended::Answered, &[("a", "executed"), ("b", "replayed")]);
        let doubled = world.0.audit().doubled.into_keys().collect::<Vec<_>>();
        assert_eq!(doubled, Vec::from_iter(cause), "{ended:?}");
        assert_eq!(world.offences().is_empty(), cause.is_some(), "{:?}", world.offences());
    }
}

#[test]
fn a_process_that_ends_unasked_has_crashed() {
    let mut world = plain();
    world.executes(1, "a", 5);
    world.ends(1, Ended::Died, &[]);
    world.ends(2, Ended::Answered, &[("a", "replayed"), ("b", "replayed")]);
    assert_eq!(world.offences(), [Offence::Crashed]);
}

/// Only its first attempt ends the process: if a later one does, nobody has asked for it.
#[test]
fn an_order_ends_one_process_only() {
    let mut world = World::new(EvidenceOrder { ends_process: true, ..EvidenceOrder::default() });
    for sandbox in [1, 2] {
        world.handler(sandbox, "a", sandbox.into(), false);
        world.ends(sandbox, Ended::Died, &[]);
    }
    world.executes(3, "a", 7);
    world.ends(3, Ended::Answered, &[("a", "executed"), ("b", "coalesced")]);
    assert_eq!(world.offences(), [Offence::Crashed]);
}

/// Its source delivers again what was logged in an invocation that did not answer.
#[test]
fn what_died_has_acknowledged_nothing() {
    for ended in [Ended::Died, Ended::TimedOut] {
        let mut world =
            World::new(EvidenceOrder { ends_process: true, ..EvidenceOrder::default() });
        world.executes(1, "a", 5);
        world.ends(1, ended, &[("a", "executed"), ("b", "coalesced")]);
        assert_eq!(world.0.open().count(), 2, "{ended:?}");
        assert_eq!(world.offences(), [Offence::Stuck]);
        world.ends(2, Ended::Answered, &[("a", "replayed"), ("b", "replayed")]);
        assert_eq!(world.offences(), []);
    }
}

#[test]
fn an_order_that_was_not_sent_is_not_missed() {
    let mut world = plain();
    world.executes(1, "a", 5);
    world.ends(1, Ended::Answered, &[("a", "executed"), ("b", "coalesced")]);
    world.0.orders.push(EvidenceOrder::default());
    assert_eq!(world.offences(), []);
    let message = EvidenceMessage { id: "c".to_owned(), order: 1, dead_lettered: true };
    world.0.messages.push(message);
    assert!(world.offences().contains(&Offence::Store), "{:?}", world.offences());
}

/// The record of an order whose completion was lost is held until another message completes it.
#[test]
fn a_lost_completion_is_stuck_until_another_message_completes_it() {
    let mut world = plain();
    world.executes(1, "a", 5);
    world.ends(1, Ended::Answered, &[("a", "completion_lost"), ("b", "coalesced")]);
    world.0.records = vec![("place#aa".to_owned(), "INPROGRESS".to_owned())];
    assert_eq!(world.0.completions_lost().into_iter().collect::<Vec<_>>(), [0]);
    assert_eq!(world.offences(), [Offence::Stuck]);

    let message = EvidenceMessage { id: "c".to_owned(), order: 0, dead_lettered: false };
    world.0.messages.push(message);
    world.executes(2, "c", 6);
    world.ends(2, Ended::Answered, &[("c", "executed")]);
    world.0.records = vec![("place#aa".to_owned(), "COMPLETED".to_owned())];
    assert_eq!(world.offences(), []);
    assert_eq!(world.0.audit().doubled[&crate::Cause::CompletionLost], 1);
}

#[test]
fn a_message_that_is_nowhere_is_stuck() {
    let mut world = plain();
    world.executes(1, "a", 5);
    world.ends(1, Ended::Answered, &[("a", "executed")]);
    world.ends(1, Ended::Answered, &[("b", "busy")]);
    assert_eq!(world.0.open().map(|message| &*message.id).collect::<Vec<_>>(), ["b"]);
    assert_eq!(world.offences(), [Offence::Stuck]);
}

#[test]
fn only_what_fails_permanently_may_be_dead_lettered() {
    for fails_permanently in [false, true] {
        let mut world = World::new(EvidenceOrder { fails_permanently, ..EvidenceOrder::default() });
        world.handler(1, "a", 5, false);
        world.ends(1, Ended::Answered, &[("a", "failed"), ("b", "permanently_failed")]);
        world.0.records = vec![("place#aa".to_owned(), "FAILED".to_owned())];
        for message in &mut world.0.messages {
            message.dead_lettered = true;
        }
        let offences = world.offences();
        assert_eq!(offences.contains(&Offence::DeadLettered), !fails_permanently, "{offences:?}");
        assert_eq!(offences.is_empty(), fails_permanently, "{offences:?}");
    }
}

#[test]
fn a_group_keeps_its_order() {
    let group = EvidenceOrder { group: Some(0), ..EvidenceOrder::default() };
    let mut world = World::new(group);
    world.0.orders.push(group);
    world.0.messages[1].order = 1;
    world.0.records.push(("place#bb".to_owned(), "COMPLETED".to_owned()));
    let second = What::Handler { is_effect: false, order: 1, message: "b".to_owned(), fence: 4 };
    world.0.observed.push(Observed { sandbox: 1, what: second });
    let second = What::Handler { is_effect: true, order: 1, message: "b".to_owned(), fence: 4 };
    world.0.observed.push(Observed { sandbox: 1, what: second });
    world.executes(1, "a", 5);
    world.ends(1, Ended::Answered, &[("a", "executed"), ("b", "executed")]);
    assert!(world.offences().contains(&Offence::OutOfOrder), "{:?}", world.offences());
}

#[test]
fn a_key_that_two_orders_share_loses_one() {
    let mut world = plain();
    world.0.orders.push(EvidenceOrder::default());
    world.0.messages[1].order = 1;
    world.executes(1, "a", 5);
    world.ends(1, Ended::Answered, &[("a", "executed")]);
    world.ends(1, Ended::Answered, &[("b", "replayed")]);
    assert_eq!(world.offences(), [Offence::Lost, Offence::Store]);
}

#[test]
fn a_message_that_nobody_sent_is_noticed_in_the_ledger_only() {
    let mut world = plain();
    world.executes(1, "a", 5);
    world.ends(1, Ended::Answered, &[("a", "executed"), ("b", "replayed"), ("x", "busy")]);
    assert_eq!(world.offences(), []);
    world.handler(1, "x", 5, false);
    assert_eq!(world.offences(), [Offence::Ledger]);
}
