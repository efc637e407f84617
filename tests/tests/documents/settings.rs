//! The guide's tables list every setting of operations and sources, and the docs of results theirs.

use std::collections::BTreeSet;

use crate::{files, quoted, read};

/// The methods of a type that return it: its settings.
fn settings(source: &str) -> BTreeSet<String> {
    let methods = source.split("pub fn ").skip(1);
    let settings = methods.filter(|method| {
        let signature = method.split('{').next().unwrap_or(method);
        let takes_itself = signature.contains("(self") || signature.contains("mut self");
        signature.contains("-> Self") && takes_itself
    });
    settings.filter_map(|method| method.split(['(', '<']).next()).map(str::to_owned).collect()
}

/// The names in the first column of a page's tables, without arguments: `on_busy` for `` `on_busy(hook)` ``.
fn named(page: &str) -> BTreeSet<String> {
    let cells = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let words = cells.flat_map(quoted);
    words.filter_map(|word| word.split('(').next()).map(str::to_owned).collect()
}

#[test]
fn every_setting_is_in_a_table() {
    const GUIDE: &str = "crates/lambda/src/guide/settings.md";
    const RESULTS: &str = "crates/results/src/results.rs";
    let folders = ["crates/lambda/src/operation", "crates/lambda/src/source"];
    let sources: String = files(&folders, &[".rs"]).into_iter().map(|(_, text)| text).collect();
    let results = read(RESULTS);
    for (page, text, source, least) in
        [(GUIDE, read(GUIDE), &sources, 25), (RESULTS, results.replace("/// ", ""), &results, 5)]
    {
        let settings = settings(source);
        assert!(settings.len() > least, "{settings:?}: are these the settings?");
        let missing: Vec<_> = settings.difference(&named(&text)).cloned().collect();
        assert!(missing.is_empty(), "not in a table of {page}: {missing:?}");
    }
}
