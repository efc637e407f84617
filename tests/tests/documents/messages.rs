//! Messages that the guide quotes, so that readers can search for them: each is in the source, word
//! for word.

use std::{fs, path::Path};

use crate::{read, root};

const PAGE: &str = "crates/lambda/src/guide/troubleshooting.md";

/// The page that quotes the problems that HTTP clients get.
const PROBLEMS: &str = "crates/lambda/src/guide/sources/http.md";

/// The quoted messages: the first cells of the tables whose first column is `message`.
fn quoted(page: &str) -> Vec<&str> {
    let mut messages = Vec::new();
    let mut in_table = false;
    for line in page.lines() {
        in_table = line.starts_with("| message |") || (in_table && line.starts_with('|'));
        let cell = line.strip_prefix("| `").and_then(|rest| rest.split_once("` |"));
        messages.extend(cell.filter(|_| in_table).map(|(message, _)| message));
    }
    messages
}

/// The quoted problems, as `> **title.** detail`: each title and each detail. The name of the
/// header becomes `..`, because the source has a placeholder for it.
fn problems(page: &str) -> Vec<String> {
    let quotes = page.split("\n\n").filter_map(|paragraph| {
        let quote = &paragraph[paragraph.find("> **")?..];
        let lines: Vec<_> = quote.lines().map(|line| line.trim_start_matches("> ")).collect();
        Some(lines.join(" ").replace("`idempotency-key`", ".."))
    });
    let texts = quotes.flat_map(|quote| {
        let (title, detail) = quote.trim_start_matches("**").split_once(".**").expect("a title");
        [title.to_owned(), detail.to_owned()]
    });
    texts.collect()
}

/// All library sources below a folder, with texts that go over several lines put together.
fn sources(folder: &Path, all: &mut String) {
    for entry in fs::read_dir(folder).expect("sources") {
        let path = entry.expect("a file").path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).expect("a source");
            let mut lines = text.split("\\\n");
            all.push_str(lines.next().unwrap_or_default());
            lines.for_each(|line| all.push_str(line.trim_start()));
        }
    }
}

/// The parts of a message that no source has.
fn missing<'m>(message: &'m str, sources: &str) -> Vec<&'m str> {
    message.split("..").map(str::trim).filter(|part| !sources.contains(part)).collect()
}

#[test]
fn every_message_that_is_explained_exists() {
    let mut all = String::new();
    for package in fs::read_dir(root().join("crates")).expect("crates") {
        sources(&package.expect("a crate").path().join("src"), &mut all);
    }
    let page = read(PAGE);
    let messages = quoted(&page);
    assert!(messages.len() > 30, "{} messages: are these the tables?", messages.len());
    let lost: Vec<_> = messages.iter().flat_map(|message| missing(message, &all)).collect();
    assert!(lost.is_empty(), "{PAGE} quotes messages that no source has:\n{}", lost.join("\n"));
}

#[test]
fn every_problem_that_is_quoted_exists() {
    let mut all = String::new();
    sources(&root().join("crates/lambda/src/http"), &mut all);
    let problems = problems(&read(PROBLEMS));
    assert!(problems.len() > 20, "{} titles and details: are these the quotes?", problems.len());
    let lost: Vec<_> = problems.iter().flat_map(|text| missing(text, &all)).collect();
    assert!(lost.is_empty(), "{PROBLEMS} quotes texts that no source has:\n{}", lost.join("\n"));
}
