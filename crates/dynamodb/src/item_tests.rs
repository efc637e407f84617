use std::sync::Arc;

use lambda_idempotency_core::record::{Provenance, Worker};

use super::*;

fn names() -> Attributes {
    Attributes::default()
}

fn full() -> IdempotencyRecord {
    let mut record =
        IdempotencyRecord::new(Status::PermanentlyFailed, Timestamp::from_secs(1_700_003_600));
    record.owner = Some(Owner::from_bits(1));
    record.last_owner = Some(Owner::from_bits(2));
    record.failed_attempts = 3;
    record.lost_attempts = 4;
    record.consecutive_losses = 2;
    record.fence = 1_700_000_000_123;
    record.lease_until = Some(Timestamp::from_millis(1_700_000_030_123));
    record.fingerprint = Some(Fingerprint::new("f"));
    record.result = Some(r#"{"ok":true}"#.into());
    record.error_type = Some("Declined".into());
    record.provenance = Some(provenance());
    record.steps = Some(r#"{"charge":{"id":"ch-1"}}"#.into());
    record.outbox = Some(r#"[{"body":"paid"}]"#.into());
    record.payload = Some(r#"{"orderId":"o-1"}"#.into());
    record
}

fn provenance() -> Provenance {
    let mut worker = Worker::default().with_request_id("8f5d9c3e-6c3a-4a52-b0ae-9d7f4a8c1b22");
    worker.function = Some("orders-prod-place-order".into());
    worker.version = Some("$LATEST".into());
    worker.log_stream = Some("2026/11/22/[$LATEST]0123456789abcdef0123456789abcdef".into());
    Provenance::new(Timestamp::from_millis(1_700_000_000_123), Arc::new(worker))
        .with_record("sqs", "2e1424d4-f796-459a-8184-9c92662be6da".into())
}

fn item(pairs: &[(&str, AttributeValue)]) -> Item {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.into())
}

fn n(text: &str) -> AttributeValue {
    AttributeValue::N(text.into())
}

#[test]
fn every_field_survives() {
    let item = encode(&names(), &Key::from_text("k"), &full());
    assert_eq!(decode(&names(), &item), Ok(full()));
    assert_eq!(key_text(&names(), &item), Some("k"));
}

#[test]
fn a_plain_claim_has_no_empty_attributes() {
    let mut record =
        IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(1_700_003_600));
    record.owner = Some(Owner::from_bits(1));
    record.lease_until = Some(Timestamp::from_millis(1_700_000_030_123));
    assert_eq!(
        encode(&names(), &Key::from_text("k"), &record),
        item(&[
            ("id", s("k")),
            ("status", s("INPROGRESS")),
            ("expiration", n("1700003600")),
            ("in_progress_expiration", n("1700000030123")),
            ("owner", s("00000000000000000000000000000001")),
        ])
    );
}

#[test]
fn the_lease_that_powertools_leaves_behind_is_kept() {
    let found = item(&[
        ("id", s("orders-fn.app.process#5deaee1c")),
        ("status", s("COMPLETED")),
        ("expiration", n("1700003600")),
        ("in_progress_expiration", n("1700000030123")),
        ("data", s(r#"{"ok": true}"#)),
    ]);
    let record = decode(&names(), &found).unwrap();
    assert_eq!(record.lease_until, Some(Timestamp::from_millis(1_700_000_030_123)));
    assert_eq!(record.result.as_deref(), Some(r#"{"ok": true}"#));
    assert_eq!((record.owner, record.failed_attempts), (None, 0));
}

#[test]
fn a_fractional_expiry_is_exact_both_ways() {
    let found = item(&[("status", s("COMPLETED")), ("expiration", n("1700003600.12"))]);
    let record = decode(&names(), &found).unwrap();
    assert_eq!(record.expires_at.as_millis(), 1_700_003_600_120);
    assert_eq!(seconds(record.expires_at), n("1700003600.120"));
}

#[test]
fn numbers_are_read_exactly_or_not_at_all() {
    for (text, places, value) in [
        ("0", 0, Some(0)),
        ("00.000", 3, Some(0)),
        ("1", 3, Some(1000)),
        ("1.7E+9", 3, Some(1_700_000_000_000)),
        ("1500e-1", 0, Some(150)),
        ("1500e-3", 0, None),
        ("1700000000.1234", 3, None),
        ("1700000030123.5", 0, None),
        ("0.0001", 3, None),
        ("-1", 0, None),
        ("1e300", 0, None),
        ("1e-300", 0, None),
        ("99999999999999999999", 0, None),
        ("18446744073709551615", 0, Some(u64::MAX)),
        ("", 0, None),
        (".", 0, None),
        ("NaN", 0, None),
        ("1e99999999999", 0, None),
    ] {
        assert_eq!(scaled(text, places), value, "{text} at {places}");
    }
}

#[test]
fn what_is_not_a_record_is_named_and_not_quoted() {
    let good = [("status", s("COMPLETED")), ("expiration", n("1"))];
    for (bad, attribute) in [
        (("status", s("EXPIRED")), "status"),
        (("status", n("1")), "status"),
        (("expiration", s("1")), "expiration"),
        (("expiration", n("1.0001")), "expiration"),
        (("in_progress_expiration", n("-5")), "in_progress_expiration"),
        (("owner", s("me")), "owner"),
        (("owner", s("0000000000000000000000000000000A")), "owner"),
        (("last_owner", n("1")), "last_owner"),
        (("failed_attempts", n("4294967296")), "failed_attempts"),
        (("consecutive_losses", s("1")), "consecutive_losses"),
        (("data", n("NaN")), "data"),
        (("validation", n("1")), "validation"),
        (("error", n("1")), "error"),
        (("steps", n("1")), "steps"),
        (("outbox", n("1")), "outbox"),
        (("payload", n("1")), "payload"),
    ] {
        let mut found = item(&good);
        found.insert(bad.0.to_owned(), bad.1);
        let error = decode(&names(), &found).unwrap_err();
        assert_eq!(error.attribute, attribute);
    }
    for missing in ["status", "expiration"] {
        let mut found = item(&good);
        found.remove(missing);
        assert_eq!(decode(&names(), &found), Err(absent(missing)));
    }
}

#[test]
fn the_size_is_never_less_than_dynamodb_counts() {
    let found = item(&[("id", s("k")), ("n", n("1700003600"))]);
    assert_eq!(size(&found), 2 + 1 + 1 + 6);
}

#[test]
fn a_provenance_that_is_damaged_leaves_the_record_readable() {
    let map = |pairs: &[(&str, AttributeValue)]| AttributeValue::M(item(pairs));
    let mut found = item(&[("status", s("COMPLETED")), ("expiration", n("1"))]);
    let mut read = |value: AttributeValue| {
        found.insert("provenance".to_owned(), value);
        decode(&names(), &found).unwrap().provenance
    };
    for damaged in [s("orders"), map(&[]), map(&[("claimed_at", s("1"))])] {
        assert_eq!(read(damaged), None);
    }
    let partly = map(&[("claimed_at", n("7")), ("version", n("3")), ("function", s("f"))]);
    let partly = read(partly).unwrap();
    assert_eq!(partly.claimed_at, Timestamp::from_millis(7));
    let Worker { function, version, .. } = &*partly.worker;
    assert_eq!((function.as_deref(), version.as_deref()), (Some("f"), None));
}

#[test]
fn a_fresh_record_is_billed_as_one_write_unit() {
    let longest = "x".repeat(64); // of a function
    let mut record = full();
    record.status = Status::InProgress;
    record.result = None;
    record.fingerprint = Some(Fingerprint::new("f".repeat(64)));
    record.application = Some(longest.as_str().into());
    let mut provenance = provenance();
    let mut worker = Worker::clone(&provenance.worker);
    worker.function = Some(longest.as_str().into());
    let record_of_a_shard = format!("shardId-000000000006:{}", "4".repeat(56));
    provenance.worker = Arc::new(worker);
    record.provenance = Some(provenance.with_record("kinesis", record_of_a_shard.into()));
    let key = Key::from_text(format!("{}#{}", "o".repeat(64), "a".repeat(64)));
    let whole = size(&encode(&names(), &key, &record));
    record.provenance = None;
    let without = size(&encode(&names(), &key, &record));
    println!("{whole} bytes, {without} without provenance");
    assert!(whole <= 1024, "{whole} bytes, of which {} are provenance", whole - without);
}

#[test]
fn lists_and_maps_are_larger_than_what_is_in_them() {
    let list = AttributeValue::L(vec![s("ab"), n("123")]);
    assert_eq!(size(&item(&[("data", list)])), 4 + 3 + (1 + 2) + (1 + 3));
    let map = AttributeValue::M(item(&[("a", s("bc")), ("d", n("1"))]));
    assert_eq!(size(&item(&[("data", map)])), 4 + 3 + (1 + 1 + 2) + (1 + 1 + 2));
}

/// A batch is filled up to its limit by this bound.
#[test]
fn the_bound_of_the_size_covers_every_text_of_a_record() {
    let long = format!("[{}]", "7".repeat(20_000));
    let key = Key::from_text("place#o-1");
    let texts: [fn(&mut IdempotencyRecord, &str); 7] = [
        |record, text| record.result = Some(text.into()),
        |record, text| record.steps = Some(text.into()),
        |record, text| record.outbox = Some(text.into()),
        |record, text| record.payload = Some(text.into()),
        |record, text| record.error_type = Some(text.into()),
        |record, text| record.application = Some(text.into()),
        |record, text| record.fingerprint = Some(Fingerprint::new(text)),
    ];
    for (n, set) in texts.iter().enumerate() {
        let mut record = full();
        set(&mut record, &long);
        let exact = size(&encode(&names(), &key, &record));
        assert!(size_at_most(&names(), &key, &record) >= exact, "text {n}");
    }
}
