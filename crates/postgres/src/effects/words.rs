//! Which statements would end the transaction, by their first word.

/// Statements that would end the transaction, or belong to one. `PREPARE TRANSACTION` ends it, and another `PREPARE` would stay
/// on the connection.
const OF_TRANSACTIONS: [&str; 9] =
    ["ABORT", "BEGIN", "COMMIT", "END", "PREPARE", "RELEASE", "ROLLBACK", "SAVEPOINT", "START"];

/// The word by which this statement begins, if it would end the transaction.
pub(super) fn of_transactions(text: &str) -> Option<&'static str> {
    let first = first(text);
    OF_TRANSACTIONS.into_iter().find(|word| *word == first)
}

/// Whether it is a `COPY`, for which the server and its client exchange data.
pub(super) fn is_copy(text: &str) -> bool {
    first(text) == "COPY"
}

/// Its first word, in capitals.
fn first(text: &str) -> String {
    let first = begun(text).split(|c: char| !c.is_ascii_alphabetic()).next();
    first.unwrap_or_default().to_ascii_uppercase()
}

/// The text from its first word on: without the spaces, comments and empty statements before it, which the server
/// passes over.
fn begun(mut text: &str) -> &str {
    loop {
        text = text.trim_start_matches(|c: char| c.is_whitespace() || c == ';');
        if let Some(comment) = text.strip_prefix("--") {
            text = after_line(comment);
        } else if let Some(comment) = text.strip_prefix("/*") {
            text = after_comment(comment);
        } else {
            return text;
        }
    }
}

/// What follows a comment to the end of its line.
pub(super) fn after_line(text: &str) -> &str {
    text.split_once(['\n', '\r']).map_or("", |(_, rest)| rest)
}

/// What follows a comment that has begun. Comments of PostgreSQL may contain others.
pub(super) fn after_comment(mut text: &str) -> &str {
    let mut depth = 1_usize;
    while depth > 0 {
        let Some(at) = text.find(['/', '*']) else { return "" };
        text = text.get(at..).unwrap_or_default();
        let skipped = if text.starts_with("*/") {
            depth = depth.saturating_sub(1);
            2
        } else if text.starts_with("/*") {
            depth = depth.saturating_add(1);
            2
        } else {
            1
        };
        text = text.get(skipped..).unwrap_or_default();
    }
    text
}
