//! Decodes `powertools_base64` and `powertools_base64_gzip` as the libraries do.

use std::io::Read as _;

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use flate2::bufread::GzDecoder;

use super::{Collision, Collisions, Variant, text::Text, value::Value};

/// Both libraries ignore bits after the last byte.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Why something is not decompressed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotUnpacked {
    /// The variant cannot decompress it either. Holds the number of bytes before the error.
    Unreadable(usize),
    /// It is larger than the limit.
    TooLarge,
}

pub(crate) fn base64(variant: Variant, text: &Text) -> Option<Vec<u8>> {
    let text = text.to_str()?;
    let digits = match variant {
        Variant::Python(_) => python_digits(text)?,
        Variant::Standard | Variant::TypeScript(_) => {
            let digits = text.trim_end_matches('=');
            // TypeScript needs groups of four characters, including at most two of padding.
            if text.encode_utf16().count() % 4 != 0 || text.len() - digits.len() > 2 {
                return None;
            }
            digits.to_owned()
        }
    };
    LENIENT.decode(digits).ok()
}

/// Python skips other characters, stops at the padding of a group, and needs complete groups.
fn python_digits(text: &str) -> Option<String> {
    let mut digits = String::with_capacity(text.len());
    let mut pads = 0;
    for c in text.chars() {
        match c {
            _ if !c.is_ascii() => return None,
            '=' if digits.len() % 4 >= 2 => {
                pads += 1;
                if digits.len() % 4 + pads >= 4 {
                    return Some(digits);
                }
            }
            'A'..='Z' | 'a'..='z' | '0'..='9' | '+' | '/' => {
                pads = 0;
                digits.push(c);
            }
            _ => {}
        }
    }
    digits.len().is_multiple_of(4).then_some(digits)
}

/// Decompresses one gzip member after the other, at most `room` bytes, because a few bytes can
/// decompress to gigabytes. Python skips zeros after a member and accepts empty input; Node stops
/// at a zero.
pub(crate) fn gunzip(
    variant: Variant,
    mut bytes: &[u8],
    room: usize,
) -> Result<Vec<u8>, NotUnpacked> {
    let mut plain = Vec::new();
    let is_python = variant.is_python();
    while !(bytes.is_empty() && is_python) {
        let mut member = GzDecoder::new(bytes);
        let left = u64::try_from(room - plain.len()).unwrap_or(u64::MAX);
        let read = member.by_ref().take(left.saturating_add(1)).read_to_end(&mut plain);
        if plain.len() > room {
            return Err(NotUnpacked::TooLarge);
        }
        read.map_err(|_| NotUnpacked::Unreadable(plain.len()))?;
        bytes = member.into_inner();
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        if is_python {
            bytes = bytes.get(zeros..).unwrap_or_default();
        } else if zeros > 0 || bytes.is_empty() {
            break;
        }
    }
    Ok(plain)
}

/// Python refuses invalid UTF-8; TypeScript replaces it, and in `powertools_base64` also skips a
/// byte order mark.
pub(crate) fn utf8(
    variant: Variant,
    bytes: &[u8],
    skip_mark: bool,
    collisions: &Collisions,
) -> Option<Value> {
    if variant.is_python() {
        return std::str::from_utf8(bytes).ok().map(Value::text);
    }
    let text = String::from_utf8_lossy(bytes);
    if matches!(text, std::borrow::Cow::Owned(_)) {
        collisions.note(Collision::Text);
    }
    let text = if skip_mark { text.strip_prefix('\u{FEFF}').unwrap_or(&text) } else { &text };
    Some(Value::text(text))
}
