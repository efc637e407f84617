//! Settings that may be for one source only: `orderId`, `sns=order.id`.

use std::fmt;

use lambda_idempotency::inspect;

/// A value and its source; `None` means all sources without their own value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scoped<T> {
    pub(crate) source: Option<&'static str>,
    pub(crate) value: T,
}

/// The name for HTTP requests, in addition to the names of the sources.
pub(crate) const HTTP: &str = "http";

/// Reads `VALUE` or `SOURCE=VALUE`. A name before a single `=` is a source: no JMESPath expression
/// begins like that, since its comparison is `==`.
pub(crate) fn scoped<T: std::str::FromStr<Err: fmt::Display>>(
    text: &str,
) -> Result<Scoped<T>, String> {
    let (source, value) = match text.split_once('=') {
        Some((name, value)) if is_name(name) && !value.starts_with('=') => {
            (Some(source(name)?), value)
        }
        _ => (None, text),
    };
    let value = value.parse().map_err(|error: T::Err| error.to_string())?;
    Ok(Scoped { source, value })
}

fn is_name(text: &str) -> bool {
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    !text.is_empty() && text.bytes().all(of_name)
}

fn source(name: &str) -> Result<&'static str, String> {
    let mut sources = inspect::sources().chain([HTTP]);
    sources.find(|source| *source == name).ok_or_else(|| {
        let known = inspect::sources().chain([HTTP]).collect::<Vec<_>>().join(", ");
        format!("there is no source `{name}`: it is one of {known}")
    })
}

/// The value for a source: its own, or the one for all. The last one counts.
pub(crate) fn of<'a, T>(values: &'a [Scoped<T>], source: &str) -> Option<&'a T> {
    all(values, source).last()
}

/// The values for a source: its own, or else those for all.
pub(crate) fn all<'a, T>(values: &'a [Scoped<T>], source: &str) -> impl Iterator<Item = &'a T> {
    let own = values.iter().any(|scoped| scoped.source == Some(source));
    let source = source.to_owned();
    let is_meant = move |scoped: &&Scoped<T>| match scoped.source {
        Some(name) => name == source,
        None => !own,
    };
    values.iter().filter(is_meant).map(|scoped| &scoped.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Option<&'static str>, String), String> {
        scoped::<String>(text).map(|Scoped { source, value }| (source, value))
    }

    #[test]
    fn a_source_is_a_name_before_a_single_equals_sign() {
        for (text, source, value) in [
            ("orderId", None, "orderId"),
            ("sns=orderId", Some("sns"), "orderId"),
            ("http=items[?a=='b']", Some("http"), "items[?a=='b']"),
            ("sqs==b && c", None, "sqs==b && c"),
            ("items[?a=='b'].id", None, "items[?a=='b'].id"),
            ("record:@", None, "record:@"),
        ] {
            assert_eq!(read(text), Ok((source, value.to_owned())), "{text}");
        }
        let unknown = read("sq=orderId").unwrap_err();
        assert!(unknown.contains("no source `sq`") && unknown.contains("sqs, sns"), "{unknown}");
    }
}
