//! Readable keys: the parts themselves, if they are short and safe.
//!
//! ```text
//! "acme"            =acme            [..]     /acme/+42        tenant "t1"     @t1=acme
//! 42                =+42             {..}     /by=acme/id=+42  missing part    /acme/~
//! ```
//!
//! A text is written unchanged, other scalars after `+`. No part holds `/`, `=`, `@`, `+` or `~`,
//! so that the key can be parsed in only one way and two canonical forms never become equal.

use crate::selection::MISSING;

/// The longest readable key after the operation's name, in bytes.
const LONGEST: usize = 128;

/// The readable form of a tenant and canonical bytes; `None` if they are not short and safe.
pub(super) fn form(tenant: Option<&str>, canonical: &[u8]) -> Option<String> {
    if canonical.len() > LONGEST {
        return None;
    }
    let canonical = str::from_utf8(canonical).ok()?;
    let mut out = String::with_capacity(LONGEST);
    if let Some(tenant) = tenant {
        out.push('@');
        out.push_str(safe(tenant)?);
    }
    let inside = |open, close| canonical.strip_prefix(open)?.strip_suffix(close);
    if let Some(parts) = inside('[', ']') {
        for part in parts.split(',') {
            out.push('/');
            push(part, &mut out)?;
        }
    } else if let Some(members) = inside('{', '}') {
        for member in members.split(',') {
            let (name, part) = member.strip_prefix('"')?.split_once("\":")?;
            out.push('/');
            out.push_str(safe(name)?);
            out.push('=');
            push(part, &mut out)?;
        }
    } else {
        out.push('=');
        push(canonical, &mut out)?;
    }
    (out.len() <= LONGEST).then_some(out)
}

/// Appends one part of a canonical form. If the split cut a text in two, the part has a quote on
/// one side only and is refused.
fn push(part: &str, out: &mut String) -> Option<()> {
    if part.as_bytes() == [MISSING] {
        out.push('~');
    } else if let Some(text) = part.strip_prefix('"') {
        out.push_str(safe(text.strip_suffix('"')?)?);
    } else {
        out.push('+');
        out.push_str(safe(part)?);
    }
    Some(())
}

fn safe(text: &str) -> Option<&str> {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    (!text.is_empty() && text.bytes().all(safe)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_safe_parts_are_readable() {
        for (canonical, expected) in [
            (r#""acme""#, "=acme"),
            ("42", "=+42"),
            ("-7", "=+-7"),
            ("1.5e0", "=+1.5e0"),
            ("true", "=+true"),
            (r#""true""#, "=true"),
            (r#"["acme",42]"#, "/acme/+42"),
            (r#"["acme"]"#, "/acme"),
            (r#"["acme",~]"#, "/acme/~"),
            (r#"{"by":"a:b","id":~}"#, "/by=a:b/id=~"),
        ] {
            assert_eq!(form(None, canonical.as_bytes()).as_deref(), Some(expected), "{canonical}");
        }
        assert_eq!(form(Some("t-1"), b"7").unwrap(), "@t-1=+7");
    }

    #[test]
    fn other_parts_are_not_readable() {
        let long = format!("\"{}\"", "a".repeat(128));
        for canonical in [
            r#""a b""#,
            r#""a,b""#,
            r#"["a,b"]"#,
            r#"["a","b c"]"#,
            r#"[["a"]]"#,
            r#"["a",""]"#,
            r#"{"a":["b"]}"#,
            r#"{"":"a"}"#,
            r#"{"a":{"b":1}}"#,
            r#""é""#,
            r#""\"""#,
            r#""a#b""#,
            r#""a/b""#,
            r#""a=b""#,
            r#""+1""#,
            r#""~""#,
            r#"["","a"]"#,
            "[]",
            "{}",
            &long,
        ] {
            assert_eq!(form(None, canonical.as_bytes()), None, "{canonical}");
        }
        for tenant in ["", "a/b", "a=b", "@", "é"] {
            assert_eq!(form(Some(tenant), b"7"), None, "{tenant}");
        }
    }
}
