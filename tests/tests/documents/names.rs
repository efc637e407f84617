//! Names of tests in documents: `engine::order::a_test` is a function in a file `engine/order.rs`, or in a file of a folder
//! `engine/order`.

use crate::{files, quoted};

/// The names of tests in a text, between backticks; names of types are skipped.
pub(crate) fn names(text: &str) -> impl Iterator<Item = &str> {
    quoted(text).filter(|name| name.contains("::") && name.starts_with(char::is_lowercase))
}

/// The names of a text that stand for no test.
pub(crate) fn wrong(text: &str) -> Vec<String> {
    let sources = files(&["crates", "tests"], &[".rs"]);
    let is_wrong = |name: &&str| {
        let (module, function) = name.rsplit_once("::").expect("a module");
        let module = format!("/{}", module.replace("::", "/"));
        let is_there = |(path, source): &(String, String)| {
            let is_file = path.ends_with(&format!("{module}.rs"));
            (is_file || path.contains(&format!("{module}/"))) && has(source, function, path)
        };
        !sources.iter().any(is_there)
    };
    names(text).filter(is_wrong).map(|name| format!("{name}: no such test")).collect()
}

/// Whether a source has the function, as a test or as a scenario of the conformance suite.
fn has(source: &str, function: &str, path: &str) -> bool {
    let wanted = format!("fn {function}(");
    let mut attributed = path.contains("/conformance/");
    for line in source.lines().map(str::trim) {
        if line.contains(&wanted) {
            return attributed;
        }
        let is_test = line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        let goes_on = line.starts_with("#[") || line.starts_with("//");
        attributed = is_test || (attributed && goes_on) || path.contains("/conformance/");
    }
    false
}

#[test]
fn a_test_that_does_not_exist_is_found() {
    let source = "#[tokio::test]\n#[ignore]\nasync fn is(\nfn helper(\n";
    assert!(has(source, "is", "a.rs"));
    assert!(!has(source, "helper", "a.rs") && !has(source, "gone", "a.rs"));
    assert!(has(source, "helper", "src/conformance/a.rs"));
    let lost = "`engine::order::gone`, `nowhere::order::a_test_that_does_not_exist_is_found`";
    assert_eq!(wrong(lost).len(), 2);
    assert_eq!(wrong("`documents::names::a_test_that_does_not_exist_is_found`"), [""; 0]);
}
