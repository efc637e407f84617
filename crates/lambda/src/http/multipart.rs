//! Fingerprints of `multipart/form-data` bodies. Clients make a new boundary for each attempt, so
//! the boundary must not be a part of the fingerprint.

use lambda_http::{Request, http::header::CONTENT_TYPE};
use lambda_idempotency_keys::Digest;

/// Adds the body to a digest, without the boundary if it is `multipart`.
pub(super) fn digest(request: &Request, digest: &mut Digest) {
    let body: &[u8] = request.body();
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let multipart = content_type.and_then(|content_type| {
        let (kind, boundary) = boundary(content_type)?;
        Some((kind, sections(body, boundary.as_bytes())?))
    });
    match multipart {
        Some((kind, sections)) => {
            digest.part(kind.as_bytes());
            for section in sections {
                digest.part(section);
            }
        }
        None => {
            digest.part(b"");
            digest.part(body);
        }
    }
}

/// The media type in lower case and the boundary, if it is `multipart` and has one.
fn boundary(content_type: &str) -> Option<(String, String)> {
    let (kind, mut rest) = content_type.split_once(';')?;
    let kind = kind.trim().to_ascii_lowercase();
    if !kind.starts_with("multipart/") {
        return None;
    }
    loop {
        let (name, after) = rest.split_once('=')?;
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => unquoted(quoted)?,
            None => {
                let (value, next) = after.split_once(';').unwrap_or((after, ""));
                (value.trim().to_owned(), next)
            }
        };
        if name.trim().eq_ignore_ascii_case("boundary") {
            return (!value.is_empty()).then_some((kind, value));
        }
        rest = next.trim_start().trim_start_matches(';');
    }
}

/// Reads a quoted string after its first quote; returns the rest, too.
fn unquoted(quoted: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = quoted.chars();
    loop {
        match chars.next()? {
            '"' => return Some((value, chars.as_str())),
            '\\' => value.push(chars.next()?),
            plain => value.push(plain),
        }
    }
}

/// The bytes before, between and after the delimiters (RFC 2046, section 5.1.1); `None` if the body
/// does not have that form, and is compared as it is.
fn sections<'b>(body: &'b [u8], boundary: &[u8]) -> Option<Vec<&'b [u8]>> {
    let mut sections = Vec::new();
    let (mut section, mut line) = (0, 0);
    loop {
        let rest = body.get(line..)?;
        let end = rest.windows(2).position(|two| two == b"\r\n");
        let next = end.map(|end| line + end + 2);
        let text = rest.get(..end.unwrap_or(rest.len()))?;
        let behind = text.strip_prefix(b"--").and_then(|text| text.strip_prefix(boundary));
        if let Some(behind) = behind {
            let closing = behind.strip_prefix(b"--");
            let padding = closing.unwrap_or(behind);
            if padding.iter().all(|byte| matches!(byte, b' ' | b'\t')) {
                // The line break before a delimiter belongs to it, so two delimiters cannot share
                // one. Before the first delimiter it may be missing.
                let before = if sections.is_empty() { line } else { line.checked_sub(2)? };
                sections.push(body.get(section..before)?);
                sections.push(padding);
                section = next.unwrap_or(body.len());
                if closing.is_some() {
                    sections.push(body.get(section..)?);
                    return Some(sections);
                }
            }
        }
        line = next?;
    }
}

#[cfg(test)]
mod tests {
    use lambda_http::Body;

    use super::*;

    fn digested(content_type: &str, body: &str) -> String {
        let request = lambda_http::http::Request::builder().header(CONTENT_TYPE, content_type);
        let mut of = Digest::new(b"test");
        digest(&request.body(Body::from(body)).unwrap(), &mut of);
        of.hex()
    }

    fn form(boundary: &str, amount: &str) -> String {
        let part = format!("Content-Disposition: form-data; name=\"amount\"\r\n\r\n{amount}");
        format!("--{boundary}\r\n{part}\r\n--{boundary}\r\n\r\n--x\r\n--{boundary}--\r\n")
    }

    #[test]
    fn the_boundary_does_not_count_and_everything_else_does() {
        let first = digested("multipart/form-data; boundary=a", &form("a", "5"));
        let again =
            digested("Multipart/Form-Data; charset=utf-8; Boundary=\"b1 2\"", &form("b1 2", "5"));
        assert_eq!(first, again);
        for (content_type, body) in [
            ("multipart/form-data; boundary=a", form("a", "6")),
            ("multipart/mixed; boundary=a", form("a", "5")),
            ("multipart/form-data; boundary=a", form("a", "5") + "more"),
            (
                "multipart/form-data; boundary=a",
                form("a", "5").replace("\r\n--a\r\n", "\r\n\r\n--a\r\n"),
            ),
            ("multipart/form-data; boundary=a", form("a", "5").replace("--x", "--b")),
            ("text/plain; boundary=a", form("a", "5")),
            ("multipart/form-data", form("a", "5")),
        ] {
            assert_ne!(digested(content_type, &body), first, "{content_type} {body}");
        }
    }

    #[test]
    fn a_body_that_is_not_what_its_type_says_is_compared_as_it_is() {
        for body in ["", "--a", "--a\r\n", "a", "--a\r\n--a--", "--ab\r\nx\r\n--ab--", "--a--x\r\n"]
        {
            assert_eq!(sections(body.as_bytes(), b"a"), None, "{body:?}");
        }
        assert!(sections(b"--a--", b"a").is_some());
        for content_type in ["multipart/form-data; boundary=", "multipart/form-data; boundary=\"a"]
        {
            assert_eq!(boundary(content_type), None, "{content_type}");
        }
    }

    #[test]
    fn bodies_that_differ_in_line_breaks_only_are_told_apart() {
        let of = |body: &str| digested("multipart/mixed; boundary=a", body);
        let bodies =
            ["--a\r\n--a--", "--a\r\n\r\n--a--", "--a\r\n\r\n\r\n--a--", "\r\n--a\r\n\r\n--a--"];
        let digests: std::collections::HashSet<_> = bodies.into_iter().map(of).collect();
        assert_eq!(digests.len(), bodies.len());
    }
}
