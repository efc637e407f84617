//! Which function a command runs, and its variables.

use std::path::PathBuf;

use clap::Args;
use lambda_idempotency_local::Build;

use crate::{arguments::variable, failure::Failure};

#[derive(Args, Debug)]
pub(crate) struct FunctionOptions {
    /// The cargo package of the function, built first [default: the package of the current directory]
    #[arg(long, value_name = "NAME")]
    package: Option<String>,

    /// Which binary, if the package or the workspace has several
    #[arg(long, value_name = "NAME", conflicts_with = "example")]
    bin: Option<String>,

    /// An example of the package instead
    #[arg(long, value_name = "NAME")]
    example: Option<String>,

    /// The path of a built function; nothing is built then
    #[arg(long, value_name = "PATH", conflicts_with_all = ["package", "bin", "example", "release", "features"])]
    binary: Option<PathBuf>,

    /// Build with --release
    #[arg(long)]
    pub(crate) release: bool,

    /// Build with these features of the package
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    features: Vec<String>,

    /// An environment variable of the function; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
}

/// The remedy if the function cannot be built.
const REMEDY: &str = "Run this in the directory of the function's package, or name its package or binary with `--package NAME`
  or `--bin NAME`, or give a built binary with `--binary PATH`.";

impl FunctionOptions {
    /// The path of the function's binary: the one given, or that of the function that is named, after building it. If none
    /// is named, it is the one of `or_else`, with the remedy if that cannot be built.
    pub(crate) async fn binary(&self, or_else: Option<(Build, &str)>) -> Result<PathBuf, Failure> {
        if let Some(binary) = &self.binary {
            // A name alone would be looked for in PATH, and not in this directory.
            return Ok(std::path::absolute(binary)?);
        }
        let is_named = self.package.is_some() || self.bin.is_some() || self.example.is_some();
        let named = Build {
            package: self.package.clone(),
            bin: self.bin.clone(),
            example: self.example.clone(),
            ..Build::default()
        };
        let (build, remedy) = or_else.filter(|_| !is_named).unwrap_or((named, REMEDY));
        let (features, release) = (self.features.clone(), self.release);
        let built = Build { features, release, shows_progress: true, ..build }.run().await;
        built.map_err(|error| Failure::from(error).remedy(remedy))
    }
}
