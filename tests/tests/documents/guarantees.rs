//! `docs/guarantees.md`: each claim names a check, and each check is there.

use std::collections::BTreeMap;

use crate::{
    names::{names, wrong},
    read, root,
};

const PAGE: &str = "docs/guarantees.md";

#[test]
fn each_claim_has_its_checks() {
    let text = read(PAGE);
    let defined: BTreeMap<_, _> =
        text.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: ")).collect();
    let has_link = |cell: &str| defined.keys().any(|name| cell.contains(&format!("[{name}]")));
    let (mut claims, mut mistakes) = (0, wrong(&text));
    for row in text.lines().filter(|line| line.starts_with("| **")) {
        claims += 1;
        let (_, shown_by) = row.rsplit_once(" | ").expect("two cells");
        if !has_link(shown_by) && names(shown_by).next().is_none() {
            mistakes.push(format!("no check: {row}"));
        }
    }
    let file = |target: &str| target.split('#').next().unwrap_or_default().to_owned();
    let is_lost = |target: &&&str| !root().join("docs").join(file(target)).exists();
    mistakes.extend(defined.values().filter(is_lost).map(|target| format!("no file: {target}")));
    let unused = defined.keys().filter(|name| text.matches(&format!("[{name}]")).count() < 2);
    mistakes.extend(unused.map(|name| format!("not used: [{name}]")));
    assert!(claims > 20, "{claims} claims: is this the table?");
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}
