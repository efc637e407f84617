//! The guide explains every outcome that a log line can have, and whether the record is acknowledged.

use std::collections::BTreeMap;

use crate::read;

const PAGE: &str = "crates/lambda/src/guide/failure_modes.md";
const OUTCOMES: &str = "crates/core/src/outcome.rs";

/// The body of a function, up to the closing brace below its first letter.
fn body<'s>(source: &'s str, signature: &str) -> &'s str {
    let (_, rest) = source.split_once(signature).unwrap_or_default();
    rest.split_once("\n    }\n").map_or("", |(body, _)| body)
}

/// The label of each variant.
fn labels(source: &str) -> BTreeMap<&str, &str> {
    let arms = body(source, "pub const fn label(").lines();
    let arms = arms.filter_map(|line| line.trim().strip_prefix("Self::")?.split_once(" => \""));
    arms.filter_map(|(variant, label)| {
        let name = variant.split([' ', '(']).next()?;
        Some((name, label.trim_end_matches("\",")))
    })
    .collect()
}

/// The variants that are always acknowledged, whatever the policies.
fn acknowledged(source: &str) -> &str {
    let (before, _) =
        body(source, "pub const fn is_acknowledged(").split_once("=> true").unwrap_or_default();
    before
}

/// The table of the page: whether an outcome is acknowledged, by its label.
fn explained(page: &str) -> BTreeMap<&str, &str> {
    let (_, table) = page.split_once("| outcome | acknowledged |").unwrap_or_default();
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    rows.filter_map(|row| row.strip_prefix("| `")?.split_once("` | "))
        .filter_map(|(label, rest)| Some((label, rest.split_once(" |")?.0)))
        .collect()
}

#[test]
fn every_outcome_is_explained() {
    let (source, page) = (read(OUTCOMES), read(PAGE));
    let (labels, explained) = (labels(&source), explained(&page));
    assert!(labels.len() > 15, "{labels:?}: are these the outcomes?");
    let known: Vec<_> = labels.values().collect();
    let unknown: Vec<_> = explained.keys().filter(|label| !known.contains(label)).collect();
    assert!(unknown.is_empty(), "{PAGE} explains outcomes that do not exist: {unknown:?}");
    for (variant, label) in labels {
        let says = *explained.get(label).unwrap_or(&"");
        let always =
            acknowledged(&source).split(|c: char| !c.is_alphanumeric()).any(|word| word == variant);
        assert_eq!(says == "yes", always, "{PAGE}, `{label}`: {says:?}");
        assert!(says == "yes" || says.starts_with("no"), "{PAGE} does not explain `{label}`");
    }
}
