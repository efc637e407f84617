use super::*;

fn pairs(fields: &[(&str, &str)]) -> Vec<Value> {
    let value = |text: &str| Value::BulkString(text.as_bytes().to_vec());
    fields.iter().flat_map(|(name, text)| [value(name), value(text)]).collect()
}

const WHOLE: [(&str, &str); 2] = [("status", "COMPLETED"), ("expires_at", "4000000000000")];

#[test]
fn a_record_without_anything_optional_is_two_fields() {
    let record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(4_000_000_000));
    let fields = encode(&record);
    assert_eq!(fields, WHOLE.map(|(name, text)| (name, text.to_owned())));
    assert_eq!(decode(pairs(&WHOLE)), Ok(Some(record)));
}

#[test]
fn no_fields_mean_that_there_is_no_record() {
    assert_eq!(decode(vec![]), Ok(None));
}

#[test]
fn fields_of_a_later_version_are_ignored() {
    let mut fields = WHOLE.to_vec();
    fields.push(("colour", "blue"));
    assert_eq!(decode(pairs(&fields)), decode(pairs(&WHOLE)));
}

#[test]
fn what_a_guard_could_never_compare_is_not_a_record() {
    for (field, text) in [
        ("status", "completed"),
        ("expires_at", "04000000000000"),
        ("expires_at", "4e12"),
        ("lease_until", "-1"),
        ("lease_until", "18446744073709551616"),
        ("owner", "0123456789ABCDEF0123456789ABCDEF"),
        ("last_owner", "7"),
        ("lost_attempts", "4294967296"),
        ("fence", "+1"),
    ] {
        let mut fields = WHOLE.to_vec();
        fields.retain(|(name, _)| *name != field);
        fields.push((field, text));
        let error = decode(pairs(&fields)).unwrap_err();
        assert_eq!(error.field, field, "{text}");
        assert!(!error.problem.contains(text));
    }
    for (left, missing) in [(0, "expires_at"), (1, "status")] {
        let error = decode(pairs(&WHOLE[left..=left])).unwrap_err();
        assert_eq!((error.field, error.problem), (missing, "is missing"));
    }
    let mut fields = pairs(&WHOLE);
    fields.extend([Value::BulkString(b"result".to_vec()), Value::BulkString(vec![0xff])]);
    assert_eq!(decode(fields).unwrap_err().problem, "is not valid UTF-8 text");
}

#[test]
fn a_provenance_that_cannot_be_read_is_left_out() {
    let mut fields = WHOLE.to_vec();
    fields.push(("provenance", "{\"request_id\":\"r\"}"));
    assert_eq!(decode(pairs(&fields)), decode(pairs(&WHOLE)));
}

#[test]
fn a_record_is_removed_a_margin_after_it_counts() {
    let margin = Duration::from_secs(600);
    let mut record = IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(1_000));
    assert_eq!(removal(&record, margin), Timestamp::from_secs(1_600));
    record.lease_until = Some(Timestamp::from_millis(1_000_001));
    assert_eq!(removal(&record, margin), Timestamp::from_millis(1_600_001), "while it is held");
    record.status = Status::Completed;
    assert_eq!(removal(&record, margin), Timestamp::from_secs(1_600), "a completion holds nothing");
    record.expires_at = Timestamp::from_millis(u64::MAX);
    assert_eq!(removal(&record, margin), LAST);
}
