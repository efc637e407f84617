//! Words that the glossary bans do not occur in sources or on pages.

use std::collections::HashSet;

use crate::{files, quoted, read, sources};

/// Where a banned word is allowed: it is the name of an attribute, which is stored.
const ALLOWED: [(&str, &str); 1] = [("vanished", "crates/dynamodb/src/attributes.rs")];

/// The words in `code` in the last column of the glossary's tables.
fn banned(glossary: &str) -> Vec<String> {
    let rows = glossary.lines().filter(|line| line.starts_with('|') && !line.starts_with("|--"));
    let last = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
    last.flat_map(quoted).map(str::to_owned).collect()
}

/// The words of a line: `is_put_aside` also contains `put`, `PutBack` is only one word.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let identifiers = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    identifiers.flat_map(|name| std::iter::once(name).chain(name.split('_')))
}

/// A type is banned by its exact name, any other word in either case.
fn is(word: &str, banned: &str) -> bool {
    let is_type = banned.starts_with(|c: char| c.is_ascii_uppercase());
    if is_type { word == banned } else { word.eq_ignore_ascii_case(banned) }
}

/// The lines with banned words, each with its word. Few lines have one, so each word is first looked up among all of them.
fn found<'a>(text: &'a str, banned: &'a [String]) -> Vec<(&'a str, &'a str)> {
    let lowercase: HashSet<_> = banned.iter().map(|word| word.to_ascii_lowercase()).collect();
    let may_have =
        |line: &&str| words(line).any(|word| lowercase.contains(&word.to_ascii_lowercase()));
    let of_line = |line| {
        let has = move |banned: &&String| words(line).any(|word| is(word, banned));
        banned.iter().filter(has).map(move |word| (line, word.as_str()))
    };
    text.lines().filter(may_have).flat_map(of_line).collect()
}

#[test]
fn banned_words_occur_nowhere() {
    let banned = banned(&read("docs/glossary.md"));
    assert!(banned.len() > 10, "{banned:?}");
    let mut texts = sources();
    texts.extend(files(&["docs", "crates"], &[".md"]));
    texts.extend(["README.md", "CONTRIBUTING.md"].map(|page| (page.to_owned(), read(page))));
    let (mut offences, mut allowed) = (Vec::new(), HashSet::new());
    for (path, text) in texts.iter().filter(|(path, _)| path != "docs/glossary.md") {
        for (line, word) in found(text, &banned) {
            if ALLOWED.contains(&(word, path)) {
                allowed.insert((word, path));
            } else {
                offences.push(format!("{path}: `{word}`: {}", line.trim()));
            }
        }
    }
    assert!(offences.is_empty(), "see docs/glossary.md:\n{}", offences.join("\n"));
    assert_eq!(allowed.len(), ALLOWED.len(), "an exception is not needed any more");
}

#[test]
fn a_banned_word_is_found_in_names_messages_and_prose() {
    let table = "| word | meaning | not |\n|---|---|---|\n| lost | `x` it. | `gone`, away |\n\
                 | undo | to undo | `PutBack` |\n";
    let banned = banned(table);
    assert_eq!(banned, ["gone", "PutBack"]);
    for line in ["fn is_gone() {}", "/// Gone.", "\"it is gone\"", "Settlement::PutBack"] {
        assert_eq!(found(line, &banned).len(), 1, "{line}");
    }
    for line in ["fn forgone() {}", "away", "put back", "fn put_back()"] {
        assert_eq!(found(line, &banned), [], "{line}");
    }
}
