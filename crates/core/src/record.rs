//! The idempotency record: what a store keeps for a key.

use std::{fmt, sync::Arc};

use crate::clock::Timestamp;

pub use crate::provenance::{Provenance, Worker};

/// What a store keeps for a key. A store saves every field unchanged and makes no decisions from
/// them; all decisions are in [`admission`](crate::admission).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct IdempotencyRecord {
    /// The state of the key.
    pub status: Status,
    /// The token of the claim that wrote the record. `None` once the claim is given up, and in a record
    /// written by another library.
    pub owner: Option<Owner>,
    /// The token of the claim that gave the key up: released or undone, or stopped at its deadline. A
    /// writer whose response was lost recognises its own write by it.
    pub last_owner: Option<Owner>,
    /// The number of failed attempts for this key.
    pub failed_attempts: u32,
    /// The number of lost attempts: the owner was killed, timed out, or lost its connection to the
    /// store.
    pub lost_attempts: u32,
    /// The number of attempts that were lost one after the other, the last one included, and of which
    /// nothing was heard at all. One of them may have killed its process. An attempt that failed or was
    /// stopped at its deadline ends the row.
    pub consecutive_losses: u32,
    /// The fence of the last claim: higher than that of every claim before it while the record
    /// lives. 0 in a record of another library.
    pub fence: u64,
    /// While [`Status::InProgress`]: the owner holds the key up to and including this instant.
    /// `None` in a record of another library that did not know its deadline; the key is then held
    /// until `expires_at`. Afterwards: when the owner recorded how its attempt had ended
    /// ([`settled_at`](Self::settled_at)).
    pub lease_until: Option<Timestamp>,
    /// The record is valid up to and including this instant. In our records, a whole second.
    pub expires_at: Timestamp,
    /// The fingerprint: a hash of the payload parts that must agree between deliveries, if the
    /// operation has one.
    pub fingerprint: Option<Fingerprint>,
    /// What the handler returned ([`Status::Completed`]) or the permanent failure
    /// ([`Status::PermanentlyFailed`]), as JSON text.
    pub result: Option<Json>,
    /// What the finished steps of the handler returned, as JSON text. Every write of the record carries it
    /// on until the key is completed.
    pub steps: Option<Json>,
    /// The messages that are stored with the completion and not yet known to be sent, as JSON text.
    pub outbox: Option<Json>,
    /// The payload of the record, as JSON text, until its key is completed: only for an operation that asks for it, to
    /// run the work again, or to divert its record, where nothing redelivers it.
    pub payload: Option<Json>,
    /// The type of the last error. Never its message, which may quote the payload.
    pub error_type: Option<Arc<str>>,
    /// The application that claimed the key. `None` if the application had no name, in records of
    /// earlier versions, and in records of other libraries.
    pub application: Option<Arc<str>>,
    /// Where the last claim came from. `None` in records of earlier versions and of other libraries.
    pub provenance: Option<Provenance>,
}

impl IdempotencyRecord {
    /// A record with only a status and an expiry, which is rounded up to a whole second.
    #[must_use]
    pub const fn new(status: Status, expires_at: Timestamp) -> Self {
        Self {
            status,
            owner: None,
            last_owner: None,
            failed_attempts: 0,
            lost_attempts: 0,
            consecutive_losses: 0,
            fence: 0,
            lease_until: None,
            expires_at: expires_at.ceil_to_second(),
            fingerprint: None,
            result: None,
            steps: None,
            outbox: None,
            payload: None,
            error_type: None,
            application: None,
            provenance: None,
        }
    }

    /// Whether the last claim was given up by its own worker: released, undone, or stopped at its
    /// deadline, when the key stays held until the lease ends. Otherwise its attempt was lost.
    #[must_use]
    pub const fn is_given_up(&self) -> bool {
        matches!(self.status, Status::InProgress)
            && self.owner.is_none()
            && self.last_owner.is_some()
    }

    /// How many bytes its texts have: the parts that may be large.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        let texts = [&self.result, &self.steps, &self.outbox, &self.payload];
        texts.into_iter().flatten().map(|text| text.len()).sum()
    }

    /// When the work was recorded as done, or as permanently failed, rounded up to a whole second. `None` before that, in records of earlier versions,
    /// and in those of other libraries, which leave the end of their lease in the field.
    #[must_use]
    pub const fn settled_at(&self) -> Option<Timestamp> {
        match self.status {
            Status::Completed | Status::PermanentlyFailed if self.owner.is_some() => {
                self.lease_until
            }
            _ => None,
        }
    }
}

/// Whether this is a valid application name: 1 to 128 visible ASCII characters.
///
/// ```
/// use lambda_idempotency_core::record::is_application_name;
/// assert!(is_application_name("orders-prod") && !is_application_name("two words"));
/// ```
#[must_use]
pub fn is_application_name(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The status of an [`IdempotencyRecord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Claimed until the lease ends. A released record also has this status, with a lease in the
    /// past.
    InProgress,
    /// The handler returned; final until the record expires.
    Completed,
    /// The handler failed permanently; final until the record expires.
    PermanentlyFailed,
}

/// The owner token of one claim: 128 random bits, never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(u128);

impl Owner {
    /// A new token from the operating system's random numbers. A generator that was seeded before a
    /// Lambda snapshot would repeat tokens after each restore.
    ///
    /// # Errors
    /// The operating system returned no random bytes.
    pub fn random() -> Result<Self, EntropyError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(EntropyError)?;
        Ok(Self(u128::from_be_bytes(bytes)))
    }

    /// The token with these bits, for stores that read a token back, and for tests.
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// The bits of the token, for stores that keep it as a number.
    #[must_use]
    pub const fn to_bits(self) -> u128 {
        self.0
    }

    /// Reads the text that [`Display`](fmt::Display) writes: 32 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        if hex { u128::from_str_radix(text, 16).ok().map(Self) } else { None }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({self})")
    }
}

/// The operating system returned no random bytes for an owner token or a key.
#[derive(Debug, thiserror::Error)]
#[error("the operating system returned no random bytes; try again")]
pub struct EntropyError(#[source] pub(crate) getrandom::Error);

/// A hash over the parts of a payload that must agree between two deliveries of one key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(Arc<str>);

impl Fingerprint {
    /// Wraps a hash in its text form.
    #[must_use]
    pub fn new(hash: impl Into<Arc<str>>) -> Self {
        Self(hash.into())
    }

    /// The hash as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A JSON text: what a handler returned, or its permanent failure. It may hold personal data, so
/// `Debug` shows only its length; as a `&str` it is available in full. Clones share the text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Arc<str>);

impl Json {
    /// The text that its clones share.
    #[must_use]
    pub const fn shared(&self) -> &Arc<str> {
        &self.0
    }
}

impl std::ops::Deref for Json {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<T: Into<Arc<str>>> From<T> for Json {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_tokens_differ_and_are_parsed_from_their_text() {
        let (a, b) = (Owner::random().unwrap(), Owner::random().unwrap());
        assert_ne!(a, b);
        assert_eq!(Owner::parse(&a.to_string()), Some(a));
        assert_eq!(Owner::from_bits(1).to_string().len(), 32);
        assert_eq!(Owner::from_bits(a.to_bits()), a);
    }

    #[test]
    fn debug_shows_no_content_of_a_record() {
        let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::EPOCH);
        record.result = Some("\"s3cr3t\"".into());
        assert!(!format!("{record:?}").contains("s3cr3t"));
        assert_eq!(record.result.as_deref(), Some("\"s3cr3t\""));
    }

    #[test]
    fn text_that_is_not_a_token_is_refused() {
        for text in
            ["", "1", "+0000000000000000000000000000001", "g0000000000000000000000000000000"]
        {
            assert_eq!(Owner::parse(text), None, "{text}");
        }
    }
}
