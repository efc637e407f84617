//! Makes keys for work that has no identifier.

use std::time::{SystemTime, UNIX_EPOCH};

use uuid::Builder;

/// A key for work that has no identifier: a UUID of version 7 ([RFC
/// 9562](https://www.rfc-editor.org/rfc/rfc9562#section-5.7)), such as
/// `018bcfe5-6800-7cc3-98c4-dc0c0c07398f`. Its first 48 bits are the milliseconds of `now`, so
/// everyone who sees the key can tell when it was made. 74 bits are random, from the operating
/// system. Keys of the same millisecond are not ordered.
///
/// **Store it before the first send**, together with what is sent and in the same transaction. A
/// send whose response was lost is repeated, possibly after a restart of the program. The second
/// message is recognised as a duplicate only if it has the old key. A key that is made anew for
/// each send has no effect.
///
/// ```
/// use std::time::SystemTime;
/// use lambda_idempotency_keys::producer::{KeySpec, new_key};
/// # use std::collections::BTreeMap;
/// # fn send(body: &str, deduplication_id: &str) -> Result<(), &'static str> { Err("no answer") }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut outbox = BTreeMap::new();
/// let refund = KeySpec::new("refund", "requestId").producer()?;
///
/// // Once, when the refund is decided: the key is stored in the database with it.
/// let request = serde_json::json!({ "requestId": new_key(SystemTime::now())?, "amount": 5 });
/// outbox.insert("refund-17", request.to_string());
///
/// // As often as necessary, also after a crash: send the stored text unchanged.
/// let mut ids = Vec::new();
/// for _ in 0..3 {
///     let body = &outbox["refund-17"];
///     let message = refund.message_of(body)?;
///     if send(message.body(), &message.deduplication_id()).is_ok() {
///         outbox.remove("refund-17");
///         break;
///     }
///     ids.push(message.deduplication_id());
/// }
/// assert!(ids.iter().all(|id| id == &ids[0]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The operating system returned no random bytes. No key was made; try again.
pub fn new_key(now: SystemTime) -> Result<String, EntropyError> {
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(EntropyError)?;
    // A clock before 1970 counts as 1970: the random bits still make keys distinct.
    let millis = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let millis = u64::try_from(millis).unwrap_or(u64::MAX);
    let uuid = Builder::from_unix_timestamp_millis(millis, &random).into_uuid();
    Ok(uuid.hyphenated().to_string())
}

/// The operating system returned no random bytes for a key.
#[derive(Debug, thiserror::Error)]
#[error("the operating system returned no random bytes; try again")]
pub struct EntropyError(#[source] getrandom::Error);

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, time::Duration};

    use uuid::{Uuid, Variant, Version};

    use super::*;

    fn at(millis: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(millis)
    }

    #[test]
    fn a_new_key_holds_the_time_the_version_and_the_variant() {
        // The instant of RFC 9562, appendix A.6.
        let key = new_key(at(0x017F_22E2_79B0)).unwrap();
        assert!(key.starts_with("017f22e2-79b0-7"), "{key}");
        for millis in [0, 1_700_000_000_123, (1 << 48) - 1] {
            let key = new_key(at(millis)).unwrap();
            let uuid: Uuid = key.parse().unwrap();
            assert_eq!(key, uuid.hyphenated().to_string());
            assert_eq!(uuid.get_version(), Some(Version::SortRand));
            assert_eq!(uuid.get_variant(), Variant::RFC4122);
            assert_eq!(uuid.as_u128() >> 80, u128::from(millis));
        }
    }

    #[test]
    fn keys_of_one_instant_are_distinct_in_every_random_bit() {
        let keys: Vec<u128> =
            (0..1000).map(|_| new_key(at(7)).unwrap().parse::<Uuid>().unwrap().as_u128()).collect();
        assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len());
        let differ = keys.iter().fold(0, |bits, key| bits | (key ^ keys[0]));
        // All but time, version and variant.
        assert_eq!(differ, 0x0fff_3fff_ffff_ffff_ffff);
    }
}
