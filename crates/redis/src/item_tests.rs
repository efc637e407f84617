use super::*;

const OWNER: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn a_record_without_anything_optional_is_one_line() {
    let record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(4_000_000_000));
    let text = "COMPLETED - - - 4000000000000\n";
    assert_eq!(encode(&record), text);
    assert_eq!(decode(text.as_bytes()), Ok(record));
}

#[test]
fn a_record_is_text_that_people_can_read() {
    let mut record =
        IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(1_700_086_400));
    record.owner = Owner::parse(OWNER);
    record.lease_until = Some(Timestamp::from_millis(1_700_000_060_000));
    record.fence = 1_700_000_000_000;
    record.result = Some("{\"a\":\n1}".into());
    let text = format!(
        "INPROGRESS {OWNER} - 1700000060000 1700086400000\nfence 13 1700000000000\nresult 8 {{\"a\":\n1}}\n"
    );
    assert_eq!(encode(&record), text);
    assert_eq!(decode(text.as_bytes()), Ok(record));
}

#[test]
fn fields_of_a_later_version_are_ignored() {
    let text = "COMPLETED - - - 1000\ncolour 5 b u\ne\nfence 1 7\n";
    assert_eq!(decode(text.as_bytes()).unwrap().fence, 7);
}

#[test]
fn what_a_guard_could_never_compare_is_not_a_record() {
    for (text, field) in [
        ("", "status"),
        ("s3cr3t", "status"),
        ("completed - - - 1", "status"),
        ("COMPLETED - - - 01", "expires_at"),
        ("COMPLETED - - - -", "expires_at"),
        ("COMPLETED - - - 4e12", "expires_at"),
        ("INPROGRESS - - -1 1", "lease_until"),
        ("INPROGRESS - - 18446744073709551616 1", "lease_until"),
        ("INPROGRESS 0123456789ABCDEF0123456789ABCDEF - - 1", "owner"),
        ("INPROGRESS - 7 - 1", "last_owner"),
        ("COMPLETED - - - 1\nlost_attempts 10 4294967296\n", "lost_attempts"),
        ("COMPLETED - - - 1\nfence 2 +1\n", "fence"),
        ("COMPLETED - - - 1\nresult 9 s3cr3t\n", "fields"),
        ("COMPLETED - - - 1\nresult 2 s3cr3t\n", "fields"),
        ("COMPLETED - - - 1\nresult", "fields"),
    ] {
        let error = decode(text.as_bytes()).unwrap_err();
        assert_eq!(error.field, field, "{text}");
        assert!(!error.problem.contains("s3cr3t"));
    }
    assert_eq!(decode(&[0xff]).unwrap_err().field, "status");
    // A length that ends inside of a character.
    assert_eq!(decode("COMPLETED - - - 1\nresult 1 ß\n".as_bytes()).unwrap_err().field, "fields");
}

#[test]
fn a_provenance_that_cannot_be_read_is_left_out() {
    let text = "COMPLETED - - - 1000\nprovenance 18 {\"request_id\":\"r\"}\n";
    assert_eq!(decode(text.as_bytes()).unwrap().provenance, None);
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
