//! Which binary is built.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use lambda_idempotency_local::{Build, Error};

/// A new folder outside of this workspace.
fn folder(name: &str) -> PathBuf {
    let name = format!("lambda-idempotency-build-{}-{name}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A workspace of two packages: `one` with the binaries `a` and `b`, of which `b` cannot be compiled, and `two` with `two`.
fn workspace(folder: &Path, one: &str) {
    let manifest = |name: &str, more: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{more}")
    };
    for (file, text) in [
        ("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"one\", \"two\"]\n".to_owned()),
        ("one/Cargo.toml", manifest("one", one)),
        ("one/src/bin/a.rs", "fn main() {}".to_owned()),
        ("one/src/bin/b.rs", "this is not Rust".to_owned()),
        ("two/Cargo.toml", manifest("two", "")),
        ("two/src/main.rs", "fn main() {}".to_owned()),
    ] {
        let file = folder.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
}

/// The name of the binary that is built in a directory.
async fn built(directory: &Path, build: Build) -> Result<String, Error> {
    let path = Build { directory: Some(directory.to_owned()), ..build }.run().await?;
    Ok(path.file_stem().unwrap().to_str().unwrap().to_owned())
}

#[tokio::test]
async fn without_a_name_the_only_binary_is_built_and_several_are_listed_before_anything_is() {
    let root = &folder("several");
    workspace(root, "");
    for place in [root.join("two"), root.join("two/src")] {
        assert_eq!(built(&place, Build::default()).await.unwrap(), "two", "{place:?}");
    }
    let two = Build { package: Some("two".to_owned()), ..Build::default() };
    assert_eq!(built(&root.join("one"), two).await.unwrap(), "two");
    for (place, names) in [(root.to_owned(), "a, b, two"), (root.join("one"), "a, b")] {
        let error = built(&place, Build::default()).await.unwrap_err().to_string();
        assert!(error.ends_with(&format!("one has to be named: {names}")), "{error}");
    }
    let broken = Build { bin: Some("b".to_owned()), ..Build::default() };
    let error = built(root, broken).await.unwrap_err().to_string();
    assert!(error.contains("error") && error.contains("b.rs"), "{error}");
}

#[tokio::test]
async fn a_package_names_its_own_binary_by_default_run() {
    let root = folder("default");
    workspace(&root, "default-run = \"a\"");
    for place in [root.join("one"), root] {
        assert_eq!(built(&place, Build::default()).await.unwrap(), "a", "{place:?}");
    }
}
