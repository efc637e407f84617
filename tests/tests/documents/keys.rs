//! Every key expression that a page, an example or a template recommends is tested with the events
//! that it could confuse.

use std::collections::BTreeSet;

use crate::files;

mod recommended;

/// Files that nobody copies a key from: tests, generated texts, and what is no more.
const SKIPPED: [&str; 6] = ["tests", "decisions", "api", "fuzz", "CHANGELOG.md", "measured"];
/// Files that speak of keys with placeholders for their expressions.
const PLACEHOLDERS: [&str; 4] = ["..", "...", "path", "lower(email, 1)"];

/// The text as its reader sees it: without unit tests, comment signs, and breaks in lines.
fn readable(path: &str, text: &str) -> String {
    if !path.ends_with(".rs") {
        return text.to_owned();
    }
    let text = text.split("\n#[cfg(test)]").next().unwrap_or_default().replace("\\\n", "");
    let sign = |line: &str| ["//! ", "/// ", "// "].into_iter().find(|sign| line.starts_with(sign));
    let line = |line: &str| line[sign(line).map_or(0, str::len)..].to_owned();
    let lines: Vec<_> = text.lines().map(|text| line(text.trim_start())).collect();
    // In a message, the quotation marks around a key are escaped.
    let text = lines.join("\n").replace(".key(\\\"", ".key(\"");
    text.replace("\"record(\\\"", " record(\"").replace("\\\")", "\")")
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

/// What an environment variable or an argument of a command begins with, where it names a key.
fn argument(text: &str) -> Option<String> {
    let argument = match text.strip_prefix('\'') {
        Some(rest) => rest.split('\'').next()?,
        None => text.split(|c: char| c.is_whitespace() || "`\\".contains(c)).next()?,
    };
    argument.contains(char::is_lowercase).then(|| argument.to_owned())
}

/// The expressions in a text, with `record:` before those for the raw record.
fn expressions(text: &str) -> BTreeSet<String> {
    let behind = |sign: &'static str| text.split(sign).skip(1).map(str::trim_start);
    // `producer.key(json)` and `store.key(id)` have other arguments; a payload is in braces.
    let is_path =
        |text: &String| !text.starts_with('{') || !text.contains("\":") && !text.contains("\" :");
    let mut found: Vec<String> = behind(".key(").filter_map(literal).filter(is_path).collect();
    found.extend(behind(".key(payload(").filter_map(literal));
    for sign in [" record(", "(record(", "`record("] {
        found.extend(behind(sign).filter_map(literal).map(|text| format!("record:{text}")));
    }
    let of_spec = |rest: &str| literal(rest.split_once(", ")?.1);
    found.extend(behind("KeySpec::new(").filter_map(of_spec));
    for line in text.lines() {
        let Some((name, value)) = line.trim().split_once("_KEY: ") else { continue };
        let is_variable = name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        let value = value.trim().trim_matches(['\'', '"']).to_owned();
        found.extend((is_variable && !value.starts_with('!')).then_some(value));
    }
    for (at, sign) in text.match_indices("_KEY=") {
        let name = text[..at].rsplit(|c: char| !c.is_ascii_uppercase() && c != '_').next();
        let is_ours = !name.unwrap_or_default().starts_with("AWS_");
        let value = text[at + sign.len()..].split_whitespace().next().unwrap_or_default();
        found.extend((is_ours && value.contains(char::is_lowercase)).then(|| value.to_owned()));
    }
    // Parameters of templates.
    let default = |parameter: &str| {
        parameter.lines().find_map(|line| Some(line.trim().strip_prefix("Default: ")?.to_owned()))
    };
    found.extend(text.split("KeyPath:\n").skip(1).filter_map(default));
    // `--key sns=record:..` is for one source.
    let of_source = |text: String| match text.split_once('=') {
        Some((_, path)) => path.to_owned(),
        None => text,
    };
    found.extend(text.split(" --key ").skip(1).filter_map(argument).map(of_source));
    found.iter().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn each_key_that_a_page_recommends_tells_apart_what_it_should() {
    let texts = files(&["."], &[".md", ".rs", ".yaml", ".yml", ".toml"]);
    let is_skipped = |part: &str| SKIPPED.contains(&part) || part.ends_with("tests.rs");
    let mut recommended = BTreeSet::new();
    for (path, text) in texts.iter().filter(|(path, _)| !path.split('/').any(is_skipped)) {
        let all = expressions(&readable(path, text));
        let is_key = |text: &String| !PLACEHOLDERS.contains(&text.trim_start_matches("record:"));
        recommended.extend(all.into_iter().filter(is_key).map(|text| (text, path.clone())));
    }
    assert!(recommended.len() > 100, "{} are found: are the pages read?", recommended.len());
    let tested = recommended::check();
    let untested: Vec<_> =
        recommended.iter().filter(|(found, _)| !tested.contains(&&**found)).collect();
    assert!(
        untested.is_empty(),
        "say in `recommended` which events these could confuse: {untested:#?}"
    );
    for expression in tested {
        let is_there = recommended.iter().any(|(found, _)| found == expression);
        assert!(is_there, "no page has `{expression}` any more");
    }
}
