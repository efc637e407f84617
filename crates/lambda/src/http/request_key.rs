//! The key, the caller and the fingerprint of a request.
//!
//! The draft makes `Idempotency-Key` a structured-field string, which is quoted (RFC 9651, section 3.3.3). Many clients send
//! the key without quotes, which is accepted too: `"abc"` and `abc` are the same key.

use lambda_http::{
    Body, Request, RequestExt as _,
    http::{HeaderMap, HeaderName},
};
use lambda_idempotency_core::record::Fingerprint;
use lambda_idempotency_engine::call::RecordId;

use super::{
    builder::{KeyPlace, LayerSettings},
    caller::{Caller, UnknownCaller},
    kept::Cookies,
    problem::Problem,
    sameness,
};
use crate::{find_key::Texts, operation::OnMissingKey, rejection::Rejection};

/// A request's key, its scope and its fingerprint.
pub(super) struct RequestKey {
    /// The request's id.
    pub(super) id: RecordId,
    /// The key in the header, if the operation takes it from there.
    pub(super) key: Option<String>,
    pub(super) scope: String,
    pub(super) fingerprint: Compared,
    /// Whether replays set the cookies of the response.
    pub(super) cookies: Cookies,
}

/// The parts of two requests with one key that are compared.
pub(super) enum Compared {
    /// Their target, and the part of the body that an expression selects.
    Selection { target: String },
    /// Their target, and the whole body.
    Whole(Fingerprint),
}

impl LayerSettings {
    /// Reads the key, the caller and the fingerprint of a request.
    pub(super) fn request_key(&self, request: &Request) -> Result<RequestKey, Problem> {
        let key = self.header_key(request)?;
        let is_keyed = key.is_some() || self.operation.names_key();
        // Without a key the caller makes no difference.
        let caller = if is_keyed { self.caller(request)? } else { None };
        if sameness::has_lost_query(request) {
            let detail =
                "Its query is not UTF-8 text. Send it percent-encoded as UTF-8.".to_owned();
            return Err(Problem::key(
                "The request cannot be compared with others of its key",
                detail,
            ));
        }
        let form = &self.operation.key_format;
        let target = sameness::target(request, form);
        let fingerprint = match self.operation.fingerprint {
            Some(_) if !self.operation.is_of_powertools() => Compared::Selection { target },
            _ => Compared::Whole(sameness::with_body(&target, request, form)),
        };
        let cookies = self.cookies(caller.as_ref());
        let caller = caller.as_ref().map(|caller| &*caller.name);
        let scope = sameness::scope(request, caller, self.options.keys.by_path());
        let context = request.lambda_context_ref();
        let id = context.map_or("", |context| context.request_id.as_str());
        Ok(RequestKey { id: RecordId::new("http", id), key, scope, fingerprint, cookies })
    }

    /// The key in the header; `None` if the operation takes its key from the body.
    fn header_key(&self, request: &Request) -> Result<Option<String>, Problem> {
        self.read_header(request).inspect_err(|problem| {
            let operation = &*self.operation.name;
            tracing::warn!(operation, "request refused: {}", problem.describe());
        })
    }

    fn read_header(&self, request: &Request) -> Result<Option<String>, Problem> {
        let KeyPlace::Header(header) = &self.options.keys else { return Ok(None) };
        let key = key_in(request.headers(), header).map_err(|error| {
            let detail = format!("The header `{header}` is not a valid key: {error}.");
            Problem::key("The idempotency key is not valid", detail)
        })?;
        if key.is_none() && self.operation.on_missing_key != OnMissingKey::RunUnprotected {
            let detail = format!(
                "Send the header `{header}` with a new value for each request, such as a UUID, and \
                 with the same value when you send the request again."
            );
            return Err(Problem::key("The request has no idempotency key", detail));
        }
        Ok(key)
    }

    /// The caller; `None` if all callers are one. If it is not known, the reason is logged.
    fn caller(&self, request: &Request) -> Result<Option<Caller>, Problem> {
        self.options.callers.of(request).map_err(|unknown| self.unknown(&unknown))
    }

    /// The problem of a request whose caller is not known. The reason is logged.
    pub(super) fn unknown(&self, unknown: &UnknownCaller) -> Problem {
        let operation = &*self.operation.name;
        if unknown.is_server_error() {
            tracing::error!(operation, "request refused, its caller is not known: {unknown}");
        } else {
            tracing::warn!(operation, "request refused, its caller is not known: {unknown}");
        }
        Problem::caller(unknown)
    }

    /// Whether a replay may set the cookies of the first response: only if it goes to the same caller,
    /// and something has verified that before. The handler does not see the second request.
    fn cookies(&self, caller: Option<&Caller>) -> Cookies {
        let is_own = caller.is_some_and(|caller| {
            !caller.is_shared && (caller.is_verified || self.options.verify.is_some())
        });
        if is_own && !self.operation.is_of_powertools() { Cookies::Kept } else { Cookies::Dropped }
    }

    /// The fingerprint of a request, which two requests with one key share: its target, and the whole body or
    /// the part that the operation's fingerprint selects. A Powertools fingerprint stays as
    /// Powertools writes it.
    pub(super) fn fingerprint(
        &self,
        request_key: &RequestKey,
        own: Option<Fingerprint>,
    ) -> Fingerprint {
        match (&request_key.fingerprint, own) {
            (Compared::Selection { target }, Some(selection)) => {
                sameness::with_selection(target, &selection, &self.operation.key_format)
            }
            (Compared::Selection { target }, None) => Fingerprint::new(target.clone()),
            (Compared::Whole(_), Some(of_powertools)) => of_powertools,
            (Compared::Whole(whole), None) => whole.clone(),
        }
    }

    /// The texts that a key is selected from; `None` if the request has no key and runs without
    /// one.
    pub(super) fn texts<'w>(
        &self,
        request_key: &'w RequestKey,
        body: &'w str,
    ) -> Option<Texts<'w>> {
        let identity = request_key.key.as_deref().map(|key| Ok(vec!["http", key]));
        (identity.is_some() || self.operation.names_key()).then_some(Texts {
            payload: body,
            record: body,
            identity,
        })
    }
}

/// The body for expressions.
pub(super) fn text(body: &Body) -> Result<&str, Rejection> {
    std::str::from_utf8(body).map_err(|_| Rejection::BodyNotText)
}

/// Why a body cannot be read, with the remedies of a request, which has no record around it.
pub(super) fn of_body(rejection: Rejection) -> Rejection {
    match rejection {
        Rejection::Payload(error) => Rejection::Body(error),
        other => other,
    }
}

/// The longest key, in characters.
const MAX_CHARACTERS: usize = 255;

/// A mistake in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum HeaderError {
    #[error("it occurs more than once")]
    Repeated,
    #[error("it contains a comma and no quotes, as if two headers were joined")]
    Joined,
    #[error("it is empty")]
    Empty,
    #[error("it is longer than {MAX_CHARACTERS} characters")]
    TooLong,
    #[error("it is neither a quoted string nor a key of visible ASCII characters")]
    Malformed,
}

/// The key in the header, if there is one.
fn key_in(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, HeaderError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(HeaderError::Repeated);
    }
    let text = value.to_str().map_err(|_| HeaderError::Malformed)?.trim_matches([' ', '\t']);
    let key = match text.strip_prefix('"') {
        Some(quoted) => quoted_string(quoted)?,
        // HTTP APIs deliver two headers as one, joined by a comma.
        None if text.contains(',') => return Err(HeaderError::Joined),
        None if text.bytes().all(|b| b.is_ascii_graphic() && b != b'"') => text.to_owned(),
        None => return Err(HeaderError::Malformed),
    };
    match key.chars().count() {
        0 => Err(HeaderError::Empty),
        1..=MAX_CHARACTERS => Ok(Some(key)),
        _ => Err(HeaderError::TooLong),
    }
}

/// Reads a structured-field string after its first quote. Parameters after the string are ignored, another member of a
/// list is not.
fn quoted_string(rest: &str) -> Result<String, HeaderError> {
    let mut key = String::with_capacity(rest.len());
    let mut chars = rest.chars();
    loop {
        match chars.next() {
            Some('\\') => match chars.next() {
                Some(escaped @ ('"' | '\\')) => key.push(escaped),
                _ => return Err(HeaderError::Malformed),
            },
            Some('"') => break,
            Some(plain @ ' '..='~') => key.push(plain),
            _ => return Err(HeaderError::Malformed),
        }
    }
    let behind = chars.as_str().trim_start();
    if behind.is_empty() {
        return Ok(key);
    }
    let Some(parameters) = behind.strip_prefix(';') else { return Err(HeaderError::Malformed) };
    let (mut is_quoted, mut is_escaped) = (false, false);
    for character in parameters.chars() {
        match character {
            // A comma between quotes is a part of a value.
            ',' if !is_quoted => return Err(HeaderError::Malformed),
            '"' if !is_escaped => is_quoted = !is_quoted,
            _ => {}
        }
        is_escaped = is_quoted && character == '\\' && !is_escaped;
    }
    if is_quoted { Err(HeaderError::Malformed) } else { Ok(key) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Result<Option<String>, HeaderError> {
        let name = HeaderName::from_static("idempotency-key");
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(&name, value.parse().unwrap());
        }
        key_in(&headers, &name)
    }

    #[test]
    fn quoted_and_bare_keys_are_the_same() {
        for value in
            ["\"8e03978e-40d5\"", "8e03978e-40d5", "  8e03978e-40d5 ", "\"8e03978e-40d5\";v=1"]
        {
            assert_eq!(read(&[value]), Ok(Some("8e03978e-40d5".to_owned())), "{value}");
        }
        assert_eq!(read(&["\"a,b\""]), Ok(Some("a,b".to_owned())));
        assert_eq!(read(&[r#""a";x="1, \"2";y"#]), Ok(Some("a".to_owned())));
        assert_eq!(read(&[]), Ok(None));
    }

    #[test]
    fn escapes_follow_structured_fields() {
        assert_eq!(read(&[r#""a\"b\\c d""#]), Ok(Some(r#"a"b\c d"#.to_owned())));
        assert_eq!(read(&[r#""a\n""#]), Err(HeaderError::Malformed));
    }

    #[test]
    fn a_header_that_is_not_a_key_is_refused() {
        for (values, why) in [
            (&["a", "b"][..], HeaderError::Repeated),
            (&["a", "a"], HeaderError::Repeated),
            (&[""], HeaderError::Empty),
            (&["\"\""], HeaderError::Empty),
            (&["a b"], HeaderError::Malformed),
            (&["a,b"], HeaderError::Joined),
            (&["a, b"], HeaderError::Joined),
            (&["\"a\",\"b\""], HeaderError::Malformed),
            (&[r#""a";x=1, "b""#], HeaderError::Malformed),
            (&[r#""a";x="\"", "b""#], HeaderError::Malformed),
            (&[r#""a";x="1"#], HeaderError::Malformed),
            (&["\"a"], HeaderError::Malformed),
            (&["\"a\"b"], HeaderError::Malformed),
            (&["a\"b\""], HeaderError::Malformed),
        ] {
            assert_eq!(read(values), Err(why), "{values:?}");
        }
        assert!(read(&[&"x".repeat(255)]).is_ok());
        assert_eq!(read(&[&"x".repeat(256)]), Err(HeaderError::TooLong));
    }
}
