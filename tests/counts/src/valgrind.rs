//! Runs the cases in Valgrind, and reads what it counted.

use std::fs;
use std::process::Command;

use crate::{Result, cases};

/// The function between whose begin and end is counted. With wildcards, Callgrind writes no file for each call.
const COUNTED: &str = "counts::cases::counted";

/// How often everything is counted. Random numbers and addresses make a single count differ by up to 1.4 %.
const RUNS: usize = 5;

/// The name of each case, and how many instructions it took: the median of some runs.
pub(crate) fn count() -> Result<Vec<(String, u64)>> {
    let names = cases::all().into_iter().map(|case| case.name);
    let mut counts: Vec<(String, Vec<u64>)> = names.map(|name| (name, Vec::new())).collect();
    for _ in 0..RUNS {
        for ((_, counts), (name, dump)) in counts.iter_mut().zip(dumps()?) {
            let total = dump.lines().find_map(|line| line.strip_prefix("totals: "));
            let total = total.ok_or_else(|| format!("{name}: nothing was counted"))?;
            counts.push(total.trim().parse()?);
        }
    }
    let medians = counts.into_iter().map(|(name, mut counts)| {
        let (_, median, _) = counts.select_nth_unstable(RUNS / 2);
        (name, *median)
    });
    Ok(medians.collect())
}

/// Runs all cases once: the name of each, and what Callgrind writes of it.
pub(crate) fn dumps() -> Result<Vec<(String, String)>> {
    let folder = std::env::temp_dir().join(format!("counts-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let ended = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind", "--collect-atstart=no"])
        .arg(format!("--toggle-collect={COUNTED}"))
        .arg(format!("--dump-after={COUNTED}"))
        .arg(format!("--callgrind-out-file={}", folder.join("out").display()))
        .arg(std::env::current_exe()?)
        .arg("run")
        .status()?;
    if !ended.success() {
        return Err(format!("Valgrind has ended with {ended}").into());
    }
    let mut dumps = Vec::new();
    for (nth, case) in cases::all().into_iter().enumerate() {
        let dump = fs::read_to_string(folder.join(format!("out.{}", nth + 1)))?;
        dumps.push((case.name, dump));
    }
    fs::remove_dir_all(folder)?;
    Ok(dumps)
}

/// What the counts depend on besides the code.
pub(crate) fn system() -> Result<String> {
    let said = |program: &str, argument: &str| -> Result<String> {
        let output = Command::new(program).arg(argument).output()?;
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    };
    let all = [
        said("rustc", "--version")?,
        said("getconf", "GNU_LIBC_VERSION")?,
        said("valgrind", "--version")?,
    ];
    Ok(all.join(", "))
}
