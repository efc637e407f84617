//! The arguments of the command.

use std::path::PathBuf;

use crate::Result;

/// What to measure, how often, and beside what.
pub(crate) struct Options {
    pub(crate) rounds: usize,
    /// The sizes of batches.
    pub(crate) sizes: Vec<usize>,
    /// Another build of `measured`, to compare two versions of the library.
    pub(crate) beside: Option<PathBuf>,
    /// The directory of the binaries to measure, if they are not those that Cargo has just built.
    binaries: Option<PathBuf>,
    only: Vec<String>,
}

impl Options {
    pub(crate) fn from_args() -> Result<Self> {
        let (sizes, only) = (Vec::new(), Vec::new());
        let mut options = Self { rounds: 7, sizes, beside: None, binaries: None, only };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("`{argument}` needs a value"));
            match argument.as_str() {
                "--bench" => {} // Cargo's own
                "--rounds" => options.rounds = value()?.parse()?,
                "--size" => options.sizes.push(value()?.parse()?),
                "--only" => options.only.push(value()?),
                "--beside" => options.beside = Some(std::path::absolute(value()?)?),
                "--binaries" => options.binaries = Some(std::path::absolute(value()?)?),
                _ => {
                    let known = "--rounds N, --size RECORDS, --only SCENARIO, --beside PATH, --binaries DIRECTORY";
                    return Err(format!("`{argument}` is not one of: {known}").into());
                }
            }
        }
        Ok(options)
    }

    /// The path of one of the binaries.
    pub(crate) fn binary(&self, name: &str, built: &str) -> PathBuf {
        self.binaries.as_ref().map_or_else(|| built.into(), |directory| directory.join(name))
    }

    pub(crate) fn wants(&self, scenario: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == scenario)
    }

    pub(crate) fn wants_size(&self, size: usize) -> bool {
        self.sizes.is_empty() || self.sizes.contains(&size)
    }
}
