//! The cache keeps its bounds at every instant.

use std::sync::Arc;

use shuttle::thread::{spawn, yield_now};

use crate::{
    clock::Timestamp,
    key::Key,
    process::{Cache, Completed},
    protocol::Protocol,
    record::{IdempotencyRecord, Status},
};

const NOW: Timestamp = Timestamp::from_secs(1_000);

/// Two invocations cache keys, and a third checks the bounds at any time.
pub(crate) fn bounds_hold<P: Protocol>() {
    let bytes = 1_300; // enough for two entries and not for three
    let completed = Arc::new(Completed::new(Cache::new().entries(2).bytes(bytes)));
    let record = Arc::new(IdempotencyRecord::new(Status::Completed, NOW));
    let writers = [["a", "b"], ["c", "a"]].map(|keys| {
        let (completed, record) = (Arc::clone(&completed), Arc::clone(&record));
        spawn(move || {
            for key in keys.map(Key::from_text) {
                P::keep(&completed, &key, &record, NOW);
                if let Some(found) = completed.get(&key, NOW) {
                    assert_eq!(found, record);
                }
            }
        })
    });
    for _ in 0..4 {
        let (entries, used) = completed.extent();
        assert!(entries <= 2 && used <= bytes, "{entries} entries, {used} bytes");
        yield_now();
    }
    for writer in writers {
        writer.join().unwrap();
    }
    assert_eq!(completed.extent().0, 2);
}
