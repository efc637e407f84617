//! The operation of a key specification: producer and consumer have the same keys.

use lambda_idempotency_keys::producer::KeySpec;

use super::Operation;

/// The operation whose keys are made by this specification, which its producers have too.
///
/// ```
/// use lambda_idempotency::{Operation, producer::KeySpec};
///
/// let spec = KeySpec::new("place-order", "[tenant, order.id]");
/// // The consumer; what is no business of the producer is said here:
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
