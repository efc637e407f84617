//! Building the function with cargo, and finding its binary.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;

use crate::Error;

/// Which function to build. What is left out follows from the directory, as with `cargo build`: its package, and that
/// package's only binary; in the root of a workspace, a binary of any package.
///
/// ```no_run
/// # async fn example() -> Result<(), lambda_idempotency_local::Error> {
/// use lambda_idempotency_local::Build;
/// let function = Build { bin: Some("orders".to_owned()), ..Build::default() }.run().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Build {
    /// The package.
    pub package: Option<String>,
    /// The binary.
    pub bin: Option<String>,
    /// An example instead of a binary.
    pub example: Option<String>,
    /// Features of the package to turn on, beside its default ones.
    pub features: Vec<String>,
    /// Whether to build with `--release`.
    pub release: bool,
    /// Whether to show cargo's progress; its errors are reported in any case.
    pub shows_progress: bool,
    /// Where to build. Default: the current directory.
    pub directory: Option<PathBuf>,
}

impl Build {
    /// Builds the binary, and returns its path.
    ///
    /// # Errors
    /// [`Error::Failed`]: cargo cannot be started, there is no cargo package, no such binary, or there are several (the
    /// error lists them, after cargo has built them), or the build fails. The error holds cargo's messages, or says that
    /// they were shown.
    pub async fn run(&self) -> Result<PathBuf, Error> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["build", "--message-format=json-render-diagnostics"]);
        let features = (!self.features.is_empty()).then(|| self.features.join(","));
        for (option, value) in [
            ("--package", &self.package),
            ("--bin", &self.bin),
            ("--example", &self.example),
            ("--features", &features),
        ] {
            command.args(value.iter().flat_map(|value| [option, value]));
        }
        if self.release {
            command.arg("--release");
        }
        let directory = self.directory.as_deref().unwrap_or(Path::new("."));
        let started = command
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(if self.shows_progress { Stdio::inherit() } else { Stdio::piped() })
            .kill_on_drop(true)
            .spawn();
        let started = started.map_err(Error::because(
            "cannot build the function: cargo could not be started: is it installed and on PATH?",
        ))?;
        let output = started.wait_with_output().await.map_err(Error::Process)?;
        if output.status.success() {
            return Self::only(executables(&String::from_utf8_lossy(&output.stdout)));
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let what = match said.trim() {
            "" => "see cargo's messages above",
            said => said,
        };
        Err(Error::failed(format!("cannot build the function: {what}")))
    }

    fn only(built: Vec<(String, PathBuf)>) -> Result<PathBuf, Error> {
        let names: Vec<&str> = built.iter().map(|(name, _)| name.as_str()).collect();
        let what = match &*built {
            [(_, path)] => return Ok(path.clone()),
            [] => "cargo built no binary".to_owned(),
            _ => {
                format!("there are several binaries, so one has to be named: {}", names.join(", "))
            }
        };
        Err(Error::failed(format!("cannot build the function: {what}")))
    }
}

/// The executables in cargo's messages, by name. Cargo lists only those that were asked for.
fn executables(messages: &str) -> Vec<(String, PathBuf)> {
    let of_message = |line| {
        let message: Value = serde_json::from_str(line).ok()?;
        let name = message.pointer("/target/name")?.as_str()?.to_owned();
        Some((name, message.get("executable")?.as_str()?.into()))
    };
    messages.lines().filter_map(of_message).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARTIFACTS: &str = concat!(
        r#"{"reason":"compiler-artifact","target":{"name":"orders_lib"},"executable":null}"#,
        "\nnot json\n",
        r#"{"reason":"compiler-artifact","target":{"name":"orders"},"executable":"/t/debug/orders"}"#,
        "\n",
    );

    #[test]
    fn the_only_executable_is_the_function() {
        let path = Build::only(executables(ARTIFACTS)).unwrap();
        assert_eq!(path, Path::new("/t/debug/orders"));
    }

    #[test]
    fn none_and_several_are_errors_that_say_so() {
        let error = Build::only(Vec::new()).unwrap_err().to_string();
        assert!(error.contains("cargo built no binary"), "{error}");
        let several = ARTIFACTS.to_owned() + &ARTIFACTS.replace("orders", "refunds");
        let error = Build::only(executables(&several)).unwrap_err().to_string();
        assert!(error.ends_with("one has to be named: orders, refunds"), "{error}");
    }
}
