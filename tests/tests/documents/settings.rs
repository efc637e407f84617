//! The guide's tables list every setting of operations and sources, and the docs of results theirs.

use std::collections::BTreeSet;

use lambda_idempotency_core::policy::Policy;

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

/// A default as the documentation says it, in the form of `Debug`.
fn as_debug(documented: &str) -> String {
    let value = documented.trim_matches(['[', ']', '`']);
    let (number, unit) = value.split_once(' ').unwrap_or((value, ""));
    let seconds = match unit {
        "h" | "hours" => 3600,
        "minutes" => 60,
        "second" | "seconds" => 1,
        _ => 0,
    };
    match number.parse::<u64>() {
        Ok(number) if seconds > 0 => format!("{}s", number * seconds),
        Ok(number) => number.to_string(),
        Err(_) if ["no limit", "as long as the key answers", "the retention"].contains(&value) => {
            "None".to_owned()
        }
        Err(_) if value == "the invocation" => "Invocation".to_owned(),
        Err(_) => value.rsplit("::").next().unwrap_or(value).to_owned(),
    }
}

/// The defaults in doc comments and in the guide's table are those that `Policy::default()` has.
#[test]
fn documented_defaults_are_the_defaults() {
    let policy = format!("{:?},", Policy::default()).replace(" }", "");
    let is_default = |place: &str, setting: &str, documented: &str| {
        let has = format!(" {setting}: {},", as_debug(documented));
        assert!(policy.contains(&has), "{place}: {setting}: {documented}, and it is {policy}");
    };
    let is_of_policy = |name: &str| policy.contains(&format!(" {name}: "));
    for (path, item, least) in [
        ("crates/core/src/policy.rs", "    pub ", 13),
        ("crates/lambda/src/operation/settings.rs", "    pub fn ", 8),
    ] {
        let (text, mut comment, mut found) = (read(path), String::new(), 0);
        for line in text.lines() {
            if let Some(more) = line.trim_start().strip_prefix("/// ") {
                comment = comment + more + " ";
            } else if let Some(rest) = line.strip_prefix(item) {
                let name = rest.split(['(', ':']).next().unwrap_or(rest);
                let default = comment.split_once("Default: ").filter(|_| is_of_policy(name));
                if let Some((_, default)) = default {
                    is_default(
                        path,
                        name,
                        default.split(['.', ',', ';']).next().unwrap_or(default).trim(),
                    );
                    found += 1;
                }
                comment.clear();
            }
        }
        assert!(found >= least, "{path}: {found} defaults");
    }
    let page = read("crates/lambda/src/guide/settings.md");
    let mut found = 0;
    for row in page.lines().filter_map(|line| line.strip_prefix("| [`")) {
        let cells: Vec<_> = row.split(" | ").collect();
        let name = row.split('(').next().unwrap_or(row);
        // A default that depends on the source is not one value.
        if row.contains("crate::Operation::") && is_of_policy(name) && cells[1] != "by source" {
            is_default("settings.md", name, cells[1]);
            found += 1;
        }
    }
    assert!(found >= 8, "{found} rows");
}
