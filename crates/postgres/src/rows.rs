//! Parameters as the rows of a statement.

use std::collections::HashMap;

/// The rows that the parameters `$1`, `$2`, ... are.
pub(crate) struct Rows<'c> {
    /// The text of a value of a row, for each column.
    pub(crate) values: HashMap<&'c str, String>,
    /// Where the rows come from: `unnest` makes them of the parameters that are arrays, in their order. `None` if there is
    /// none, and so a single row.
    pub(crate) from: Option<String>,
}

/// The rows of these columns, of which some are arrays. A `json` column is sent as text.
pub(crate) fn rows<'c>(columns: &[(&'c str, &str)], are_arrays: &[bool]) -> Rows<'c> {
    let mut values = HashMap::with_capacity(columns.len());
    let (mut arrays, mut names) = (Vec::new(), Vec::new());
    let are_arrays = are_arrays.iter().copied().chain(std::iter::repeat(false));
    for ((number, (name, sql_type)), is_array) in (1..).zip(columns).zip(are_arrays) {
        let (sent, cast) = if *sql_type == "json" { ("text", "::json") } else { (*sql_type, "") };
        let value = if is_array {
            arrays.push(format!("${number}::{sent}[]"));
            names.push(*name);
            format!("w.{name}{cast}")
        } else {
            format!("${number}::{sent}{cast}")
        };
        values.insert(*name, value);
    }
    let unnest = || format!("unnest({}) AS w({})", arrays.join(", "), names.join(", "));
    Rows { values, from: (!arrays.is_empty()).then(unnest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [(&str, &str); 3] =
        [("key", "text"), ("fence", "bigint"), ("provenance", "json")];

    #[test]
    fn what_is_the_same_in_all_rows_is_sent_once() {
        let Rows { values, from } = rows(&COLUMNS, &[true, false, true]);
        assert_eq!(from.as_deref(), Some("unnest($1::text[], $3::text[]) AS w(key, provenance)"));
        assert_eq!(values["key"], "w.key");
        assert_eq!(values["fence"], "$2::bigint");
        assert_eq!(values["provenance"], "w.provenance::json");
    }

    #[test]
    fn a_single_row_needs_no_arrays() {
        let Rows { values, from } = rows(&COLUMNS, &[]);
        assert_eq!(from, None);
        assert_eq!(values["provenance"], "$3::text::json");
    }
}
