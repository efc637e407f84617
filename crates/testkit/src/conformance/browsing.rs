//! A store that can be browsed lists every record once, as it is.

use std::{collections::BTreeMap, num::NonZeroUsize};

use lambda_idempotency_core::{
    browse::{Browse, Cursor, Left},
    clock::BoxFuture,
    key::Key,
    record::{IdempotencyRecord, Status},
    store::{Guard, RecordVersion, Store},
};

use super::kit::{
    PATIENCE, Slot, completed, describe, explain, in_progress, now, released, secs, token,
    whole_provenance,
};

/// A store that can be browsed, of any type.
pub trait Browsable: Store + Browse {}

impl<S: Store + Browse> Browsable for S {}

/// A scenario: the store, in which nothing else is.
pub type BrowsingScenario = for<'a> fn(&'a dyn Browsable) -> BoxFuture<'a, ()>;

/// Every scenario, with its name. Use this to run them without the macro, each with a store of its own.
pub const BROWSING_SCENARIOS: &[(&str, BrowsingScenario)] =
    crate::__browsing! { __browsing_list [] };

/// All pages, with at most `limit` items each: of all records, or of those with something left. Between the pages a
/// cursor is kept as text.
async fn listed(
    store: &dyn Browsable,
    left: Option<Left>,
    limit: usize,
) -> Vec<(Key, Result<IdempotencyRecord, String>)> {
    let limit = NonZeroUsize::new(limit).expect("a limit");
    let (mut items, mut after) = (Vec::new(), None::<String>);
    loop {
        let cursor = after.as_deref().map(Cursor::from_text);
        let until = now().plus(PATIENCE);
        let page = match left {
            None => store.page(cursor.as_ref(), limit, until).await,
            Some(left) => store.left(left, cursor.as_ref(), limit, until).await,
        };
        let page = page.unwrap_or_else(|error| panic!("a page failed: {}", explain(&error)));
        assert!(
            page.items.len() <= limit.get(),
            "a page has at most as many items as its limit: {} of {limit}",
            page.items.len()
        );
        let read = page.items.into_iter();
        items.extend(read.map(|(key, record)| (key, record.map_err(|error| explain(&error)))));
        let next = page.next.map(|cursor| cursor.as_str().to_owned());
        assert!(next.is_none() || next != after, "a cursor leads on, not to the same page again");
        match next {
            Some(next) => after = Some(next),
            None => return items,
        }
    }
}

/// Records of every kind, under fresh keys.
async fn several(store: &dyn Store) -> BTreeMap<Key, IdempotencyRecord> {
    let mut all = BTreeMap::new();
    for number in 0..23 {
        let mut record = match number % 4 {
            0 => in_progress(token()),
            1 => completed(token(), "{\"charged\":true}"),
            2 => released(token()),
            _ => IdempotencyRecord::new(Status::PermanentlyFailed, now().plus(secs(3600))),
        };
        record.provenance = Some(whole_provenance());
        let slot = Slot::with(store, &record).await;
        all.insert(slot.key, record);
    }
    all
}

/// Each record is on one page, as it was written but for its result and payload, whatever the size of the pages.
pub async fn each_record_is_on_one_page(store: &dyn Browsable) {
    let written = several(store).await;
    for limit in [1, 7, 23, 1000] {
        let mut expected = written.clone();
        let mut seen = Vec::new();
        for (key, found) in listed(store, None, limit).await {
            assert!(!seen.contains(&key), "a key is listed once (limit {limit})");
            if let Some(record) = expected.remove(&key) {
                let found = found.unwrap_or_else(|error| panic!("a record is unreadable: {error}"));
                let record = Left::listed(None, record);
                assert!(
                    found == record,
                    "a record is listed as it is stored\n  expected: {}\n  got:      {}",
                    describe(Some(&record)),
                    describe(Some(&found))
                );
            }
            seen.push(key);
        }
        let missing = expected.len();
        assert!(
            missing == 0,
            "{missing} of {} records are on no page (limit {limit})",
            written.len()
        );
    }
}

/// Each record in which something is left is on one page of those, as it is stored.
pub async fn what_is_left_is_on_one_page(store: &dyn Browsable) {
    let mut written = BTreeMap::new();
    for number in 0..23 {
        let mut record = match number % 4 {
            0 => in_progress(token()),
            1 => completed(token(), "1"),
            2 => released(token()),
            _ => completed(token(), "2"),
        };
        match number % 4 {
            0 => record.payload = Some("{}".into()),
            1 => record.outbox = Some(r#"[{"to":"q","body":"1"}]"#.into()),
            _ => {}
        }
        let slot = Slot::with(store, &record).await;
        written.insert(slot.key, record);
    }
    for left in [Left::Messages, Left::Work] {
        for limit in [1, 7, 1000] {
            let mut expected = written.clone();
            expected.retain(|_, record| left.is_in(record));
            let mut seen = Vec::new();
            for (key, found) in listed(store, Some(left), limit).await {
                assert!(!seen.contains(&key), "{left:?}: a key is listed once (limit {limit})");
                if let Some(record) = expected.remove(&key) {
                    assert!(
                        found == Ok(Left::listed(Some(left), record)),
                        "{left:?}: a record is listed as it is stored, without what is not needed"
                    );
                }
                seen.push(key);
            }
            let missing = expected.len();
            assert!(missing == 0, "{left:?}: {missing} records are on no page (limit {limit})");
        }
    }
}

/// The messages are removed from a record that was not changed since, and nothing else is.
pub async fn a_mark_leaves_the_rest_of_its_record(store: &dyn Browsable) {
    let mut record = completed(token(), "{\"charged\":true}");
    record.outbox = Some(r#"[{"to":"q","body":"1"}]"#.into());
    (record.steps, record.provenance) = (Some("{}".into()), Some(whole_provenance()));
    let slots = [Slot::with(store, &record).await, Slot::with(store, &record).await];
    let gone = Slot::fresh(store);
    let seen = RecordVersion::of(&record);
    let mut other = seen.clone();
    other.owner = Some(token());
    let [same, changed] = slots.each_ref().map(|slot| slot.key.clone());
    let records = [(same, seen.clone()), (changed, other), (gone.key.clone(), seen)];
    // Again, as after an answer that was lost.
    for _ in 0..2 {
        let answers = store.mark_sent(&records, now().plus(PATIENCE)).await;
        assert!(
            answers.len() == 3 && answers.iter().all(Result::is_ok),
            "each record is answered, also one that was changed; got {answers:?}"
        );
    }
    let mut marked = record.clone();
    marked.outbox = None;
    slots[0].holds(Some(&marked), "the messages are removed, and nothing else").await;
    slots[1].holds(Some(&record), "a record that was changed since is left alone").await;
    gone.holds(None, "a record that is gone stays gone").await;
}

/// What was deleted is not listed, and what was changed is listed as it is now.
pub async fn a_listing_shows_what_is_stored_now(store: &dyn Browsable) {
    let (gone, changed) = (token(), token());
    let slots = [Slot::with(store, &in_progress(gone)).await, Slot::fresh(store)];
    slots[1].given(&in_progress(changed)).await;
    slots[0].accepts(Guard::OwnedBy(gone), None, "an owner may delete its record").await;
    let done = completed(changed, "1");
    slots[1].accepts(Guard::OwnedBy(changed), Some(&done), "an owner may complete").await;
    let found: BTreeMap<_, _> = listed(store, None, 5).await.into_iter().collect();
    assert!(!found.contains_key(&slots[0].key), "a deleted record is not listed");
    let found = found.get(&slots[1].key);
    assert!(
        found == Some(&Ok(Left::listed(None, done))),
        "a listing shows the latest write; got {found:?}"
    );
}

/// The count is the number of items on all pages.
pub async fn the_count_is_that_of_all_pages(store: &dyn Browsable) {
    several(store).await;
    let count = store.count(now().plus(PATIENCE)).await;
    let count = count.unwrap_or_else(|error| panic!("a count failed: {}", explain(&error)));
    let all = listed(store, None, 10).await.len();
    assert!(u64::try_from(all) == Ok(count), "{count} items are counted, and {all} are listed");
}

/// Makes a test of every scenario for [`Browse`]: as [`store_conformance!`](crate::store_conformance),
/// for a store that implements both traits. The store should have a table of its own for each test,
/// because the scenarios list all that is in it.
///
/// ```
/// use lambda_idempotency_core::memory::MemoryStore;
///
/// mod browsing {
///     lambda_idempotency_testkit::browse_conformance!(|| async { super::MemoryStore::new() });
/// }
/// ```
#[macro_export]
macro_rules! browse_conformance {
    ($make:expr $(,)?) => {
        $crate::browse_conformance! { $make, #[tokio::test] }
    };
    ($make:expr, $(#[$attribute:meta])+) => {
        $crate::__browsing! { __scenario_test [[$(#[$attribute])+] [$make]] }
    };
}

/// Calls `$crate::$callback!` with `$arguments` and the list of all scenarios.
#[doc(hidden)]
#[macro_export]
macro_rules! __browsing {
    ($callback:ident $arguments:tt) => {
        $crate::$callback! { $arguments
            browsing {
                each_record_is_on_one_page
                what_is_left_is_on_one_page
                a_mark_leaves_the_rest_of_its_record
                a_listing_shows_what_is_stored_now
                the_count_is_that_of_all_pages
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __browsing_list {
    ([] browsing { $($name:ident)+ }) => {
        &[$( (stringify!($name), |store| Box::pin($name(store))) ),+]
    };
}
