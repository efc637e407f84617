//! The functions of key expressions. Each decodes a text: strictly for keys of this library, and as Powertools does for
//! its keys.

use std::{
    borrow::Cow,
    cell::Cell,
    io::{self, Read as _},
};

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use flate2::{bufread::GzDecoder, read::MultiGzDecoder};

use super::{
    ast::{Encoding, Wanted},
    read::{is_beyond_us, read, read_wanted},
    tokens::left_out,
    value::{Collision, Collisions, Text, Value, Variant},
};

impl Encoding {
    const ALL: [Self; 4] = [Self::Json, Self::Base64, Self::Base64Gzip, Self::Url];

    /// The names of its function: in this library, and in Powertools.
    const fn names(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Json => ("json", Some("powertools_json")),
            Self::Base64 => ("base64", Some("powertools_base64")),
            Self::Base64Gzip => ("base64_gzip", Some("powertools_base64_gzip")),
            Self::Url => ("url_decode", None),
        }
    }

    /// The name of the function that decodes it, if the variant has one.
    pub(super) fn function(self, variant: Variant) -> Option<&'static str> {
        let (own, of_powertools) = self.names();
        if variant == Variant::Standard { Some(own) } else { of_powertools }
    }

    /// The encoding that the function of this name decodes.
    ///
    /// # Errors
    /// There is no such function. Returns the message.
    pub(super) fn of_function(variant: Variant, name: &str) -> Result<Self, String> {
        let is_named = |it: &Self| it.names().0 == name || it.names().1 == Some(name);
        let found = Self::ALL.into_iter().find(is_named);
        match found.and_then(|it| Some((it, it.function(variant)?))) {
            Some((encoding, own)) if own == name => Ok(encoding),
            Some((_, own)) => Err(format!("`{name}` is named `{own}` here")),
            None => {
                let names = Self::ALL.into_iter().filter_map(|it| it.function(variant));
                let names = names.collect::<Vec<_>>().join("`, `");
                let reason =
                    format!("`{name}` is not one of the functions `{names}` and `not_null`");
                Err(left_out(&reason))
            }
        }
    }

    /// Decodes a text, of which only the wanted fields are read. `room` is how many bytes may still be decompressed.
    ///
    /// # Errors
    /// The text cannot be decoded. Returns the reason, without the text.
    pub(super) fn decode(
        self,
        variant: Variant,
        text: &Text,
        wanted: &Wanted,
        (room, collisions): (&Cell<usize>, &Collisions),
    ) -> Result<Value, String> {
        match variant {
            Variant::Standard => self.strictly(text.to_str().ok_or(HALF)?, wanted, room),
            variant => self.as_powertools(variant, text, room, collisions),
        }
    }

    fn strictly(self, text: &str, wanted: &Wanted, room: &Cell<usize>) -> Result<Value, String> {
        let bytes = match self {
            Self::Json => {
                let read = read_wanted(Variant::Standard, text, wanted);
                return read.map_err(|error| error.to_string());
            }
            Self::Base64 => strict_base64(text)?,
            Self::Base64Gzip => strict_gzip(&strict_base64(text)?, room)?,
            Self::Url => strict_url(text)?,
        };
        let decoded = String::from_utf8(bytes);
        let decoded = decoded.map_err(|_| "the text holds bytes that are not UTF-8")?;
        Ok(Value::text(&decoded))
    }

    /// Text that cannot be decoded is `undefined` in TypeScript and an error in Python. Text beyond *our* limits is an
    /// error, because the variant might decode it, and all `undefined` values have the same key.
    fn as_powertools(
        self,
        variant: Variant,
        text: &Text,
        room: &Cell<usize>,
        collisions: &Collisions,
    ) -> Result<Value, String> {
        let decoded = match self {
            Self::Json => match text.to_str().map(|json| read(variant, json)) {
                Some(Ok(value)) => Some(value),
                Some(Err(error)) if is_beyond_us(&error) => return Err(error.to_string()),
                Some(Err(_)) => None,
                None => return Err(HALF.to_owned()),
            },
            Self::Base64 => lenient_base64(variant, text)
                .and_then(|bytes| utf8(variant, &bytes, true, collisions)),
            Self::Base64Gzip => {
                let packed = lenient_base64(variant, text);
                let plain = packed.map(|bytes| lenient_gzip(variant, &bytes, room)).transpose()?;
                plain.flatten().and_then(|bytes| utf8(variant, &bytes, false, collisions))
            }
            // It has no such function.
            Self::Url => None,
        };
        match decoded {
            Some(value) => Ok(value),
            None if variant.is_typescript() => Ok(Value::Undefined),
            None => Err("it cannot read the text".to_owned()),
        }
    }
}

const HALF: &str = "it meets half a surrogate pair";

/// The standard alphabet, with or without padding. All other characters are refused: a decoder that
/// skips unknown characters would decode two distinct texts to the same bytes.
const BASE64: GeneralPurpose = GeneralPurpose::new(&STANDARD, UNPADDED);
/// Both libraries of Powertools ignore bits after the last byte.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, UNPADDED.with_decode_allow_trailing_bits(true));
const UNPADDED: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);

fn strict_base64(text: &str) -> Result<Vec<u8>, &'static str> {
    BASE64.decode(text).map_err(|_| "the text is not base64")
}

/// `+` is a space and `%XX` a byte; the other visible characters of ASCII are themselves. Others are not in such a text.
fn strict_url(text: &str) -> Result<Vec<u8>, &'static str> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let value = digit().zip(digit()).and_then(|(high, low)| u8::try_from(16 * high + low).ok());
                value.ok_or("the text is not URL-encoded: two hexadecimal digits have to follow each `%`")?
            }
            b'!'..=b'~' => byte,
            _ => return Err("the text is not URL-encoded: it has a character that is written as `%XX` there"),
        });
    }
    Ok(decoded)
}

fn strict_gzip(packed: &[u8], room: &Cell<usize>) -> Result<Vec<u8>, &'static str> {
    let mut plain = Vec::new();
    match inflate(MultiGzDecoder::new(packed), room, &mut plain)? {
        true => Ok(plain),
        false => Err("the text is not the base64 of gzip data"),
    }
}

/// Appends the decompressed bytes, at most as many as there is room for, because a few bytes can decompress to
/// gigabytes. Returns whether they are readable.
fn inflate(
    packed: impl io::Read,
    room: &Cell<usize>,
    plain: &mut Vec<u8>,
) -> Result<bool, &'static str> {
    let before = plain.len();
    let limit = u64::try_from(room.get()).unwrap_or(u64::MAX);
    let read = packed.take(limit.saturating_add(1)).read_to_end(plain);
    let left = room.get().checked_sub(plain.len() - before);
    room.set(left.ok_or("the decompressed texts of a record are larger than 8 MiB together")?);
    Ok(read.is_ok())
}

fn lenient_base64(variant: Variant, text: &Text) -> Option<Vec<u8>> {
    let text = text.to_str()?;
    let digits = if variant.is_python() {
        python_digits(text)?
    } else {
        let digits = text.trim_end_matches('=');
        // TypeScript needs groups of four characters, including at most two of padding.
        if text.encode_utf16().count() % 4 != 0 || text.len() - digits.len() > 2 {
            return None;
        }
        digits.to_owned()
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

/// Decompresses one gzip member after the other; `None` if the variant cannot. Python skips zeros after a member and
/// accepts empty input; Node stops at a zero.
fn lenient_gzip(
    variant: Variant,
    mut packed: &[u8],
    room: &Cell<usize>,
) -> Result<Option<Vec<u8>>, &'static str> {
    let mut plain = Vec::new();
    while !(packed.is_empty() && variant.is_python()) {
        let mut member = GzDecoder::new(packed);
        if !inflate(&mut member, room, &mut plain)? {
            return Ok(None);
        }
        packed = member.into_inner();
        let zeros = packed.iter().take_while(|byte| **byte == 0).count();
        if variant.is_python() {
            packed = packed.get(zeros..).unwrap_or_default();
        } else if zeros > 0 || packed.is_empty() {
            break;
        }
    }
    Ok(Some(plain))
}

/// Python refuses invalid UTF-8; TypeScript replaces it, and in `powertools_base64` also skips a
/// byte order mark.
fn utf8(variant: Variant, bytes: &[u8], skip_mark: bool, collisions: &Collisions) -> Option<Value> {
    if variant.is_python() {
        return str::from_utf8(bytes).ok().map(Value::text);
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

    fn decoded(encoding: Encoding, text: &str) -> Result<String, String> {
        let room = Cell::new(MOST_BYTES);
        match encoding.strictly(text, &Wanted::All, &room)? {
            Value::String(text) => Ok(text.shown()),
            _ => Err("it is not a text".to_owned()),
        }
    }

    fn unpacked(text: &str) -> Result<String, String> {
        decoded(Encoding::Base64Gzip, text)
    }

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn base64_is_read_strictly() {
        for text in ["aMOp", "aMOpIQ==", "aMOpIQ"] {
            assert!(decoded(Encoding::Base64, text).unwrap().starts_with("hé"), "{text}");
        }
        for text in ["aMOp\n", " aMOp", "aM-_", "aMOpIR==", "a", "aMOp====", "/w=="] {
            assert!(decoded(Encoding::Base64, text).is_err(), "{text:?}");
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
