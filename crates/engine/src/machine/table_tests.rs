use std::time::Duration;

use lambda_idempotency_core::{
    admission::Finding,
    failure::Failure,
    outbox::SendError,
    outcome::ResultKept,
    policy::{Lease, Policy},
    record::{IdempotencyRecord, Owner},
    store::{Guard, Verdict},
};
use lambda_idempotency_keys::Key;

use super::{
    super::{
        budget::TimeBudget,
        io::{Collected, HandlerEnd, Setting},
        lease::{Leases, Terms},
        record::{
            BatchRecord, NewRecord, Wait,
            testing::{START, after, call, claim, held, records},
        },
        rule::{ClaimStep, Claiming, Outbox, Settling, Written},
        *,
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
        settle::settle(view, Some(held(60_000)), complete, executed())
    });
    let Next::Settle(mut settling) = next else { unreachable!("it has a key") };
    settling.assumed = assumed.then(|| Box::new(Guard::Absent));
    settling
}

fn written(record: Option<IdempotencyRecord>, verdict: Verdict) -> Written {
    Written { record, verdict, cut_short: false }
}

fn settled(assumed: bool, verdict: Verdict) -> RecordEvent {
    RecordEvent::Settled(settling(assumed), written(None, verdict))
}

fn claiming(step: ClaimStep) -> Claiming {
    Claiming {
        at: 0,
        key: Key::from_text("op#a"),
        claim: claim(0, 60_000),
        step,
        losses: 0,
        until: after(5_000),
        last: after(5_000),
        rounds: 0,
        is_slow: false,
        doubt: None,
    }
}

fn looked(answer: Result<Option<IdempotencyRecord>, StoreError>) -> RecordEvent {
    RecordEvent::Looked(claiming(ClaimStep::Look), answer)
}

fn claimed(step: ClaimStep, verdict: Verdict) -> RecordEvent {
    RecordEvent::Claimed(claiming(step), written(Some(held(60_000).record.clone()), verdict))
}

fn no_answer() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "no answer")
}

/// The record of another worker that holds the key.
fn theirs() -> IdempotencyRecord {
    claim(7, 90_000).over(None, START).1.record
}

/// Leases of 30 s, which are renewed.
fn leases() -> Leases {
    let mut policy = Policy::default();
    policy.lease = Lease::Renewed { length: Duration::from_secs(30) };
    Leases::new(Terms::new(&policy, after(300_000)))
}

fn renewed(verdict: Verdict) -> RecordEvent {
    let held = held(30_000);
    let mut leases = leases();
    leases.keep(0, &held);
    leases.send(call(), &records(Arc::clone(&held)), after(10_000), after(300_000));
    let kept = leases.calls.answered(call(), after(10_000)).unwrap().members.pop().unwrap();
    RecordEvent::Renewed(kept, written(Some(held.record.clone()), verdict))
}

fn token() -> RecordEvent {
    let owner = Owner::from_bits(1);
    RecordEvent::Token(ClaimToken { owner, provenance: None, pace: Duration::ZERO, seen: None })
}

fn sent(answer: Result<(), SendError>) -> RecordEvent {
    let outbox = Outbox { at: 0, messages: Vec::new(), stored: None, outcome: Carried(executed()) };
    RecordEvent::Sent(outbox, answer)
}

const fn setting(policy: &Policy) -> Setting<'_> {
    Setting {
        operation: "op",
        application: None,
        policy,
        deadline: None,
        work_end: None,
        time_after: Duration::ZERO,
        is_redelivered: true,
    }
}

fn with_view<T>(stage: Stage, then: impl FnOnce(&RecordView<'_, '_>) -> T) -> T {
    let policy = Policy::default();
    let setting = setting(&policy);
    let mut record = BatchRecord::new(NewRecord::keyed(Key::from_text("op#a")));
    (record.held, record.stage) = (Some(held(60_000)), stage);
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
        Next::Claim(claiming) => words(&claiming.step, 2),
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
        (|| E::Known(Outcome::Mismatch), &[(UNBEGUN, "End Mismatch")]),
        (token, &[(&[ToLook], "Look"), (&[Unseen, ToClaim, Suspected], "Write None")]),
        (|| looked(Err(no_answer())), &[(&[Claiming], "To Unseen")]),
        (|| looked(Ok(None)), &[(&[Claiming], "To ToClaim + Looked")]),
        (|| looked(Ok(Some(theirs()))), &[(&[Claiming], "End Busy until + MetBusy")]),
        (
            || claimed(ClaimStep::Write(None), Verdict::Written),
            &[(&[Claiming], "To Ready + Granted")],
        ),
        (|| claimed(ClaimStep::Write(None), Verdict::Found(None)), &[(&[Claiming], "Write None")]),
        (|| claimed(ClaimStep::Write(None), no_answer().into()), &[(&[Claiming], "Undo Held")]),
        (
            || {
                claimed(
                    ClaimStep::Undo(Box::new((*held(60_000)).clone()), Carried(no_answer())),
                    Verdict::Written,
                )
            },
            &[(&[Claiming], "End Unavailable StoreError")],
        ),
        (
            || E::Unavailable(no_answer()),
            &[(&[ToLook, Unseen, ToClaim, Suspected, Claiming], "End Unavailable StoreError")],
        ),
        (|| E::Woken, &[(&[WAITING], "To ToLook")]),
        (|| E::Start, &[(&[Ready], "Start")]),
        (|| E::Turn, &[]),
        (|| E::Lapsed, &[(&[Ready], "Undo, Returned Lease"), (&[Running], "Drop Lapsed")]),
        (|| E::Stop, &[(&[Running], "Drop Deadline")]),
        (
            || E::Dropped(DropReason::Deadline, true),
            &[(&[Running], "LeaveStanding, TimedOut permanent")],
        ),
        (|| E::Dropped(DropReason::Deadline, false), &[(&[Running], "Undo, Returned Deadline")]),
        (|| E::Dropped(DropReason::Lapsed, true), &[(&[Running], "LeaveStanding, Fenced")]),
        (|| E::Dropped(DropReason::Lapsed, false), &[(&[Running], "Undo, Returned Lease")]),
        (|| E::Dropped(DropReason::Lost(Finding::Free, None), true), &[(&[Running], "End Fenced")]),
        (
            || E::Dropped(DropReason::Lost(Finding::Mismatch, None), false),
            &[(&[Running], "End Mismatch")],
        ),
        (|| renewed(Verdict::Written), &[(&[Ready, Running], "Stay + Extended")]),
        (
            || renewed(Verdict::Found(Some(theirs()))),
            &[(&[Ready], "End Busy until"), (&[Running], "Drop Lost Held")],
        ),
        (
            || E::Ended(HandlerEnd::Through(Ok((Returned::Nothing, Collected::default())))),
            &[(&[Running], "Complete, Executed result")],
        ),
        (
            || E::Ended(HandlerEnd::Through(Err(Failure::transient("no luck")))),
            &[(&[Running], "Release, Failed failure")],
        ),
        (
            || E::Ended(HandlerEnd::NotBegun(NotStarted::Lease)),
            &[(&[Running], "Undo, Returned Lease")],
        ),
        (|| E::Steps("{}".into()), &[(&[Running], "Stay + Steps")]),
        (|| settled(false, Verdict::Written), &[(&[InSettling], "End Executed result")]),
        (|| settled(true, Verdict::Written), &[(&[InSettling], "End Executed result")]),
        (|| settled(false, Verdict::Found(Some(theirs()))), &[(&[InSettling], "End Fenced")]),
        (|| settled(true, Verdict::Found(Some(theirs()))), &[(&[InSettling], "End Busy until")]),
        (|| settled(false, no_answer().into()), &[(&[InSettling], "Complete, Executed result")]),
        (|| sent(Ok(())), &[(&[Sending], "End Executed result")]),
        (|| sent(Err(SendError::new("no luck"))), &[(&[Sending], "End Unsent result")]),
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

/// The lists follow from the stages, whichever stage comes after which.
#[test]
fn a_record_is_in_the_list_of_its_stage_and_in_no_other() {
    let policy = Policy::default();
    let asks = [NewRecord::keyed(Key::from_text("op#a"))].into_iter();
    let budget = TimeBudget::new(START, after(60_000), Duration::ZERO);
    let mut machine = Machine {
        setting: setting(&policy),
        records: Records::new(asks),
        order: Order::default(),
        starts: Starts::new(budget, 1, 1),
        quarantine: Quarantine::default(),
        waiting: BTreeSet::new(),
        claims: Claims::default(),
        settlements: Settlements::default(),
        outboxes: Outboxes::default(),
        leases: leases(),
        call_ids: CallIds::default(),
        actions: VecDeque::new(),
        polled: Duration::ZERO,
    };
    machine.records.at(0).held = Some(held(30_000));
    for (from, to) in STAGES.iter().flat_map(|from| STAGES.map(|to| (*from, to))) {
        machine.moved(0, from);
        machine.moved(0, to);
        for stage in [Stage::ToLook, Stage::Unseen, Stage::ToClaim, Stage::Ready] {
            let queue = machine.starts.queue(stage).unwrap();
            assert_eq!(queue.len(), usize::from(to == stage), "{from:?}, {to:?}");
        }
        let lists = [
            machine.starts.running == 1,
            machine.waiting.len() == 1,
            machine.quarantine.is_waiting(),
            machine.leases.next_due(START).is_some(),
        ];
        let expected = [to == Stage::Running, to == WAITING, to == Stage::Suspected, to.is_kept()];
        assert_eq!(lists, expected, "{from:?}, {to:?}");
    }
}
