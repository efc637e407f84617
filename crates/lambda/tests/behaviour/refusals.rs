//! What cannot work is refused when it is built: the setup, and what the error says.

use std::time::Duration;

use aws_lambda_events::{
    cloudwatch_events::CloudWatchEvent, dynamodb, eventbridge::EventBridgeEvent,
    kinesis::KinesisEvent, s3::S3Event, sqs,
};
use lambda_idempotency::{
    Call, ConfigError, Failure, Mode, Operation, RunError,
    handler::Payload,
    keys::{KeyFormat, payload, powertools::PowertoolsKeys, record},
    policy::{Lease, OnConflict, OnMissingKey, OnOutage, OnTimeout},
    source::{
        ActiveMq, DivertedRecord, DynamoDbStream, Envelope, EventBridge, Invoke, Kafka, KeepOrder,
        Kinesis, Pipe, RabbitMq, S3, Scheduler, Sns, Source, Sources, Sqs,
    },
};
use serde_json::{Value, json};

use crate::support::{World, nothing, place};

type Built = Result<(), ConfigError>;

/// The kind of error, and parts of its text.
type Refused = (Built, &'static str, Vec<String>);

fn on(source: impl Sources, operation: &Operation) -> Built {
    World::instant().idempotency().on(source, operation, nothing).map(drop)
}

/// A function of two sources.
fn both(one: (impl Source, Operation), two: (impl Source, Operation)) -> Built {
    let function = World::instant().idempotency().function();
    function.on(one.0, &one.1, nothing).on(two.0, &two.1, nothing).build().map(drop)
}

/// One operation on a queue and on this topic.
fn shared(operation: Operation, topic: Sns, other: Operation) -> Built {
    both((Sqs::new(), operation), (topic, other))
}

/// Two operations, `a` before `b`.
fn ordered(one: impl Source, two: impl Source) -> Built {
    let [a, b] = ["a", "b"].map(|name| Operation::new(name).key("id"));
    both((one, a), (two, b))
}

fn enveloped(envelopes: &[Envelope]) -> Built {
    on(envelopes.iter().fold(Sqs::new(), |queue, one| queue.envelope(*one)), &place())
}

fn python(operation: Operation) -> Operation {
    operation.powertools(PowertoolsKeys::python("fn.app"))
}

/// A function whose handler takes this type.
fn takes<T: Payload>(source: impl Source) -> Built {
    let handler = async |_: T, _: Call| Ok::<_, Failure>(());
    World::instant().idempotency().on(source, &Operation::new("place"), handler).map(drop)
}

const fn kind(error: &ConfigError) -> &'static str {
    match error {
        ConfigError::Name(_) => "name",
        ConfigError::Key(_) => "key",
        ConfigError::Source(_) => "source",
        ConfigError::Mode(_) => "mode",
        ConfigError::Setting(_) => "setting",
        _ => "another",
    }
}

fn refused(rows: Vec<Refused>) {
    for (at, (built, expected, parts)) in rows.into_iter().enumerate() {
        let Err(error) = built else { panic!("row {at} is accepted: {parts:?}") };
        let text = error.to_string();
        assert_eq!(kind(&error), expected, "row {at}: {text}");
        for part in parts {
            assert!(text.contains(&part), "row {at}: no {part:?} in {text}");
        }
    }
}

macro_rules! rows {
    ($kind:literal: $($built:expr => [$($part:expr),+]),+ $(,)?) => {
        refused(vec![$(($built, $kind, vec![$(String::from($part)),+])),+])
    };
}

#[test]
fn names_are_refused() {
    for name in ["", "a#b", "a\nb", "a\0", &"x".repeat(129)] {
        rows!("name": Operation::new(name).check() => [format!("{name:?}")]);
    }
    let longest = "é".repeat(128);
    for name in ["a", "place order", "Bestellung/é", " ", longest.as_str()] {
        assert_eq!(Operation::new(name).check(), Ok(()), "{name}");
        assert_eq!(Operation::new(name).name(), name);
    }
    let another = async |_: Value, _: Call| Ok::<_, Failure>(());
    let function = World::instant().idempotency().function();
    let function = function.on(Sqs::new(), &place(), nothing).on(Sns::new(), &place(), nothing);
    rows!("name":
        both((Sqs::new(), Operation::new("a#b").key("id")), (Sns::new(), Operation::new("a#b").key("id")))
            => ["a#b"],
        function.on(EventBridge::new(), &place(), another).build().map(drop)
            => ["operation `place` has two handlers", "register the same handler for each"],
    );
}

#[test]
fn keys_are_refused() {
    let function = || Operation::new("place").key_fn(|_| Ok(vec!["one".to_owned()]));
    let bare = || Operation::new("place");
    let optional = |path, part| bare().key(payload(path).optional([part]));
    let s3 = || Sqs::new().envelope(Envelope::S3);
    let named = "operation `place` has `.key_fn(..)`";
    rows!("key":
        shared(place(), Sns::new().key("order.["), place()) => ["order.["],
        bare().key("'orderId'").check() => ["the key of", "it is a constant, the same for every record"],
        place().fingerprint("`1`").check() => ["the fingerprint of", "it is a constant"],
        function().key("id").check() => [named, "only one can make the key; remove one"],
        on(Sqs::new().key("id"), &function()) => [named, "only one can make the key; remove one"],
        python(function()).check() => [named, "which makes no Powertools keys"],
        place().fingerprint(payload("[a]").optional(["a"])).check() => ["part `a` is optional"],
        optional("[id, tenant]", "coupon").check() => ["it lists `id`, `tenant`"],
        optional("id", "id").check() => ["write it as `[a, b]`"],
        python(optional("[id, tenant]", "id")).check() => ["the keys of another library"],
        python(place().key_format(KeyFormat::Readable)).check() => ["the keys of another library"],
        python(bare()).check() => ["`@` selects the whole payload"],
        python(bare().key("id.")).check() => ["the key of operation `place` has a mistake"],
        bare().producer().map(drop) => ["it has no key expression", ".key("],
        on(s3().key(record("messageId")), &bare()) => ["messageId", "s3.object.key"],
        on(Invoke::new(), &bare()) => ["operation `place`", "`Invoke::by_request_id()`"],
        on(Invoke::by_request_id(), &place()) => ["operation `place`", "has no effect"],
        on(Invoke::by_request_id().key("id"), &bare()) => ["operation `place`", "has no effect"],
    );
    for accepted in [
        python(bare().key("powertools_json(powertools_base64(data)).id")).check(),
        bare().key("\"orderId\"").check(),
        on(Invoke::new(), &place()),
        on(Invoke::new().key("id"), &bare()),
        on(Invoke::by_request_id(), &bare()),
    ] {
        assert_eq!(accepted, Ok(()));
    }
    rows!("source": shared(function(), Sns::new(), place()) => ["`.key_fn(..)` differs"]);
    assert_eq!(on(Sqs::new(), &function()), Ok(()));
    assert_eq!(shared(function(), Sns::new(), function()), Ok(()));
}

#[test]
fn errors_in_expressions_are_marked_with_a_caret() {
    let of_key = |path| (Operation::new("place").key(path).check(), "the key");
    let source = Sqs::new().key(record("nope(id)"));
    for ((refused, what), place) in [
        (of_key("order.[id"), 9),
        (of_key(""), 0),
        ((place().fingerprint("a =").check(), "the fingerprint"), 2),
        ((on(source, &Operation::new("place")), "sqs: the key"), 0),
    ] {
        let error = refused.unwrap_err();
        let text = error.to_string();
        let what = format!("{what} of operation `place` has a mistake");
        assert!(text.starts_with(&what), "{text}");
        assert_eq!(text.lines().last().unwrap().find('^'), Some(place + 2), "{text}");
        assert_eq!(format!("{error:?}"), text, "`main` prints the debug text of an error");
    }
}

#[test]
fn settings_are_refused() {
    let day = Duration::from_hours(24);
    let renewed = |length| place().lease(Lease::Renewed { length });
    let ten = place().retention(Duration::from_mins(10));
    let results = |most| ten.clone().result_retention(Duration::from_mins(most));
    rows!("setting":
        place().retention(Duration::ZERO).check() => ["operation `place` has a retention of zero"],
        results(10).check() => ["`.result_retention(..)` has no effect"],
        results(11).check() => ["`.result_retention(..)` has no effect"],
        renewed(Duration::from_millis(999)).check() => ["`.lease(..)`"],
    );
    // With such a time no worker ever takes over the key of one that died.
    for length in [day + Duration::from_nanos(1), Duration::MAX] {
        rows!("setting": renewed(length).check() => ["`.lease(..)`", "to 86400 s"]);
    }
    let waits = OnConflict::Wait { up_to: Duration::MAX };
    for accepted in [
        results(9),
        renewed(day),
        renewed(Duration::from_secs(1)),
        place().retention(Duration::MAX),
        place().retention(Duration::ZERO).retention(Duration::from_millis(1)),
        place().on_conflict(waits),
    ] {
        assert_eq!(accepted.check(), Ok(()), "{accepted:?}");
    }
}

#[test]
fn modes_are_refused() {
    let mutex = || Operation::new("import").mode(Mode::Mutex);
    let own = ["`import`", "`Mode::Mutex`", "`.key("];
    // Each record would have a key of its own.
    rows!("mode":
        on(Sqs::new(), &mutex()) => [own[0], own[1], own[2]],
        on(Kinesis::new(), &mutex()) => [own[0], own[1], own[2]],
        on(Invoke::by_request_id(), &mutex()) => [own[0], own[1], own[2]],
    );
    assert_eq!(on(Sqs::new(), &mutex().key("tenant")), Ok(()));
    // A source that completes keys would answer those of the source that only excludes.
    let modes = [Mode::Claim, Mode::Mutex, Mode::Transactional, Mode::Optimistic];
    for (one, other) in modes.into_iter().flat_map(|one| modes.map(|other| (one, other))) {
        let built = shared(place().mode(one), Sns::new(), place().mode(other));
        if one == other {
            assert_eq!(built, Ok(()), "{one:?}");
        } else {
            let named = [one, other].map(|mode| format!("`Mode::{mode:?}`"));
            rows!("mode": built => ["`place`", named[0].clone(), named[1].clone()]);
        }
    }
}

#[test]
fn settings_without_effect_in_a_mode_are_refused() {
    let in_mode = |mode| Operation::new("import").key("id").mode(mode);
    let imports = || in_mode(Mode::Mutex);
    let kept = || Sqs::new().recoverable(64 * 1024);
    for (built, setting) in [
        (imports().retention(Duration::from_hours(1)).check(), "retention"),
        (imports().fingerprint("amount").check(), "fingerprint"),
        (imports().on_timeout(OnTimeout::FailPermanently).check(), "on_timeout"),
        (imports().max_failed_attempts(3).check(), "max_failed_attempts"),
        (imports().max_lost_attempts(3).check(), "max_lost_attempts"),
        (on(kept(), &imports()), "recoverable"),
    ] {
        let named = format!("`.{setting}(..)`");
        rows!("mode": built => ["operation `import` has `Mode::Mutex`", named, "remove it, or choose another mode"]);
    }
    let optimistic = || in_mode(Mode::Optimistic);
    let length = Duration::from_secs(9);
    for (operation, said) in [
        (optimistic().lease(Lease::Renewed { length }), "`.lease(..)`"),
        (optimistic().on_conflict(OnConflict::Wait { up_to: length }), "`.on_conflict(..)`"),
        (optimistic().max_failed_attempts(3), "`.max_failed_attempts(..)`"),
        (optimistic().max_lost_attempts(3), "`.max_lost_attempts(..)`"),
        (optimistic().retention(Duration::from_mins(14)), "less than 15 minutes"),
    ] {
        rows!("mode": operation.check() => ["`import`", said, "or use `Mode::Transactional`"]);
    }
    let transaction = || in_mode(Mode::Transactional);
    let unprotected = transaction().on_missing_key(OnMissingKey::RunUnprotected);
    rows!("mode":
        on(kept(), &optimistic()) => ["`import`", "`.recoverable(..)` has no effect"],
        transaction().on_outage(OnOutage::RunUnprotected).check()
            => ["`import`", "`.on_outage(..)` runs handlers without a claim"],
        unprotected.check() => ["`import`", "`.on_missing_key(..)` runs handlers without a claim"],
    );
    for accepted in [imports(), optimistic(), optimistic().retention(Duration::from_mins(15))] {
        assert_eq!(accepted.check(), Ok(()), "{accepted:?}");
    }
}

#[tokio::test]
async fn nor_do_two_functions_or_calls_of_one_name_differ_in_mode() {
    let world = World::instant();
    let idempotency = world.idempotency();
    idempotency.on(Sqs::new(), &place(), nothing).unwrap();
    let second = idempotency.on(Sns::new(), &place().mode(Mode::Mutex), nothing);
    let error = second.unwrap_err().to_string();
    assert!(error.contains("`place`") && error.contains("`Mode::Mutex`"), "{error}");
    let called = Operation::new("called").key("id");
    let (payload, mutex) = (json!({ "id": 1 }), called.clone().mode(Mode::Mutex));
    world.run(&idempotency, &mutex, &payload, 1).await.unwrap();
    let error = world.run(&idempotency, &called, &payload, 1).await.unwrap_err().to_string();
    assert!(error.contains("`called`") && error.contains("`Mode::Mutex`"), "{error}");
    // Equal payloads have equal keys, so a mutex of calls needs none of its own.
    let import = Operation::new("import").mode(Mode::Mutex);
    world.run(&idempotency, &import, &json!("tenant"), 1).await.unwrap();
}

#[test]
fn sources_of_one_operation_that_never_agree_are_refused() {
    let (one, two) = ("4f1f5c0e2b7d49a8", "8a94d7b2e0c5f1f4");
    let secret = |secret| place().key_format(KeyFormat::secret(secret).unwrap());
    let parts = || Operation::new("place").key("[id, coupon]");
    let (bare, amount) = (|| Operation::new("place"), || place().fingerprint("amount"));
    let by = |path| Sns::new().fingerprint(path);
    let optional = || Sns::new().key(payload("[id, coupon]").optional(["coupon"]));
    let inside = || Sns::new().key("powertools_json(body).[id]");
    for (built, setting) in [
        (shared(place(), Sns::new(), place().key_format(KeyFormat::Readable)), "key_format"),
        (shared(place(), Sns::new(), secret(one)), "key_format"),
        (shared(secret(one), Sns::new(), secret(two)), "key_format"),
        (shared(parts(), optional(), parts()), "optional"),
        (shared(place(), Sns::new().key("[id]"), place()), "key"),
        (shared(parts(), Sns::new().key("[id]"), parts()), "key"),
        (shared(parts(), Sns::new().key("{id: id, c: coupon}"), parts()), "key"),
        (shared(place(), Sns::new(), python(place())), "powertools"),
        (shared(python(place()), Sns::new().key("[id]"), python(place())), "key"),
        (shared(python(parts()), inside(), python(parts())), "key"),
        (shared(python(amount()), by("[amount]"), python(amount())), "fingerprint"),
        (shared(amount(), by("[amount]"), amount()), "fingerprint"),
        (shared(amount(), by("{amount: amount}"), amount()), "fingerprint"),
        (shared(place(), by("amount"), place()), "fingerprint"),
    ] {
        assert!(!built.as_ref().unwrap_err().to_string().contains(one), "{built:?}");
        rows!("source": built => ["`place`", "sns", format!("`.{setting}(..)`")]);
    }
    rows!("source":
        shared(bare(), Sns::new().key("id"), bare()) => ["`place`", "for sqs:"],
        both((Sqs::new().key("id"), bare()), (Sns::new(), bare())) => ["`place`", "for sns:"],
    );
    let keyed = || parts().key_format(KeyFormat::secret(one).unwrap());
    let queue = Sqs::new().key(payload("[id, coupon]").optional(["coupon"]));
    let topic = Sns::new().key(payload("[order.id, order.coupon]").optional(["order.coupon"]));
    for accepted in [
        both((queue, keyed()), (topic, keyed())),
        shared(python(place()), Sns::new().key("powertools_json(body).id"), python(place())),
        shared(amount(), by("order.amount"), amount()),
    ] {
        assert_eq!(accepted, Ok(()));
    }
}

#[test]
fn sources_are_refused() {
    async fn lost(_: DivertedRecord) -> Result<(), Failure> {
        Ok(())
    }
    use Envelope as E;
    let idempotency = || World::instant().idempotency();
    let other = async |_| Ok::<_, Failure>(());
    let with_other = || idempotency().function().on(Sqs::new(), &place(), nothing).otherwise(other);
    let no_envelope = ["`place`", "no record has `Envelope::"];
    let none = Vec::<Sqs>::new();
    rows!("source":
        idempotency().function().otherwise(other).build().map(drop) => ["no source; add one with `.on("],
        idempotency().function().on(none, &place(), nothing).build().map(drop) => ["`place`"],
        enveloped(&[E::Sns, E::Sns]) => [no_envelope[0], no_envelope[1]],
        enveloped(&[E::Sns, E::S3, E::S3]) => [no_envelope[0], no_envelope[1]],
        enveloped(&[E::S3, E::Sns]) => [no_envelope[0], no_envelope[1]],
        enveloped(&[E::EventBridge, E::Sns, E::EventBridge]) => [no_envelope[0], no_envelope[1]],
        on(Sqs::new().key("a").key("b"), &place()) => ["`.key(..)` replaces what was set before", "set it once"],
        on(Sqs::new().divert_bad_records(lost).divert(lost), &place()) => ["`.divert(..)` replaces"],
        on(Sqs::new().recoverable(0), &place()) => ["`place`", "`.recoverable(0)` keeps no record"],
        on(ActiveMq::new().concurrency(4).in_order(), &place()) => ["`place`", "`.concurrency(..)` has no effect", "`.in_order()`"],
        on(Kinesis::new().order(KeepOrder::Shard).concurrency(4), &place()) => ["`.concurrency(..)` has no effect", "Shard"],
        on(Sqs::new().envelope(E::S3).whole_record(), &Operation::new("place")) => [".key("],
        // Pipes read no partial answer of Kafka, so nothing can be switched off.
        on(Pipe::of(Kafka::new().without_partial_responses()), &place())
            => ["has no effect for pipe from kafka"],
    );
    assert_eq!(on(Pipe::of(Sqs::new().without_partial_responses()), &place()), Ok(()));
    for envelopes in [
        &[E::Sns, E::S3][..],
        &[E::Sns, E::EventBridge],
        &[E::EventBridge, E::Sns, E::S3],
        &[E::S3],
    ] {
        assert_eq!(enveloped(envelopes), Ok(()), "{envelopes:?}");
    }
    assert_eq!(on(Sqs::new().recoverable(1), &place()), Ok(()));
    // An event of Kafka may have several partitions.
    let kafka = Kafka::new().order(KeepOrder::Shard).concurrency(4);
    assert_eq!(on(kafka, &place()), Ok(()));
    with_other().build().unwrap();
}

#[test]
fn filters_that_match_no_record_are_refused() {
    let (queue, topic) =
        (|name| on(Sqs::new().queue(name), &place()), |name| on(Sns::new().topic(name), &place()));
    for (built, setting, problem) in [
        (queue("https://sqs.eu-west-1.amazonaws.com/111122223333/orders"), "queue", "is a URL"),
        (queue(""), "queue", "is empty"),
        (topic(" "), "topic", "is empty"),
        (on(Kinesis::new().stream("orders "), &place()), "stream", "characters"),
        (on(DynamoDbStream::new().table("table/orders"), &place()), "table", "characters"),
        (on(S3::new().bucket("s3://uploads"), &place()), "bucket", "is a URL"),
        (on(Kafka::new().broker("b-1.shop:9092"), &place()), "broker", "characters"),
        (on(RabbitMq::new().broker(""), &place()), "broker", "is empty"),
        (on(Pipe::of(ActiveMq::new().broker("")), &place()), "broker", "is empty"),
        (on(Scheduler::new().schedule(""), &place()), "schedule", "is empty"),
        (on(EventBridge::new().event_source(""), &place()), "event_source", "is empty"),
        (on(EventBridge::new().detail_type("Placed "), &place()), "detail_type", "a space"),
        (queue("arn:aws:sns:eu-west-1:1:orders"), "queue", "another service"),
        (queue("arn:aws:sqs:eu-west-1:1"), "queue", "whole ARN"),
        (topic("arn:aws:sns:eu-west-1:1:a:3f2a"), "topic", "whole ARN"),
        (
            on(Kafka::new().topic("arn:aws:sns:eu-west-1:1:orders"), &place()),
            "topic",
            "Kafka records contain the topic's name",
        ),
    ] {
        rows!("source": built => [format!("`.{setting}("), problem, "`place`", "give the name"]);
    }
    let bus = EventBridge::new;
    let both_of = "no record can match both";
    rows!("source":
        on(Sqs::new().queue("orders").queue("refunds"), &place()) => ["`place`", both_of],
        on(Kafka::new().topic("orders").broker("shop").topic("refunds"), &place()) => ["`place`", both_of],
        on(bus().event_source("shop").event_source("stock"), &place()) => ["`place`", both_of],
        on(bus().detail_type("Placed").detail_type("Cancelled"), &place()) => ["`place`", both_of],
    );
    for accepted in [
        on(Sqs::new().queue("orders").queue("orders"), &place()),
        on(Kafka::new().topic("orders").broker("shop"), &place()),
        on(bus().detail_type("Placed").event_source("shop"), &place()),
    ] {
        assert_eq!(accepted, Ok(()));
    }
}

#[test]
fn handlers_that_no_event_reaches_are_refused() {
    const TABLE: &str = "arn:aws:dynamodb:eu-west-1:111122223333:table/orders";
    let queue = |name: &str| Sqs::new().queue(name);
    let arn = || queue("arn:aws:sqs:eu-west-1:111122223333:orders");
    let table = || DynamoDbStream::new().table(TABLE);
    let stream = || DynamoDbStream::new().table(format!("{TABLE}/stream/2026-01-01T00:00:00.000"));
    let bus = || EventBridge::new().event_source("shop");
    let unreached = "operation `b` is never reached: `a` comes before it and takes all of its ";
    rows!("source":
        ordered(Sqs::new(), Sqs::new()) => [unreached, ".queue("],
        ordered(Invoke::new(), Invoke::new()) => [unreached, "give `Invoke` once"],
        ordered(Sqs::new(), queue("orders")) => [unreached, ".queue("],
        ordered(queue("orders"), queue("orders")) => [unreached, ".queue("],
        ordered(queue("orders"), arn()) => [unreached],
        ordered(Pipe::of(queue("orders")), Pipe::of(arn())) => [unreached],
        ordered(table(), stream()) => [unreached],
        ordered(bus(), bus().detail_type("Placed")) => [unreached],
    );
    for accepted in [
        ordered(queue("orders"), queue("refunds")),
        // The second gets queues of that name in other accounts and regions, and the table's other streams.
        ordered(arn(), queue("orders")),
        ordered(stream(), table()),
        ordered(bus().detail_type("Placed"), bus()),
        // Other sources, and pipes of other sources, have other events.
        ordered(Sqs::new(), Sns::new()),
        ordered(queue("orders"), Pipe::of(arn())),
        ordered(Pipe::of(Kinesis::new()), Pipe::of(queue("orders"))),
    ] {
        assert_eq!(accepted, Ok(()));
    }
}

/// A handler of whole events would refuse every record. Every member of a record's type may be missing, so that each payload
/// would be an empty record.
#[test]
fn handlers_of_other_types_than_their_source_delivers_are_refused() {
    let event = "operation `place` takes a whole event, `aws_lambda_events::";
    let record = "`place` takes a whole record";
    rows!("source":
        takes::<sqs::SqsEvent>(Sqs::new()) => [event, "gets one record"],
        takes::<sqs::SqsEvent>(Sqs::new().whole_record()) => [event],
        takes::<sqs::SqsEventObj<Value>>(Sqs::new()) => [event],
        takes::<sqs::SqsEvent>(Pipe::of(Sqs::new())) => [event],
        takes::<KinesisEvent>(Kinesis::new()) => [event],
        takes::<dynamodb::Event>(DynamoDbStream::new()) => [event],
        takes::<S3Event>(S3::new()) => [event],
        takes::<sqs::SqsMessage>(Sqs::new()) => [record, ".whole_record()"],
        takes::<sqs::SqsMessage>(Pipe::of(Sqs::new())) => [record],
        takes::<EventBridgeEvent<Value>>(EventBridge::new()) => [record],
        takes::<CloudWatchEvent>(EventBridge::new()) => [record],
    );
    for accepted in [
        takes::<sqs::SqsEvent>(Invoke::by_request_id()),
        takes::<sqs::SqsMessage>(Sqs::new().whole_record()),
        // The notifications, or the event, in a message.
        takes::<S3Event>(Sqs::new()),
        takes::<EventBridgeEvent<Value>>(Sqs::new()),
    ] {
        assert_eq!(accepted, Ok(()));
    }
}

#[tokio::test]
async fn operations_are_checked_wherever_they_are_used() {
    let world = World::instant();
    let idempotency = world.idempotency();
    let bad = || Operation::new("place").key("a.");
    rows!("key":
        on(Sqs::new(), &bad()) => ["has a mistake"],
        on(Sns::new(), &bad()) => ["has a mistake"],
        on(EventBridge::new(), &bad()) => ["has a mistake"],
    );
    let run = world.run(&idempotency, &bad(), &Value::Null, 1).await;
    let Err(RunError::Config(error)) = run else { panic!("{run:?}") };
    rows!("key": Err(error) => ["has a mistake"]);
    // A change discards the compiled expressions.
    let good = place();
    assert_eq!(good.check(), Ok(()));
    assert!(good.clone().key("a.").check().is_err());
    assert_eq!(good.check(), Ok(()));
}
