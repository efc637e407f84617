use lambda_idempotency_core::{clock::Timestamp, store::Guard};

use super::*;

fn completed(owner: u128) -> IdempotencyRecord {
    let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(9));
    record.owner = Some(Owner::from_bits(owner));
    record.result = Some("1".into());
    record.outbox = Some("[]".into());
    record
}

fn sent(owner: u128) -> IdempotencyRecord {
    let mut record = completed(owner);
    record.outbox = None;
    record
}

fn running(owner: u128) -> IdempotencyRecord {
    let mut record = IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(9));
    record.owner = Some(Owner::from_bits(owner));
    record.payload = Some("{}".into());
    record.steps = Some("[1]".into());
    record
}

fn key() -> Key {
    Key::from_text("a")
}

fn answered(forms: &Reused, owner: u128, record: Option<IdempotencyRecord>, verdict: &Verdict) {
    let owner = Owner::from_bits(owner);
    let write = Write::new(key(), Guard::OwnedBy(owner), record);
    forms.answered(Some(owner), &write, verdict);
}

#[test]
fn a_result_is_kept_until_its_record_is_written_without_messages() {
    let forms = Reused::default();
    forms.keep(Part::Result, &key(), &completed(1), &"form".into());
    answered(&forms, 1, Some(completed(1)), &Verdict::Written);
    let form = |claim, key: &str, text: &str| {
        let (claim, key) = (Owner::from_bits(claim), Key::from_text(key));
        forms.form(claim, Part::Result, &key, &text.into()).is_some()
    };
    assert!(form(1, "a", "1"));
    assert!(!form(2, "a", "1"), "of another claim");
    assert!(!form(1, "b", "1"), "of another key");
    assert!(!form(1, "a", "2"), "another text");
    answered(&forms, 1, Some(sent(1)), &Verdict::Written);
    assert!(!form(1, "a", "1"));
    forms.keep(Part::Result, &key(), &sent(1), &"form".into());
    assert!(!form(1, "a", "1"), "it has no messages");
    assert_eq!(forms.forms().bytes, 0);
}

#[test]
fn what_a_claim_carries_is_kept_until_the_claim_is_over() {
    let mut released = running(1);
    released.last_owner = released.owner.take();
    let over = [
        (Some(sent(1)), Verdict::Written),
        (Some(released), Verdict::Written),
        (None, Verdict::Written),
        (Some(running(1)), Verdict::Found(None)),
    ];
    for (record, verdict) in over {
        let forms = Reused::default();
        forms.keep(Part::Payload, &key(), &running(1), &"payload".into());
        forms.keep(Part::Steps, &key(), &running(1), &"steps".into());
        answered(&forms, 1, Some(running(1)), &Verdict::Written);
        let form = |part: Part| {
            let text = part.of(&running(1)).cloned().unwrap();
            forms.form(Owner::from_bits(1), part, &key(), &text)
        };
        assert_eq!(form(Part::Payload), Some("payload".into()));
        assert_eq!(form(Part::Steps), Some("steps".into()));
        answered(&forms, 1, record, &verdict);
        assert_eq!((form(Part::Payload), form(Part::Steps)), (None, None));
        assert_eq!(forms.forms().bytes, 0);
    }
}

#[test]
fn a_text_that_is_too_large_is_not_kept_and_displaces_none() {
    let forms = Reused::default();
    forms.keep(Part::Result, &key(), &completed(1), &"form".into());
    forms.keep(Part::Result, &key(), &completed(2), &"x".repeat(MOST).into());
    let kept = |owner| forms.form(Owner::from_bits(owner), Part::Result, &key(), &"1".into());
    assert_eq!((kept(1).is_some(), kept(2).is_some()), (true, false));
}

#[test]
fn a_few_megabytes_are_kept_at_most() {
    let forms = Reused::default();
    let long: Json = "x".repeat(MOST / 3).into();
    for owner in 0..10 {
        forms.keep(Part::Result, &key(), &completed(owner), &long);
        assert!(forms.forms().bytes <= MOST);
    }
    assert!(forms.form(Owner::from_bits(9), Part::Result, &key(), &"1".into()).is_some());
}
