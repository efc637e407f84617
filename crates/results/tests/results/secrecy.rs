//! Logs hold nothing that a key provider or a result store says: it is a text of the application.

use std::{
    io,
    sync::{Arc, Mutex},
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    memory::MemoryStore,
    store::Verdict,
};
use lambda_idempotency_results::{BoxError, ResultName, ResultStore, Results};
use tracing_subscriber::fmt::MakeWriter;

use crate::support::{completed, long, put};

struct Refuses;

impl ResultStore for Refuses {
    fn put<'a>(
        &'a self,
        _: &'a ResultName,
        _: Vec<u8>,
        _: Timestamp,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async { Err("no bucket s3cr3t".into()) })
    }

    fn get<'a>(
        &'a self,
        _: &'a ResultName,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, BoxError>> {
        Box::pin(async { Ok(None) })
    }
}

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Captured {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn a_result_that_is_not_stored_is_logged_without_what_the_result_store_said() {
    let log = Captured::default();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(log.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let store = Results::new(MemoryStore::new()).offload_above(100, Refuses);
    let Verdict::Unknown(error) = put(&store, &completed(long(5000))).await else { panic!() };
    let text = String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned();
    assert!(text.contains("a part of a record is not stored"), "{text}");
    assert!(text.contains("the result store failed"), "{text}");
    assert!(!text.contains("s3cr3t") && !error.to_string().contains("s3cr3t"), "{text}");
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "no bucket s3cr3t", "the application can look at it");
}
