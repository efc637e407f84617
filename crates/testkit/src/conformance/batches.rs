//! Many members in one call: one independent verdict for each, in order.

use lambda_idempotency_core::{
    record::IdempotencyRecord,
    store::{Guard, RecordVersion, Store, StoreErrorKind, Verdict, Write},
};

use super::kit::{
    Slot, completed, explain, found, in_progress, read_all, released, same, token,
    whole_provenance, write_all, written,
};

/// A call without writes returns no verdicts, and one without keys no records.
pub async fn empty_calls_have_no_answers(store: &dyn Store) {
    write_all(store, &[]).await;
    read_all(store, &[]).await;
}

/// Every guard and every verdict in one call: each member has its own verdict, in order, and a
/// refused member does not affect the others.
pub async fn mixed_guards_have_their_own_verdicts(store: &dyn Store) {
    let slots = Slot::several(store, 9);
    let me = token();
    let (held, done) = (in_progress(me), completed(me, "1"));
    for index in [1, 2, 3, 5, 6, 8] {
        slots[index].given(&held).await;
    }
    slots[4].given(&done).await;
    let next = in_progress(token());
    let stale = RecordVersion { last_owner: Some(me), ..RecordVersion::of(&held) };
    let writes = [
        slots[0].asks(Guard::Absent, Some(&next)),
        slots[1].asks(Guard::Absent, Some(&next)),
        slots[2].asks(Guard::OwnedBy(me), Some(&done)),
        slots[3].asks(Guard::OwnedBy(token()), Some(&done)),
        slots[4].asks(Guard::OwnedBy(me), Some(&next)),
        slots[5].asks(Guard::Unchanged(RecordVersion::of(&held)), Some(&next)),
        slots[6].asks(Guard::Unchanged(stale), Some(&next)),
        slots[7].asks(Guard::OwnedBy(me), Some(&done)),
        slots[8].asks(Guard::OwnedBy(me), None),
    ];
    let expected: [Result<(), Option<&IdempotencyRecord>>; 9] = [
        Ok(()),
        Err(Some(&held)),
        Ok(()),
        Err(Some(&held)),
        Err(Some(&done)),
        Ok(()),
        Err(Some(&held)),
        Err(None),
        Ok(()),
    ];
    let verdicts = write_all(store, &writes).await;
    for (index, (verdict, expected)) in verdicts.into_iter().zip(expected).enumerate() {
        let why = format!("member {index} of a mixed batch, {:?}", writes[index].guard);
        match expected {
            Ok(()) => written(verdict, &why),
            Err(there) => found(verdict, there, &why),
        }
    }
    let left = [
        Some(&next),
        Some(&held),
        Some(&done),
        Some(&held),
        Some(&done),
        Some(&next),
        Some(&held),
        None,
        None,
    ];
    for (index, (slot, expected)) in slots.iter().zip(left).enumerate() {
        slot.holds(expected, &format!("the record after member {index} of a mixed batch")).await;
    }
}

/// A batch of several full requests of any store and a partial one is written completely: the limits of a server do not
/// concern callers of the store. Every third key is taken; each member gets its own verdict.
pub async fn batch_of_130_is_written(store: &dyn Store) {
    let slots = Slot::several(store, 130);
    let is_taken = |(index, _): &(usize, &Slot<'_>)| index % 3 == 1;
    let mut records: Vec<_> = slots.iter().map(|_| completed(token(), "1")).collect();
    let all = || slots.iter().enumerate();
    let prior =
        all().filter(is_taken).map(|(at, slot)| slot.asks(Guard::Absent, Some(&records[at])));
    for verdict in write_all(store, &prior.collect::<Vec<_>>()).await {
        written(verdict, "a batch of fresh keys is written");
    }
    let claims: Vec<_> =
        slots.iter().map(|slot| slot.asks(Guard::Absent, Some(&in_progress(token())))).collect();
    let verdicts = write_all(store, &claims).await;
    for ((at, slot), (verdict, claim)) in all().zip(verdicts.into_iter().zip(claims)) {
        if is_taken(&(at, slot)) {
            found(verdict, Some(&records[at]), &format!("member {at} is taken"));
        } else {
            written(verdict, &format!("member {at} is free"));
            records[at] = claim.record.expect("a claim has one");
        }
    }
    let keys: Vec<_> = slots.iter().map(|slot| slot.key.clone()).collect();
    for (at, left) in read_all(store, &keys).await.into_iter().enumerate() {
        same(left.as_ref(), Some(&records[at]), &format!("member {at}"));
    }
}

/// A batch of settlements, as at the end of an invocation, is sent twice: the second time each
/// member finds the record that the first wrote.
pub async fn batch_of_settlements(store: &dyn Store) {
    let slots = Slot::several(store, 30);
    let owners: Vec<_> = slots.iter().map(|_| token()).collect();
    let claims: Vec<Write> = slots
        .iter()
        .zip(&owners)
        .map(|(slot, owner)| slot.asks(Guard::Absent, Some(&in_progress(*owner))))
        .collect();
    for verdict in write_all(store, &claims).await {
        written(verdict, "a batch of fresh keys is claimed");
    }
    let done: Vec<Write> = slots
        .iter()
        .zip(&owners)
        .enumerate()
        .map(|(index, (slot, owner))| {
            let record = completed(*owner, &index.to_string());
            slot.asks(Guard::OwnedBy(*owner), Some(&record))
        })
        .collect();
    for verdict in write_all(store, &done).await {
        written(verdict, "every owner can complete its key in one call");
    }
    let again = write_all(store, &done).await;
    for (index, (verdict, write)) in again.into_iter().zip(&done).enumerate() {
        let why = format!("completed is final; member {index} finds its own completion");
        found(verdict, write.record.as_ref(), &why);
    }
}

/// Settlements name the provenance of their claim. A store may leave what the claim has written; what it
/// returns is the record of the settlement all the same, from a call with one member as from a call with many.
pub async fn settlements_have_the_provenance_that_they_name(store: &dyn Store) {
    for count in [1, 30] {
        settle_with_provenance(store, count).await;
    }
}

/// Completes and releases `count` keys in one call, with the provenance of their claims.
async fn settle_with_provenance(store: &dyn Store, count: usize) {
    let (mut slots, mut settlements) = (Vec::new(), Vec::new());
    for index in 0..count * 2 {
        let owner = token();
        let mut claim = in_progress(owner);
        claim.provenance = Some(whole_provenance());
        let mut settled =
            if index < count { completed(owner, &index.to_string()) } else { released(owner) };
        settled.provenance.clone_from(&claim.provenance);
        let slot = Slot::with(store, &claim).await;
        settlements.push(slot.asks(Guard::OwnedBy(owner), Some(&settled)));
        slots.push(slot);
    }
    for settlements in settlements.chunks(count) {
        for verdict in write_all(store, settlements).await {
            written(verdict, "every owner can settle its key");
        }
    }
    for (slot, settlement) in slots.iter().zip(&settlements) {
        let why = format!("a settlement among {count} has the provenance that it names");
        slot.holds(settlement.record.as_ref(), &why).await;
    }
}

/// A member that cannot be stored is the only one that fails, and stores nothing.
pub async fn one_bad_member_harms_only_itself(store: &dyn Store) {
    let huge = format!("\"{}\"", "x".repeat(500 * 1024));
    let slots = Slot::several(store, 7);
    let mut records: Vec<_> = slots.iter().map(|_| completed(token(), "1")).collect();
    records[2] = completed(token(), &huge);
    let writes: Vec<_> = slots
        .iter()
        .zip(&records)
        .map(|(slot, record)| slot.asks(Guard::Absent, Some(record)))
        .collect();
    let verdicts = write_all(store, &writes).await;
    for (index, verdict) in verdicts.into_iter().enumerate() {
        if index == 2 {
            too_large_or_kept(&slots[2], verdict, &records[2]).await;
        } else {
            written(verdict, &format!("member {index} is applied although member 2 is too large"));
            slots[index].holds(Some(&records[index]), "the written record is stored").await;
        }
    }
}

/// Some stores cannot hold a record of 500 KiB: they refuse it and keep the stored record. Other
/// stores store it.
pub async fn result_that_is_too_large_leaves_the_claim(store: &dyn Store) {
    let me = token();
    let held = in_progress(me);
    let slot = Slot::with(store, &held).await;
    let huge = completed(me, &format!("\"{}\"", "x".repeat(500 * 1024)));
    match slot.write(Guard::OwnedBy(me), Some(&huge)).await {
        Verdict::Unknown(error) => {
            refused_for_its_size(&error);
            slot.holds(Some(&held), "a refused write changes nothing").await;
            let small = completed(me, "1");
            let why = "the owner can still complete its key with a smaller result";
            slot.accepts(Guard::OwnedBy(me), Some(&small), why).await;
        }
        verdict => {
            written(verdict, "a result of 500 KiB is stored, or refused as too large");
            slot.holds(Some(&huge), "a large result is stored completely").await;
        }
    }
}

async fn too_large_or_kept(slot: &Slot<'_>, verdict: Verdict, record: &IdempotencyRecord) {
    if let Verdict::Unknown(error) = verdict {
        refused_for_its_size(&error);
        slot.holds(None, "a refused record is not stored").await;
    } else {
        written(verdict, "a record of 500 KiB is stored, or refused as too large");
        slot.holds(Some(record), "a large record is stored completely").await;
    }
}

fn refused_for_its_size(error: &lambda_idempotency_core::store::StoreError) {
    assert_eq!(
        error.kind(),
        StoreErrorKind::TooLarge,
        "a record that does not fit is `TooLarge`, so that it is not retried: {}",
        explain(error)
    );
    assert!(
        !error.may_have_applied(),
        "a record that does not fit was not applied, so the error is not in doubt: {}",
        explain(error)
    );
}

/// Reads answer in the order of the keys, with `None` for a missing record.
pub async fn reads_are_in_order_with_gaps(store: &dyn Store) {
    let slots = Slot::several(store, 8);
    let mut expected = Vec::new();
    for (index, slot) in slots.iter().enumerate() {
        let record = (index % 2 == 1).then(|| completed(token(), &index.to_string()));
        if let Some(record) = &record {
            slot.given(record).await;
        }
        expected.push(record);
    }
    let mut keys: Vec<_> = slots.iter().map(|slot| slot.key.clone()).collect();
    assert_eq!(
        read_all(store, &keys).await,
        expected,
        "a read returns records in order of the keys"
    );
    keys.reverse();
    expected.reverse();
    assert_eq!(
        read_all(store, &keys).await,
        expected,
        "a read returns records in order of the keys"
    );
}

/// A read larger than one request of any store is answered completely.
pub async fn read_of_150_keys(store: &dyn Store) {
    let slots = Slot::several(store, 150);
    let mut expected = Vec::new();
    let mut writes = Vec::new();
    for (index, slot) in slots.iter().enumerate() {
        let record = (index % 5 != 2).then(|| completed(token(), &index.to_string()));
        writes.extend(record.as_ref().map(|record| slot.asks(Guard::Absent, Some(record))));
        expected.push(record);
    }
    for verdict in write_all(store, &writes).await {
        written(verdict, "a batch of fresh keys is written");
    }
    let keys: Vec<_> = slots.iter().map(|slot| slot.key.clone()).collect();
    let read = read_all(store, &keys).await;
    for (index, (read, expected)) in read.iter().zip(&expected).enumerate() {
        same(read.as_ref(), expected.as_ref(), &format!("key {index} of 150"));
    }
}
