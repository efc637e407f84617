//! Messages that the guide quotes, so that readers can search for them: each is in the source, word
//! for word.

use crate::{read, sources};

/// The quoted messages: the first cells of the tables whose first column is `message`.
fn quoted(page: &str) -> Vec<String> {
    let mut messages = Vec::new();
    let mut in_table = false;
    for line in page.lines() {
        in_table = line.starts_with("| message |") || (in_table && line.starts_with('|'));
        let cell = line.strip_prefix("| `").and_then(|rest| rest.split_once("` |"));
        messages.extend(cell.filter(|_| in_table).map(|(message, _)| message.to_owned()));
    }
    messages
}

/// The problems that HTTP clients get, quoted as `> **title.** detail`: each title and each detail. The name of the
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

#[test]
fn every_message_that_is_quoted_exists() {
    // Texts that go over several lines are put together.
    let whole = |text: &str| text.split("\\\n").map(str::trim_start).collect::<String>();
    let of = |folder: &str| -> String {
        let sources = sources().into_iter().filter(|(path, _)| path.starts_with(folder));
        sources.map(|(_, text)| whole(&text)).collect()
    };
    for (page, quoted, least, folder) in [
        ("troubleshooting.md", quoted as fn(&str) -> Vec<String>, 30, "crates/"),
        ("sources/http.md", problems, 20, "crates/lambda/src/http/"),
    ] {
        let messages = quoted(&read(&format!("crates/lambda/src/guide/{page}")));
        assert!(messages.len() > least, "{page}: {} messages: are these all?", messages.len());
        let sources = of(folder);
        let parts = messages.iter().flat_map(|message| message.split("..")).map(str::trim);
        let lost: Vec<_> = parts.filter(|part| !sources.contains(part)).collect();
        assert!(lost.is_empty(), "{page} quotes texts that no source has:\n{}", lost.join("\n"));
    }
}
