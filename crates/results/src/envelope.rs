//! The forms in which a result is stored that is not stored as it is.
//!
//! The result of an idempotency record is a JSON text, and has to remain one, because some stores parse it.
//! So a form is a JSON string, in characters that no writer of JSON escapes:
//!
//! ```text
//! "lambda-idempotency:1 zlib,aes-256-gcm=2026-11 eJzLSM3JyQcABiwCFQ"
//!  '----- mark ----' ^  '-------- steps --------' '--- content ---'
//!                 version
//! "lambda-idempotency:1 elsewhere 5d41402a.../0f4a1c2e..."
//! ```
//!
//! The steps are in the order in which they were taken. The content is in URL-safe base64 without padding. A
//! result of the user that looks like a form is stored in one too, with the step `plain`, so that the two cannot be
//! confused. An object that is kept elsewhere is a form without quotes, whose content is not in base64.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use lambda_idempotency_core::{key::Key, record::Owner};

use crate::{encryption::is_id, part::Part, result_name::ResultName, unreadable::Unreadable};

/// The beginning of every form, inside the quotes. No store and no writer of JSON escapes any of it.
const MARK: &str = "lambda-idempotency:";
/// The version that this code writes, and the only one that it reads.
const VERSION: &str = "1";
const ELSEWHERE: &str = "elsewhere";
const PLAIN: &str = "plain";
const ZLIB: &str = "zlib";
const AES: &str = "aes-256-gcm=";

/// The steps that were applied to a result before it was stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    /// Compressed with zlib.
    pub(crate) zlib: bool,
    /// Encrypted with the key of this id.
    pub(crate) key_id: Option<Arc<str>>,
}

impl Steps {
    /// Whether the content is the result itself.
    pub(crate) const fn is_plain(&self) -> bool {
        !self.zlib && self.key_id.is_none()
    }

    fn text(&self) -> String {
        match (self.zlib, &self.key_id) {
            (false, None) => PLAIN.to_owned(),
            (true, None) => ZLIB.to_owned(),
            (false, Some(id)) => format!("{AES}{id}"),
            (true, Some(id)) => format!("{ZLIB},{AES}{id}"),
        }
    }

    fn parse(text: &str) -> Result<Self, Unreadable> {
        let mut steps = Self::default();
        if text == PLAIN {
            return Ok(steps);
        }
        let rest = match text.strip_prefix(ZLIB) {
            Some(rest) => {
                steps.zlib = true;
                let Some(rest) = rest.strip_prefix(',') else {
                    return if rest.is_empty() { Ok(steps) } else { Err(Unreadable::UnknownForm) };
                };
                rest
            }
            None => text,
        };
        let id = rest.strip_prefix(AES).filter(|id| is_id(id)).ok_or(Unreadable::UnknownForm)?;
        steps.key_id = Some(id.into());
        Ok(steps)
    }

    /// The data that an encrypted content is bound to: the steps, the key of the record, which part of the record it is, and the
    /// claim that wrote it, if that part belongs to one. Somebody who can write to the table cannot move it to another
    /// place.
    pub(crate) fn about(&self, part: Part, key: &Key, owner: Option<Owner>) -> Vec<u8> {
        let owner = owner.filter(|_| part.belongs_to_a_claim());
        let (head, owner) = (head(self), owner.map(|owner| owner.to_string()).unwrap_or_default());
        let mut about = Vec::new();
        // Results were bound before other parts were encrypted, so theirs has no name.
        let name = part.name();
        for part in [head.as_str(), key.as_str(), owner.as_str()].into_iter().chain(name) {
            about.extend_from_slice(&part.len().to_be_bytes());
            about.extend_from_slice(part.as_bytes());
        }
        about
    }
}

fn head(steps: &Steps) -> String {
    format!("{MARK}{VERSION} {} ", steps.text())
}

/// The stored form in the record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// The content.
    Here(Steps, Vec<u8>),
    /// The name under which it is kept elsewhere.
    Elsewhere(ResultName),
}

/// A content as it is stored in the record.
pub(crate) fn here(steps: &Steps, content: &[u8]) -> String {
    let mut text = format!("\"{}", head(steps));
    URL_SAFE_NO_PAD.encode_string(content, &mut text);
    text.push('"');
    text
}

/// The length of a content as it is stored in the record.
pub(crate) fn length_here(steps: &Steps, content: usize) -> usize {
    (content * 4).div_ceil(3).saturating_add(head(steps).len() + 2)
}

/// The stored form in the record if the content is elsewhere.
pub(crate) fn elsewhere(name: &ResultName) -> String {
    format!("\"{MARK}{VERSION} {ELSEWHERE} {}\"", name.as_str())
}

/// A content as it is kept elsewhere.
pub(crate) fn object(steps: &Steps, content: &[u8]) -> Vec<u8> {
    [head(steps).as_bytes(), content].concat()
}

/// The steps and the content of what is kept elsewhere.
pub(crate) fn read_object(mut object: Vec<u8>) -> Result<(Steps, Vec<u8>), Unreadable> {
    let mut spaces = object.iter().enumerate().filter(|(_, byte)| **byte == b' ');
    let end = spaces.nth(1).map(|(at, _)| at + 1).ok_or(Unreadable::Damaged)?;
    let content = object.split_off(end);
    let head = std::str::from_utf8(&object).map_err(|_| Unreadable::Damaged)?;
    let rest = head.strip_prefix(MARK).ok_or(Unreadable::Damaged)?;
    let steps = of_this_version(rest)?.trim_end();
    Ok((Steps::parse(steps)?, content))
}

/// The content of a form; `None` if the text is the result itself.
pub(crate) fn read(text: &str) -> Result<Option<Stored>, Unreadable> {
    let Some(inside) = text.strip_prefix('"').and_then(|text| text.strip_prefix(MARK)) else {
        return Ok(None);
    };
    let inside = of_this_version(inside.strip_suffix('"').ok_or(Unreadable::Damaged)?)?;
    let (steps, content) = inside.split_once(' ').ok_or(Unreadable::Damaged)?;
    if steps == ELSEWHERE {
        let name = ResultName::parse(content).ok_or(Unreadable::Damaged)?;
        return Ok(Some(Stored::Elsewhere(name)));
    }
    let steps = Steps::parse(steps)?;
    let content = URL_SAFE_NO_PAD.decode(content).map_err(|_| Unreadable::Damaged)?;
    Ok(Some(Stored::Here(steps, content)))
}

fn of_this_version(text: &str) -> Result<&str, Unreadable> {
    match text.split_once(' ') {
        Some((VERSION, rest)) => Ok(rest),
        _ => Err(Unreadable::UnknownForm),
    }
}

/// Whether a stored text has to be decoded.
pub(crate) fn is_form(text: &str) -> bool {
    text.strip_prefix('"').is_some_and(|text| text.starts_with(MARK))
}

/// Whether a result may be taken for a form, also after a store has parsed it and written it again: its string may
/// begin with an escape.
pub(crate) fn looks_stored(result: &str) -> bool {
    let Some(string) = result.trim_start().strip_prefix('"') else { return false };
    // `\u006c` is the longest way to write a character of the mark.
    let beginning = string.as_bytes().get(..MARK.len() * 6).unwrap_or(string.as_bytes());
    string.starts_with(MARK) || beginning.contains(&b'\\')
}

#[cfg(test)]
#[path = "envelope_tests.rs"]
mod tests;
