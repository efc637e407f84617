//! `docs/guarantees.md`: each claim names a check, and each check is there.

use std::{collections::BTreeMap, path::PathBuf};

use crate::{
    links,
    names::{names, wrong},
    read, root,
};

fn page() -> PathBuf {
    root().join("docs/guarantees.md")
}

/// The short links of a text that have a definition below: `[model]`.
fn links<'a>(row: &'a str, defined: &BTreeMap<&str, &str>) -> Vec<&'a str> {
    let names = row.split('[').skip(1).filter_map(|rest| rest.split_once(']'));
    names
        .filter(|(name, rest)| !rest.starts_with('(') && defined.contains_key(name))
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn each_claim_has_its_checks() {
    let text = read("docs/guarantees.md");
    let defined: BTreeMap<_, _> =
        text.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: ")).collect();
    let (mut claims, mut mistakes) = (0, Vec::new());
    for row in text.lines().filter(|line| line.starts_with("| **")) {
        claims += 1;
        let cells: Vec<_> = row.split(" | ").collect();
        let [_, shown_by] = cells.as_slice() else { panic!("two cells: {row}") };
        if links(shown_by, &defined).is_empty() && names(shown_by).next().is_none() {
            mistakes.push(format!("no check: {row}"));
        }
    }
    mistakes.extend(names(&text).filter_map(wrong));
    mistakes.extend(defined.values().filter_map(|target| links::wrong(&page(), target)));
    let unused = defined.keys().filter(|name| text.matches(&format!("[{name}]")).count() < 2);
    mistakes.extend(unused.map(|name| format!("not used: [{name}]")));
    assert!(claims > 20, "{claims} claims: is this the table?");
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}
