//! The checks find mistakes: of stores that break their contract, of sources that lose messages or their
//! order, of an engine that is not told the groups, and mistakes that only a log by hand can show.

use std::time::Duration;

use lambda_idempotency_core::{
    clock::Timestamp,
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, Write},
};
use lambda_idempotency_engine::call::Call;

use crate::{
    log::Log,
    message::{Message, message},
    source::{Answer, Fifo, Gone, Queue, Received, Source, Twice, Whole},
    store::{Mutant, Treatment},
    stories::Handlers,
    story::Story,
};

/// Tells a story with every stop, and asserts that each of `expected` is among the violations.
async fn caught(story: Story, expected: &[&str]) {
    let tally = story.everywhere().await;
    for expected in expected {
        let mut violations = tally.violations.iter();
        assert!(
            violations.any(|(_, what)| what.contains(expected)),
            "{expected:?} is not among {:?}",
            tally.violations
        );
    }
}

fn batch() -> [Message; 4] {
    [message("a"), message("b").fails(1), message("c").takes(2), message("a")]
}

fn story(mutant: Mutant) -> Story {
    let within = Duration::from_mins(1);
    Story { mutant, within, deliveries: 3, ..Story::new(Queue::boxed, batch()) }
}

/// A store that changes the records of its writes.
fn changed(write: Write, change: impl FnOnce(&mut IdempotencyRecord)) -> Treatment {
    let mut write = write;
    if let Some(record) = &mut write.record {
        change(record);
    }
    Treatment::Apply(write)
}

#[tokio::test]
async fn a_store_that_forgets_its_guards() {
    let expected = ["is called although it is done", "settled permanently a second time"];
    caught(story(Treatment::Force), &expected).await;
    let twice = Story { source: Twice::boxed, ..story(Treatment::Force) };
    caught(twice, &["runs twice at the same time"]).await;
}

#[tokio::test]
async fn a_store_that_forgets_completions() {
    let forgets = |write: Write| match &write.record {
        Some(record) if record.status == Status::Completed => Treatment::Forget,
        _ => Treatment::Apply(write),
    };
    let expected =
        ["acknowledged and not done: lost", "not recorded, and no worker died", "left over"];
    caught(story(forgets), &expected).await;
}

#[tokio::test]
async fn a_store_that_forgets_lost_attempts() {
    let forgets = |write| changed(write, |record| record.lost_attempts = 0);
    // After one stop the handler still sees the lost attempt. After two stops it sees only one of them.
    let tally = story(forgets).in_pairs().await;
    let told = |(_, what): &(_, String)| what.contains("not told of an earlier call");
    assert!(tally.violations.iter().any(told), "{tally}");
}

#[tokio::test]
async fn a_store_that_invents_lost_attempts() {
    let invents = |write| changed(write, |record| record.lost_attempts += 1);
    caught(story(invents), &["told of more lost attempts than were stopped"]).await;
}

#[tokio::test]
async fn a_store_that_forgets_losses_in_a_row() {
    let forgets = |write| changed(write, |record| record.consecutive_losses = 0);
    caught(story(forgets), &["does not say how many losses came in a row"]).await;
}

#[tokio::test]
async fn a_store_that_forgets_failed_attempts() {
    let forgets = |write| changed(write, |record| record.failed_attempts = 0);
    caught(story(forgets), &["not told of an earlier call", "stuck"]).await;
}

#[tokio::test]
async fn a_store_that_forgets_fences() {
    let forgets = |write| changed(write, |record| record.fence = 0);
    let story = Story { source: Whole::polled, ..story(forgets) };
    caught(story, &["has a fence that does not rise"]).await;
}

#[tokio::test]
async fn a_store_that_cuts_leases_short() {
    let cuts = |write| {
        changed(write, |record| {
            record.lease_until = record.lease_until.and(Some(Timestamp::from_millis(1)));
        })
    };
    let twice = Story { source: Twice::boxed, ..story(cuts) };
    caught(twice, &["runs twice at the same time"]).await;
}

#[tokio::test]
async fn a_store_that_holds_keys_for_too_long() {
    let holds = |write| {
        changed(write, |record| {
            record.lease_until = record.lease_until.map(|until| until.plus(Duration::from_mins(5)));
        })
    };
    caught(story(holds), &["stuck"]).await;
}

/// Completes without the effects, or applies them whatever its guards say.
#[tokio::test]
async fn a_store_that_breaks_its_transactions() {
    let drops = |write: Write| match &write.record {
        Some(record) if record.status == Status::Completed => {
            Treatment::Apply(write.with_effects(None))
        }
        _ => Treatment::Apply(write),
    };
    for handlers in [Handlers::Transactional, Handlers::Optimistic] {
        caught(handlers.of(story(drops)), &["recorded as done without its effect"]).await;
        let twice = Story { source: Twice::boxed, ..story(Treatment::Early) };
        caught(handlers.of(twice), &["committed twice"]).await;
    }
}

#[tokio::test]
async fn a_store_that_drops_messages() {
    let drops = |write| changed(write, |record| record.outbox = None);
    let expected = "acknowledged before its messages arrived";
    caught(Handlers::Keeping.of(story(drops)), &[expected]).await;
}

/// When a key is taken over, when a lease is renewed, and when a key is released; or it says too early that it has them.
#[tokio::test]
async fn a_store_that_forgets_steps() {
    fn forgets(mut write: Write, when: fn(&Write) -> bool) -> Treatment {
        if when(&write)
            && let Some(record) = &mut write.record
        {
            record.steps = None;
        }
        Treatment::Apply(write)
    }
    let takeover = |write| {
        forgets(write, |write| {
            let owner = write.record.as_ref().and_then(|record| record.owner);
            matches!(&write.guard, Guard::Unchanged(seen) if owner.is_some() && seen.owner != owner)
        })
    };
    let release = |write| {
        let gives_up =
            |write: &Write| write.record.as_ref().is_some_and(|record| record.owner.is_none());
        forgets(write, gives_up)
    };
    let early = |write: Write| match (&write.guard, &write.record) {
        (Guard::Unchanged(_), Some(record))
            if record.steps.is_some() && record.status == Status::InProgress =>
        {
            Treatment::Forget
        }
        _ => Treatment::Apply(write),
    };
    let (dropped, repeated) =
        ("is written without its steps", "runs a step again that the store had");
    for (mutant, expected) in [
        (takeover as fn(Write) -> Treatment, &[dropped][..]),
        (release, &[dropped, repeated]),
        (early, &["goes on after a step that is not kept"]),
    ] {
        caught(Handlers::Keeping.of(story(mutant)), expected).await;
    }
}

/// A source that treats a death as success.
struct Trusting(Box<dyn Source>);

impl Source for Trusting {
    fn receive(&mut self, now: Timestamp) -> Option<Received> {
        self.0.receive(now)
    }

    fn answered(&mut self, answers: Vec<Answer>, now: Timestamp) -> Vec<(Message, Gone)> {
        let trusted = answers.into_iter().map(|answer| match answer {
            Answer::Died => Answer::Acknowledged(vec![true; 10]),
            known => known,
        });
        self.0.answered(trusted.collect(), now)
    }
}

#[tokio::test]
async fn a_source_that_acknowledges_after_a_death() {
    let source = |messages| Box::new(Trusting(Queue::boxed(messages))) as Box<dyn Source>;
    let expected = ["acknowledged and not done: lost", "lost: [\"a\""];
    caught(Story { source, ..story(Treatment::Apply) }, &expected).await;
}

fn group() -> [Message; 4] {
    [message("a").takes(1), message("b").fails(1), message("c"), message("d")]
        .map(|message| message.group("g"))
}

#[tokio::test]
async fn a_source_that_loses_its_order() {
    let reversed = |mut messages: Vec<Message>| {
        messages.reverse();
        Fifo::boxed(messages)
    };
    caught(Story::new(reversed, group()), &["before what is before it in its group is done"]).await;
}

#[tokio::test]
async fn an_engine_that_is_not_told_of_groups() {
    let story = Story::new(Fifo::boxed, group());
    let expected =
        ["before what is before it in its group", "acknowledged before what is before it"];
    caught(Story { ordered: false, ..story }, &expected).await;
}

#[tokio::test]
async fn a_message_that_is_given_up_against_the_script() {
    let source = |messages| Queue::redriving(messages, 1);
    caught(Story { source, ..story(Treatment::Apply) }, &["given up against the script: [1]"])
        .await;
}

const NOW: Timestamp = Timestamp::from_secs(1);

/// Mistakes that no store and no source can cause, written to the log by hand.
#[test]
fn handlers_that_start_in_the_wrong_place() {
    let messages = vec![message("a").group("g"), Message { id: 1, ..message("b").group("g") }];
    let log = || Log::new(messages.clone(), false, false);
    let [a, b] = &messages[..] else { unreachable!() };

    let runs_beside = "b runs beside another, although one of them may be what kills workers";
    for (lost, is_wrong) in [
        ([0, 0], false),
        ([0, 1], true),
        ([1, 0], true),
        ([1, 1], false),
        ([2, 2], true),
        ([1, 2], true),
    ] {
        let beside = log();
        let mut running = Vec::new();
        for (message, lost_attempts) in [a, b].into_iter().zip(lost) {
            let mut claim = IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(100));
            for fence in 1..=u64::from(lost_attempts) + 1 {
                claim.owner = Some(Owner::from_bits(fence.into()));
                (claim.fence, claim.consecutive_losses) =
                    (fence, u32::try_from(fence).unwrap() - 1);
                beside.landed(&message.key(), Some(&claim));
            }
            let call = Call::test("x").with_lost_attempts(lost_attempts).with_fence(claim.fence);
            running.push(beside.started(0, message, &call, NOW));
        }
        let violations = beside.violations();
        assert_eq!(violations.iter().any(|what| what == runs_beside), is_wrong, "{violations:?}");
    }

    let behind = log();
    behind.settled(0, 0, &lambda_idempotency_core::outcome::Outcome::Fenced);
    let _running = behind.started(0, b, &Call::test("b"), NOW);
    let expected = "b starts behind one that went back".to_owned();
    assert!(behind.violations().contains(&expected));

    let undone = log();
    let completed = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(1));
    undone.landed(&a.key(), Some(&completed));
    assert_eq!(undone.violations(), ["a is recorded as done without its effect"]);
}

/// Handlers that start or continue too late.
#[test]
fn handlers_that_start_or_continue_too_late() {
    let log = || Log::new(vec![message("a")], false, false);
    let a = message("a");
    let mut claimed = IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(100));
    claimed.fence = 1;
    claimed.lease_until = Some(NOW);

    let in_time = log();
    in_time.landed(&a.key(), Some(&claimed));
    let _running = in_time.started(0, &a, &Call::test("a"), NOW);
    assert!(in_time.violations().is_empty());

    let late = log();
    late.landed(&a.key(), Some(&claimed));
    let _running = late.started(0, &a, &Call::test("a"), NOW.plus(Duration::from_millis(1)));
    assert_eq!(late.violations(), ["a begins after its lease"]);

    let over = log();
    let _running = over.started(0, &a, &Call::test("a").with_handler_deadline(NOW), NOW);
    assert_eq!(over.violations(), ["a begins when its time is over"]);

    let frozen = log();
    let first = frozen.started(0, &a, &Call::test("a"), NOW);
    frozen.frozen(0);
    let _second = frozen.started(1, &a, &Call::test("a").with_lost_attempts(1).with_fence(2), NOW);
    assert!(frozen.violations().is_empty());
    first.effect();
    assert_eq!(frozen.violations(), ["a has its effect after another took over"]);
}
