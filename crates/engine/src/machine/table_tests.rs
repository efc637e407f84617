use std::time::Duration;

use lambda_idempotency_core::{
    admission::Finding,
    failure::Failure,
    outbox::SendError,
    outcome::ResultKept,
    policy::{Lease, Policy},
    record::{IdempotencyRecord, Owner},
    store::Guard,
};
use lambda_idempotency_keys::Key;

use super::{
    super::{
        budget::TimeBudget,
        claims::Claimed,
        io::{HandlerEnd, Setting},
        lease::{Leases, Terms},
        record::{
            NewRecord, Wait,
            testing::{START, after, call, claim, held},
        },
        rule::{Outbox, Settling, Written},
    },
    *,
};
use crate::delivery::Returned;

const STAGES: [Stage; 12] = [
    Stage::Queued,
    Stage::ToLook,
    Stage::Unseen,
    Stage::ToClaim,
    Stage::Suspected,
    Stage::Claiming,
    WAITING,
    Stage::Ready,
    Stage::Running,
    Stage::Settling,
    Stage::Sending,
    Stage::Done,
];
const WAITING: Stage = Stage::Waiting(Wait { wake: START, until: START, since: START });

fn executed() -> Outcome {
    Outcome::Executed { result: None, kept: ResultKept::Whole, completion: None }
}

/// A completion that is to be written, without a claim if it is `assumed`.
fn settling(assumed: bool) -> Box<Settling> {
    let next = with_view(Stage::Running, |view| {
        let complete = Settlement::Complete { result: None, outbox: None };
        settle::settle(view, held(60_000), complete, executed())
    });
    let Next::Settle(mut settling) = next else { unreachable!("it has a key") };
    settling.assumed = assumed.then(|| Box::new(Guard::Absent));
    settling
}

fn settled(assumed: bool, verdict: Verdict) -> RecordEvent {
    let written = Written { unsent: None, completion: None };
    let verdict = Some(Box::new(verdict));
    RecordEvent::Settled { settling: settling(assumed), written, verdict }
}

/// The record of another worker that holds the key.
fn theirs() -> IdempotencyRecord {
    claim(7, 90_000).over(None, START).1.record
}

fn renewed(verdict: Verdict) -> RecordEvent {
    let mut policy = Policy::default();
    policy.lease = Lease::Renewed { length: Duration::from_secs(30) };
    let (key, held) = (Key::from_text("op#a"), held(30_000));
    let mut leases = Leases::new(Terms::new(&policy, after(300_000)));
    leases.keep(0, &held);
    leases.send(call(), after(10_000), after(300_000), |_| Some((&key, &held)));
    let kept = leases.written(call(), after(10_000)).unwrap().members.pop().unwrap();
    let record = Some(Box::new(held.record.clone()));
    RecordEvent::Renewed { kept, record, verdict: Box::new(verdict) }
}

fn token() -> RecordEvent {
    let owner = Owner::from_bits(1);
    RecordEvent::Token(ClaimToken { owner, provenance: None, pace: Duration::ZERO, seen: None })
}

fn sent(answer: Result<(), SendError>) -> RecordEvent {
    let outbox = Outbox { at: 0, messages: Vec::new(), stored: None, outcome: Carried(executed()) };
    RecordEvent::Sent(outbox, answer)
}

fn with_view<T>(stage: Stage, then: impl FnOnce(&RecordView<'_, '_>) -> T) -> T {
    let policy = Policy::default();
    let setting = Setting {
        operation: "op",
        application: None,
        policy: &policy,
        deadline: None,
        work_end: None,
        time_after: Duration::ZERO,
        is_redelivered: true,
    };
    let mut record = BatchRecord::new(NewRecord::keyed(Key::from_text("op#a")));
    record.granted(held(60_000), None);
    record.enter(stage);
    then(&RecordView {
        at: 0,
        record: &record,
        now: START,
        setting: &setting,
        budget: TimeBudget::new(START, after(60_000), Duration::ZERO),
        terms: Terms::new(&policy, after(60_000)),
        is_closed: false,
        has_turn: false,
        is_beside_others: false,
    })
}

/// The first word of what `Debug` prints, and of what is in it.
fn words(debug: &dyn std::fmt::Debug, most: usize) -> String {
    let text = format!("{debug:?}");
    let words = text.split(|sign: char| !sign.is_alphanumeric()).filter(|word| !word.is_empty());
    words.take(most).collect::<Vec<_>>().join(" ")
}

fn shown(Decision { next, effects }: Decision) -> String {
    let mut shown = match next {
        Next::Claim(wanted) => words(&wanted.begins, 2),
        Next::Settle(settling) => {
            format!("{}, {}", words(&settling.settlement, 1), words(&settling.outcome, 2))
        }
        Next::Send(_) => "Send".to_owned(),
        next => words(&next, 3),
    };
    for effect in effects.into_iter().flatten() {
        shown += " + ";
        shown += &words(&effect, 1);
    }
    shown
}

/// In each stage each event has the row of the table that is named here, or none.
#[test]
fn each_event_has_its_row_in_each_stage() {
    use RecordEvent as E;
    use Stage::{
        Claiming, Queued, Ready, Running, Sending, Settling as InSettling, Suspected, ToClaim,
        ToLook, Unseen,
    };
    type Row = (&'static [Stage], &'static str);
    type Rows = (fn() -> RecordEvent, &'static [Row]);
    const UNBEGUN: &[Stage] = &[Queued, ToLook, Unseen, ToClaim, Suspected];
    let table: &[Rows] = &[
        (|| E::Begin { looks: false }, &[(&[Queued], "To ToClaim")]),
        (|| E::Begin { looks: true }, &[(&[Queued], "To ToLook")]),
        (|| E::Preset(Outcome::Mismatch), &[(&[Queued], "End Mismatch")]),
        (token, &[(&[ToLook], "Look"), (&[Unseen, ToClaim, Suspected], "Write None")]),
        (
            || E::Claimed(Claimed::Unseen),
            &[(&[ToLook, Unseen, ToClaim, Suspected, Claiming], "To Unseen")],
        ),
        (|| E::Unanswered, &[(&[Claiming], "End Unavailable StoreError")]),
        (|| E::Woken, &[(&[WAITING], "To ToLook")]),
        (|| E::Start, &[(&[Ready], "Start")]),
        (|| E::Turn, &[]),
        (|| E::Lapsed, &[(&[Ready], "Undo, Returned Lease"), (&[Running], "Drop Lapsed")]),
        (|| E::Stop, &[(&[Running], "Drop Deadline")]),
        (
            || E::Dropped(DropReason::Deadline, Some(START)),
            &[(&[Running], "LeaveStanding, TimedOut permanent + Ran")],
        ),
        (
            || E::Dropped(DropReason::Deadline, None),
            &[(&[Running], "Undo, Returned Deadline + Ran")],
        ),
        (
            || E::Dropped(DropReason::Lapsed, Some(START)),
            &[(&[Running], "LeaveStanding, Fenced + Ran")],
        ),
        (|| E::Dropped(DropReason::Lapsed, None), &[(&[Running], "Undo, Returned Lease + Ran")]),
        (
            || E::Dropped(DropReason::Lost(Finding::Free, None), Some(START)),
            &[(&[Running], "End Fenced + Ran")],
        ),
        (
            || E::Dropped(DropReason::Lost(Finding::Mismatch, None), None),
            &[(&[Running], "End Mismatch + Ran")],
        ),
        (|| renewed(Verdict::Written), &[(&[Ready, Running], "Stay + Extended")]),
        (
            || renewed(Verdict::Found(Some(theirs()))),
            &[(&[Ready], "End Busy until"), (&[Running], "Drop Lost Held")],
        ),
        (
            || E::Ended(HandlerEnd::Through(Ok(Returned::Nothing)), Some(START)),
            &[(&[Running], "Complete, Executed result + Ran + Took")],
        ),
        (
            || E::Ended(HandlerEnd::Through(Err(Failure::transient("no luck"))), Some(START)),
            &[(&[Running], "Release, Failed failure + Ran + Took")],
        ),
        (
            || E::Ended(HandlerEnd::NotBegun(NotStarted::Lease), None),
            &[(&[Running], "Undo, Returned Lease + Ran")],
        ),
        (|| E::Steps("{}".into()), &[(&[Running], "Stay + Steps")]),
        (|| settled(false, Verdict::Written), &[(&[InSettling], "End Executed result")]),
        (|| settled(true, Verdict::Written), &[(&[InSettling], "End Executed result")]),
        (|| settled(false, Verdict::Found(Some(theirs()))), &[(&[InSettling], "End Fenced")]),
        (|| settled(true, Verdict::Found(Some(theirs()))), &[(&[InSettling], "End Busy until")]),
        (|| E::Unsettled(settling(false)), &[(&[InSettling], "End CompletionLost result")]),
        (|| sent(Ok(())), &[(&[Sending], "End Executed result")]),
        (|| sent(Err(SendError::new("no luck"))), &[(&[Sending], "End Unsent result")]),
        (|| E::AllSent(held(60_000), executed()), &[(&STAGES, "MarkSent, Executed result")]),
        (
            || E::Close(NotStarted::Order),
            &[
                (UNBEGUN, "End Returned Order"),
                (&[WAITING], "End Busy until"),
                (&[Ready], "Undo, Returned Order"),
            ],
        ),
    ];
    for (event, rows) in table {
        for stage in STAGES {
            let row = rows.iter().find(|(stages, _)| stages.contains(&stage));
            let expected = row.map_or("Stay", |(_, expected)| expected);
            let decision = with_view(stage, |view| follow(view, stage, event()));
            assert_eq!(shown(decision), expected, "{stage:?}");
        }
    }
}
