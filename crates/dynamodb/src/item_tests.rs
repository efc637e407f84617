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
    record
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
fn what_is_no_record_is_named_and_not_quoted() {
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
        (("failures", n("4294967296")), "failures"),
        (("consecutive_losses", s("1")), "consecutive_losses"),
        (("data", n("NaN")), "data"),
        (("validation", n("1")), "validation"),
        (("error", n("1")), "error"),
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
