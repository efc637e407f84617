//! Names of tests in documents: `engine::order::a_test` is a function in a file `engine/order.rs`, or in a file of a folder
//! `engine/order`. And paths of files.

use std::path::Path;

use crate::{files, quoted, root};

/// What links to files of the repository begin with, outside of it.
const HERE: [&str; 2] = [
    "https://github.com/lambda-idempotency/lambda-idempotency/blob/main/",
    "https://github.com/lambda-idempotency/lambda-idempotency/tree/main/",
];

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

/// The targets of the links in a text: `](target)`, or `[name]: target` as a line.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    let inline = text.split("](").skip(1).filter_map(|rest| rest.split([')', '\n']).next());
    let named =
        text.lines().filter(|line| line.trim_start_matches(['/', '!', ' ']).starts_with('['));
    inline.chain(named.filter_map(|line| Some(line.split_once("]: ")?.1)))
}

/// The paths that a document names, from the root of the repository.
fn paths(path: &str, text: &str) -> Vec<String> {
    let folder = Path::new(path).parent().unwrap_or(Path::new("")).display();
    let is_page = path.ends_with(".md");
    let of_link = |target: &str| {
        let target = target.split('#').next()?;
        let is_relative = is_page && !target.contains(':') && !["", "crate"].contains(&target);
        let here = HERE.iter().find_map(|here| target.strip_prefix(here)).map(str::to_owned);
        here.or_else(|| is_relative.then(|| format!("{folder}/{target}")))
    };
    let linked = targets(text).filter_map(of_link);
    let named = quoted(text).filter(|name| is_page && name.starts_with("crates/"));
    linked.chain(named.map(str::to_owned)).collect()
}

#[test]
fn each_path_in_a_document_exists() {
    assert_eq!(paths("docs/a.md", "[b](../b.md#c), `crates/d`"), ["docs/../b.md", "crates/d"]);
    let documents = files(&["."], &[".md", ".rs"]);
    let named: Vec<_> = documents.iter().flat_map(|(path, text)| paths(path, text)).collect();
    assert!(named.len() > 300, "{}: are these the paths?", named.len());
    let root = root();
    let wrong: Vec<_> =
        named.iter().filter(|path| !root.join(path.trim_start_matches('/')).exists()).collect();
    assert!(wrong.is_empty(), "no such files: {wrong:#?}");
}
