//! Every link between files of the repository has a target, and those of the guide also have one on docs.rs.

use std::path::PathBuf;

use crate::{pages, root};

/// The targets of a text's links, `[text](target)` and `[text]: target`, except those in code.
fn targets(text: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    for part in text.split("\n```").step_by(2) {
        let inline = part.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
        targets.extend(inline);
        let lines = part.lines().filter(|line| line.starts_with('['));
        targets.extend(lines.filter_map(|line| line.split_once("]: ")).map(|(_, target)| target));
    }
    targets
}

/// The anchors that a page's headings make.
fn anchors(page: &str) -> impl Iterator<Item = String> {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let texts = headings.map(|line| line.trim_start_matches('#').trim().to_lowercase());
    texts.map(move |text| text.chars().filter(kept).collect::<String>().replace(' ', "-"))
}

/// The guide is read on docs.rs, where paths to other files do not work.
const GUIDE: &str = "crates/lambda/src/guide";
/// The address of the guide in the READMEs of crates.
const ON_DOCS_RS: &str = "https://docs.rs/lambda-idempotency/latest/lambda_idempotency/guide/";
/// How the guide and the READMEs of crates name a file of the repository: with `blob` or `tree`.
const REPOSITORY: &str = "https://github.com/lambda-idempotency/lambda-idempotency/";

/// The file of a link; `None` for links to other sites and for those that rustdoc checks.
fn file_of(page: &str, path: &str) -> Option<PathBuf> {
    let on_github = path.strip_prefix(REPOSITORY).and_then(|rest| rest.split_once("/main/"));
    let of_guide = path.strip_prefix("crate::guide::").map(|module| module.replace("::", "/"));
    let on_docs_rs = path.strip_prefix(ON_DOCS_RS).filter(|module| !module.is_empty());
    let on_docs_rs = on_docs_rs.map(|it| it.trim_end_matches("index.html").trim_end_matches('/'));
    let elsewhere = path.contains("://") || path.starts_with("mailto:") || path.contains("::");
    if let Some((_, file)) = on_github {
        Some(root().join(file))
    } else if let Some(module) = of_guide.as_deref().or(on_docs_rs) {
        Some(root().join(GUIDE).join(module).with_extension("md"))
    } else if path.is_empty() {
        Some(root().join(page))
    } else {
        (!elsewhere).then(|| root().join(page).with_file_name(path))
    }
}

/// What is wrong with a link from `page`, if anything is.
pub(crate) fn wrong(page: &str, target: &str) -> Option<String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let absolute = path.is_empty() || path.contains("::") || path.contains("://");
    // The guide has this plot as data, too, under the same name: see decision 66.
    let is_plot = page.ends_with("guide/performance.md") && path.starts_with("measured/");
    let is_lost_on_docs_rs = page.starts_with(GUIDE) && !absolute && !is_plot;
    let file = file_of(page, path)?;
    let is_page = file.extension().is_some_and(|extension| extension == "md");
    let has_anchor = || {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        anchor.is_empty() || !is_page || anchors(&text).any(|heading| heading == anchor)
    };
    let is_right = file.exists() && !is_lost_on_docs_rs && has_anchor();
    (!is_right).then(|| format!("{page}: {target}"))
}

#[test]
fn every_link_has_a_target() {
    let (mut seen, mut lost) = (0, Vec::new());
    for (page, text) in pages() {
        seen += targets(&text).len();
        lost.extend(targets(&text).into_iter().filter_map(|target| wrong(&page, target)));
    }
    assert!(seen > 150, "{seen} links: are these the pages?");
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}

#[test]
fn a_link_without_a_target_is_found() {
    let text = "[a](b.md#c) and\n```\n[no](code.md)\n```\n[short]: there.rs\n";
    assert_eq!(targets(text), ["b.md#c", "there.rs"]);
    assert_eq!(anchors("# What is `it`, then?\n").collect::<Vec<_>>(), ["what-is-it-then"]);
    let blob = format!("{REPOSITORY}blob/main/docs");
    // From a page of `docs`, and from one of the guide.
    for (target, of_docs, of_guide) in [
        ("nowhere.md", false, false),
        ("#nothing", false, false),
        ("../README.md", true, false),
        ("#the-worlds", true, false),
        ("#default-keys", false, true),
        ("measured/cpu.svg", false, false),
        ("crate::guide::sources#default-keys", true, true),
        ("crate::guide::sources::sqs", true, true),
        ("crate::guide::sources#nothing", false, false),
        ("crate::guide::nowhere", false, false),
        (&format!("{blob}/model.md#the-worlds"), true, true),
        (&format!("{blob}/nowhere.md"), false, false),
        ("https://docs.rs/lambda_http", true, true),
        (&format!("{ON_DOCS_RS}sources/sqs/"), true, true),
        (&format!("{ON_DOCS_RS}nowhere/"), false, false),
    ] {
        assert_eq!(wrong("docs/model.md", target).is_none(), of_docs, "{target}");
        let page = "crates/lambda/src/guide/sources.md";
        assert_eq!(wrong(page, target).is_none(), of_guide, "{target}");
    }
    let page = "crates/lambda/src/guide/performance.md";
    assert!(wrong(page, "measured/cpu.svg").is_none() && wrong(page, "cost.md").is_some());
    assert!(wrong(page, "measured/nothing.svg").is_some());
}
