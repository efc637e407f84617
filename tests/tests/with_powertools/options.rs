//! The page of options (`guide/powertools/options.md`) names every option and error of the installed packages.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

use crate::{Language, Shared};

/// What only the client of a cache has, or only code inside of Powertools.
const NOT_OPTIONS: [&str; 9] = [
    "function",
    "functionArguments",
    "functionPayloadToBeHashed",
    "functionToMakeIdempotent",
    "idempotencyConfig",
    "thisArg",
    "config",
    "functionName",
    "self",
];

fn page() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::read_to_string(root.join("crates/lambda/src/guide/powertools/options.md")).unwrap()
}

/// What is between backticks in a column of the page's tables.
fn column(page: &str, language: Language) -> BTreeSet<String> {
    let index = match language {
        Language::Python => 1,
        Language::TypeScript => 2,
    };
    let rows = page.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.split(" | ").nth(index - 1 + 1).map(str::to_owned));
    cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Powertools: bash tests/run powertools"]
async fn the_page_names_every_option_and_error() {
    let page = page();
    for language in Language::BOTH {
        let mut shared = Shared::new(language).await;
        let Value::Object(groups) = shared.theirs.options() else { panic!("no options") };
        let names: BTreeSet<_> = groups
            .values()
            .flat_map(|names| names.as_array().unwrap())
            .map(|name| name.as_str().unwrap().to_owned())
            .filter(|name| !NOT_OPTIONS.contains(&name.as_str()))
            .collect();
        assert!(names.len() > 25, "{language:?}: {names:?}: are these all?");
        let written = column(&page, language);
        let missing: Vec<_> = names.difference(&written).collect();
        let unknown: Vec<_> = written.difference(&names).collect();
        assert!(
            missing.is_empty() && unknown.is_empty(),
            "{language:?}: not on the page: {missing:?}; unknown: {unknown:?}"
        );
    }
}
