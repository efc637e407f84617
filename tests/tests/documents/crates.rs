//! What a crate compiles: the dependencies between the crates (decision 33), TLS, and the clients of stores.
//! `bash tests/run package` checks that each can be packaged.

use std::{collections::BTreeSet, process::Command};

use crate::{read, root};

/// What this package compiles, with these arguments.
fn tree(package: &str, arguments: &str) -> BTreeSet<String> {
    let cargo = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--quiet", "--edges", "normal,build", "--prefix", "none"])
        .args(["--package", package])
        .args(arguments.split_whitespace())
        .current_dir(root())
        .output()
        .expect("cargo");
    let tree = String::from_utf8(cargo.stdout).expect("names");
    let crates = tree.lines().filter_map(|line| line.split_whitespace().next());
    let crates: BTreeSet<_> = crates.map(str::to_owned).collect();
    assert!(crates.contains(package), "{}", String::from_utf8_lossy(&cargo.stderr));
    crates
}

/// Our own crates, TLS, and the clients of stores: each crate compiles those that it needs. A function compiles the client of
/// the store whose feature it turns on, and no other.
#[test]
fn a_crate_compiles_only_the_crates_that_it_needs() {
    const TLS: [&str; 3] = ["rustls", "tokio-rustls", "rustls-native-certs"];
    const CLIENTS: [&str; 3] = ["aws-sdk-dynamodb", "redis", "tokio-postgres"];
    for (name, arguments, expected) in [
        ("-keys", "--all-features", ""),
        ("-core", "", "keys"),
        ("-core", "--features tls", "keys tls"),
        ("-results", "--all-features", "core keys"),
        ("-engine", "--all-features", "core keys"),
        ("-testkit", "--all-features", "core keys"),
        ("-dynamodb", "--no-default-features", "core keys aws-sdk-dynamodb"),
        ("-dynamodb", "--all-features", "core keys aws-sdk-dynamodb tls"),
        ("-postgres", "--no-default-features", "core keys tokio-postgres"),
        ("-postgres", "--all-features", "core keys tokio-postgres tls"),
        ("-redis", "--no-default-features", "core keys redis"),
        ("-redis", "--all-features", "core keys redis tls"),
        ("", "--no-default-features", "core engine keys"),
        ("", "", "core dynamodb engine keys aws-sdk-dynamodb tls"),
        (
            "",
            "--no-default-features --features postgres",
            "core engine keys postgres tokio-postgres tls",
        ),
        ("", "--no-default-features --features redis", "core engine keys redis redis tls"),
    ] {
        let package = format!("lambda-idempotency{name}");
        let crates = tree(&package, arguments);
        let others = crates.iter().filter(|one| **one != package);
        let own = others.filter_map(|one| one.strip_prefix("lambda-idempotency-"));
        let mut found: Vec<&str> = own.collect();
        found.extend(CLIENTS.into_iter().filter(|client| crates.contains(*client)));
        match TLS.into_iter().filter(|one| crates.contains(*one)).count() {
            0 => {}
            3 => found.push("tls"),
            _ => panic!("{package} {arguments} has a part of TLS"),
        }
        assert_eq!(found.join(" "), expected, "{package} {arguments}");
        // Its build stops at `panic = "abort"`, and should not first compile for many minutes.
        let is_small = crates.len() <= 40 && !crates.contains("tokio") && !crates.contains("hyper");
        assert!(name != "-keys" || is_small, "{crates:?}");
    }
    assert!(read("crates/lambda/Cargo.toml").contains("\ndefault = [\"dynamodb\"]\n"));
}
