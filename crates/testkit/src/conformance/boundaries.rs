//! What a guard compares, and that a delete has a guard as any other write.

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

/// `RecordVersion` holds only for a record with the same status, owner, last owner, lease (to the millisecond) and expiry.
/// Absent equals absent and nothing else, in each of them (in SQL, `NULL = NULL` would not hold). The write that it allowed
/// is the last one under the same guard.
pub async fn unchanged_names_each_field(store: &dyn Store) {
    type Change = fn(&mut RecordVersion);
    const CHANGES: [(&str, Change); 12] = [
        ("status", |seen| seen.status = Status::InProgress),
        ("status", |seen| seen.status = Status::Completed),
        ("status", |seen| seen.status = Status::PermanentlyFailed),
        ("owner", |seen| seen.owner = Some(token())),
        ("owner", |seen| seen.owner = None),
        ("last_owner", |seen| seen.last_owner = Some(token())),
        ("last_owner", |seen| seen.last_owner = None),
        ("lease_until", |seen| {
            seen.lease_until = Some(seen.lease_until.unwrap_or_default().plus(MILLISECOND));
        }),
        ("lease_until", |seen| {
            seen.lease_until = seen.lease_until.map(|lease| lease.minus(MILLISECOND));
        }),
        ("lease_until", |seen| seen.lease_until = None),
        ("expires_at", |seen| seen.expires_at = seen.expires_at.plus(secs(1))),
        ("expires_at", |seen| seen.expires_at = seen.expires_at.minus(secs(1))),
    ];
    const MILLISECOND: Duration = Duration::from_millis(1);
    let bare = IdempotencyRecord::new(Status::InProgress, now().plus(secs(3600)));
    for mut record in [full(), bare] {
        for status in [Status::InProgress, Status::Completed, Status::PermanentlyFailed] {
            record.status = status;
            let slot = Slot::with(store, &record).await;
            let (seen, successor) = (RecordVersion::of(&record), in_progress(token()));
            for (field, change) in CHANGES {
                let mut other = seen.clone();
                change(&mut other);
                if other != seen {
                    let why = format!("a record that differs only in `{field}` is another one");
                    let other = Guard::Unchanged(other);
                    slot.refuses(other, Some(&successor), Some(&record), &why).await;
                }
            }
            let seen = Guard::Unchanged(seen);
            let why = "`RecordVersion` holds for the record that was read";
            slot.accepts(seen.clone(), Some(&successor), why).await;
            let why = "a second takeover under the same guard finds the first";
            slot.refuses(seen, Some(&in_progress(token())), Some(&successor), why).await;
        }
    }
}

/// `RecordVersion` and `OwnedBy` without a stored record are refused and find nothing: the record was deleted, or has expired
/// by TTL.
pub async fn guards_on_nothing_find_nothing(store: &dyn Store) {
    let (slot, me) = (Slot::fresh(store), token());
    let bare = IdempotencyRecord::new(Status::InProgress, now());
    let seen = [full(), released(token()), bare];
    let seen = seen.map(|seen| Guard::Unchanged(RecordVersion::of(&seen)));
    for guard in seen.into_iter().chain([Guard::OwnedBy(me)]) {
        let why = "a guard that names a record needs one; a store must not create it";
        slot.refuses(guard, Some(&in_progress(me)), None, why).await;
    }
}

/// `OwnedBy` holds only for the whole token, while the record is in progress: not for a last owner, nor for its own
/// completion.
pub async fn owned_by_needs_its_owner_in_progress(store: &dyn Store) {
    let me = Owner::from_bits(0x00ff_0000_0000_0000_0000_0000_0000_0001);
    let of = |status| {
        let mut record = in_progress(me);
        record.status = status;
        record
    };
    let others = [0, 1, 0x00ff_0000_0000_0000_0000_0000_0000_0000, u128::MAX];
    let others = others.map(|bits| (Owner::from_bits(bits), of(Status::InProgress)));
    let ended = [of(Status::Completed), of(Status::PermanentlyFailed), released(me)];
    for (owner, record) in others.into_iter().chain(ended.map(|record| (me, record))) {
        let slot = Slot::with(store, &record).await;
        let why = "`OwnedBy` names the whole token, and a record in progress";
        slot.refuses(Guard::OwnedBy(owner), Some(&completed(owner, "1")), Some(&record), why).await;
    }
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

/// A delete has a guard like any other write.
pub async fn deletes_are_guarded(store: &dyn Store) {
    let record = full();
    let seen = RecordVersion::of(&record);
    let stale = Guard::Unchanged(RecordVersion { last_owner: None, ..seen.clone() });
    let owner = Guard::OwnedBy(record.owner.expect("`full` sets it"));
    for guard in [owner, Guard::Unchanged(seen)] {
        let slot = Slot::with(store, &record).await;
        for other in [Guard::Absent, Guard::OwnedBy(token()), stale.clone()] {
            let why = "a delete is refused while its guard does not hold";
            slot.refuses(other, None, Some(&record), why).await;
        }
        slot.accepts(guard, None, "the record that was read, or is owned, can be deleted").await;
    }
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
