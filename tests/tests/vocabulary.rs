//! One word, one type: a name of a type is defined in one file of the crates that a function with SQS and DynamoDB uses,
//! except for the names in this list, each for its reason.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

const CRATES: [&str; 5] = ["core", "dynamodb", "engine", "keys", "lambda"];

const MOST: usize = 20;
const SEVERAL: [(&str, &str); 10] = [
    ("Cursor", "of a listing, for store authors; of the private reader of expressions"),
    ("Failure", "of a handler, for users; a member of the JSON of a response"),
    ("Function", "for users; the private choice of a hash function"),
    ("Kind", "of a filter; of a value of an expression: private to both"),
    ("Message", "of the outbox, and of a producer, for users; and the JSON of a source"),
    ("Parts", "of a source; of one value that is decoded: private to both"),
    ("Record", "as it is delivered; as it is shown for users, without what may be payload"),
    ("Sealed", "the usual name for a trait that seals another"),
    ("Text", "a text of JSON; a text of an expression: private to both"),
    ("Within", "a reader of what is in a value; the invocation of a call: private to both"),
];

/// The names of types that a source without its tests defines.
fn defined(source: &str) -> impl Iterator<Item = &str> {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    source.lines().filter_map(|line| {
        let words = line.trim_start();
        let words = words.strip_prefix("pub").map_or(words, |rest| match rest.strip_prefix('(') {
            Some(scope) => scope.split_once(')').map_or(rest, |(_, rest)| rest),
            None => rest,
        });
        let (kind, rest) = words.trim_start().split_once(' ')?;
        let is_type = ["struct", "enum", "trait", "union"].contains(&kind);
        let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
        (is_type && !name.is_empty()).then_some(name)
    })
}

fn collect(folder: &Path, files: &mut BTreeMap<String, BTreeSet<String>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = path.display().to_string();
        if path.is_dir() {
            collect(&path, files);
        } else if text.ends_with(".rs") && !text.ends_with("tests.rs") && !text.contains("/testing")
        {
            for name in defined(&fs::read_to_string(&path).unwrap()) {
                files.entry(name.to_owned()).or_default().insert(text.clone());
            }
        }
    }
}

#[test]
fn a_name_of_a_type_is_defined_in_one_file_or_has_a_reason() {
    let mut files = BTreeMap::new();
    for name in CRATES {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates").join(name).join("src");
        collect(&root, &mut files);
    }
    assert!(files.len() > 300, "{} types: are these all?", files.len());
    files.retain(|_, files| files.len() > 1);
    let known: BTreeSet<&str> = SEVERAL.iter().map(|(name, _)| *name).collect();
    let new: Vec<_> = files.iter().filter(|(name, _)| !known.contains(name.as_str())).collect();
    assert!(new.is_empty(), "choose another name, or say why there are two: {new:#?}");
    assert!(files.len() <= MOST && known.len() == SEVERAL.len(), "{} names", files.len());
}
