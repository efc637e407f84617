//! Names of tests in documents: `engine::order::a_test` is a function in `crates/engine/tests/engine/order.rs`, or
//! in a file of the folder `crates/engine/tests/engine/order`, if `order.rs` exports it from there.

use std::fs;

use crate::root;

/// The folder of the first part of a name.
const PLACES: [(&str, &str); 17] = [
    ("conformance", "crates/testkit/src/conformance"),
    ("engine", "crates/engine/tests/engine"),
    ("keys", "crates/keys/tests/keys"),
    ("powertools", "crates/keys/tests/keys/powertools"),
    ("results", "crates/results/tests/results"),
    ("shuttle", "crates/engine/tests/shuttle"),
    ("process", "crates/engine/src/process"),
    ("behaviour", "crates/lambda/tests/behaviour"),
    ("http", "crates/lambda/tests/http"),
    ("dynamodb", "crates/dynamodb/tests/dynamodb"),
    ("dynamodb_unit", "crates/dynamodb/src"),
    ("admission", "crates/core/src/admission"),
    ("cli", "crates/cli/tests"),
    ("e2e", "tests/tests/e2e"),
    ("postgres", "crates/postgres/tests/postgres"),
    ("redis", "crates/redis/tests/redis"),
    ("stores", "tests/tests/stores"),
];
/// Places that are one file: `hostile::a_test`.
const FILES: [(&str, &str); 3] = [
    ("fleet", "tests/fleet/tests/fleet.rs"),
    ("hostile", "crates/lambda/tests/hostile.rs"),
    ("unwinding", "crates/keys/tests/keys/unwinding.rs"),
];

/// The file and the function that a name like `engine::order::a_test` stands for.
fn resolve(name: &str) -> Option<(String, &str)> {
    let (place, rest) = name.split_once("::")?;
    if let Some((_, file)) = FILES.iter().find(|(name, _)| *name == place) {
        return Some(((*file).to_owned(), rest));
    }
    let (_, folder) = PLACES.iter().find(|(name, _)| *name == place)?;
    let (file, function) = rest.split_once("::")?;
    Some((format!("{folder}/{file}.rs"), function))
}

/// Whether `source` has the function, as a test or as a scenario of the suite.
fn has(source: &str, function: &str, is_scenario: bool) -> bool {
    let wanted = format!("fn {function}(");
    let mut attributed = false;
    for line in source.lines().map(str::trim) {
        if line.contains(&wanted) {
            return attributed || (is_scenario && line.starts_with("pub async fn "));
        }
        let is_test = line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        attributed = is_test || (attributed && (line.starts_with("#[") || line.starts_with("//")));
    }
    false
}

/// The names of tests in a text, between backticks; names of types are skipped.
pub(crate) fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |name: &&str| name.contains("::") && name.starts_with(char::is_lowercase);
    text.split('`').skip(1).step_by(2).filter(is_name)
}

/// What is wrong with a name, if anything is.
pub(crate) fn wrong(name: &str) -> Option<String> {
    let Some((file, function)) = resolve(name) else {
        return Some(format!("{name}: no such place"));
    };
    let is_scenario = name.starts_with("conformance::");
    let there = sources(&file).iter().any(|source| has(source, function, is_scenario));
    (!there).then(|| format!("{name}: no such test in {file}"))
}

/// The text of a file, and of the files in the folder of its submodules.
fn sources(file: &str) -> Vec<String> {
    let path = root().join(file);
    let submodules = fs::read_dir(path.with_extension("")).into_iter().flatten().flatten();
    let files = std::iter::once(path).chain(submodules.map(|entry| entry.path()));
    files.filter_map(|file| fs::read_to_string(file).ok()).collect()
}

#[test]
fn a_test_that_does_not_exist_is_found() {
    let source = "#[tokio::test]\n#[ignore]\nasync fn is(\nfn helper(\npub async fn scenario(\n";
    assert!(has(source, "is", false));
    assert!(!has(source, "helper", false) && !has(source, "gone", false));
    assert!(has(source, "scenario", true) && !has(source, "scenario", false));
    assert_eq!(
        resolve("engine::order::a"),
        Some(("crates/engine/tests/engine/order.rs".into(), "a"))
    );
    assert_eq!(resolve("nowhere::order::a"), None);
}
