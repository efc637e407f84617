//! A description of each source's default key.

/// What a source's default key is made of. Shown by [`inspect`](crate::keys::inspect) and documented in
/// [the guide](crate::guide::sources#default-keys).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The members of the record.
    pub(crate) parts: &'static str,
    /// Which duplicates it recognises.
    pub(crate) catches: &'static str,
    /// Which duplicates it does not recognise: those need a key from the payload.
    pub(crate) misses: &'static str,
}
