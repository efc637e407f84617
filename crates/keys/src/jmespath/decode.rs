//! Decodes base64 text, with or without gzip: strictly for keys of this library, and as Powertools does for its keys.

use std::{borrow::Cow, io::Read as _};

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use flate2::{bufread::GzDecoder, read::MultiGzDecoder};

use super::{
    defects::{Collision, Collisions},
    text::Text,
    value::{Value, Variant},
};

/// The standard alphabet, with or without padding. All other characters are refused: a decoder that
/// skips unknown characters would decode two distinct texts to the same bytes.
const BASE64: GeneralPurpose = GeneralPurpose::new(&STANDARD, UNPADDED);
/// Both libraries of Powertools ignore bits after the last byte.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, UNPADDED.with_decode_allow_trailing_bits(true));
const UNPADDED: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);

pub(super) const TOO_LARGE: &str =
    "the decompressed texts of a record are larger than 8 MiB together";

/// Decodes base64 to text.
pub(super) fn strict_base64(text: &str) -> Result<String, &'static str> {
    strict_utf8(strict_bytes(text)?)
}

/// Decodes base64 and decompresses the result to at most `room` bytes, because a few bytes can
/// decompress to gigabytes.
pub(super) fn strict_base64_gzip(text: &str, room: usize) -> Result<String, &'static str> {
    let compressed = strict_bytes(text)?;
    let mut plain = Vec::new();
    let limit = u64::try_from(room).unwrap_or(u64::MAX);
    MultiGzDecoder::new(&*compressed)
        .take(limit.saturating_add(1))
        .read_to_end(&mut plain)
        .map_err(|_| "the text is not the base64 of gzip data")?;
    if plain.len() > room {
        return Err(TOO_LARGE);
    }
    strict_utf8(plain)
}

fn strict_bytes(text: &str) -> Result<Vec<u8>, &'static str> {
    BASE64.decode(text).map_err(|_| "the text is not base64")
}

fn strict_utf8(bytes: Vec<u8>) -> Result<String, &'static str> {
    String::from_utf8(bytes).map_err(|_| "the text holds bytes that are not UTF-8")
}

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
    if matches!(text, Cow::Owned(_)) {
        collisions.note(Collision::Text);
    }
    let text = if skip_mark { text.strip_prefix('\u{FEFF}').unwrap_or(&text) } else { &text };
    Some(Value::text(text))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::{super::value::MOST_BYTES, *};

    fn unpacked(text: &str) -> Result<String, &'static str> {
        strict_base64_gzip(text, MOST_BYTES)
    }

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn base64_is_read_strictly() {
        for text in ["aMOp", "aMOpIQ==", "aMOpIQ"] {
            assert!(strict_base64(text).unwrap().starts_with("hé"), "{text}");
        }
        for text in ["aMOp\n", " aMOp", "aM-_", "aMOpIR==", "a", "aMOp====", "/w=="] {
            assert!(strict_base64(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn gzip_in_one_member_or_several() {
        let both = [gzip(b"{\"a\":"), gzip(b"1}")].concat();
        assert_eq!(unpacked(&BASE64.encode(&both)).unwrap(), "{\"a\":1}");
        let cut = both.get(..both.len() - 3).unwrap();
        for broken in [cut, b"{}", b""] {
            assert!(unpacked(&BASE64.encode(broken)).is_err());
        }
        assert!(unpacked("?").unwrap_err().contains("not base64"));
        assert!(unpacked(&BASE64.encode(gzip(b"\xff"))).unwrap_err().contains("UTF-8"));
    }

    #[test]
    fn text_that_decompresses_beyond_the_limit_is_refused() {
        let bomb = BASE64.encode(gzip(&vec![b'a'; MOST_BYTES + 1]));
        assert!(bomb.len() < 20_000, "{}", bomb.len());
        assert!(unpacked(&bomb).unwrap_err().contains("8 MiB"));
        let largest = BASE64.encode(gzip(&vec![b'a'; MOST_BYTES]));
        assert_eq!(unpacked(&largest).unwrap().len(), MOST_BYTES);
    }
}
