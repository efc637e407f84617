//! The recorded counts.

use std::collections::HashMap;
use std::fs;
use std::process::ExitCode;

use crate::Result;
use crate::valgrind::system;

#[cfg(feature = "dynamodb")]
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/recorded-dynamodb.tsv");
#[cfg(not(feature = "dynamodb"))]
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/recorded.tsv");
#[cfg(feature = "dynamodb")]
const PARTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/parts-dynamodb.tsv");
#[cfg(not(feature = "dynamodb"))]
const PARTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/parts.tsv");
const HEADER: &str = "instructions\tcase";

/// How many more instructions there may be than were recorded, in percent. The medians differ by up to
/// one percent from run to run.
const MARGIN: f64 = 3.0;
/// The same with another compiler, C library or Valgrind than they were recorded with.
const MARGIN_ELSEWHERE: f64 = 10.0;

pub(crate) fn write(counts: &[(String, u64)]) -> Result<()> {
    let lines = counts.iter().map(|(name, count)| format!("{count}\t{name}\n"));
    let lines: String = lines.collect();
    Ok(fs::write(FILE, format!("# {}\n{HEADER}\n{lines}", system()?))?)
}

/// Keeps where the instructions of one record go.
pub(crate) fn write_parts(table: &str) -> Result<()> {
    Ok(fs::write(PARTS, format!("# {}\n{table}", system()?))?)
}

/// Prints the counts beside the recorded ones. Fails if one is greater by more than the margin, or not recorded.
pub(crate) fn compare(counts: &[(String, u64)]) -> Result<ExitCode> {
    let text = fs::read_to_string(FILE)?;
    let (then, now) = (text.lines().next().unwrap_or_default().trim_start_matches("# "), system()?);
    let margin = match then == now {
        true => MARGIN,
        false => {
            println!("Recorded with {then}; here is {now}: {MARGIN_ELSEWHERE} % more are allowed.");
            MARGIN_ELSEWHERE
        }
    };
    let lines = text.lines().skip(2).filter_map(|line| line.split_once('\t'));
    let recorded: HashMap<&str, u64> =
        lines.filter_map(|(count, name)| Some((name, count.parse().ok()?))).collect();
    let mut are_within = recorded.len() == counts.len();
    println!("{:>12} {:>12} {:>8}   case", "instructions", "recorded", "");
    for (name, count) in counts {
        let before = recorded.get(&**name).copied().unwrap_or_default();
        let percent = (*count as f64 / before as f64 - 1.0) * 100.0;
        let (is_within, remark) = judge(percent, margin);
        // Who records here what other tools have recorded changes all counts.
        let remark = if is_within && then != now { "" } else { remark };
        are_within &= is_within;
        println!("{count:>12} {before:>12} {percent:>+6.1} %   {name}{remark}");
    }
    if are_within {
        return Ok(ExitCode::SUCCESS);
    }
    let features = if cfg!(feature = "dynamodb") { "--features dynamodb " } else { "" };
    eprintln!(
        "A part takes {margin} % more instructions than were recorded, has no record, or a recorded one is not counted. Find \
         out why. If that is meant, say why in the commit, and record them: cargo run --release -p \
         lambda-idempotency-counts {features}-- record"
    );
    Ok(ExitCode::FAILURE)
}

fn judge(percent: f64, margin: f64) -> (bool, &'static str) {
    match percent {
        more if more > margin || more.is_nan() => (false, ": TOO MANY"),
        less if less < -MARGIN => (true, ": record them, so that they stay this few"),
        _ => (true, ""),
    }
}
