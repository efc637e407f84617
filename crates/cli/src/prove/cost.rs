//! What a run costs: requests, at the list prices of us-east-1 in 2025, without free tiers.

use std::fmt;

/// A row of a bill: what is charged, how many, and dollars for a million of them.
type Row = (&'static str, f64, f64);

/// A bill.
#[derive(Clone, Debug)]
pub(crate) struct Bill(Vec<Row>);

/// What was counted in a run, or what is expected of one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub(crate) to_queue: f64,
    pub(crate) to_fifo: f64,
    pub(crate) to_topic: f64,
    pub(crate) to_bus: f64,
    pub(crate) invocations: f64,
    /// Seconds times gigabytes.
    pub(crate) gigabyte_seconds: f64,
    pub(crate) ledger_lines: f64,
    pub(crate) records: f64,
    pub(crate) log_bytes: f64,
}

/// Each message of a queue is sent, received and deleted, and some more than once.
const REQUESTS: f64 = 4.0;

impl Bill {
    pub(crate) fn new(of: &Counted) -> Self {
        Self(vec![
            ("requests of the queue, about", of.to_queue * REQUESTS, 0.40),
            ("requests of the FIFO queue, about", of.to_fifo * REQUESTS, 0.50),
            ("messages published", of.to_topic, 0.50),
            ("events put", of.to_bus, 1.00),
            ("invocations", of.invocations, 0.20),
            ("GB-seconds of the function", of.gigabyte_seconds, 13.33),
            ("writes to the ledger", of.ledger_lines, 0.625),
            ("reads of ledger and table, about", of.ledger_lines + of.records, 0.125),
            // A dollar for two gigabytes, so that a million is of megabytes.
            ("megabytes of logs", of.log_bytes / 1e6, 500.0),
        ])
    }

    pub(crate) fn dollars(&self) -> f64 {
        self.0.iter().map(|(_, count, price)| count * price / 1e6).sum()
    }

    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let row = |(what, count, price): &Row| {
            let dollars = count * price / 1e6;
            vec![(*what).to_owned(), format!("{count:.0}"), format!("${dollars:.5}")]
        };
        self.0.iter().map(row).collect()
    }
}

impl fmt::Display for Bill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, count, price) in &self.0 {
            writeln!(f, "  {what:<38}{count:>10.0}   ${:.5}", count * price / 1e6)?;
        }
        write!(f, "  {:<38}{:>10}   ${:.4}", "together", "", self.dollars())
    }
}

/// More than a run of so many messages and orders that hang should need.
pub(crate) fn most(counted: Counted, messages: f64, hangs: f64) -> Bill {
    Bill::new(&Counted {
        invocations: 3.0 * messages,
        // 256 MB; half a second of each invocation, and each order that hangs takes one of ten seconds, and its copy
        // too.
        gigabyte_seconds: 0.25 * (1.5 * messages + 20.0 * hangs),
        ledger_lines: 3.0 * messages,
        records: messages,
        log_bytes: 4000.0 * messages,
        ..counted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_the_default_size_costs_less_than_a_dollar() {
        let counted = Counted {
            to_queue: 1500.0,
            to_fifo: 900.0,
            to_topic: 300.0,
            to_bus: 400.0,
            ..Counted::default()
        };
        let bill = most(counted, 3000.0, 100.0);
        assert!(bill.dollars() > 0.01 && bill.dollars() < 1.0, "{bill}");
        assert_eq!(bill.rows().len(), 9);
    }
}
