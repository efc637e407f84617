//! Every link between files of the repository has a target, and those of the guide also have one on docs.rs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::root;

/// The Markdown files: those of the repository's root, and of these folders.
pub(crate) fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut folders: Vec<_> = ["docs", "crates", "events", "fuzz"].map(|f| root().join(f)).into();
    for file in files(&root()) {
        pages.extend(file.is_file().then_some(file));
    }
    while let Some(folder) = folders.pop() {
        let made = |file: &PathBuf| file.ends_with("target") || file.ends_with("node_modules");
        for file in files(&folder).filter(|file| !made(file)) {
            if file.is_dir() { folders.push(file) } else { pages.push(file) }
        }
    }
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages
}

fn files(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path())
}

/// The targets of a text's links, `[text](target)` and `[text]: target`, except those in code.
pub(crate) fn targets(text: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    for (i, part) in text.split("\n```").enumerate() {
        if i % 2 == 1 {
            continue;
        }
        let inline = part.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
        targets.extend(inline);
        let lines = part.lines().filter(|line| line.starts_with('['));
        targets.extend(lines.filter_map(|line| line.split_once("]: ")).map(|(_, target)| target));
    }
    targets
}

/// The anchors that a page's headings make.
fn anchors(page: &str) -> Vec<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    headings
        .map(|line| line.trim_start_matches('#').trim().to_lowercase())
        .map(|text| text.chars().filter(kept).collect::<String>().replace(' ', "-"))
        .collect()
}

/// The guide is read on docs.rs, where paths to other files do not work.
const GUIDE: &str = "crates/lambda/src/guide";
/// The address of the guide in the READMEs of crates.
const ON_DOCS_RS: &str = "https://docs.rs/lambda-idempotency/latest/lambda_idempotency/guide/";
/// How the guide and the READMEs of crates name a file of the repository.
const REPOSITORY: [&str; 2] = [
    "https://github.com/lambda-idempotency/lambda-idempotency/blob/main/",
    "https://github.com/lambda-idempotency/lambda-idempotency/tree/main/",
];

/// The file of a link; `None` for links to other sites and for those that rustdoc checks.
fn file_of(page: &Path, path: &str) -> Option<PathBuf> {
    if path.is_empty() {
        return Some(page.to_owned());
    }
    if let Some(file) = REPOSITORY.iter().find_map(|start| path.strip_prefix(start)) {
        return Some(root().join(file));
    }
    let guide = |module: &str| root().join(GUIDE).join(module).with_extension("md");
    if let Some(module) = path.strip_prefix("crate::guide::") {
        return Some(guide(&module.replace("::", "/")));
    }
    if let Some(module) = path.strip_prefix(ON_DOCS_RS).filter(|module| !module.is_empty()) {
        return Some(guide(module.trim_end_matches("index.html").trim_end_matches('/')));
    }
    let elsewhere = path.contains("://") || path.starts_with("mailto:") || path.contains("::");
    (!elsewhere).then(|| page.parent().unwrap_or(page).join(path))
}

/// Whether the guide has this plot as data, too, under the same name: see decision 66.
fn is_embedded(page: &Path, path: &str) -> bool {
    let is_plot = path.starts_with("measured/") && path.ends_with(".svg");
    is_plot && page.ends_with("guide/performance.md")
}

/// What is wrong with a link from `page`, if anything is.
pub(crate) fn wrong(page: &Path, target: &str) -> Option<String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let lost = || Some(format!("{}: {target}", page.display()));
    let absolute = path.is_empty() || path.contains("::") || path.contains("://");
    if page.starts_with(root().join(GUIDE)) && !absolute && !is_embedded(page, path) {
        return lost();
    }
    let file = file_of(page, path)?;
    if !file.exists() {
        return lost();
    }
    if anchor.is_empty() || file.extension().is_none_or(|extension| extension != "md") {
        return None;
    }
    let there = anchors(&fs::read_to_string(&file).unwrap_or_default());
    if there.iter().any(|heading| heading == anchor) { None } else { lost() }
}

#[test]
fn every_link_has_a_target() {
    let (mut seen, mut lost) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        seen += targets(&text).len();
        lost.extend(targets(&text).into_iter().filter_map(|target| wrong(&page, target)));
    }
    assert!(seen > 150, "{seen} links: are these the pages?");
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}

#[test]
fn a_link_without_a_target_is_found() {
    let page = root().join("docs/model.md");
    let text = "[a](b.md#c) and\n```\n[no](code.md)\n```\n[short]: there.rs\n";
    assert_eq!(targets(text), ["b.md#c", "there.rs"]);
    assert_eq!(anchors("# What is `it`, then?\n"), ["what-is-it-then"]);
    assert!(wrong(&page, "nowhere.md").is_some() && wrong(&page, "#nothing").is_some());
    assert!(wrong(&page, "#the-worlds").is_none() && wrong(&page, "../README.md").is_none());
    let [blob, _] = REPOSITORY;
    for (target, leads) in [
        ("crate::guide::sources#default-keys", true),
        ("crate::guide::sources::sqs", true),
        ("crate::guide::sources#nothing", false),
        ("crate::guide::nowhere", false),
        (&format!("{blob}docs/model.md#the-worlds"), true),
        (&format!("{blob}docs/nowhere.md"), false),
        ("https://docs.rs/lambda_http", true),
        (&format!("{ON_DOCS_RS}sources/sqs/"), true),
        (&format!("{ON_DOCS_RS}nowhere/"), false),
    ] {
        assert_eq!(wrong(&page, target).is_none(), leads, "{target}");
        assert_eq!(wrong(&root().join(GUIDE).join("a.md"), target).is_none(), leads, "{target}");
    }
    let guide = root().join(GUIDE).join("sources.md");
    let page = root().join(GUIDE).join("performance.md");
    assert!(
        wrong(&page, "measured/cpu.svg").is_none() && wrong(&guide, "measured/cpu.svg").is_some()
    );
    assert!(wrong(&page, "measured/nothing.svg").is_some() && wrong(&page, "cost.md").is_some());
    assert!(wrong(&guide, "migrations.md").is_some() && wrong(&guide, "#default-keys").is_none());
}
