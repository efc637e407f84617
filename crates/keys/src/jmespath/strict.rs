//! Decodes base64 text, with or without gzip.

use std::io::Read;

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use flate2::read::MultiGzDecoder;

/// The standard alphabet, with or without padding. All other characters are refused: a decoder that
/// skips unknown characters would decode two distinct texts to the same bytes.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

pub(super) const TOO_LARGE: &str =
    "the decompressed texts of a record are larger than 8 MiB together";

/// Decodes base64 to text.
pub(super) fn base64(text: &str) -> Result<String, &'static str> {
    utf8(bytes(text)?)
}

/// Decodes base64 and decompresses the result to at most `room` bytes, because a few bytes can
/// decompress to gigabytes.
pub(super) fn base64_gzip(text: &str, room: usize) -> Result<String, &'static str> {
    let compressed = bytes(text)?;
    let mut plain = Vec::new();
    let limit = u64::try_from(room).unwrap_or(u64::MAX);
    MultiGzDecoder::new(&*compressed)
        .take(limit.saturating_add(1))
        .read_to_end(&mut plain)
        .map_err(|_| "the text is not the base64 of gzip data")?;
    if plain.len() > room {
        return Err(TOO_LARGE);
    }
    utf8(plain)
}

fn bytes(text: &str) -> Result<Vec<u8>, &'static str> {
    BASE64.decode(text).map_err(|_| "the text is not base64")
}

fn utf8(bytes: Vec<u8>) -> Result<String, &'static str> {
    String::from_utf8(bytes).map_err(|_| "the text holds bytes that are not UTF-8")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::super::limits::MOST_BYTES;
    use super::*;

    fn unpacked(text: &str) -> Result<String, &'static str> {
        base64_gzip(text, MOST_BYTES)
    }

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn base64_is_read_strictly() {
        for text in ["aMOp", "aMOpIQ==", "aMOpIQ"] {
            assert!(base64(text).unwrap().starts_with("hé"), "{text}");
        }
        for text in ["aMOp\n", " aMOp", "aM-_", "aMOpIR==", "a", "aMOp====", "/w=="] {
            assert!(base64(text).is_err(), "{text:?}");
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
