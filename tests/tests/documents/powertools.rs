//! The pages about Powertools name the versions that `bash tests/run powertools` installs.

use serde_json::Value;

use crate::read;

const GUIDE: &str = "crates/lambda/src/guide";

/// The versions of Powertools for Python and for TypeScript that the tests install.
fn installed() -> [String; 2] {
    let python = read("tests/powertools-requirements.txt");
    let python = python.lines().find_map(|line| line.strip_prefix("aws_lambda_powertools=="));
    let package: Value =
        serde_json::from_str(&read("tests/powertools/package.json")).expect("JSON");
    let of = |name: &str| {
        let version = package.pointer(&format!("/dependencies/@aws-lambda-powertools~1{name}"));
        version.and_then(Value::as_str).expect(name).to_owned()
    };
    let typescript = of("idempotency");
    assert_eq!([of("batch"), of("jmespath")], [typescript.clone(), typescript.clone()]);
    [python.expect("Powertools for Python").to_owned(), typescript]
}

#[test]
fn the_pages_name_the_versions_that_are_tested() {
    let [python, typescript] = installed();
    for page in ["powertools.md", "powertools/options.md"] {
        let text = read(&format!("{GUIDE}/{page}")).replace('\n', " ");
        for version in
            [format!("Powertools for Python {python}"), format!("TypeScript {typescript}")]
        {
            assert!(text.contains(&version), "{page} does not name {version}");
        }
    }
}
