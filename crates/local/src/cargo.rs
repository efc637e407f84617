//! Building the function with cargo, and finding the binary.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;

use crate::Error;

/// A binary to build with `cargo build`, which returns at once if the binary is up to date.
///
/// ```no_run
/// # async fn example() -> Result<(), lambda_idempotency_local::Error> {
/// let function = lambda_idempotency_local::Build::package("orders").run().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Build {
    package: String,
    /// Cargo's arguments that select a binary or example.
    target: Vec<String>,
    workspace: bool,
    features: Vec<String>,
    release: bool,
    quiet: bool,
    directory: Option<PathBuf>,
}

impl Build {
    /// The only binary of a package of the workspace around the current directory.
    pub fn package(package: impl Into<String>) -> Self {
        Self {
            package: package.into(),
            target: vec!["--bins".to_owned()],
            workspace: false,
            features: Vec::new(),
            release: false,
            quiet: true,
            directory: None,
        }
    }

    /// An example of a package.
    pub fn example(package: impl Into<String>, example: impl Into<String>) -> Self {
        Self::package(package).target("--example", example)
    }

    /// One binary of a package that has several.
    pub fn binary(package: impl Into<String>, binary: impl Into<String>) -> Self {
        Self::package(package).target("--bin", binary)
    }

    fn target(self, kind: &str, name: impl Into<String>) -> Self {
        Self { target: vec![kind.to_owned(), name.into()], ..self }
    }

    /// Whether dependencies get the features that the whole workspace needs, as with `cargo build --bin NAME` at its
    /// root, or those that this package needs. Default: those of the package.
    ///
    /// With the same choice for all builds, none compiles a dependency again. It has an effect for a
    /// [`binary`](Self::binary) and for an [`example`](Self::example), whose name is then unique in the workspace.
    #[must_use]
    pub fn workspace_features(mut self, workspace: bool) -> Self {
        self.workspace = workspace;
        self
    }

    /// Turns on these features of the package, beside its default ones.
    #[must_use]
    pub fn features(mut self, features: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.features.extend(features.into_iter().map(Into::into));
        self
    }

    /// Whether to build with `--release`.
    #[must_use]
    pub fn release(mut self, release: bool) -> Self {
        self.release = release;
        self
    }

    /// Whether to hide cargo's progress; its errors are reported in any case. Default: true.
    #[must_use]
    pub fn quiet(mut self, quiet: bool) -> Self {
        self.quiet = quiet;
        self
    }

    /// Builds in this directory rather than in the current one.
    #[must_use]
    pub fn directory(mut self, directory: impl AsRef<Path>) -> Self {
        self.directory = Some(directory.as_ref().to_path_buf());
        self
    }

    /// Builds the binary and returns its path.
    ///
    /// # Errors
    /// [`Error::Build`]: cargo cannot be started, the build fails, or it builds no binary or several. The error holds
    /// cargo's messages, or says that they were shown.
    pub async fn run(&self) -> Result<PathBuf, Error> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["build", "--message-format=json-render-diagnostics"]);
        command.args(self.selection());
        if !self.features.is_empty() {
            command.args(["--features", &self.features.join(",")]);
        }
        if self.release {
            command.arg("--release");
        }
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        let stderr = if self.quiet { Stdio::piped() } else { Stdio::inherit() };
        let build =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).kill_on_drop(true);
        let output = build.spawn().map_err(|source| Error::Build {
            what: "cargo could not be started: is it installed and on PATH?".to_owned(),
            source: Some(source),
        })?;
        let output = output.wait_with_output().await.map_err(Error::Process)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            let selection = self.selection().join(" ");
            let what = match said.is_empty() {
                true => format!("`cargo build {selection}` failed: see its messages above"),
                false => format!("`cargo build {selection}` failed:\n{said}"),
            };
            return Err(Error::Build { what, source: None });
        }
        let mut binaries = executables(&String::from_utf8_lossy(&output.stdout));
        match (binaries.pop(), binaries.is_empty()) {
            (Some(binary), true) => Ok(binary),
            (None, _) => Err(self.failed("builds no binary: name a package with a binary")),
            (Some(_), false) => Err(self.failed("builds several binaries: name one of them")),
        }
    }

    /// Cargo's arguments that select the package, or all of them, and the binary.
    fn selection(&self) -> Vec<&str> {
        let is_named = self.target.len() == 2;
        let package = match self.workspace && is_named {
            true => vec!["--workspace"],
            false => vec!["--package", &self.package],
        };
        package.into_iter().chain(self.target.iter().map(String::as_str)).collect()
    }

    fn failed(&self, why: &str) -> Error {
        Error::Build { what: format!("the package {} {why}", self.package), source: None }
    }
}

/// The executables in cargo's messages. Cargo only lists those of the requested package.
fn executables(messages: &str) -> Vec<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_can_choose_the_features() {
        let named = Build::binary("orders", "place");
        assert_eq!(named.selection(), ["--package", "orders", "--bin", "place"]);
        let named = named.workspace_features(true);
        assert_eq!(named.selection(), ["--workspace", "--bin", "place"]);
        // Without a name this would build all binaries of the workspace.
        let only = Build::package("orders").workspace_features(true);
        assert_eq!(only.selection(), ["--package", "orders", "--bins"]);
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
