//! Building the function with cargo, and finding its binary.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde::Deserialize;
use serde_json::Value;
use tokio::process::Command;

use crate::error::Error;

/// Which function to build. Names that are left out follow from the directory, as with `cargo run`: its package, and that
/// package's only binary or its `default-run`; in the root of a workspace, a binary of any package.
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
    /// error lists them), or the build fails. The error holds cargo's messages, or says that they were shown.
    pub async fn run(&self) -> Result<PathBuf, Error> {
        let bin = match (&self.bin, &self.example) {
            (None, None) => self.default_binary().await?,
            _ => self.bin.clone(),
        };
        let features = (!self.features.is_empty()).then(|| self.features.join(","));
        let mut arguments = vec!["build", "--message-format=json-render-diagnostics"];
        for (option, value) in [
            ("--package", &self.package),
            ("--bin", &bin),
            ("--example", &self.example),
            ("--features", &features),
        ] {
            arguments.extend(value.iter().flat_map(|value| [option, value]));
        }
        if self.release {
            arguments.push("--release");
        }
        let stderr = if self.shows_progress { Stdio::inherit() } else { Stdio::piped() };
        let output = self.cargo(&arguments, stderr).await?;
        if output.status.success() {
            return only(executables(&String::from_utf8_lossy(&output.stdout)));
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(failed(match said.trim() {
            "" => "see cargo's messages above",
            said => said,
        }))
    }

    async fn cargo(&self, arguments: &[&str], stderr: Stdio) -> Result<Output, Error> {
        let started = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(arguments)
            .current_dir(self.directory.as_deref().unwrap_or(Path::new(".")))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn();
        let started = started.map_err(Error::because(
            "cannot build the function: cargo could not be started: is it installed and on PATH?",
        ))?;
        started.wait_with_output().await.map_err(Error::Process)
    }

    /// The binary to build if none is named, known before anything is built. None if cargo has to say what is wrong.
    async fn default_binary(&self) -> Result<Option<String>, Error> {
        let arguments = ["metadata", "--no-deps", "--format-version=1"];
        let output = self.cargo(&arguments, Stdio::null()).await?;
        let metadata: Metadata = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let is_meant = |package: &&Package| match &self.package {
            Some(name) => package.name == *name,
            None => metadata.workspace_default_members.contains(&package.id),
        };
        let meant = metadata.packages.iter().filter(is_meant);
        let found = meant.flat_map(|package| {
            let bins = package.targets.iter().filter(|target| target.kind == ["bin"]);
            bins.map(|bin| (&bin.name, package.default_run.as_ref() == Some(&bin.name)))
        });
        let found: Vec<(&String, bool)> = found.collect();
        let defaults: Vec<_> = found.iter().filter(|(_, is_default)| *is_default).collect();
        match (&*found, &*defaults) {
            ([(only, _)], _) | (_, [(only, _)]) => Ok(Some((*only).clone())),
            ([], _) => Ok(None),
            _ => Err(several(found.iter().map(|(name, _)| name.as_str()))),
        }
    }
}

/// The output of `cargo metadata` about a workspace.
#[derive(Default, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_default_members: Vec<String>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    default_run: Option<String>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

fn failed(what: &str) -> Error {
    Error::failed(format!("cannot build the function: {what}"))
}

fn several<'n>(names: impl Iterator<Item = &'n str>) -> Error {
    let names: Vec<_> = names.collect();
    let names = names.join(", ");
    failed(&format!("there are several binaries, so one has to be named: {names}"))
}

fn only(built: Vec<(String, PathBuf)>) -> Result<PathBuf, Error> {
    match &*built {
        [(_, path)] => Ok(path.clone()),
        [] => Err(failed("cargo built no binary")),
        _ => Err(several(built.iter().map(|(name, _)| name.as_str()))),
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
