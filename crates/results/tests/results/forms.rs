//! What goes into a store, and what comes out.

use std::sync::Mutex;

use crate::support::{
    claim, completed, get, key, keys, long, moved, owner, put, result, soon, stored, tamper,
};
use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    key::Key,
    memory::MemoryStore,
    record::{IdempotencyRecord, Status},
    store::{Capabilities, Guard, Store, StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_results::{MemoryResults, Results};
use proptest::prelude::*;

fn compressed() -> Results<MemoryStore> {
    Results::new(MemoryStore::new()).compress_above(1024)
}

/// JSON texts, with those among them that look like a stored form.
fn json() -> impl Strategy<Value = String> {
    let strings = prop_oneof![
        ".{0,2000}".prop_map(String::from),
        "lambda-idempotency:[12] (plain|zlib) [A-Za-z0-9_-]{0,40}".prop_map(String::from),
    ];
    let texts = strings.prop_map(|text| serde_json::to_string(&text).unwrap());
    let lists = proptest::collection::vec(any::<i64>(), 0..500)
        .prop_map(|list| serde_json::to_string(&list).unwrap());
    let spaces = "[ \n]{0,3}".prop_map(String::from);
    (spaces, prop_oneof![texts, lists]).prop_map(|(space, text)| space + &text)
}

proptest! {
    #[test]
    fn every_json_text_comes_out_as_it_went_in(text in json(), above in 0_usize..3000) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            for store in [
                Results::new(MemoryStore::new()),
                Results::new(MemoryStore::new()).compress_above(above),
                Results::new(MemoryStore::new()).encrypt_with(keys(1)),
                Results::new(MemoryStore::new())
                    .compress_above(above)
                    .encrypt_with(keys(1))
                    .offload_above(above, MemoryResults::default()),
            ] {
                let record = completed(text.clone());
                assert!(matches!(put(&store, &record).await, Verdict::Written));
                assert_eq!(get(&store).await.unwrap(), Some(record));
                // A store may parse what it gets, and write it again.
                let parsed: serde_json::Value = serde_json::from_str(&stored(&store).await.unwrap()).unwrap();
                tamper(&store, parsed.to_string()).await;
                let again: serde_json::Value = serde_json::from_str(&result(&store).await.unwrap()).unwrap();
                assert_eq!(again, serde_json::from_str::<serde_json::Value>(&text).unwrap());
            }
        });
    }
}

#[tokio::test]
async fn a_large_result_is_compressed_and_a_small_one_is_not() {
    for (bytes, is_smaller) in [(1000, false), (1100, true)] {
        let store = compressed();
        let text = long(bytes);
        put(&store, &completed(text.clone())).await;
        let stored = stored(&store).await.unwrap();
        assert_eq!(stored.len() < text.len(), is_smaller, "{stored}");
        assert_eq!(stored.starts_with("\"lambda-idempotency:1 zlib "), is_smaller, "{stored}");
    }
}

#[tokio::test]
async fn what_was_compressed_is_read_without_the_setting() {
    let with = compressed();
    put(&with, &completed(long(5000))).await;
    let without = moved(&with, Results::new(MemoryStore::new())).await;
    assert_eq!(result(&without).await, Some(long(5000)));
}

#[tokio::test]
async fn a_result_that_is_too_large_is_refused_and_nothing_is_written() {
    for (text, is_written) in [(long(4990), true), (long(5010), false)] {
        let store = compressed().max_bytes(5000);
        match put(&store, &completed(text)).await {
            Verdict::Written => assert!(is_written),
            Verdict::Unknown(error) => {
                assert!(!is_written && !error.may_have_applied());
                assert_eq!(error.kind(), StoreErrorKind::TooLarge);
            }
            other => panic!("{other:?}"),
        }
        let record = get(store.store()).await.unwrap();
        assert_eq!(record.is_some(), is_written);
    }
}

#[tokio::test]
async fn with_status_only_the_record_is_completed_without_a_result() {
    let store = Results::new(MemoryStore::new()).status_only();
    put(&store, &completed("1")).await;
    let record = get(&store).await.unwrap().unwrap();
    assert_eq!((record.status, record.result), (Status::Completed, None));
    tamper(&store, "2").await;
    assert_eq!(result(&store).await.as_deref(), Some("2"), "what is stored is read");
}

#[tokio::test]
async fn one_store_of_results_around_another_keeps_results_apart_from_forms() {
    let inner = compressed().encrypt_with(keys(1)).offload_above(2000, MemoryResults::default());
    let outer = Results::new(inner).compress_above(0).encrypt_with(keys(1));
    for text in ["1".to_owned(), "\"lambda-idempotency:1 plain MQ\"".to_owned(), long(200_000)] {
        outer.store().store().sweep(Timestamp::from_secs(5_000_000_000));
        let record = completed(text);
        assert!(matches!(put(&outer, &record).await, Verdict::Written));
        assert_eq!(get(&outer).await.unwrap(), Some(record));
    }
}

fn by(bits: u128, result: &str) -> IdempotencyRecord {
    let mut record = completed(result);
    record.owner = Some(owner(bits));
    record
}

/// Each way to meet the record: by a read, by a claim, by a late settlement of another owner.
async fn errors(store: &Results<MemoryStore>) -> Vec<StoreError> {
    let read = get(store).await.unwrap_err();
    let claim = put(store, &by(2, "1")).await;
    let settle = Write::new(key(), Guard::OwnedBy(owner(9)), Some(by(9, "1")));
    let verdicts = store.write(&[settle], soon()).await.into_iter().chain([claim]);
    let of_verdict = |verdict| match verdict {
        Verdict::Unknown(error) => error,
        other => panic!("{other:?}"),
    };
    std::iter::once(read).chain(verdicts.map(of_verdict)).collect()
}

#[tokio::test]
async fn a_record_whose_result_cannot_be_read_is_an_error_and_never_gone() {
    let store = compressed();
    put(&store, &completed(long(5000))).await;
    let whole = stored(&store).await.unwrap();
    let mut forms = vec![
        "\"lambda-idempotency:2 zlib MQ\"".to_owned(),
        "\"lambda-idempotency:1 zstd MQ\"".to_owned(),
        "\"lambda-idempotency:1 plain _w\"".to_owned(),
        "\"lambda-idempotency:1 plain ?\"".to_owned(),
    ];
    forms.extend((2..whole.len() - 40).map(|cut| format!("{}\"", &whole[..whole.len() - cut])));
    for form in forms {
        tamper(&store, form.clone()).await;
        for error in errors(&store).await {
            assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{form}");
            assert!(!error.is_transient() && !error.may_have_applied(), "{form}");
            let said = error.to_string();
            assert!(said.contains("the work is not done again"), "{said}");
            assert!(!said.contains("MQ"), "it quotes the content: {said}");
        }
        assert!(get(store.store()).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_stored_text_that_unpacks_to_too_much_is_not_read() {
    let generous = compressed();
    put(&generous, &completed(long(200_000))).await;
    let bomb = stored(&generous).await.unwrap();
    assert!(bomb.len() < 1000);
    let store = compressed().max_bytes(100_000);
    put(&store, &completed("1")).await;
    tamper(&store, bomb).await;
    let error = get(&store).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    assert!(error.to_string().contains("set a higher `max_bytes`"), "{error}");
}

#[tokio::test]
async fn one_result_that_cannot_be_read_harms_no_other_record_of_the_call() {
    let store = compressed();
    let bad = "\"lambda-idempotency:9 x\"";
    store.store().insert(Key::from_text("a"), completed(bad));
    store.store().insert(Key::from_text("b"), completed("2"));
    let keys = ["a", "b", "c"].map(Key::from_text);
    let found = store.read(&keys, soon()).await;
    assert!(found[0].is_err());
    assert_eq!(found[1].as_ref().unwrap().as_ref(), Some(&completed("2")));
    assert_eq!(found[2].as_ref().unwrap(), &None);
    let writes = keys.map(|key| Write::new(key, Guard::Absent, Some(by(3, "3"))));
    let verdicts = store.write(&writes, soon()).await;
    assert!(
        matches!(&verdicts[..], [Verdict::Unknown(_), Verdict::Found(Some(_)), Verdict::Written]),
        "{verdicts:?}"
    );
}

/// Notes where the writes are that it gets, and how many.
#[derive(Default)]
struct Spy {
    store: MemoryStore,
    calls: Mutex<Vec<(usize, usize)>>,
}

impl Spy {
    fn sent(&self) -> Vec<usize> {
        self.calls.lock().unwrap().iter().map(|(_, writes)| *writes).collect()
    }
}

impl Store for Spy {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn write<'a>(&'a self, writes: &'a [Write], until: Timestamp) -> BoxFuture<'a, Vec<Verdict>> {
        self.calls.lock().unwrap().push((writes.as_ptr().addr(), writes.len()));
        Box::pin(async move {
            tokio::task::yield_now().await;
            self.store.write(writes, until).await
        })
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        until: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        self.store.read(keys, until)
    }
}

#[tokio::test]
async fn writes_without_results_are_not_copied() {
    let store = Results::new(Spy::default()).compress_above(0);
    let writes =
        ["a", "b"].map(|name| Write::new(Key::from_text(name), Guard::Absent, Some(claim())));
    store.write(&writes, soon()).await;
    assert_eq!(*store.store().calls.lock().unwrap(), [(writes.as_ptr().addr(), 2)]);
    assert_eq!(store.capabilities(), store.store().capabilities());
}

fn completions(results: &[String]) -> Vec<Write> {
    let numbered = results.iter().enumerate();
    numbered
        .map(|(n, result)| {
            let key = Key::from_text(format!("report#{n}"));
            Write::new(key, Guard::Absent, Some(completed(result.clone())))
        })
        .collect()
}

/// I13: long results are compressed one at a time, and what is ready leaves the process before.
#[tokio::test]
async fn a_completion_is_sent_before_the_long_result_of_another_is_compressed() {
    let store = Results::new(Spy::default()).compress_above(1024);
    let writes = completions(&[long(5_000_000), "1".to_owned(), long(5_000_000), long(2000)]);
    let mut call = store.write(&writes, soon());
    assert!(futures_util::poll!(&mut call).is_pending());
    assert_eq!(store.store().sent(), [2], "the short ones are on their way");
    tokio::task::yield_now().await;
    assert!(futures_util::poll!(&mut call).is_pending());
    assert_eq!(store.store().sent(), [2, 1]);
    let verdicts = call.await;
    assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Written)), "{verdicts:?}");
    assert_eq!(store.store().sent(), [2, 1, 1]);
}

#[tokio::test]
async fn short_results_are_sent_together() {
    let store = Results::new(Spy::default()).compress_above(1024);
    let writes = completions(&vec![long(10_000); 20]);
    assert_eq!(store.write(&writes, soon()).await.len(), 20);
    assert_eq!(store.store().sent(), [20]);
}
