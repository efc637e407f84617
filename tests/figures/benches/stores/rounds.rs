//! The rounds of a scenario: each function in turn.

use serde_json::Value;

use crate::Result;
use crate::events::batch;
use crate::function::{Function, Used};
use crate::server::Server;

/// What is delivered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    Fresh,
    Duplicates,
    Mixed,
}

impl Scenario {
    pub(crate) const ALL: [Self; 3] = [Self::Fresh, Self::Duplicates, Self::Mixed];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fresh => "new",
            Self::Duplicates => "duplicates",
            Self::Mixed => "three of ten duplicates",
        }
    }

    /// Whether another process does this record first.
    const fn is_done_before(self, record: usize) -> bool {
        match self {
            Self::Fresh => false,
            Self::Duplicates => true,
            Self::Mixed => record % 10 < 3,
        }
    }

    /// How many writes the library sends for a record: a claim, and a completion unless it is a duplicate.
    const fn writes(self) -> f64 {
        match self {
            Self::Fresh => 2.0,
            Self::Duplicates => 1.0,
            Self::Mixed => 1.7,
        }
    }
}

/// A function, another process of it, and what it used in each round.
struct Row {
    variant: &'static str,
    function: Function,
    other: Function,
    used: Vec<Used>,
}

/// Measures one scenario with events of this size; returns a line of figures for each function.
pub(crate) async fn measure(
    server: &Server,
    scenario: Scenario,
    size: usize,
    (attempt, rounds): (usize, usize),
) -> Result<Vec<String>> {
    if scenario == Scenario::Mixed && size < 10 {
        return Ok(Vec::new());
    }
    let variants: &[_] = match server {
        Server::DynamoDb(_) => &["nothing", "stored"],
        Server::Redis(_) => &["nothing", "bare", "stored"],
        // Only writes of single records are prepared.
        Server::Postgres(_) if size == 1 => {
            &["nothing", "bare", "bare-prepared", "row", "stored", "prepared"]
        }
        Server::Postgres(_) => &["nothing", "bare", "row", "stored"],
    };
    let mut rows = Vec::new();
    for variant in variants {
        let function = Function::start(variant, server).await?;
        let other = Function::start(variant, server).await?;
        rows.push(Row { variant, function, other, used: Vec::new() });
    }
    let invocations = match size {
        1 => 100,
        100 => 8,
        _ => 2,
    };
    for round in 0..=rounds {
        for row in &mut rows {
            let name = |event: usize, record: usize| {
                let series = format!("{}-{}-{size}-{attempt}", row.variant, scenario.name());
                format!("{series}-{round}-{event}-{record}")
            };
            let events: Vec<Value> = (0..invocations)
                .map(|event| batch((0..size).map(move |record| name(event, record))))
                .collect();
            for event in 0..invocations {
                let done = (0..size).filter(|record| scenario.is_done_before(*record));
                let done: Vec<_> = done.map(|record| name(event, record)).collect();
                if !done.is_empty() && row.variant != "nothing" {
                    row.other.invoke(&batch(done)).await?;
                }
            }
            let used = row.function.measure(&events, server).await?;
            // The first round only warms up.
            if round > 0 {
                row.used.push(used);
            }
        }
    }
    let records = (invocations * size) as f64;
    let per_write = |row: &Row, used: &Used| {
        let writes =
            if matches!(row.variant, "stored" | "prepared") { scenario.writes() } else { 1.0 };
        used.server_micros / records / writes
    };
    let per_record = |_: &Row, used: &Used| used.server_micros / records;
    let mut lines = Vec::new();
    for row in &rows {
        let of = |field: fn(&Used) -> f64| median(row.used.iter().map(field));
        let has_server = !matches!(server, Server::DynamoDb(_));
        let known = |value: f64| if has_server { value } else { f64::NAN };
        let bare = rows.iter().find(|row| row.variant == "bare");
        let figures = [
            of(|used| used.requests) / records,
            of(|used| used.own_micros) / records,
            known(of(|used| used.server_micros) / records),
            known(median(row.used.iter().map(|used| per_write(row, used)))),
            bare.map_or(f64::NAN, |bare| {
                median(bare.used.iter().map(|used| per_write(bare, used)))
            }),
            beside(row, &rows, "bare", per_write),
            beside(row, &rows, "row", per_record),
            of(|used| used.millis),
            row.function.peak_megabytes()?,
        ];
        let figures = figures.map(|value| match value {
            value if value.is_nan() => "-".to_owned(),
            value => format!("{value:.3}"),
        });
        let (store, what) = (server.name(), scenario.name());
        lines.push(format!("{store}\t{}\t{what}\t{size}\t{}", row.variant, figures.join("\t")));
    }
    for row in rows {
        row.function.stop().await;
        row.other.stop().await;
    }
    Ok(lines)
}

/// The median of the ratios of this function to another one, round by round.
fn beside(row: &Row, rows: &[Row], other: &str, figure: impl Fn(&Row, &Used) -> f64) -> f64 {
    let other = rows.iter().find(|row| row.variant == other);
    let ratios = other.into_iter().flat_map(|other| {
        let pairs = row.used.iter().zip(&other.used);
        pairs.map(|(used, floor)| figure(row, used) / figure(other, floor))
    });
    median(ratios)
}

pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
