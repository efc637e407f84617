//! Values that several subcommands take.

use std::time::Duration;

use lambda_idempotency_local::Table;

const LONGEST: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// `2`, `0.5`, `1.5s`, `500ms`, `2m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text.strip_prefix(digits).unwrap_or_default() {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        unit => return Err(format!("`{unit}` is not a unit of time: use ms, s, m or h")),
    };
    let count: f64 = digits.parse().map_err(|_| format!("`{digits}` is not a number"))?;
    let duration = Duration::try_from_secs_f64(count * unit).map_err(|error| error.to_string())?;
    // A clock cannot count to the end of the longest durations.
    match duration <= LONGEST {
        true => Ok(duration),
        false => Err("must be a hundred years at most".to_owned()),
    }
}

/// As [`duration`], but not zero.
pub(crate) fn time_to_work(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be longer than zero".to_owned()),
        duration => Ok(duration),
    }
}

/// A number of at least `MIN`.
pub(crate) fn at_least<const MIN: usize>(text: &str) -> Result<usize, String> {
    let count: Option<u32> = text.parse().ok();
    let count = count.and_then(|count| usize::try_from(count).ok()).filter(|count| *count >= MIN);
    count.ok_or_else(|| format!("must be a number from {MIN} to {}", u32::MAX))
}

/// `NAME=VALUE`.
pub(crate) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("must be NAME=VALUE".to_owned()),
    }
}

/// `NAME:KEY` or `NAME:KEY:TTL`.
pub(crate) fn table(text: &str) -> Result<Table, String> {
    match text.split(':').collect::<Vec<_>>().as_slice() {
        parts if parts.contains(&"") => Err("must be NAME:KEY or NAME:KEY:TTL".to_owned()),
        [name, _] | [name, _, _] if name.len() < 3 => {
            Err("DynamoDB requires at least three characters in a table name".to_owned())
        }
        [name, key] => Ok(Table::new(*name, *key)),
        [name, key, ttl] => Ok(Table::new(*name, *key).ttl(*ttl)),
        _ => Err("must be NAME:KEY or NAME:KEY:TTL".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parsed_and_others_are_refused() {
        assert_eq!(table("claims:id:exp"), Ok(Table::new("claims", "id").ttl("exp")));
        for text in ["claims", "claims:", ":id", "a:id", "claims:id:exp:more"] {
            assert!(table(text).is_err(), "{text}");
        }
        let durations =
            [("2", 2000), ("0.5", 500), ("1.5s", 1500), ("500ms", 500), ("2m", 120_000)];
        for (text, millis) in durations {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "2 weeks", "-1", "1e99", "1e10"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(at_least::<2>("2"), Ok(2));
        for text in ["1", "-1", "2.5", "4294967296", "9999999999999999999"] {
            assert!(at_least::<2>(text).is_err(), "{text}");
        }
        assert_eq!(variable("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        assert!(variable("=b").is_err() && variable("A").is_err());
    }
}
