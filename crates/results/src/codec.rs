//! From a result to what is stored of it, and back.

use lambda_idempotency_core::{
    record::Json,
    store::{StoreError, StoreErrorKind},
};

use crate::{
    compression::{compress, decompress},
    envelope::{self, Steps},
    unreadable::Unreadable,
};

/// How results are stored.
#[derive(Clone, Debug)]
pub(crate) struct Codec {
    /// Longer results are compressed.
    pub(crate) compress_above: Option<usize>,
    /// Longer results are neither stored nor read.
    pub(crate) max_bytes: usize,
    /// Results are not stored at all.
    pub(crate) status_only: bool,
}

impl Codec {
    /// What is stored of a result.
    pub(crate) fn encode(&self, result: &Json) -> Result<Option<Json>, StoreError> {
        if self.status_only {
            return Ok(None);
        }
        if result.len() > self.max_bytes {
            let context = format!(
                "a result of {} bytes, and at most {} are stored: return less from the handler, or set a \
                 higher `max_bytes`",
                result.len(),
                self.max_bytes
            );
            return Err(StoreError::new(StoreErrorKind::TooLarge, context));
        }
        if let Some(compressed) = self.compressed(result) {
            return Ok(Some(envelope::write(&Steps { zlib: true }, &compressed).into()));
        }
        if envelope::looks_stored(result) {
            return Ok(Some(envelope::write(&Steps::default(), result.as_bytes()).into()));
        }
        Ok(Some(result.clone()))
    }

    /// The compressed result, if that is wanted and saves something.
    fn compressed(&self, result: &Json) -> Option<Vec<u8>> {
        let above = self.compress_above?;
        let compressed = (result.len() > above).then(|| compress(result.as_bytes()))??;
        (envelope::length(compressed.len()) < result.len()).then_some(compressed)
    }

    /// The result, from what is stored of it. `None` if it is stored as it is.
    pub(crate) fn decode(&self, stored: &Json) -> Result<Option<Json>, Unreadable> {
        let Some((steps, mut content)) = envelope::read(stored)? else { return Ok(None) };
        if steps.zlib {
            content = decompress(&content, self.max_bytes)?;
        }
        let text = String::from_utf8(content).map_err(|_| Unreadable::Damaged)?;
        Ok(Some(text.into()))
    }
}
