//! The figures of runs in a file, from which the guide's page is made: a comment that says where they are from, the names
//! of the columns, and a row for each figure of a run.

use std::fmt::Write as _;

use crate::{
    ledger::Cause,
    report::{FaultReport, Report},
};

/// Every figure of a run, by name.
#[must_use]
pub fn figures(report: &Report) -> Vec<(String, f64)> {
    let Report { total, tally, .. } = report;
    let (records, functions) = report.size;
    let each = |count: u64| count as f64 / f64::from(records);
    let cause = |cause| tally.causes.get(&cause).copied().unwrap_or_default() as f64;
    let outcome = |label| tally.outcomes.get(label).copied().unwrap_or_default() as f64;
    let sums = [
        ("records", f64::from(records)),
        ("functions", functions as f64),
        ("sent_s", report.ended.0.as_secs_f64()),
        ("full_batch_s", report.full_batch().as_secs_f64()),
        ("fastest", report.fastest),
        ("backlog", total.backlog as f64),
        ("backlog_until_s", report.backlog_until.as_secs_f64()),
        ("backlog_left", report.backlog_left as f64),
        ("deliveries", total.received as f64),
        ("requests", report.requests_per_record()),
        ("write_units", each(total.writes - total.throttled)),
        ("read_units", each(total.reads)),
        ("throttled", each(total.throttled)),
        ("effects", tally.effects as f64),
        ("doubled", tally.doubled as f64),
        ("completion_lost", cause(Cause::CompletionLost)),
        ("unavailable", outcome("unavailable")),
        ("dead", report.dead as f64),
    ];
    let sums = sums.into_iter().map(|(name, value)| (name.to_owned(), value));
    sums.chain(report.faults.iter().flat_map(of_fault)).collect()
}

fn of_fault(fault: &FaultReport) -> impl Iterator<Item = (String, f64)> {
    let name = fault.kind.name();
    let seconds = |time: std::time::Duration| time.as_secs_f64();
    let figures = [
        ("lasts_s", Some(seconds(fault.window.1))),
        ("before", Some(fault.before)),
        ("during", Some(fault.during)),
        ("back_s", fault.back_after.map(seconds)),
        ("no_backlog_s", fault.no_backlog_after.map(seconds)),
        ("backlog", Some(fault.backlog as f64)),
        ("requests", Some(fault.requests_per_delivery())),
        ("writes", Some(fault.writes_per_delivery())),
        ("throttled", Some(fault.sum.throttled as f64)),
    ];
    let known = figures.into_iter().filter_map(|(figure, value)| Some((figure, value?)));
    known.map(move |(figure, value)| (format!("{name}: {figure}"), value))
}

/// The means of the figures that all these runs have.
#[must_use]
pub fn means<'a>(reports: impl IntoIterator<Item = &'a Report>) -> Vec<(String, f64)> {
    let all: Vec<_> = reports.into_iter().map(figures).collect();
    let (first, count) = (all.first().cloned().unwrap_or_default(), all.len() as f64);
    let of = |figures: &[(String, f64)], name: &str| {
        figures.iter().find(|(other, _)| other == name).map(|(_, value)| *value)
    };
    let mean = |(name, _): (String, f64)| {
        let sum: Option<f64> = all.iter().map(|figures| of(figures, &name)).sum();
        Some((name, sum? / count))
    };
    first.into_iter().filter_map(mean).collect()
}

/// The text of the file: of runs of one name, the means. `about` says where its figures are from.
#[must_use]
pub fn text(about: &str, reports: &[(String, Report)]) -> String {
    let mut text = format!("# {about}\nrun\tfigure\tvalue\n");
    for runs in reports.chunk_by(|(one, _), (other, _)| one == other) {
        for (figure, value) in means(runs.iter().map(|(_, report)| report)) {
            let run = &runs[0].0;
            writeln!(text, "{run}\t{figure}\t{}", rounded(value)).expect("text");
        }
    }
    text
}

/// The figures of a run in such a file.
#[must_use]
pub fn parse(text: &str, run: &str) -> Vec<(String, f64)> {
    let rows = text.lines().skip(2).map(|line| line.split('\t').collect::<Vec<_>>());
    rows.filter(|cells| cells.first() == Some(&run))
        .map(|cells| match *cells {
            [_, figure, value] => (figure.to_owned(), value.parse().expect("a figure")),
            _ => panic!("not a row of three: {cells:?}"),
        })
        .collect()
}

/// Three decimals at most.
fn rounded(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
