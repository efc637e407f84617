//! Listing records while other records come and go.

use std::{collections::HashMap, num::NonZeroUsize};

use lambda_idempotency_core::{browse::Browse as _, store::Store as _};

use crate::server::{Server, claim, soon};

/// A page that ends in the middle of a step of `SCAN`, and then the records of that page are deleted: the server's next
/// step would begin with other records.
#[tokio::test]
#[ignore = "needs redis-server: bash tests/run redis"]
async fn each_record_that_stays_is_listed_once_while_others_are_deleted() {
    const ALL: usize = 3000;
    let server = Server::start(&[]).await;
    let store = server.store();
    let writes: Vec<_> = (0..ALL).map(|n| claim(n, 1)).collect();
    store.write(&writes, soon()).await;
    let limit = NonZeroUsize::new(100).unwrap();
    let mut times_listed: HashMap<String, usize> = HashMap::new();
    let mut next = None;
    loop {
        let page = store.page(next.as_ref(), limit, soon()).await.unwrap();
        assert!(page.items.len() <= limit.get(), "{}", page.items.len());
        for (key, record) in &page.items {
            assert!(record.is_ok());
            *times_listed.entry(key.as_str().to_owned()).or_default() += 1;
        }
        let mut delete = vec!["DEL".to_owned()];
        delete.extend(page.items.iter().map(|(key, _)| format!("idempotency:{}", key.as_str())));
        if delete.len() > 1 {
            server.command(&delete.iter().map(String::as_str).collect::<Vec<_>>()).await;
        }
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    assert_eq!(times_listed.len(), ALL, "some were never listed");
    assert!(times_listed.values().all(|&times| times == 1), "some were listed twice");
}
