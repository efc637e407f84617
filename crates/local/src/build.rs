//! Building the function with cargo, and finding its binary.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::Error;

/// In place of running the binary, cargo prints its path.
const RUNNER: &str = if cfg!(windows) {
    r#"target."cfg(all())".runner=["cmd", "/c", "echo"]"#
} else {
    r#"target."cfg(all())".runner="echo""#
};

/// Which function to build. What is left out follows from the directory, as with `cargo run`: its package, and that
/// package's only binary or `default-run`; in the root of a workspace, a binary of any package.
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
    /// [`Error::Failed`]: cargo cannot be started, there is no cargo package, no such binary, or there are several (the error
    /// lists them), or the build fails. The error holds cargo's messages, or says that they were shown.
    pub async fn run(&self) -> Result<PathBuf, Error> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args(["run", "--config", RUNNER]);
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
            let path = String::from_utf8_lossy(&output.stdout);
            return std::path::absolute(directory.join(path.trim())).map_err(Error::Process);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let what = match said.trim() {
            "" => "see cargo's messages above",
            said => said,
        };
        Err(Error::failed(format!("cannot build the function: {what}")))
    }
}
