//! The arguments of the command.

use std::path::PathBuf;

use crate::Result;

const ROUNDS: usize = 7;
/// Of figures that are recorded.
const FEWEST_ROUNDS: usize = 3;
const ROUNDS_OF_10_000: usize = 3;

/// What to measure, how often, and beside what.
pub(crate) struct Options {
    rounds: usize,
    /// The sizes of batches.
    pub(crate) sizes: Vec<usize>,
    /// Another build of `measured`, to compare two versions of the library.
    pub(crate) beside: Option<PathBuf>,
    /// Where the figures are written.
    pub(crate) record: Option<PathBuf>,
    /// The directory of the binaries to measure, if they are not those that Cargo has just built.
    binaries: Option<PathBuf>,
    only: Vec<String>,
}

impl Options {
    pub(crate) fn from_args() -> Result<Self> {
        let (sizes, only) = (Vec::new(), Vec::new());
        let mut options =
            Self { rounds: ROUNDS, sizes, beside: None, record: None, binaries: None, only };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("`{argument}` needs a value"));
            match argument.as_str() {
                "--bench" => {} // Cargo's own
                "--rounds" => options.rounds = value()?.parse()?,
                "--size" => options.sizes.push(value()?.parse()?),
                "--only" => options.only.push(value()?),
                "--beside" => options.beside = Some(std::path::absolute(value()?)?),
                "--record" => options.record = Some(std::path::absolute(value()?)?),
                "--binaries" => options.binaries = Some(std::path::absolute(value()?)?),
                _ => {
                    let known = "--rounds N, --size RECORDS, --only SCENARIO, --beside PATH, --binaries DIRECTORY, \
                                 --record FILE";
                    return Err(format!("`{argument}` is not one of: {known}").into());
                }
            }
        }
        if options.record.is_some() {
            options.is_whole()?;
        }
        Ok(options)
    }

    /// Refuses what would record a part of the figures, or figures that do not compare with earlier ones.
    fn is_whole(&self) -> Result<()> {
        let refused = [
            (!self.only.is_empty(), "--only measures a part"),
            (!self.sizes.is_empty(), "--size measures a part"),
            (self.rounds < FEWEST_ROUNDS, "two rounds have no median"),
            (self.beside.is_some(), "--beside is another build"),
            (self.binaries.is_some(), "--binaries may be of another build"),
            (cfg!(debug_assertions), "this is not a release build"),
        ];
        match refused.iter().find(|(is_so, _)| *is_so) {
            Some((_, why)) => Err(format!("--record takes a whole run only: {why}").into()),
            None => Ok(()),
        }
    }

    /// In how many rounds a batch of this size is measured: a batch of 10,000 takes many seconds.
    pub(crate) fn rounds(&self, size: usize) -> usize {
        if size < 10_000 { self.rounds } else { self.rounds.min(ROUNDS_OF_10_000) }
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
