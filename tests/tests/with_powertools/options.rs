//! The page `guide/powertools/options.md` names every option and every error of the installed packages.

use std::{collections::BTreeSet, fs, path::Path};

use crate::{Language, Shared};

/// What is between backticks in the columns of a language.
fn written(language: Language) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = root.join("crates/lambda/src/guide/powertools/options.md");
    let page = fs::read_to_string(page).unwrap();
    let column = match language {
        Language::Python => 1,
        Language::TypeScript => 2,
    };
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.split('|').nth(column + 1));
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names.map(str::to_owned).collect()
}

/// All source files of a folder.
fn source(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            source(&path, text);
        } else if path.extension().is_some_and(|end| ["py", "js", "ts"].iter().any(|e| end == *e)) {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_names_every_option_and_error() {
    for language in Language::BOTH {
        let mut shared = Shared::new(language).await;
        let options = shared.theirs.options();
        let names = options["names"].as_array().unwrap().iter();
        let names: BTreeSet<_> = names.map(|name| name.as_str().unwrap().to_owned()).collect();
        assert!(names.len() > 25, "{language:?}: {names:?}: are these all?");
        let written = written(language);
        let missing: Vec<_> = names.difference(&written).collect();
        assert!(missing.is_empty(), "{language:?}: not on the page: {missing:?}");
        let mut text = String::new();
        source(Path::new(options["source"].as_str().unwrap()), &mut text);
        let unknown: Vec<_> = written.iter().filter(|name| !text.contains(name.as_str())).collect();
        assert!(unknown.is_empty(), "{language:?}: not in the packages: {unknown:?}");
    }
}
