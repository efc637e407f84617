//! How many values the text of a statement asks for.

/// The highest placeholder of this text: 2 where it has `$2` and none after it. What is quoted and what is a comment has none.
pub(super) fn highest(text: &str) -> usize {
    let mut rest = text;
    let mut highest = 0;
    // Whether the character before is a part of a name, in which a dollar sign is one, too.
    let mut in_name = false;
    while let Some(first) = rest.chars().next() {
        let after = rest.get(first.len_utf8()..).unwrap_or_default();
        let was_in_name = std::mem::take(&mut in_name);
        rest = match first {
            '\'' => after_quote(after, '\'', false),
            'e' | 'E' if !was_in_name && after.starts_with('\'') => {
                after_quote(after.get(1..).unwrap_or_default(), '\'', true)
            }
            '"' => after_quote(after, '"', false),
            '-' if after.starts_with('-') => super::words::after_line(after),
            '/' if after.starts_with('*') => {
                super::words::after_comment(after.get(1..).unwrap_or_default())
            }
            '$' if !was_in_name => {
                let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
                let (number, behind) = after.split_at(digits);
                match number.parse::<usize>() {
                    Ok(number) => {
                        highest = highest.max(number);
                        behind
                    }
                    Err(_) => after_dollars(after),
                }
            }
            _ => {
                in_name = first.is_alphanumeric() || matches!(first, '_' | '$');
                after
            }
        };
    }
    highest
}

/// What follows a text in quotes. Two quotes are one of the text.
fn after_quote(text: &str, quote: char, has_escapes: bool) -> &str {
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        if has_escapes && char == '\\' {
            chars.next();
        } else if char == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return text.get(at.saturating_add(quote.len_utf8())..).unwrap_or_default();
        }
    }
    ""
}

/// What follows a text between dollar signs, as in `$$text$$` and `$tag$text$tag$`, after the first of them.
fn after_dollars(text: &str) -> &str {
    let is_tag = |tag: &&str| tag.chars().all(|c| c.is_alphanumeric() || c == '_');
    let Some((tag, body)) = text.split_once('$').filter(|(tag, _)| is_tag(tag)) else {
        return text;
    };
    body.split_once(&format!("${tag}$")).map_or("", |(_, behind)| behind)
}

#[cfg(test)]
mod tests {
    use super::highest;

    #[test]
    fn placeholders_are_counted_where_the_server_reads_them() {
        for (text, expected) in [
            ("", 0),
            ("SELECT 1", 0),
            ("UPDATE stock SET n = n - $1 WHERE item = $2 AND n >= $1", 2),
            ("SELECT $10::text", 10),
            ("SELECT'$3'||$1", 1),
            ("SELECT 'it''s $3', \"$4\", $1", 1),
            (r"SELECT E'\' $3', e'$4', $1", 1),
            (r"SELECT '\', $1", 1),
            (r"SELECT size'$2'", 0),
            ("SELECT $1 -- $2\n, $3", 3),
            ("SELECT $1 /* $2 /* $3 */ $4 */, 'ä' || $5", 5),
            ("SELECT $1 /* $2", 1),
            ("SELECT $$ $2 $$, $a$ $3 $$ $a$, $1", 1),
            ("SELECT $$ $2", 0),
            ("SELECT a$1, $2", 2),
            ("SELECT $", 0),
        ] {
            assert_eq!(highest(text), expected, "{text}");
        }
    }
}
