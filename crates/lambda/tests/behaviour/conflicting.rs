//! Settings that cannot work together, or with each other's sources, are refused when a function is built.

use std::time::Duration;

use lambda_idempotency::{
    ConfigError, Failure, Lease, Mode, OnConflict, Operation,
    source::{Envelope, Invoke, Kinesis, Sns, Sqs},
};
use serde_json::json;

use crate::{
    several_sources::built,
    support::{World, nothing},
};

fn place() -> Operation {
    Operation::new("place").key("id")
}

fn refused<T>(built: Result<T, ConfigError>, parts: &[&str]) {
    let text = built.map(drop).unwrap_err().to_string();
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Each record would have a key of its own.
#[tokio::test]
async fn a_mutex_without_a_key_is_refused_where_each_record_has_its_own() {
    let world = World::instant();
    let mutex = || Operation::new("import").mode(Mode::Mutex);
    let parts = ["`import`", "`Mode::Mutex`", "`.key("];
    let idempotency = || world.idempotency();
    refused(idempotency().on(Sqs::new(), &mutex(), nothing), &parts);
    refused(idempotency().on(Kinesis::new(), &mutex(), nothing), &parts);
    refused(idempotency().on(Invoke::new(), &mutex(), nothing), &parts);
    idempotency().on(Sqs::new(), &mutex().key("tenant"), nothing).unwrap();
    // Equal payloads have equal keys.
    world.run(&idempotency(), &mutex(), &json!("tenant"), 1).await.unwrap();
}

/// A source that completes keys would answer those of the source that only excludes.
#[test]
fn all_sources_of_an_operation_have_one_mode() {
    let modes = [Mode::Claim, Mode::Mutex, Mode::Transactional, Mode::Optimistic];
    let with = |mode| place().mode(mode);
    for one in modes {
        for other in modes {
            let both = built((Sqs::new(), with(one)), (Sns::new(), with(other)));
            if one == other {
                assert_eq!(both, Ok(()), "{one:?}");
            } else {
                let named = [one, other].map(|mode| format!("`Mode::{mode:?}`"));
                refused(both, &["`place`", &named[0], &named[1]]);
            }
        }
    }
}

#[tokio::test]
async fn nor_do_two_functions_or_calls_of_one_name_differ_in_mode() {
    let world = World::instant();
    let idempotency = world.idempotency();
    idempotency.on(Sqs::new(), &place(), nothing).unwrap();
    refused(
        idempotency.on(Sns::new(), &place().mode(Mode::Mutex), nothing),
        &["`place`", "`Mode::Mutex`"],
    );
    let called = Operation::new("called").key("id");
    let (payload, mutex) = (json!({ "id": 1 }), called.clone().mode(Mode::Mutex));
    world.run(&idempotency, &mutex, &payload, 1).await.unwrap();
    let error = world.run(&idempotency, &called, &payload, 1).await.unwrap_err().to_string();
    assert!(error.contains("`called`") && error.contains("`Mode::Mutex`"), "{error}");
}

/// Each duplicate that comes by the other source would be a mismatch, or would not be compared.
#[test]
fn fingerprints_that_never_agree_are_refused() {
    let amount = || place().fingerprint("amount");
    let by = |path| Sns::new().fingerprint(path);
    for (operation, topic) in
        [(amount(), by("[amount]")), (amount(), by("{amount: amount}")), (place(), by("amount"))]
    {
        let both = built((Sqs::new(), operation.clone()), (topic, operation));
        refused(both, &["`place`", "sns", "`.fingerprint(..)`"]);
    }
    assert_eq!(built((Sqs::new(), amount()), (by("order.amount"), amount())), Ok(()));
}

#[test]
fn a_handler_for_other_events_is_refused_where_none_are_left() {
    let world = World::new();
    let other = async |_| Ok::<_, Failure>(());
    let function =
        || world.idempotency().function().on(Sqs::new(), &place(), nothing).otherwise(other);
    refused(
        function().on(Invoke::new(), &Operation::new("any"), nothing).build(),
        &["`any`", "`.otherwise(..)`", "the source invoke"],
    );
    function().build().unwrap();
}

#[test]
fn envelopes_that_no_record_can_have_are_refused() {
    use Envelope::{EventBridge, S3, Sns};
    let function = |queue| World::new().idempotency().on(queue, &place(), nothing).map(drop);
    for envelopes in [&[Sns, Sns][..], &[Sns, S3, S3], &[S3, Sns], &[EventBridge, Sns, EventBridge]]
    {
        let queue = envelopes.iter().fold(Sqs::new(), |queue, one| queue.envelope(*one));
        refused(function(queue), &["`place`", "no record has `Envelope::"]);
    }
    for envelopes in [&[Sns, S3][..], &[Sns, EventBridge], &[EventBridge, Sns, S3], &[S3]] {
        let queue = envelopes.iter().fold(Sqs::new(), |queue, one| queue.envelope(*one));
        assert_eq!(function(queue), Ok(()), "{envelopes:?}");
    }
}

/// With such a time no worker ever takes over the key of one that died.
#[test]
fn times_for_which_a_key_would_stay_held_have_a_limit() {
    let (hour, day) = (Duration::from_hours(1), Duration::from_hours(24));
    let longer = |limit: Duration| limit + Duration::from_nanos(1);
    for length in [longer(hour), Duration::MAX] {
        refused(place().clock_skew(length).check(), &["`.clock_skew(..)`", "to 3600 s"]);
        refused(place().lease_grace(length).check(), &["`.lease_grace(..)`", "to 3600 s"]);
    }
    for length in [longer(day), Duration::MAX] {
        let lease = place().lease(Lease::Renewed { length });
        refused(lease.check(), &["`.lease(..)`", "to 86400 s"]);
    }
    let longest = place().clock_skew(hour).lease_grace(hour).lease(Lease::Renewed { length: day });
    assert_eq!(longest.check(), Ok(()));
    assert_eq!(
        place().retention(Duration::MAX).check(),
        Ok(()),
        "duplicates may be recognised for ever"
    );
    let waits = OnConflict::Wait { up_to: Duration::MAX };
    assert_eq!(place().on_conflict(waits).check(), Ok(()), "a wait ends with its invocation");
}

#[test]
fn a_recovery_of_records_of_no_bytes_is_refused() {
    let function = |most| {
        let queue = Sqs::new().recoverable(most);
        World::new().idempotency().on(queue, &place(), nothing).map(drop)
    };
    refused(function(0), &["`place`", "`.recoverable(0)` keeps no record"]);
    assert_eq!(function(1), Ok(()));
}
