//! Building the function with cargo: which package and binary of the workspace around a directory, and where it is.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::Value;
use tokio::process::Command;

use crate::Error;

/// Which function to build. What is left out follows from the directory, as with `cargo run`: its package, and that
/// package's only binary.
///
/// ```no_run
/// # async fn example() -> Result<(), lambda_idempotency_local::Error> {
/// use lambda_idempotency_local::Build;
/// let function = Build { bin: Some("orders".to_owned()), ..Build::default() }.run().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Build {
    /// The package. Default: the package around the directory, or any package of the workspace.
    pub package: Option<String>,
    /// The binary. Default: the only one, or the package's `default-run`.
    pub bin: Option<String>,
    /// An example instead of a binary.
    pub example: Option<String>,
    /// Features of the package to turn on, beside its default ones.
    pub features: Vec<String>,
    /// Whether to build with `--release`.
    pub release: bool,
    /// Whether to hide cargo's progress; its errors are reported in any case. Default: true.
    pub quiet: bool,
    /// Where to build. Default: the current directory.
    pub directory: PathBuf,
}

impl Default for Build {
    fn default() -> Self {
        Self {
            package: None,
            bin: None,
            example: None,
            features: Vec::new(),
            release: false,
            quiet: true,
            directory: ".".into(),
        }
    }
}

impl Build {
    /// Finds the package and the binary, builds it, and returns its path.
    ///
    /// # Errors
    /// [`Error::Build`]: cargo cannot be started, there is no cargo package, no such binary, or there are several (the error
    /// lists them), or the build fails. The error holds cargo's messages, or says that they were shown.
    pub async fn run(&self) -> Result<PathBuf, Error> {
        let here = std::fs::canonicalize(&self.directory)
            .map_err(|source| Error::Read { path: self.directory.clone(), source })?;
        let metadata = self.metadata().await?;
        let chosen = self.choose(&metadata, &here).map_err(failed)?;
        let kind = if self.example.is_some() { "--example" } else { "--bin" };
        // As cargo does at the root of a workspace: the dependencies have the same features for every binary, so that
        // none is compiled twice.
        let at_root = self.package.is_none() && current(&metadata, &here).is_none();
        let package =
            if at_root { vec!["--workspace"] } else { vec!["--package", &chosen.package] };
        let selection: Vec<&str> = package.into_iter().chain([kind, &chosen.name]).collect();
        let mut arguments = vec!["build", "--message-format=json-render-diagnostics"];
        arguments.extend(&selection);
        let features = self.features.join(",");
        if !features.is_empty() {
            arguments.extend(["--features", &features]);
        }
        if self.release {
            arguments.push("--release");
        }
        let output = self.cargo(&arguments, self.quiet).await?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            let selection = selection.join(" ");
            return Err(failed(match said.is_empty() {
                true => format!("`cargo build {selection}` failed: see its messages above"),
                false => format!("`cargo build {selection}` failed:\n{said}"),
            }));
        }
        let built = executables(&String::from_utf8_lossy(&output.stdout)).pop();
        built.ok_or_else(|| failed(format!("cargo built no binary `{}`", chosen.name)))
    }

    /// Runs cargo in the directory; what it writes to stderr is collected, or shown.
    async fn cargo(&self, arguments: &[&str], collects: bool) -> Result<Output, Error> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let started = Command::new(cargo)
            .args(arguments)
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(if collects { Stdio::piped() } else { Stdio::inherit() })
            .kill_on_drop(true)
            .spawn();
        let started = started.map_err(|source| Error::Build {
            what: "cargo could not be started: is it installed and on PATH?".to_owned(),
            source: Some(source),
        })?;
        started.wait_with_output().await.map_err(Error::Process)
    }

    async fn metadata(&self) -> Result<Value, Error> {
        let output = self.cargo(&["metadata", "--no-deps", "--format-version=1"], true).await?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(failed(said.trim().trim_start_matches("error: ").to_owned()));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| {
            failed(format!("cargo metadata answered with something that is not JSON: {error}"))
        })
    }

    fn choose(&self, metadata: &Value, here: &Path) -> Result<Binary, String> {
        let all = binaries(metadata, if self.example.is_some() { "example" } else { "bin" });
        let wanted = self.bin.as_ref().or(self.example.as_ref());
        let fits = |binary: &&Binary| wanted.is_none_or(|name| binary.name == *name);
        let current = current(metadata, here);
        let package = self.package.as_ref().or(current.as_ref());
        let mut found: Vec<&Binary> = all.iter().filter(fits).collect();
        let own: Vec<&Binary> =
            found.iter().copied().filter(|binary| Some(&binary.package) == package).collect();
        // A binary that is named may be in another package than the one around the directory.
        if package.is_some() && (self.package.is_some() || wanted.is_none() || !own.is_empty()) {
            found = own;
        }
        if let [one] = found.as_slice() {
            return Ok((*one).clone());
        }
        if let Some(default) = found.iter().find(|binary| binary.is_default) {
            return Ok((*default).clone());
        }
        let kind = if self.example.is_some() { "example" } else { "binary" };
        let place = match package {
            Some(package) => format!("the package `{package}`"),
            None => format!("the workspace around {}", here.display()),
        };
        let what = match (wanted, found.is_empty()) {
            (Some(name), true) => format!("{place} has no {kind} `{name}`"),
            (None, true) => format!("{place} has no {kind}"),
            (_, false) => format!("{place} has several binaries"),
        };
        let choice: &[&Binary] =
            if found.is_empty() { &all.iter().collect::<Vec<_>>() } else { &found };
        Err(format!("{what}; {}", listed(choice, kind)))
    }
}

/// A binary or an example of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Binary {
    package: String,
    name: String,
    is_default: bool,
}

fn listed(binaries: &[&Binary], kind: &str) -> String {
    if binaries.is_empty() {
        return format!("there is no {kind} in the workspace");
    }
    let names: Vec<_> = binaries.iter().map(|binary| binary.name.as_str()).collect();
    format!("there is: {}", names.join(", "))
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata.get("packages").and_then(Value::as_array).into_iter().flatten()
}

/// The package around the directory; none in the root of a workspace that is not a package itself.
fn current(metadata: &Value, here: &Path) -> Option<String> {
    let around = packages(metadata).filter_map(|package| {
        let manifest = PathBuf::from(package.get("manifest_path")?.as_str()?);
        let folder = std::fs::canonicalize(manifest.parent()?).ok()?;
        let name = package.get("name")?.as_str()?.to_owned();
        here.starts_with(&folder).then(|| (folder.components().count(), name))
    });
    around.max().map(|(_, name)| name)
}

fn binaries(metadata: &Value, kind: &str) -> Vec<Binary> {
    let text = |value: &Value, name: &str| Some(value.get(name)?.as_str()?.to_owned());
    let is_of = |target: &&Value| {
        let kinds = target.get("kind").and_then(Value::as_array);
        kinds.is_some_and(|kinds| kinds.iter().any(|has| has == kind))
    };
    let of_package = |package: &Value| {
        let name = text(package, "name")?;
        let default = text(package, "default_run");
        let targets = package.get("targets")?.as_array()?.iter().filter(is_of);
        let named = targets.filter_map(|target| text(target, "name"));
        let binary = |binary: String| Binary {
            package: name.clone(),
            is_default: default.as_ref() == Some(&binary),
            name: binary,
        };
        Some(named.map(binary).collect::<Vec<_>>())
    };
    packages(metadata).filter_map(of_package).flatten().collect()
}

/// The executables in cargo's messages. Cargo only lists those that were asked for.
fn executables(messages: &str) -> Vec<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)))
        .collect()
}

fn failed(what: String) -> Error {
    Error::Build { what, source: None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A workspace in a folder that exists: this crate's, with a package in it and one elsewhere.
    fn workspace() -> Value {
        let target = |name: &str| json!({ "name": name, "kind": ["bin"] });
        let here = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        json!({ "packages": [
            { "name": "here", "manifest_path": here, "default_run": null, "targets": [target("one"),
              { "name": "shown", "kind": ["example"] }] },
            { "name": "there", "manifest_path": "/nowhere/Cargo.toml", "default_run": "three",
              "targets": [target("two"), target("three"), { "name": "there", "kind": ["lib"] }] },
        ]})
    }

    fn choose(package: Option<&str>, bin: Option<&str>, here: &str) -> Result<String, String> {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let target = Build { package: owned(package), bin: owned(bin), ..Build::default() };
        Ok(target.choose(&workspace(), Path::new(here))?.name)
    }

    const INSIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");

    #[test]
    fn the_current_package_is_the_default() {
        assert_eq!(choose(None, None, INSIDE), Ok("one".to_owned()));
        assert_eq!(choose(Some("there"), None, INSIDE), Ok("three".to_owned()), "default-run");
    }

    #[test]
    fn a_named_binary_is_found_in_any_package() {
        for here in [INSIDE, "/"] {
            assert_eq!(choose(None, Some("two"), here), Ok("two".to_owned()));
        }
    }

    #[test]
    fn an_error_lists_the_binaries() {
        let mut metadata = workspace();
        metadata["packages"][1]["default_run"] = Value::Null;
        let error = Build::default().choose(&metadata, Path::new("/")).unwrap_err();
        assert_eq!(error, "the workspace around / has several binaries; there is: one, two, three");
        let error = choose(None, Some("four"), INSIDE).unwrap_err();
        assert_eq!(error, "the package `here` has no binary `four`; there is: one, two, three");
        let error = choose(Some("here"), Some("two"), INSIDE).unwrap_err();
        assert!(error.starts_with("the package `here` has no binary `two`"), "{error}");
    }

    #[test]
    fn executables_are_parsed_from_cargos_messages() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","executable":null}"#,
            "\nnot json\n",
            r#"{"reason":"compiler-artifact","executable":"/t/debug/orders"}"#,
        );
        assert_eq!(executables(messages), [PathBuf::from("/t/debug/orders")]);
    }
}
