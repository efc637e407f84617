//! Every key expression that a page, an example or a template recommends is tested with the events
//! that it could confuse.

use std::{collections::BTreeSet, fs, path::Path};

use lambda_idempotency::{
    Operation,
    inspect::{self, AnySource},
    record,
};
use lambda_runtime::Context;
use serde_json::{Value, json};

use crate::root;

mod recommended;

use recommended::{Checked, expressions as tested};

/// Files that nobody copies a key from: tests, generated texts, and what is no more.
const SKIPPED: [&str; 8] =
    ["target", "tests", "decisions", "api", "node_modules", "fuzz", "CHANGELOG.md", "measured"];
/// Files that speak of keys with placeholders for their expressions.
const PLACEHOLDERS: [&str; 4] = ["..", "...", "path", "lower(email, 1)"];

fn files(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        if SKIPPED.contains(&name) || name.starts_with('.') || name.ends_with("tests.rs") {
            continue;
        }
        let ending = path.extension().and_then(|ending| ending.to_str());
        if path.is_dir() {
            files(&path, found);
        } else if let Some(ending @ ("md" | "rs" | "yaml" | "yml" | "toml")) = ending {
            let text = fs::read_to_string(&path).expect("a text");
            found.push((path.display().to_string(), readable(&text, ending)));
        }
    }
}

/// The text as its reader sees it: without unit tests, comment signs, and breaks in lines.
fn readable(text: &str, ending: &str) -> String {
    if ending != "rs" {
        return text.to_owned();
    }
    let text = text.split("\n#[cfg(test)]").next().unwrap_or_default().replace("\\\n", "");
    let line = |line: &str| {
        let line = line.trim_start();
        ["//! ", "/// ", "// "]
            .iter()
            .find_map(|sign| line.strip_prefix(sign))
            .unwrap_or(line)
            .to_owned()
    };
    // In a message, the quotation marks around a key are escaped.
    text.lines()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
        .replace(".key(\\\"", ".key(\"")
        .replace("\"record(\\\"", " record(\"")
        .replace("\\\")", "\")")
}

/// The text of a string literal that begins here, if one does.
fn literal(text: &str) -> Option<String> {
    if let Some(raw) = text.strip_prefix("r#\"") {
        return raw.split_once("\"#").map(|(text, _)| text.to_owned());
    }
    let mut characters = text.strip_prefix('"')?.chars();
    let mut found = String::new();
    loop {
        match characters.next()? {
            '"' => return Some(found),
            '\\' => found.push(characters.next()?),
            c => found.push(c),
        }
    }
}

/// The expressions in a text, with `record:` before those for the raw record.
fn expressions(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut add = |record: bool, expression: Option<String>| {
        if let Some(expression) = expression {
            let words: Vec<_> = expression.split_whitespace().collect();
            found.insert(format!("{}{}", if record { "record:" } else { "" }, words.join(" ")));
        }
    };
    // `producer.key(json)` and `store.key(id)` have other arguments; a payload is in braces.
    let behind = |sign: &'static str| {
        text.match_indices(sign).map(|(at, sign)| text[at + sign.len()..].trim_start())
    };
    behind(".key(").for_each(|rest| {
        add(
            false,
            literal(rest).filter(|text| {
                !text.starts_with('{') || !text.contains("\":") && !text.contains("\" :")
            }),
        )
    });
    behind(".key(payload(").for_each(|rest| add(false, literal(rest)));
    for sign in [" record(", "(record(", "`record("] {
        behind(sign).for_each(|rest| add(true, literal(rest)));
    }
    behind("KeySpec::new(").for_each(|rest| {
        add(false, rest.split_once(", ").and_then(|(_, rest)| literal(rest)));
    });
    // Environment variables, parameters of templates and arguments of commands.
    for line in text.lines() {
        let quoted = |text: &str| text.trim().trim_matches(['\'', '"']).to_owned();
        let is_variable = |name: &str| {
            name.ends_with("_KEY") && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        };
        if let Some((name, value)) = line.trim().split_once(": ")
            && is_variable(name)
            && !value.starts_with('!')
        {
            add(
                value.contains("record:"),
                Some(quoted(value).trim_start_matches("record:").to_owned()),
            );
        }
    }
    for (at, sign) in text.match_indices("_KEY=") {
        let name = text[..at].rsplit(|c: char| !c.is_ascii_uppercase() && c != '_').next();
        let value = text[at + sign.len()..].split_whitespace().next().unwrap_or_default();
        if !name.unwrap_or_default().starts_with("AWS_") && value.contains(char::is_lowercase) {
            add(value.contains("record:"), Some(value.trim_start_matches("record:").to_owned()));
        }
    }
    for parameter in text.split("KeyPath:\n").skip(1) {
        let default = parameter.lines().find_map(|line| line.trim().strip_prefix("Default: "));
        add(false, default.map(str::to_owned));
    }
    for rest in text.split(" --key ").skip(1) {
        let argument = match rest.strip_prefix('\'') {
            Some(rest) => rest.split('\'').next(),
            None => rest.split(|c: char| c.is_whitespace() || "`\\".contains(c)).next(),
        };
        // `sns=record:..` is for one source.
        let argument = argument.unwrap_or_default();
        let path = argument.split_once('=').map_or(argument, |(_, path)| path);
        if path.contains(char::is_lowercase) {
            add(false, Some(path.to_owned()));
        }
    }
    found
}

/// The expressions of all pages, each with the files that have it.
fn recommended() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    files(&root(), &mut texts);
    let each = texts.iter().flat_map(|(file, text)| {
        expressions(text).into_iter().map(move |expression| (expression, file.clone()))
    });
    each.filter(|(expression, _)| !PLACEHOLDERS.contains(&expression.trim_start_matches("record:")))
        .collect()
}

#[test]
fn each_key_that_a_page_recommends_tells_apart_what_it_should() {
    let (recommended, tested) = (recommended(), tested());
    let untested: Vec<_> = recommended
        .iter()
        .filter(|(found, _)| !tested.iter().any(|(expression, _)| expression == found))
        .collect();
    assert!(
        untested.is_empty(),
        "say in `recommended` which events these could confuse: {untested:#?}"
    );
    for (expression, checked) in &tested {
        let is_there = recommended.iter().any(|(found, _)| found == expression);
        assert!(is_there, "no page has `{expression}` any more");
        check(expression, checked);
    }
    assert!(recommended.len() > 100, "{} are found: are the pages read?", recommended.len());
}

fn check(expression: &str, checked: &Checked) {
    let on_record = expression.strip_prefix("record:");
    let operation = match on_record {
        Some(_) => Operation::new("work"),
        None => Operation::new("work").key(expression),
    };
    let source = match on_record {
        Some(expression) => AnySource::new().key(record(expression)),
        None => AnySource::new(),
    };
    match checked {
        Checked::Fields => check_fields(expression, &operation),
        Checked::Mistake => {}
        Checked::Payloads(adjust, same, distinct) => {
            let operation = adjust(operation);
            let keys = |payload: &Value| {
                let key = operation.producer().expect(expression).key(&payload.to_string());
                key.expect(expression).as_str().to_owned()
            };
            compare(expression, keys, same, distinct);
        }
        Checked::Events(adjust, same, distinct) => {
            let source = adjust(source);
            let keys = |event: &Value| {
                let (event, none) = (event.to_string(), Context::default());
                let records = inspect::invocation(&event, &source, Some(&operation), &none);
                let records = records.expect(expression);
                let [record] = &*records else { panic!("`{expression}`: one record an event") };
                let key = record.key.as_ref().expect(expression).key.as_ref();
                key.unwrap_or_else(|error| panic!("`{expression}`: {error}")).as_str().to_owned()
            };
            compare(expression, keys, same, distinct);
        }
    }
}

/// Deliveries of one record have one key, and the others have different ones.
fn compare(expression: &str, key: impl Fn(&Value) -> String, same: &[Value], distinct: &[Value]) {
    assert!(distinct.len() > 1, "`{expression}`: events that it could confuse");
    for (one, other) in same.iter().zip(same.iter().skip(1)) {
        assert_eq!(key(one), key(other), "`{expression}` of {one} and {other}");
    }
    for (at, one) in distinct.iter().enumerate() {
        for other in distinct.iter().skip(at + 1) {
            assert_ne!(key(one), key(other), "`{expression}` of {one} and {other}");
        }
    }
}

/// A payload in which the member at each path has this value.
fn payload(paths: &[(String, Value)]) -> Value {
    let mut payload = json!({});
    for (path, value) in paths {
        let mut at = &mut payload;
        for name in path.split('.') {
            at = &mut at[name];
        }
        *at = value.clone();
    }
    payload
}

/// Ids that an application gives: each part counts, each has to be there, and nothing else counts.
fn check_fields(expression: &str, operation: &Operation) {
    assert!(!expression.starts_with("record:"), "{expression}: of the payload");
    let list = expression.strip_prefix('[').and_then(|list| list.strip_suffix(']'));
    let paths: Vec<String> = list.unwrap_or(expression).split(", ").map(str::to_owned).collect();
    let is_path =
        |path: &String| path.chars().all(|c| c.is_ascii_alphanumeric() || "._".contains(c));
    assert!(paths.iter().all(is_path), "`{expression}` has other steps than fields");
    let with = |values: &[Value]| {
        payload(&paths.iter().cloned().zip(values.iter().cloned()).collect::<Vec<_>>())
    };
    let producer = operation.producer().expect(expression);
    let key = |payload: &Value| producer.key(&payload.to_string());
    let usual: Vec<Value> = (0..paths.len()).map(|at| json!(format!("a-{at}"))).collect();
    let first = with(&usual);
    let mut more = first.clone();
    more["sentAt"] = json!("another time");
    assert_eq!(key(&first).expect(expression), key(&more).expect(expression), "{expression}");
    let mut distinct = vec![first];
    for at in 0..paths.len() {
        for other in [json!("b"), json!(42), json!("42"), json!("a-0,a-1"), json!("A-0")] {
            let mut values = usual.clone();
            values[at] = other;
            distinct.push(with(&values));
        }
        for missing in [json!(null), json!("")] {
            let mut values = usual.clone();
            values[at] = missing;
            assert!(key(&with(&values)).is_err(), "`{expression}` without `{}`", paths[at]);
        }
    }
    compare(
        expression,
        |payload| key(payload).expect(expression).as_str().to_owned(),
        &[],
        &distinct,
    );
}
