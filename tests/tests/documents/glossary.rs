//! Words that the glossary bans do not occur in sources or on pages.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

use super::{read, root};

/// Where a banned word is allowed, and why.
const ALLOWED: [(&str, &str, &str); 1] = [(
    "vanished",
    "crates/dynamodb/src/attributes.rs",
    "the name of an attribute, which is stored",
)];

/// The words in `code` in the last column of the glossary's tables.
fn banned(glossary: &str) -> Vec<String> {
    let rows = glossary.lines().filter(|line| line.starts_with('|') && !line.starts_with("|--"));
    let last = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
    last.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
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

/// The banned words of a line. Few lines have one, so each word is first looked up among all of them.
fn found<'a>(line: &str, banned: &'a [String], lowercase: &HashSet<String>) -> Vec<&'a String> {
    if !words(line).any(|word| lowercase.contains(&word.to_ascii_lowercase())) {
        return Vec::new();
    }
    banned.iter().filter(|banned| words(line).any(|word| is(word, banned))).collect()
}

/// The files below a folder with one of these endings.
fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.ends_with("node_modules") {
            continue;
        }
        if path.is_dir() {
            files(&path, endings, found);
        } else if path.extension().is_some_and(|e| endings.iter().any(|ending| e == *ending)) {
            found.push(path);
        }
    }
}

/// All sources and pages except the glossary itself.
fn texts() -> Vec<(String, String)> {
    let mut paths = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        files(&entry.unwrap().path().join("src"), &["rs", "md"], &mut paths);
    }
    files(&root().join("docs"), &["md"], &mut paths);
    let name = |path: &Path| path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
    let texts = paths.iter().map(|path| (name(path), fs::read_to_string(path).unwrap()));
    texts.filter(|(name, _)| name != "docs/glossary.md").collect()
}

fn offences(name: &str, text: &str, banned: &[String]) -> Vec<String> {
    let lowercase = banned.iter().map(|word| word.to_ascii_lowercase()).collect();
    let mut offences = Vec::new();
    for (at, line) in text.lines().enumerate() {
        for word in found(line, banned, &lowercase) {
            let is_allowed = |(allowed, place, _): &&(&str, &str, &str)| {
                allowed == word && name.starts_with(place)
            };
            if !ALLOWED.iter().any(|allowed| is_allowed(&allowed)) {
                offences.push(format!("{name}:{}: `{word}`: {}", at + 1, line.trim()));
            }
        }
    }
    offences
}

#[test]
fn banned_words_occur_nowhere() {
    let banned = banned(&read("docs/glossary.md"));
    assert!(banned.len() > 10, "{banned:?}");
    let texts = texts();
    assert!(texts.len() > 200, "{} files", texts.len());
    let offences: Vec<_> =
        texts.iter().flat_map(|(name, text)| offences(name, text, &banned)).collect();
    assert!(offences.is_empty(), "see docs/glossary.md:\n{}", offences.join("\n"));
}

#[test]
fn each_exception_is_needed_and_has_a_reason() {
    let texts = texts();
    for (word, place, reason) in ALLOWED {
        let mut there = texts.iter().filter(|(name, _)| name.starts_with(place));
        assert!(!reason.is_empty());
        assert!(
            there.any(|(_, text)| text.lines().any(|line| words(line).any(|w| is(w, word)))),
            "`{word}` does not occur in {place} any more; remove it from the list"
        );
    }
}

#[test]
fn a_banned_word_is_found_in_names_messages_and_prose() {
    let table = "| word | meaning | not |\n|---|---|---|\n| lost | `x` it. | `gone`, away |\n\
                 | undo | to undo | `PutBack` |\n";
    let banned = banned(table);
    assert_eq!(banned, ["gone", "PutBack"]);
    for line in ["fn is_gone() {}", "/// Gone.", "\"it is gone\"", "Settlement::PutBack"] {
        assert_eq!(offences("a.rs", line, &banned).len(), 1, "{line}");
    }
    for line in ["fn forgone() {}", "away", "put back", "fn put_back()"] {
        assert_eq!(offences("a.rs", line, &banned), [""; 0], "{line}");
    }
}
