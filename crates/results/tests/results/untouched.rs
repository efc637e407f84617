//! A write leaves what it is not for as it is stored, byte for byte, whoever wrote it and however it was encoded.

use std::{num::NonZeroUsize, sync::Arc, time::Duration};

use lambda_idempotency::outbox::{MemorySender, Relay};
use lambda_idempotency_core::{
    admission::{Claim, Finding, Held, Settlement, admit},
    browse::Browse,
    clock::{Clock as _, SystemClock, Timestamp},
    key::Key,
    memory::MemoryStore,
    record::{IdempotencyRecord, Owner, Provenance},
    store::{Guard, Store, Verdict, Write},
};
use lambda_idempotency_results::{MemoryResults, Results};

use crate::support::{completed, get, key, keys, long, put, result, soon};

type Records = Arc<MemoryStore>;
type Wrap = fn(Records, &MemoryResults) -> Results<Records>;

/// What the functions that write records may use.
const WRITERS: [(&str, Wrap); 5] = [
    ("plain", |records, _| Results::new(records)),
    ("compressed", |records, _| Results::new(records).compress_above(100)),
    ("encrypted", |records, _| Results::new(records).encrypt_with(keys(1))),
    ("both", |records, _| Results::new(records).compress_above(100).encrypt_with(keys(1))),
    ("elsewhere", |records, bucket| {
        Results::new(records).encrypt_with(keys(1)).offload_above(1000, bucket.clone())
    }),
];

/// What another function may use, which can read all of it.
const OTHERS: [(&str, Wrap); 6] = [
    ("reads", |records, bucket| reading(records).offload_above(usize::MAX, bucket.clone())),
    ("compresses", |records, bucket| {
        reading(records).compress_above(0).offload_above(usize::MAX, bucket.clone())
    }),
    ("encrypts", |records, bucket| {
        reading(records).encrypt_with(keys(1)).offload_above(usize::MAX, bucket.clone())
    }),
    ("keeps elsewhere", |records, bucket| reading(records).offload_above(0, bucket.clone())),
    ("keeps no results", |records, bucket| {
        reading(records).status_only().offload_above(usize::MAX, bucket.clone())
    }),
    // Such a relay finds no results there.
    ("has another bucket", |records, _| {
        reading(records).offload_above(usize::MAX, MemoryResults::default())
    }),
];

fn reading(records: Records) -> Results<Records> {
    Results::new(records).decrypt_with(keys(1))
}

/// Everything that is stored.
async fn all(records: &Records) -> Vec<(Key, IdempotencyRecord)> {
    let page = records.page(None, NonZeroUsize::new(1000).unwrap(), soon()).await.unwrap();
    let keys: Vec<_> = page.items.into_iter().map(|(key, _)| key).collect();
    let found = records.read(&keys, soon()).await;
    keys.into_iter().zip(found).map(|(key, record)| (key, record.unwrap().unwrap())).collect()
}

/// A record with a result and messages.
fn with_messages(result: String) -> IdempotencyRecord {
    let mut record = completed(result);
    record.outbox = Some(r#"[{"to":"parcels","body":"s3cr3t"}]"#.into());
    record
}

async fn relays(store: impl Store + Browse, records: u64) {
    let sender = Arc::new(MemorySender::new());
    let relay = Relay::new(store, Arc::clone(&sender)).with_min_age(Duration::ZERO);
    let relayed = relay.run(None, soon()).await.unwrap();
    assert_eq!((relayed.sent, relayed.unrecorded, relayed.swept.unreadable), (records, 0, 0));
    assert_eq!(sender.sent().len() as u64, records);
    assert_eq!(sender.sent()[0].message().body(), "s3cr3t");
}

#[tokio::test]
async fn a_relay_leaves_results_as_they_are_stored() {
    for (writer, writes) in WRITERS {
        for (other, relay) in OTHERS {
            let (records, bucket) = (Records::default(), MemoryResults::default());
            put(&writes(Arc::clone(&records), &bucket), &with_messages(long(5000))).await;
            let mut before = all(&records).await;
            relays(relay(Arc::clone(&records), &bucket), 1).await;
            before[0].1.outbox = None;
            assert_eq!(all(&records).await, before, "{writer}, and a relay that {other}");
        }
    }
}

/// As the functions of one team have, whose platform gives them a store that encrypts.
#[tokio::test]
async fn a_relay_through_two_stores_of_results_leaves_results_as_they_are_stored() {
    let records = Records::default();
    let inner = |records| Results::new(records).encrypt_with(keys(1));
    let outer = || Results::new(inner(Arc::clone(&records))).compress_above(100);
    put(&outer(), &with_messages(long(5000))).await;
    let mut before = all(&records).await;
    relays(outer(), 1).await;
    before[0].1.outbox = None;
    assert_eq!(all(&records).await, before);
    assert_eq!(result(&outer()).await, Some(long(5000)));
}

fn claim(bits: u128) -> Claim {
    let now = SystemClock.now();
    Claim {
        owner: Owner::from_bits(bits),
        lease_until: now.plus(Duration::from_secs(60)),
        retention: Duration::from_secs(3600),
        clock_skew: Duration::ZERO,
        fingerprint: None,
        application: None,
        provenance: Some(Provenance::new(now, Arc::default())),
        payload: Some(long(3000).into()),
    }
}

/// Claims the key; a record that is there is taken over.
async fn claims(store: &impl Store, claim: &Claim, now: Timestamp) -> Held {
    let found = get(store).await.unwrap();
    assert_eq!(admit(claim, found.as_ref(), now), Finding::Free);
    let (guard, held) = claim.over(found.as_ref(), now);
    writes(store, guard, Some(held.record.clone())).await;
    held
}

async fn settles(store: &impl Store, held: &mut Held, settlement: &Settlement) {
    let (guard, record) = held.write(settlement, SystemClock.now());
    held.record = record.clone().unwrap();
    writes(store, guard, record).await;
}

async fn writes(store: &impl Store, guard: Guard, record: Option<IdempotencyRecord>) {
    let verdict = store.write(&[Write::new(key(), guard, record)], soon()).await.pop().unwrap();
    assert!(matches!(verdict, Verdict::Written), "{verdict:?}");
}

/// The steps and the payload, as they are stored.
async fn texts(records: &Records) -> [Option<String>; 2] {
    let record = get(records).await.unwrap().unwrap();
    [record.steps, record.payload].map(|text| text.map(|text| text.to_string()))
}

/// What a claim carries is written with its renewals, its release, and the claims after it. A recovery brings the payload
/// that is there.
#[tokio::test]
async fn renewals_releases_and_takeovers_leave_texts_as_they_are_stored() {
    let renewal = |seconds| Settlement::Renew {
        lease_until: SystemClock.now().plus(Duration::from_secs(seconds)),
    };
    for (writer, writes) in WRITERS {
        for (other, takes_over) in OTHERS {
            let (records, bucket) = (Records::default(), MemoryResults::default());
            let store = writes(Arc::clone(&records), &bucket);
            let mut held = claims(&store, &claim(1), SystemClock.now()).await;
            let [_, payload] = texts(&records).await;
            held.record.steps = Some(format!("{{\"s3cr3t\":{}}}", long(2000)).into());
            settles(&store, &mut held, &renewal(61)).await;
            let [steps, after] = texts(&records).await;
            assert_eq!(after, payload, "{writer}: a step changes no payload");
            settles(&store, &mut held, &renewal(62)).await;
            let unchanged = [steps, payload];
            assert_eq!(texts(&records).await, unchanged, "{writer}: a renewal");
            let error_type = Arc::from("E");
            settles(&store, &mut held, &Settlement::Release { error_type }).await;
            assert_eq!(texts(&records).await, unchanged, "{writer}: a release");
            let store = takes_over(Arc::clone(&records), &bucket);
            let mut held = claims(&store, &claim(2), SystemClock.now()).await;
            assert_eq!(
                texts(&records).await,
                unchanged,
                "{writer}, taken over by one that {other}"
            );
            settles(&store, &mut held, &renewal(63)).await;
            assert_eq!(texts(&records).await, unchanged, "{writer}, {other}: and renewed");
        }
    }
}
