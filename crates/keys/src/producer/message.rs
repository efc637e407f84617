//! A payload with its key and its deduplication id for FIFO queues and topics.

use std::fmt;

use crate::{Digest, Key};

/// Has to change whenever the ids change. A message is then delivered twice if its first copy has
/// the old id.
const SCHEME: &[u8] = b"lambda-idempotency deduplication id 1";

/// A payload to be sent, with its key. `Debug` does not show the payload.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    pub(super) body: String,
    pub(super) key: Key,
}

impl Message {
    /// The JSON text to send.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }

    /// The JSON text to send, by value.
    #[must_use]
    pub fn into_body(self) -> String {
        self.body
    }

    /// The key, exactly as the consumer stores it. Log only its [`Key::hash`].
    #[must_use]
    pub const fn key(&self) -> &Key {
        &self.key
    }

    /// The `MessageDeduplicationId` for a FIFO queue or topic: [`deduplication_id`] of its key.
    #[must_use]
    pub fn deduplication_id(&self) -> String {
        deduplication_id(&self.key)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message").field("key", &self.key).finish_non_exhaustive()
    }
}

/// The `MessageDeduplicationId` of a key, for SQS FIFO queues and SNS FIFO topics: its SHA-256 in
/// 64 hexadecimal digits. Equal keys have equal ids, and distinct keys have distinct ids. [SQS] and
/// [SNS] accept up to 128 letters, digits and punctuation marks.
///
/// # What it prevents
///
/// For five minutes after the queue or topic accepted a message, it accepts further messages with
/// the same id but does not deliver them, even if the first was received and deleted meanwhile.
/// This removes most copies that a retrying producer makes. It replaces content-based
/// deduplication, which treats two copies as two messages if one byte differs.
///
/// # What it does not prevent
///
/// * A copy that is sent **later than five minutes** after the first. The consumer's idempotency
///   record recognises it until its retention ends.
/// * **Redelivery** of one message. The consumer recognises it.
/// * Copies in **another queue, topic or message group**. An id applies within its queue or topic.
///   If the queue has `DeduplicationScope` `messageGroup`, or the topic has `FifoThroughputScope`
///   `MessageGroup`, it applies only within the message group: derive the group from the key's
///   parts too, so that copies are in the same group.
/// * A **second message with the same key and another payload**, for instance a correction: within
///   the five minutes it is dropped silently, and the consumer cannot compare fingerprints. Give
///   different work a different key.
/// * A copy that is sent **on purpose** within the five minutes, because the first message failed
///   and is in a dead-letter queue: it is dropped too. Redrive the first message instead.
///
/// [SQS]: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
/// [SNS]: https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
///
/// ```
/// use lambda_idempotency_keys::producer::{KeySpec, deduplication_id};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let place = KeySpec::new("place-order", "id").producer()?;
/// let id = deduplication_id(&place.key(r#"{"id":"o-1","note":"first try"}"#)?);
/// assert_eq!(id, deduplication_id(&place.key(r#"{ "note": "second", "id": "o-1" }"#)?));
/// assert_ne!(id, deduplication_id(&place.key(r#"{"id":"o-2"}"#)?));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn deduplication_id(key: &Key) -> String {
    let mut digest = Digest::new(SCHEME);
    digest.part(key.as_str().as_bytes());
    digest.hex()
}
