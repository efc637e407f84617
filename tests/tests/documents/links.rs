//! Every link between files of the repository leads somewhere.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::root;

/// The Markdown files: those of the repository's root, and of these folders.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut folders: Vec<_> = ["docs", "crates", "events", "fuzz"].map(|f| root().join(f)).into();
    for file in files(&root()) {
        pages.extend(file.is_file().then_some(file));
    }
    while let Some(folder) = folders.pop() {
        for file in files(&folder).filter(|file| !file.ends_with("target")) {
            if file.is_dir() { folders.push(file) } else { pages.push(file) }
        }
    }
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages
}

fn files(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path())
}

/// The targets of a text's links, `[text](target)` and `[text]: target`, code left out.
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

/// What is wrong with a link from `page`, if anything is.
pub(crate) fn wrong(page: &Path, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = match path {
        "" => page.to_owned(),
        path => page.parent().unwrap_or(page).join(path),
    };
    let lost = || Some(format!("{}: {target}", page.display()));
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
fn every_link_leads_somewhere() {
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
fn a_link_that_leads_nowhere_is_found_out() {
    let page = root().join("docs/model.md");
    let text = "[a](b.md#c) and\n```\n[no](code.md)\n```\n[short]: there.rs\n";
    assert_eq!(targets(text), ["b.md#c", "there.rs"]);
    assert_eq!(anchors("# What is `it`, then?\n"), ["what-is-it-then"]);
    assert!(wrong(&page, "nowhere.md").is_some() && wrong(&page, "#nothing").is_some());
    assert!(wrong(&page, "#the-mutants").is_none() && wrong(&page, "../README.md").is_none());
}
