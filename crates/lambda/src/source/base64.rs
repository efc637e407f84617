//! Decodes payloads that a source delivers in base64.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::rejection::Rejection;

/// The text of the base64 in the member with this name.
pub(super) fn text<'e>(
    base64: Option<Cow<'e, str>>,
    member: &'static str,
) -> Result<Cow<'e, str>, Rejection> {
    let base64 = base64.ok_or(Rejection::NoMember(member))?;
    decode(&base64).map(Cow::Owned).ok_or(Rejection::NotText(member))
}

/// The text, if the bytes are UTF-8.
pub(super) fn decode(base64: &str) -> Option<String> {
    bytes(base64).and_then(|bytes| String::from_utf8(bytes).ok())
}

pub(super) fn bytes(base64: &str) -> Option<Vec<u8>> {
    STANDARD.decode(base64).ok()
}
