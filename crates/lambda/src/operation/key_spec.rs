//! Makes an operation from a key specification, so that producer and consumer have the same keys.

use lambda_idempotency_keys::producer::KeySpec;

use super::Operation;

/// An operation whose keys follow this specification, which its producers share.
///
/// ```
/// use lambda_idempotency::{Operation, producer::KeySpec};
///
/// let spec = KeySpec::new("place-order", "[tenant, order.id]");
/// // The consumer; settings that do not concern the producer are made here:
/// let operation = Operation::from(spec.clone()).max_failed_attempts(3);
/// // The producer:
/// let producer = spec.producer().unwrap();
/// # operation.check().unwrap();
/// ```
impl From<KeySpec> for Operation {
    fn from(spec: KeySpec) -> Self {
        Self::of(spec)
    }
}
