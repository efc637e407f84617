//! The scenarios for browsing pass on the memory store, and each bug of a store is found by one.

use std::num::NonZeroUsize;

use lambda_idempotency_core::{
    browse::{Browse, Cursor, Left, Page},
    clock::{BoxFuture, Timestamp},
    key::Key,
    memory::MemoryStore,
    record::IdempotencyRecord,
    store::{Capabilities, RecordVersion, Store, StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_testkit::conformance::browsing::BROWSING_SCENARIOS;

use crate::{assert_found, fails};

lambda_idempotency_testkit::browse_conformance!(|| async { MemoryStore::new() });

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    ListsTheCursorAgain,
    SkipsAnItemBetweenPages,
    EndsAfterAPage,
    IgnoresTheLimit,
    StaysAtTheCursor,
    ForgetsProvenance,
    OneRecordIsUnreadable,
    ListsTheDeleted,
    CountsAPage,
    LosesMessages,
    LosesWork,
    LeavesWhatIsLeftAtTheFirstPage,
    MarksNothing,
    MarksChangedRecords,
    MarksWithoutTheResult,
}

struct Mutant {
    bug: Bug,
    records: MemoryStore,
    /// Keys that were written, whether or not they still are.
    written: std::sync::Mutex<Vec<Write>>,
}

impl Mutant {
    fn new(bug: Bug) -> Self {
        Self { bug, records: MemoryStore::new(), written: std::sync::Mutex::default() }
    }

    /// The next item after a cursor.
    async fn following(&self, cursor: &Cursor, deadline: Timestamp) -> Option<Cursor> {
        let page = self.records.page(Some(cursor), NonZeroUsize::MIN, deadline).await.unwrap();
        page.items.first().map(|(key, _)| Cursor::from_text(key.as_str()))
    }
}

impl Store for Mutant {
    fn capabilities(&self) -> Capabilities {
        self.records.capabilities()
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        self.written.lock().unwrap().extend(writes.iter().cloned());
        self.records.write(writes, deadline)
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        self.records.read(keys, deadline)
    }
}

impl Browse for Mutant {
    fn page<'a>(
        &'a self,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(async move {
            let limit = match self.bug {
                Bug::IgnoresTheLimit => NonZeroUsize::MAX,
                _ => limit,
            };
            let mut page = self.records.page(after, limit, deadline).await?;
            match self.bug {
                Bug::ListsTheCursorAgain => {
                    if let Some(cursor) = after {
                        let again = Key::from_text(cursor.as_str());
                        let keys = [again];
                        let found = self.records.read(&keys, deadline).await.remove(0);
                        let [again] = keys;
                        if let Some(record) = found.unwrap() {
                            page.items.truncate(limit.get() - 1);
                            page.items.push((again, Ok(record)));
                        }
                    }
                }
                Bug::SkipsAnItemBetweenPages => {
                    if let Some(next) = page.next.take() {
                        page.next = self.following(&next, deadline).await;
                    }
                }
                Bug::EndsAfterAPage => page.next = None,
                Bug::StaysAtTheCursor if after.is_some() => page.next = after.cloned(),
                Bug::ForgetsProvenance => {
                    for record in page.items.iter_mut().flat_map(|(_, record)| record) {
                        record.provenance = None;
                    }
                }
                Bug::OneRecordIsUnreadable => {
                    if let Some((_, record)) = page.items.first_mut() {
                        *record = Err(StoreError::new(StoreErrorKind::Corrupt, "not a record"));
                    }
                }
                Bug::ListsTheDeleted if page.next.is_none() => {
                    let written = self.written.lock().unwrap().clone();
                    let deleted = written.iter().find(|write| write.record.is_none());
                    let before = |key: &Key| {
                        written.iter().find(|w| w.key == *key).and_then(|w| w.record.clone())
                    };
                    let deleted = deleted.and_then(|w| Some((w.key.clone(), before(&w.key)?)));
                    page.items.truncate(limit.get() - 1);
                    page.items.extend(deleted.map(|(key, record)| (key, Ok(record))));
                }
                _ => {}
            }
            Ok(page)
        })
    }

    fn left<'a>(
        &'a self,
        left: Left,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(async move {
            let mut page = self.records.left(left, after, limit, deadline).await?;
            page.items.retain(|(_, record)| record.as_ref().is_ok_and(|record| left.is_in(record)));
            match (self.bug, left) {
                (Bug::LosesMessages, Left::Messages) | (Bug::LosesWork, Left::Work) => {
                    page.items.clear();
                }
                (Bug::LeavesWhatIsLeftAtTheFirstPage, _) => page.next = None,
                _ => {}
            }
            Ok(page)
        })
    }

    fn mark_sent<'a>(
        &'a self,
        records: &'a [(Key, RecordVersion)],
        deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), StoreError>>> {
        Box::pin(async move {
            let mut records = records.to_vec();
            for (key, seen) in &mut records {
                let keys = [key.clone()];
                let found = self.records.read(&keys, deadline).await.remove(0).unwrap();
                let Some(mut found) = found else { continue };
                if self.bug == Bug::MarksChangedRecords {
                    *seen = RecordVersion::of(&found);
                }
                if self.bug == Bug::MarksWithoutTheResult && *seen == RecordVersion::of(&found) {
                    found.result = None;
                    self.records.insert(key.clone(), found);
                }
            }
            if self.bug == Bug::MarksNothing {
                return records.iter().map(|_| Ok(())).collect();
            }
            self.records.mark_sent(&records, deadline).await
        })
    }

    fn count<'a>(&'a self, deadline: Timestamp) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            let count = self.records.count(deadline).await?;
            Ok(if self.bug == Bug::CountsAPage { count.min(10) } else { count })
        })
    }
}

const BUGS: &[(Bug, &[&str])] = &[
    (Bug::ListsTheCursorAgain, &["each_record_is_on_one_page"]),
    (Bug::SkipsAnItemBetweenPages, &["each_record_is_on_one_page"]),
    (Bug::EndsAfterAPage, &["each_record_is_on_one_page"]),
    (Bug::IgnoresTheLimit, &["each_record_is_on_one_page"]),
    (Bug::StaysAtTheCursor, &["each_record_is_on_one_page"]),
    (Bug::ForgetsProvenance, &["each_record_is_on_one_page"]),
    (Bug::OneRecordIsUnreadable, &["each_record_is_on_one_page"]),
    (Bug::ListsTheDeleted, &["a_listing_shows_what_is_stored_now"]),
    (Bug::CountsAPage, &["the_count_is_that_of_all_pages"]),
    (Bug::LosesMessages, &["what_is_left_is_on_one_page"]),
    (Bug::LosesWork, &["what_is_left_is_on_one_page"]),
    (Bug::LeavesWhatIsLeftAtTheFirstPage, &["what_is_left_is_on_one_page"]),
    (Bug::MarksNothing, &["a_mark_leaves_the_rest_of_its_record"]),
    (Bug::MarksChangedRecords, &["a_mark_leaves_the_rest_of_its_record"]),
    (Bug::MarksWithoutTheResult, &["a_mark_leaves_the_rest_of_its_record"]),
];

#[tokio::test]
async fn every_bug_is_found_by_the_scenario_that_is_named_for_it() {
    let all = BROWSING_SCENARIOS.iter().map(|(name, _)| *name);
    assert_found(BUGS, Bug::None, all, async |bug, _| {
        let mut failing = Vec::new();
        for (name, run) in BROWSING_SCENARIOS {
            if fails(run(&Mutant::new(bug))).await {
                failing.push(*name);
            }
        }
        failing
    })
    .await;
}
