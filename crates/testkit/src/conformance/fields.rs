//! A store returns a record as it was written, field by field.

use std::sync::Arc;

use lambda_idempotency_core::{
    clock::Timestamp,
    record::{Fingerprint, IdempotencyRecord, Owner, Provenance, Status, Worker},
    store::{Guard, RecordVersion, Store},
};

use super::kit::{
    Slot, completed, in_progress, now, read_all, secs, token, whole_provenance, written,
};

/// Writes each record, and expects the same record from a read and from a refused write.
async fn come_back(
    store: &dyn Store,
    records: impl IntoIterator<Item = IdempotencyRecord>,
    why: &str,
) {
    for record in records {
        let slot = Slot::fresh(store);
        slot.accepts(Guard::Absent, Some(&record), why).await;
        slot.refuses(Guard::Absent, Some(&in_progress(token())), Some(&record), why).await;
    }
}

/// A record with every field set, and one without optional fields, in every status: absent differs from empty and from zero.
pub async fn every_field_present_or_absent(store: &dyn Store) {
    for mut record in [filled(), IdempotencyRecord::new(Status::InProgress, now().plus(secs(3600)))]
    {
        for status in [Status::InProgress, Status::Completed, Status::PermanentlyFailed] {
            record.status = status;
            come_back(store, [record.clone()], "every field is kept as it is").await;
        }
    }
}

/// A takeover replaces the whole record. If a field were left over, a new claim would answer with an old result, or be
/// compared with an old fingerprint. A settlement leaves only what is its claim's.
pub async fn a_write_replaces_every_field(store: &dyn Store) {
    let old = filled();
    let mut claim = old.clone();
    (claim.last_owner, claim.result, claim.outbox) = (None, None, None);
    for status in [Status::InProgress, Status::Completed] {
        let bare = IdempotencyRecord::new(status, now().plus(secs(3600)));
        let why = "a write replaces the record: no field of the old one is left";
        let slot = Slot::with(store, &old).await;
        slot.accepts(Guard::Unchanged(RecordVersion::of(&old)), Some(&bare), why).await;
        let mut settled = bare.clone();
        (settled.failed_attempts, settled.lost_attempts) = (3, claim.lost_attempts);
        settled.fence = claim.fence;
        settled.fingerprint.clone_from(&claim.fingerprint);
        settled.application.clone_from(&claim.application);
        settled.provenance.clone_from(&claim.provenance);
        let slot = Slot::with(store, &claim).await;
        let owner = claim.owner.expect("`filled` sets it");
        slot.accepts(Guard::OwnedBy(owner), Some(&settled), why).await;
    }
}

/// Records with only one optional field set, and with only one missing, for each field.
pub async fn each_optional_field_by_itself(store: &dyn Store) {
    let set: [fn(&mut IdempotencyRecord, &IdempotencyRecord); 11] = [
        |to, from| to.owner = from.owner,
        |to, from| to.last_owner = from.last_owner,
        |to, from| to.lease_until = from.lease_until,
        |to, from| to.fingerprint.clone_from(&from.fingerprint),
        |to, from| to.result.clone_from(&from.result),
        |to, from| to.error_type.clone_from(&from.error_type),
        |to, from| to.application.clone_from(&from.application),
        |to, from| to.provenance.clone_from(&from.provenance),
        |to, from| to.steps.clone_from(&from.steps),
        |to, from| to.outbox.clone_from(&from.outbox),
        |to, from| to.payload.clone_from(&from.payload),
    ];
    let (full, bare) =
        (filled(), IdempotencyRecord::new(Status::InProgress, now().plus(secs(3600))));
    for set in set {
        let (mut one, mut all_but_one) = (bare.clone(), full.clone());
        set(&mut one, &full);
        set(&mut all_but_one, &bare);
        come_back(store, [one, all_but_one], "a field is kept with and without the others").await;
    }
}

/// A mark that messages are sent, and a renewal, write back the record that was read: all else stays as it was.
pub async fn marks_and_renewals_change_nothing_else(store: &dyn Store) {
    let renewed = now().plus(secs(120));
    let change = |record: &mut IdempotencyRecord| match record.status {
        Status::InProgress => record.lease_until = Some(renewed),
        _ => record.outbox = None,
    };
    for status in [Status::Completed, Status::InProgress] {
        let mut record = filled();
        record.status = status;
        let slot = Slot::with(store, &record).await;
        let mut found = slot.read().await.expect("the record that was written");
        let guard = Guard::Unchanged(RecordVersion::of(&found));
        change(&mut found);
        change(&mut record);
        let why = "a write changes what it is for, and leaves the rest as it is stored";
        written(slot.write(guard, Some(&found)).await, why);
        slot.holds(Some(&record), why).await;
    }
}

/// A record with every field set.
fn filled() -> IdempotencyRecord {
    let mut record = in_progress(token());
    record.last_owner = Some(token());
    record.failed_attempts = 2;
    record.lost_attempts = 3;
    record.consecutive_losses = 1;
    record.fence = 1_700_000_000_123;
    record.fingerprint = Some(Fingerprint::new("1f3870be274f6c49b3e31a0c6728957f"));
    record.result = Some("{\"charged\":true}".into());
    record.error_type = Some("payments::Declined".into());
    record.application = Some("payments-prod".into());
    record.provenance = Some(whole_provenance());
    record.steps = Some("{\"charge\":{\"id\":\"ch-1\"}}".into());
    record.outbox = Some("[{\"body\":\"paid\"}]".into());
    record.payload = Some(" {\"orderId\":\"o-1\", \"n\": 1.0}".into());
    record
}

/// Provenances of which each part is known, or unknown, by itself.
pub async fn provenance_of_every_shape(store: &dyn Store) {
    let set: [fn(&mut Provenance, &mut Worker, &Provenance); 6] = [
        |_, worker, from| worker.request_id.clone_from(&from.worker.request_id),
        |_, worker, from| worker.function.clone_from(&from.worker.function),
        |_, worker, from| worker.version.clone_from(&from.worker.version),
        |_, worker, from| worker.log_stream.clone_from(&from.worker.log_stream),
        |to, _, from| to.source.clone_from(&from.source),
        |to, _, from| to.record.clone_from(&from.record),
    ];
    let full = whole_provenance();
    let bare = Provenance::new(full.claimed_at, Arc::default());
    let mut shapes = vec![bare.clone()];
    for set in set {
        for (start, from) in [(&bare, &full), (&full, &bare)] {
            let (mut to, mut worker) = (start.clone(), Worker::clone(&start.worker));
            set(&mut to, &mut worker, from);
            to.worker = Arc::new(worker);
            shapes.push(to);
        }
    }
    let records = shapes.into_iter().map(|provenance| {
        let mut record = in_progress(token());
        record.provenance = Some(provenance);
        record
    });
    come_back(store, records, "each part of the provenance is kept").await;
}

/// The counters and the fence, each from zero to its maximum.
pub async fn counters(store: &dyn Store) {
    for [failed_attempts, lost_attempts, consecutive_losses] in [
        [0, 0, 0],
        [1, 0, 0],
        [0, 1, 0],
        [0, 0, 1],
        [7, 300, 299],
        [u32::MAX, 0, 0],
        [0, u32::MAX, 0],
        [0, 0, u32::MAX],
    ] {
        let mut record = in_progress(token());
        record.failed_attempts = failed_attempts;
        record.lost_attempts = lost_attempts;
        record.consecutive_losses = consecutive_losses;
        come_back(store, [record], "each counter is kept").await;
    }
    for fence in [0, 1, 1_700_000_000_123, u64::MAX] {
        let mut record = in_progress(token());
        record.fence = fence;
        come_back(store, [record], "the fence is kept to the last digit").await;
    }
}

/// Results are JSON text, kept byte for byte, so that a replay answers with what the handler returned; so are other texts.
pub async fn texts_byte_for_byte(store: &dyn Store) {
    let results = [
        "null",
        "true",
        "false",
        "0",
        "-0.0",
        "12345678901234567890",
        "0.1000000000000000055511151231257827",
        "1E400",
        "\"\"",
        "[]",
        "{}",
        "\"null\"",
        "\"a string\"",
        " { \"spaces\" : [ 1 , 2 ] } ",
        "{\"b\":1,\"a\":2,\"b\":3}",
        "\"quote \\\" backslash \\\\ newline \\n nul \\u0000 surrogates \\ud83d\\ude00\"",
        "\"'; DROP TABLE idempotency; --\"",
        "\"${jndi} {0} %s :name #name ?\"",
    ];
    let records = results.map(|result| completed(token(), result));
    come_back(store, records, "a result is text: kept byte for byte, not parsed").await;
    let mut record =
        completed(token(), "\"Grüße, 注文 \u{1f69a}, e\u{301} \u{e9}, \u{200f}עברית\"");
    record.error_type = Some("Größe<\u{1f69a}>\n\ttabbed".into());
    record.fingerprint = Some(Fingerprint::new("指紋"));
    come_back(store, [record], "text of all Unicode planes is kept, not normalised").await;
}

/// A result of 300 KiB of random text, which does not compress well and is not all ASCII.
pub async fn large_result(store: &dyn Store) {
    let why = "a result of 300 KiB is kept completely";
    come_back(store, [completed(token(), &large())], why).await;
}

/// A JSON string of 300 KiB.
fn large() -> String {
    let mut text = String::from("\"");
    while text.len() < 300 * 1024 - 40 {
        text.push_str(&token().to_string());
        text.push('ß');
    }
    text.push('"');
    text
}

/// Many large records in one read (more than any server answers at once).
pub async fn many_large_records_in_one_read(store: &dyn Store) {
    let slots = Slot::several(store, 60);
    let mut records = Vec::new();
    for slot in &slots {
        let record = completed(token(), &large());
        slot.given(&record).await;
        records.push(Some(record));
    }
    let keys: Vec<_> = slots.iter().map(|slot| slot.key.clone()).collect();
    let read = read_all(store, &keys).await;
    for (index, (read, expected)) in read.iter().zip(&records).enumerate() {
        assert!(
            read == expected,
            "a read of 60 records of 300 KiB returns all of them; number {index} differs"
        );
    }
}

/// Tokens with leading zeros, and the smallest and largest token.
pub async fn owners_of_every_shape(store: &dyn Store) {
    for bits in [0, 1, u128::from(u64::MAX), 1 << 127, u128::MAX] {
        let mut record = in_progress(Owner::from_bits(bits));
        record.last_owner = Some(Owner::from_bits(!bits));
        let slot = Slot::with(store, &record).await;
        slot.holds(Some(&record), "a token of any 128 bits is kept").await;
        let why = "a token is compared as it was written";
        let mut completed = completed(token(), "1");
        completed.last_owner = record.last_owner;
        slot.accepts(Guard::OwnedBy(Owner::from_bits(bits)), Some(&completed), why).await;
    }
}

/// Leases keep their milliseconds, and expiry its seconds, now and in the year 2100.
pub async fn instants_keep_their_precision(store: &dyn Store) {
    for (lease, expires) in [
        (Timestamp::from_millis(1), now().plus(secs(3600))),
        (Timestamp::from_millis(1_700_000_000_001), Timestamp::from_secs(4_102_444_801)),
        (Timestamp::from_millis(4_102_444_800_999), Timestamp::from_secs(4_102_444_801)),
    ] {
        let mut record = IdempotencyRecord::new(Status::InProgress, expires);
        record.lease_until = Some(lease);
        let slot = Slot::with(store, &record).await;
        slot.holds(Some(&record), "a lease has milliseconds, an expiry whole seconds").await;
        let why = "an instant is compared as it was written";
        slot.accepts(
            Guard::Unchanged(RecordVersion::of(&record)),
            Some(&in_progress(token())),
            why,
        )
        .await;
    }
}
