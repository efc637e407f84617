//! A payload with its key, and the id by which a FIFO queue or topic knows it.

use std::fmt;

use crate::{Digest, Key};

/// Changes if another id could come out. A message is then sent twice if its first copy has the old.
const SCHEME: &[u8] = b"lambda-idempotency deduplication id 1";

/// A payload to be sent, and its key. Its `Debug` shows no payload.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    body: String,
    key: Key,
}

impl Message {
    pub(super) const fn new(body: String, key: Key) -> Self {
        Self { body, key }
    }

    /// The JSON text to send.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }

    /// The same, to keep.
    #[must_use]
    pub fn into_body(self) -> String {
        self.body
    }

    /// The key, exactly as the consumer stores it. [`Key::hash`] is what logs may show.
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

/// The `MessageDeduplicationId` of a key, for SQS FIFO queues and SNS FIFO topics: a SHA-256 of it in
/// 64 hexadecimal digits. Equal keys have equal ids, distinct keys distinct ones. [SQS] and [SNS]
/// take up to 128 letters, digits and punctuation marks.
///
/// # What it is good for
///
/// For five minutes after a message was accepted, the queue or topic accepts further ones with its
/// id and delivers none of them, even if the first has been received and deleted by then. This
/// spares the consumer most copies that a retrying producer makes, and takes the place of
/// content-based deduplication, which takes two copies for two messages if one byte differs.
///
/// # What it does not protect from
///
/// * A copy that is sent **later than five minutes** after the first. The consumer's record does,
///   for its retention.
/// * **Redelivery** of one message: that is the consumer's work.
/// * Copies **elsewhere**. An id is known within its queue or topic, and where the queue has
///   `DeduplicationScope` `messageGroup`, or the topic `FifoThroughputScope` `MessageGroup`, within
///   the message group: there, derive the group from the key's parts too, so that copies are in
///   one group.
/// * A **second message of the same key with another payload**, a correction for instance: it is
///   dropped in silence within the five minutes, and the consumer never compares fingerprints. Give
///   what is other work another key.
/// * A copy that is sent **on purpose** within the five minutes, because the first one failed and is
///   in a dead-letter queue: it is dropped too. Redrive the first one instead.
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
