//! In which part of an index an item is that has something left.

use aws_sdk_dynamodb::types::AttributeValue;
use lambda_idempotency_core::{browse::Left, key::Key, record::IdempotencyRecord};

/// In how many parts the index is. Another number would need a transition: items keep the shard that they were written with.
pub(crate) const SHARDS: u32 = 64;

/// The attribute that puts an item into the index: its shard, if anything is left in the record.
pub(crate) fn shard_of(key: &Key, record: &IdempotencyRecord) -> Option<AttributeValue> {
    let left = [Left::Messages, Left::Work].into_iter().find(|left| left.is_in(record))?;
    // FNV-1a, whose upper half mixes better than its lower one.
    let mix = |sum: u32, byte: u8| (sum ^ u32::from(byte)).wrapping_mul(16_777_619);
    let sum = key.as_str().bytes().fold(2_166_136_261, mix);
    Some(shard(left, (sum ^ (sum >> 16)) % SHARDS))
}

/// The value of the attribute in this shard.
pub(crate) fn shard(left: Left, number: u32) -> AttributeValue {
    let left = match left {
        Left::Messages => "messages",
        Left::Work => "work",
    };
    AttributeValue::S(format!("{left}#{number:02}"))
}

#[cfg(test)]
mod tests {
    use lambda_idempotency_core::{clock::Timestamp, record::Status};

    use super::*;

    fn record(status: Status) -> IdempotencyRecord {
        IdempotencyRecord::new(status, Timestamp::from_secs(9))
    }

    #[test]
    fn only_records_with_something_left_are_in_the_index() {
        let key = Key::from_text("op#1");
        for status in [Status::InProgress, Status::Completed, Status::PermanentlyFailed] {
            assert_eq!(shard_of(&key, &record(status)), None);
        }
        let mut kept = record(Status::InProgress);
        kept.payload = Some("{}".into());
        assert_eq!(shard_of(&key, &kept), Some(AttributeValue::S("work#31".into())));
        let mut unsent = record(Status::Completed);
        unsent.outbox = Some("[]".into());
        assert_eq!(shard_of(&key, &unsent), Some(AttributeValue::S("messages#31".into())));
    }

    /// The items of all versions have to be where this one looks.
    #[test]
    fn the_shard_of_a_key_does_not_change_with_versions() {
        let mut kept = record(Status::InProgress);
        kept.payload = Some("{}".into());
        for (key, shard) in [("place-order#a", "work#63"), ("place-order#b", "work#38")] {
            let found = shard_of(&Key::from_text(key), &kept);
            assert_eq!(found, Some(AttributeValue::S(shard.into())), "{key}");
        }
    }

    #[test]
    fn keys_are_in_all_shards() {
        let mut kept = record(Status::InProgress);
        kept.payload = Some("{}".into());
        let mut counts = std::collections::HashMap::new();
        for number in 0..6400 {
            let shard = shard_of(&Key::from_text(format!("place-order#{number}")), &kept);
            *counts.entry(format!("{shard:?}")).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 64);
        assert!(counts.values().all(|count| (50..200).contains(count)), "{counts:?}");
    }
}
