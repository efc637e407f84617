//! A record that replaces another leaves nothing of it behind, in either way of writing.

use crate::support::{Fixture, PlainVerdict, claimed, completed, key, owner, plain, soon, write};
use lambda_idempotency_core::{
    clock::Timestamp,
    record::{Fingerprint, IdempotencyRecord, Provenance, Status},
    store::{Guard, RecordVersion, Store as _},
};

/// A statement sets and removes attributes, and a document replaces the item. An attribute that stays behind would be read as a part of
/// the new record: steps of an attempt that was undone, messages that were sent.
#[tokio::test]
async fn a_statement_removes_what_a_document_leaves_out() {
    let fixture = Fixture::start().await;
    let mut full = claimed(1);
    full.last_owner = Some(owner(3));
    (full.failed_attempts, full.lost_attempts, full.consecutive_losses) = (1, 2, 3);
    full.fence = 5;
    full.fingerprint = Some(Fingerprint::new("f"));
    full.result = Some("1".into());
    full.steps = Some("[1]".into());
    full.outbox = Some("[]".into());
    full.payload = Some("{}".into());
    full.error_type = Some("E".into());
    full.application = Some("orders".into());
    full.provenance = Some(Provenance::of_texts(Timestamp::from_secs(1), |_| Some("x".into())));
    let bare = IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(9));
    let store = fixture.store();
    let all: Vec<_> = (0..3).map(|n| write(n, Guard::Absent, Some(full.clone()))).collect();
    let replace = |n| write(n, Guard::Unchanged(RecordVersion::of(&full)), Some(bare.clone()));
    for writes in [all, vec![replace(0)], vec![replace(1), replace(2)]] {
        for verdict in store.write(&writes, soon()).await {
            assert_eq!(plain(&verdict), PlainVerdict::Written);
        }
    }
    let rest = |n: usize| {
        let mut item = fixture.item(&format!("op#{n}")).unwrap();
        item.as_object_mut().unwrap().remove("id");
        item
    };
    assert!(rest(0).get("steps").is_none() && rest(0).get("outbox").is_none(), "{}", rest(0));
    assert_eq!(rest(1), rest(0), "by a statement, as by a document");
    assert_eq!(rest(2), rest(0));
}

/// The owner that the guard names is there, and the provenance is that of the claim: a completion does not send them again.
#[tokio::test]
async fn a_statement_leaves_what_the_claim_has_written() {
    let fixture = Fixture::start().await;
    let mut claim = claimed(1);
    claim.provenance = Some(Provenance::of_texts(Timestamp::from_secs(1), |_| Some("x".into())));
    let mut done = completed(1, "7");
    done.provenance.clone_from(&claim.provenance);
    let mut released = claimed(1);
    (released.owner, released.last_owner) = (None, released.owner);
    released.provenance.clone_from(&claim.provenance);
    let store = fixture.store();
    for settled in [&done, &released] {
        for n in 0..3 {
            store.write(&[write(n, Guard::Absent, Some(claim.clone()))], soon()).await;
        }
        fixture.wire.take();
        let settle = |n| write(n, Guard::OwnedBy(owner(1)), Some(settled.clone()));
        for writes in [vec![settle(0)], vec![settle(1), settle(2)]] {
            for verdict in store.write(&writes, soon()).await {
                assert_eq!(plain(&verdict), PlainVerdict::Written);
            }
        }
        let (operation, body) = fixture.wire.take().remove(1);
        assert_eq!(operation, "BatchExecuteStatement");
        let text = body["Statements"][0]["Statement"].as_str().unwrap().to_owned();
        assert!(!text.contains("provenance") && !text.contains("SET \"owner\""), "{text}");
        let items: Vec<_> = store.read(&[0, 1, 2].map(key), soon()).await;
        for item in items {
            assert_eq!(item.unwrap().as_ref(), Some(settled), "by a statement, as by a document");
        }
        for n in 0..3 {
            store
                .write(&[write(n, Guard::Unchanged(RecordVersion::of(settled)), None)], soon())
                .await;
        }
    }
}
