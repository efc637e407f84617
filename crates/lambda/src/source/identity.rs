//! What the default keys are good for, in words.

/// What a source's default key is made of. Shown by [`inspect`](crate::inspect) and documented in
/// `docs/sources`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Which members of the record.
    pub(crate) parts: &'static str,
    /// Which duplicates it recognises.
    pub(crate) catches: &'static str,
    /// Which it does not: those need a key from the payload.
    pub(crate) misses: &'static str,
}
