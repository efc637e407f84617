//! What a million new records cost, from figures and prices. `docs/performance.md` states the formula.

use super::measured::Measured;

/// USD for a million write units and a million read units, on demand, in us-east-1.
const WRITE_UNITS: f64 = 0.625;
const READ_UNITS: f64 = 0.125;
/// USD for a GB-second on arm64, and for a million invocations, in us-east-1.
const GB_SECOND: f64 = 0.000_013_333_4;
const INVOCATIONS: f64 = 0.20;
/// The function's memory, and that with which Lambda gives a function one processor.
const MEGABYTES: f64 = 256.0;
const MEGABYTES_OF_A_PROCESSOR: f64 = 1769.0;

/// The parts of the bill for a million new records, in USD.
#[derive(Clone, Copy)]
pub(crate) struct Bill {
    pub(crate) table: f64,
    pub(crate) duration: f64,
    pub(crate) invocations: f64,
}

/// The records in a batch.
pub(crate) const BATCH: usize = 10;

impl Bill {
    fn of(measured: &Measured, function: &str) -> Self {
        let get = |scenario, column| measured.get(scenario, BATCH, function, "one", column);
        let batch = BATCH as f64;
        // Lambda gives a function less than one processor, and each second of processor time then takes longer.
        let slower = MEGABYTES_OF_A_PROCESSOR / MEGABYTES - 1.0;
        let millis = get("delayed", "p50_ms") + get("fresh", "cpu_us") / 1000.0 * batch * slower;
        let batches = 1e6 / batch;
        let table =
            get("fresh", "write_units") * WRITE_UNITS + get("fresh", "read_units") * READ_UNITS;
        let duration = batches * millis / 1000.0 * MEGABYTES / 1024.0 * GB_SECOND;
        Self { table, duration, invocations: batches / 1e6 * INVOCATIONS }
    }

    pub(crate) fn total(self) -> f64 {
        self.table + self.duration + self.invocations
    }
}

/// Each function with its bill, ours first.
pub(crate) fn bills(measured: &Measured, peers: &Measured) -> Vec<(&'static str, Bill)> {
    let ours = [("this library", "this"), ("by hand", "by hand")];
    let theirs = [
        "Powertools for Python",
        "Powertools for Python, async",
        "Powertools for TypeScript",
        "Powertools for TypeScript, parallel",
    ];
    let ours = ours.map(|(name, function)| (name, Bill::of(measured, function)));
    let theirs = theirs.map(|name| (name, Bill::of(peers, name)));
    ours.into_iter().chain(theirs).collect()
}

pub(crate) fn table(measured: &Measured, peers: &Measured) -> String {
    let mut table = String::from(
        "| | table | duration | invocations | USD for a million new records |\n|---|--:|--:|--:|--:|\n",
    );
    for (name, bill) in bills(measured, peers) {
        let Bill { table: units, duration, invocations } = bill;
        let total = bill.total();
        table.push_str(&format!(
            "| {name} | {units:.3} | {duration:.3} | {invocations:.3} | {total:.3} |\n"
        ));
    }
    table
}

/// The page states these prices and sizes.
#[test]
fn the_page_names_its_prices() {
    let page = crate::read(super::DETAILS);
    for text in [
        format!("{WRITE_UNITS} USD"),
        format!("{READ_UNITS} USD"),
        format!("{GB_SECOND:.10} USD"),
        format!("{INVOCATIONS:.2} USD"),
        format!("{MEGABYTES} MB"),
        format!("{MEGABYTES_OF_A_PROCESSOR:.0} MB"),
    ] {
        let text = text.replace("1769 MB", "1,769 MB");
        assert!(page.contains(&text), "docs/performance.md does not say {text}");
    }
}
