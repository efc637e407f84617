//! The form in which a result is stored that is not stored as it is.
//!
//! The result of an idempotency record is a JSON text, and has to remain one, because some stores parse it.
//! So the form is a JSON string, in characters that no writer of JSON escapes:
//!
//! ```text
//! "lambda-idempotency:1 zlib,aes-256-gcm=2026-11 eJzLSM3JyQcABiwCFQ"
//!  `---- mark ----' |  `------- steps ---------' `---- content ----'
//!                   version
//! ```
//!
//! The steps are in the order in which they were taken. The content is in URL-safe base64 without padding. A
//! result of the user that looks like this form is stored in it too, with the step `plain`, so that the two
//! cannot be confused.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::unreadable::Unreadable;

/// What every stored form begins with, inside the quotes. No store and no writer of JSON escapes any of it.
const MARK: &str = "lambda-idempotency:";
/// The version that this code writes, and the only one that it reads.
const VERSION: &str = "1";
const PLAIN: &str = "plain";
const ZLIB: &str = "zlib";

/// What was done to a result before it was stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    /// Compressed with zlib.
    pub(crate) zlib: bool,
}

impl Steps {
    fn text(&self) -> &'static str {
        if self.zlib { ZLIB } else { PLAIN }
    }

    fn parse(text: &str) -> Result<Self, Unreadable> {
        let mut steps = Self::default();
        match text {
            PLAIN => {}
            ZLIB => steps.zlib = true,
            _ => return Err(Unreadable::UnknownForm),
        }
        Ok(steps)
    }
}

/// The stored form of a content.
pub(crate) fn write(steps: &Steps, content: &[u8]) -> String {
    let mut text = format!("\"{MARK}{VERSION} {} ", steps.text());
    URL_SAFE_NO_PAD.encode_string(content, &mut text);
    text.push('"');
    text
}

/// The length of the stored form, or a little more.
pub(crate) const fn length(content: usize) -> usize {
    content.div_ceil(3).saturating_mul(4).saturating_add(MARK.len() + 32)
}

/// The steps and the content of a stored form; `None` if the text is the result itself.
pub(crate) fn read(text: &str) -> Result<Option<(Steps, Vec<u8>)>, Unreadable> {
    let Some(inside) = text.strip_prefix('"').and_then(|text| text.strip_prefix(MARK)) else {
        return Ok(None);
    };
    let inside = inside.strip_suffix('"').ok_or(Unreadable::Damaged)?;
    let (version, inside) = inside.split_once(' ').ok_or(Unreadable::UnknownForm)?;
    if version != VERSION {
        return Err(Unreadable::UnknownForm);
    }
    let (steps, content) = inside.split_once(' ').ok_or(Unreadable::Damaged)?;
    let steps = Steps::parse(steps)?;
    let content = URL_SAFE_NO_PAD.decode(content).map_err(|_| Unreadable::Damaged)?;
    Ok(Some((steps, content)))
}

/// Whether a result may be taken for a stored form, also after a store has parsed it and written it again:
/// its string may begin with an escape.
pub(crate) fn looks_stored(result: &str) -> bool {
    let Some(string) = result.trim_start().strip_prefix('"') else { return false };
    // `\u006c` is the longest way to write a character of the mark.
    let beginning = string.as_bytes().get(..MARK.len() * 6).unwrap_or(string.as_bytes());
    string.starts_with(MARK) || beginning.contains(&b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_of_another_version_or_with_unknown_steps_is_not_read() {
        for text in [
            "\"lambda-idempotency:2 plain MQ\"",
            "\"lambda-idempotency:1 zstd MQ\"",
            "\"lambda-idempotency:1 zlib,zlib MQ\"",
            "\"lambda-idempotency:\"",
        ] {
            assert!(matches!(read(text), Err(Unreadable::UnknownForm)), "{text}");
        }
    }

    #[test]
    fn a_form_that_was_cut_off_is_damaged() {
        let whole = write(&Steps::default(), b"12345");
        for end in MARK.len() + 1..whole.len() {
            assert!(read(&whole[..end]).is_err(), "{}", &whole[..end]);
        }
        assert_eq!(read(&whole), Ok(Some((Steps::default(), b"12345".to_vec()))));
        assert!(whole.len() <= length(5));
    }

    #[test]
    fn a_string_that_a_store_may_write_as_the_mark_looks_stored() {
        for result in [
            "\"lambda-idempotency:1 plain MQ\"",
            " \"lambda-idempotency:\"",
            "\"\\u006cambda-idempotency:1 plain MQ\"",
            "\"lambda\\u002didempotency:1 plain MQ\"",
        ] {
            assert!(looks_stored(result), "{result}");
        }
        for result in ["1", "null", "\"lambda\"", "{\"lambda-idempotency:\":1}", "\"\"", "\""] {
            assert!(!looks_stored(result), "{result}");
        }
    }
}
