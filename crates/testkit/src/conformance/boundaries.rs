//! The fields that a guard compares: one scenario for each field, and for a missing record.

use std::time::Duration;

use lambda_idempotency_core::{
    clock::Timestamp,
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, RecordVersion, Store},
};

use super::kit::{Slot, completed, fresh_key, in_progress, now, released, secs, token, written};

/// A record with every field that `RecordVersion` names.
fn full() -> IdempotencyRecord {
    let mut record = in_progress(token());
    record.last_owner = Some(token());
    record
}

/// Tries guards that differ from `record` in one field, then the right one.
async fn names(
    store: &dyn Store,
    record: &IdempotencyRecord,
    field: &str,
    others: impl IntoIterator<Item = RecordVersion>,
) {
    let slot = Slot::with(store, record).await;
    let successor = in_progress(token());
    for other in others {
        let why =
            format!("`RecordVersion` names `{field}`: a record that differs only in it is refused");
        slot.refuses(Guard::Unchanged(other), Some(&successor), Some(record), &why).await;
    }
    let why = format!("`RecordVersion` holds for the record that was read (`{field}` included)");
    slot.accepts(Guard::Unchanged(RecordVersion::of(record)), Some(&successor), &why).await;
}

/// `RecordVersion` with another status is refused, because the record was settled meanwhile.
pub async fn unchanged_names_the_status(store: &dyn Store) {
    const ALL: [Status; 3] = [Status::InProgress, Status::Completed, Status::PermanentlyFailed];
    for status in ALL {
        let mut record = full();
        record.status = status;
        let others = ALL.into_iter().filter(|other| *other != status);
        let others = others.map(|status| RecordVersion { status, ..RecordVersion::of(&record) });
        names(store, &record, "status", others).await;
    }
}

/// `RecordVersion` with another owner is refused, because another worker took the key over with the
/// same lease.
pub async fn unchanged_names_the_owner(store: &dyn Store) {
    let record = full();
    names(
        store,
        &record,
        "owner",
        [RecordVersion { owner: Some(token()), ..RecordVersion::of(&record) }],
    )
    .await;
}

/// A guard with an owner is refused for a record without one, and the other way round.
pub async fn unchanged_tells_an_owner_from_none(store: &dyn Store) {
    let mut record = full();
    names(store, &record, "owner", [RecordVersion { owner: None, ..RecordVersion::of(&record) }])
        .await;
    record.owner = None;
    names(
        store,
        &record,
        "owner",
        [RecordVersion { owner: Some(token()), ..RecordVersion::of(&record) }],
    )
    .await;
}

/// `RecordVersion` with another last owner is refused: only this field differs between two releases within
/// one second.
pub async fn unchanged_names_the_last_owner(store: &dyn Store) {
    let record = full();
    let other = RecordVersion { last_owner: Some(token()), ..RecordVersion::of(&record) };
    names(store, &record, "last_owner", [other]).await;
}

/// A guard with a last owner is refused for a record without one, and the other way round.
pub async fn unchanged_tells_a_last_owner_from_none(store: &dyn Store) {
    let mut record = full();
    names(
        store,
        &record,
        "last_owner",
        [RecordVersion { last_owner: None, ..RecordVersion::of(&record) }],
    )
    .await;
    record.last_owner = None;
    let other = RecordVersion { last_owner: Some(token()), ..RecordVersion::of(&record) };
    names(store, &record, "last_owner", [other]).await;
}

/// `RecordVersion` with another lease is refused, even if it differs by one millisecond, because
/// the owner has renewed it.
pub async fn unchanged_names_the_lease_to_the_millisecond(store: &dyn Store) {
    let record = full();
    let lease = record.lease_until.expect("`full` sets it");
    let millisecond = Duration::from_millis(1);
    let others = [lease.plus(millisecond), lease.minus(millisecond)]
        .map(|lease| RecordVersion { lease_until: Some(lease), ..RecordVersion::of(&record) });
    names(store, &record, "lease_until", others).await;
}

/// A guard with a lease is refused for a record without one, and the other way round.
pub async fn unchanged_tells_a_lease_from_none(store: &dyn Store) {
    let mut record = full();
    names(
        store,
        &record,
        "lease_until",
        [RecordVersion { lease_until: None, ..RecordVersion::of(&record) }],
    )
    .await;
    let lease_until = record.lease_until.take();
    names(
        store,
        &record,
        "lease_until",
        [RecordVersion { lease_until, ..RecordVersion::of(&record) }],
    )
    .await;
}

/// `RecordVersion` with another expiry is refused, even if it differs by one second.
pub async fn unchanged_names_the_expiry(store: &dyn Store) {
    let record = full();
    let others = [record.expires_at.plus(secs(1)), record.expires_at.minus(secs(1))]
        .map(|expires_at| RecordVersion { expires_at, ..RecordVersion::of(&record) });
    names(store, &record, "expires_at", others).await;
}

/// If every optional field is absent, `RecordVersion` compares absent with absent, and holds (in SQL,
/// `NULL = NULL` would not hold).
pub async fn unchanged_holds_with_every_optional_field_absent(store: &dyn Store) {
    let bare = IdempotencyRecord::new(Status::InProgress, now().plus(secs(3600)));
    let slot = Slot::with(store, &bare).await;
    let why = "`RecordVersion` compares absent fields as absent";
    slot.accepts(Guard::Unchanged(RecordVersion::of(&bare)), Some(&in_progress(token())), why)
        .await;
}

/// A takeover succeeds once: its guard fails on the record that it wrote.
pub async fn unchanged_misses_its_own_successor(store: &dyn Store) {
    let old = full();
    let slot = Slot::with(store, &old).await;
    let seen = Guard::Unchanged(RecordVersion::of(&old));
    let successor = in_progress(token());
    slot.accepts(seen.clone(), Some(&successor), "the first takeover is applied").await;
    let why = "the second takeover under the same guard finds the first";
    slot.refuses(seen, Some(&in_progress(token())), Some(&successor), why).await;
}

/// Two releases within one second differ only in their last owner. A claim that read the first must
/// not replace the second, or a failed attempt would not be counted.
pub async fn two_releases_within_a_second_are_told_apart(store: &dyn Store) {
    let first = released(token());
    let mut second = first.clone();
    second.last_owner = Some(token());
    let slot = Slot::with(store, &second).await;
    let why = "the release that was read was replaced by another one";
    slot.refuses(
        Guard::Unchanged(RecordVersion::of(&first)),
        Some(&in_progress(token())),
        Some(&second),
        why,
    )
    .await;
}

/// `RecordVersion` without a stored record is refused and finds nothing: the record was deleted or
/// expired by TTL meanwhile.
pub async fn unchanged_on_nothing_finds_nothing(store: &dyn Store) {
    let slot = Slot::fresh(store);
    for seen in [full(), released(token()), IdempotencyRecord::new(Status::InProgress, now())] {
        let why = "`RecordVersion` needs a record; a store must not create one";
        slot.refuses(
            Guard::Unchanged(RecordVersion::of(&seen)),
            Some(&in_progress(token())),
            None,
            why,
        )
        .await;
    }
}

/// `OwnedBy` without a stored record is refused and finds nothing.
pub async fn owned_by_on_nothing_finds_nothing(store: &dyn Store) {
    let slot = Slot::fresh(store);
    let me = token();
    let why = "`OwnedBy` needs a record; a store must not create one";
    slot.refuses(Guard::OwnedBy(me), Some(&completed(me, "1")), None, why).await;
}

/// `OwnedBy` holds only while the record is in progress, even if the token is equal.
pub async fn owned_by_needs_a_record_in_progress(store: &dyn Store) {
    for status in [Status::Completed, Status::PermanentlyFailed] {
        let me = token();
        let mut record = in_progress(me);
        record.status = status;
        let slot = Slot::with(store, &record).await;
        let why = "`OwnedBy` implies in progress";
        slot.refuses(Guard::OwnedBy(me), Some(&in_progress(me)), Some(&record), why).await;
    }
}

/// `OwnedBy` with another token is refused, even if only one bit differs.
pub async fn owned_by_needs_the_very_token(store: &dyn Store) {
    let owner = Owner::from_bits(0x00ff_0000_0000_0000_0000_0000_0000_0001);
    let record = in_progress(owner);
    let slot = Slot::with(store, &record).await;
    for bits in [0, 1, 0x00ff_0000_0000_0000_0000_0000_0000_0000, u128::MAX] {
        let other = Owner::from_bits(bits);
        let why = "`OwnedBy` compares the whole token";
        slot.refuses(Guard::OwnedBy(other), Some(&completed(other, "1")), Some(&record), why).await;
    }
}

/// `OwnedBy` misses a record without an owner, and does not take a last owner for one.
pub async fn owned_by_misses_a_released_record(store: &dyn Store) {
    let me = token();
    let record = released(me);
    let slot = Slot::with(store, &record).await;
    let why = "a released record has no owner, not even the one that released it";
    slot.refuses(Guard::OwnedBy(me), Some(&completed(me, "1")), Some(&record), why).await;
}

/// `OwnedBy` compares neither lease nor expiry: an owner that is late, but was not replaced, may
/// settle.
pub async fn owned_by_holds_after_the_lease(store: &dyn Store) {
    let me = token();
    let mut record = in_progress(me);
    record.lease_until = Some(Timestamp::from_millis(1));
    let slot = Slot::with(store, &record).await;
    let why = "a store does not compare the lease, and no other worker took the key over";
    slot.accepts(Guard::OwnedBy(me), Some(&completed(me, "1")), why).await;
}

/// `OwnedBy` can guard a delete.
pub async fn delete_under_owned_by(store: &dyn Store) {
    let me = token();
    let record = in_progress(me);
    let slot = Slot::with(store, &record).await;
    let why = "another owner may not delete";
    slot.refuses(Guard::OwnedBy(token()), None, Some(&record), why).await;
    slot.accepts(Guard::OwnedBy(me), None, "the owner may delete").await;
}

/// `RecordVersion` can guard a delete: only the record that was read is deleted.
pub async fn delete_under_unchanged(store: &dyn Store) {
    let record = full();
    let slot = Slot::with(store, &record).await;
    let stale = RecordVersion { last_owner: None, ..RecordVersion::of(&record) };
    let why = "a delete has a guard like any other write";
    slot.refuses(Guard::Unchanged(stale), None, Some(&record), why).await;
    slot.accepts(
        Guard::Unchanged(RecordVersion::of(&record)),
        None,
        "the record that was read can be deleted",
    )
    .await;
}

/// Deleting under `Absent` is refused while there is a record.
pub async fn delete_under_absent_deletes_nothing(store: &dyn Store) {
    let record = full();
    let slot = Slot::with(store, &record).await;
    let why = "`Absent` does not hold, so nothing is deleted";
    slot.refuses(Guard::Absent, None, Some(&record), why).await;
}

/// Deleting a record that is already gone succeeds: a repeated delete whose response was lost must
/// not look like a lost lease.
pub async fn delete_of_what_is_gone_is_written(store: &dyn Store) {
    let slot = Slot { store, key: fresh_key() };
    for guard in
        [Guard::OwnedBy(token()), Guard::Unchanged(RecordVersion::of(&full())), Guard::Absent]
    {
        let why = format!("deleting a missing record under {guard:?} succeeds");
        written(slot.write(guard, None).await, &why);
    }
    slot.holds(None, "a delete creates nothing").await;
}
