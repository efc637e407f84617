//! The dependencies between the crates (decision 33), and the requirements of `cargo package`.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde_json::Value;

use crate::root;

/// The packages of the workspace, as Cargo reads their manifests.
fn packages() -> Vec<Value> {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo");
    let mut metadata: Value = serde_json::from_slice(&cargo.stdout).expect("metadata");
    let packages = metadata.get_mut("packages").map(Value::take);
    let Some(Value::Array(packages)) = packages else { panic!("no packages") };
    assert!(packages.len() > 8, "are these all? {}", packages.len());
    packages
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}

/// Our own crates that a package names, by kind: `dev`, or none for those that users compile.
fn own<'p>(package: &'p Value, kind: Option<&str>) -> impl Iterator<Item = &'p Value> {
    let named = package["dependencies"].as_array().into_iter().flatten();
    let of_kind = kind.map(str::to_owned);
    named.filter(move |one| {
        text(one, "name").starts_with("lambda-idempotency")
            && one["kind"].as_str() == of_kind.as_deref()
    })
}

/// The crates of this repository that a user of a crate compiles, with the optional ones if `all` is set.
fn compiled(packages: &[Value], name: &str, all: bool) -> BTreeSet<String> {
    let by_name: BTreeMap<_, _> = packages.iter().map(|one| (text(one, "name"), one)).collect();
    let (mut found, mut open) = (BTreeSet::new(), vec![name]);
    while let Some(name) = open.pop() {
        for one in own(by_name.get(name).expect("a package"), None) {
            let is_part = all || one["optional"] == false;
            if is_part && found.insert(text(one, "name").replace("lambda-idempotency-", "")) {
                open.push(text(one, "name"));
            }
        }
    }
    found
}

#[test]
fn a_crate_compiles_only_the_crates_that_it_needs() {
    let packages = packages();
    for (name, expected) in [
        ("keys", &[][..]),
        ("core", &["keys"]),
        ("results", &["core", "keys"]),
        ("dynamodb", &["core", "keys"]),
        ("postgres", &["core", "keys"]),
        ("testkit", &["core", "keys"]),
        ("engine", &["core", "keys"]),
    ] {
        let found = compiled(&packages, &format!("lambda-idempotency-{name}"), true);
        assert!(found.iter().eq(expected), "{name} compiles {found:?}");
    }
    let found = compiled(&packages, "lambda-idempotency", false);
    assert!(found.iter().eq(&["core", "engine", "keys"]), "lambda compiles {found:?}");
}

#[test]
fn keys_of_powertools_are_off_by_default() {
    let packages = packages();
    let lambda = packages.iter().find(|one| text(one, "name") == "lambda-idempotency");
    let features = &lambda.expect("the crate")["features"];
    assert_eq!(features["default"], serde_json::json!(["dynamodb"]));
    assert!(features["powertools"].is_array(), "{features}");
}

/// A dev-dependency with a version must be published before the crate itself, which is impossible if two
/// crates test each other. A dev-dependency with only a path is left out of the package.
#[test]
fn each_published_crate_can_be_packaged() {
    for package in packages().iter().filter(|package| package["publish"].is_null()) {
        let name = text(package, "name");
        assert!(!text(package, "description").is_empty(), "{name} has no description");
        for one in own(package, None) {
            assert_ne!(text(one, "req"), "*", "{name}: {} needs a version", text(one, "name"));
        }
        for one in own(package, Some("dev")) {
            assert_eq!(text(one, "req"), "*", "{name}: {} by path alone", text(one, "name"));
        }
    }
}

/// What this package compiles, with these arguments.
fn tree(package: &str, arguments: &[&str]) -> BTreeSet<String> {
    let cargo = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--quiet", "--edges", "normal,build", "--prefix", "none"])
        .args(["--package", package])
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("cargo");
    let tree = String::from_utf8(cargo.stdout).expect("names");
    let crates = tree.lines().filter_map(|line| line.split_whitespace().next());
    let crates: BTreeSet<_> = crates.map(str::to_owned).collect();
    assert!(crates.contains(package), "{}", String::from_utf8_lossy(&cargo.stderr));
    crates
}

/// Core has TLS for the stores that ask for it, and for nobody else.
#[test]
fn only_stores_with_tls_compile_it() {
    let none = &["--no-default-features"][..];
    for (krate, arguments, expected) in [
        ("core", &[][..], false),
        ("engine", &[], false),
        ("testkit", &[], false),
        ("core", &["--features", "tls"], true),
        ("postgres", none, false),
        ("postgres", &[], true),
        ("redis", none, false),
        ("redis", &[], true),
        ("dynamodb", none, false),
    ] {
        let crates = tree(&format!("lambda-idempotency-{krate}"), arguments);
        for name in ["rustls", "tokio-rustls", "rustls-native-certs"] {
            assert_eq!(crates.contains(name), expected, "{krate} {arguments:?}: {name}");
        }
    }
}

/// Its build stops at `panic = "abort"`, and should not first compile for many minutes.
#[test]
fn the_crate_that_checks_panics_waits_for_nothing_large() {
    let crates = tree("lambda-idempotency-keys", &["--all-features"]);
    assert!(crates.len() <= 40, "{crates:?}");
    for large in ["tokio", "aws-lc-sys", "rustls", "hyper"] {
        assert!(!crates.contains(large), "{large}");
    }
}

/// The clients that the stores are made of. A function compiles those of the stores whose features it turns on.
#[test]
fn a_function_that_uses_one_store_compiles_no_other() {
    const CLIENTS: [(&str, &str); 3] =
        [("dynamodb", "aws-sdk-dynamodb"), ("postgres", "tokio-postgres"), ("redis", "redis")];
    for features in ["", "dynamodb", "postgres", "redis"] {
        let crates = tree("lambda-idempotency", &["--no-default-features", "--features", features]);
        assert!(crates.contains("lambda_runtime"), "{crates:?}");
        for (feature, client) in CLIENTS {
            assert_eq!(crates.contains(client), feature == features, "{client} with `{features}`");
        }
    }
}
