//! What a run costs: requests, at the list prices of us-east-1 in 2025, without free tiers.

/// A row of a bill: what is charged, how many, and dollars for a million of them.
type Row = (&'static str, f64, f64);

/// A bill.
#[derive(Clone, Debug)]
pub(crate) struct Bill(Vec<Row>);

/// What was counted in a run, or what it comes to at most.
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

/// More than these messages can cost with `docs/prove/template.yaml`, whatever the function does: if it loops or hangs
/// for ever, too.
pub(crate) fn most(sent: &Counted) -> Bill {
    let (messages, events) = (sent.to_queue + sent.to_fifo, sent.to_topic + sent.to_bus);
    // `maxReceiveCount`, and `MaximumRetryAttempts` after the first.
    let deliveries = 20.0 * messages + 3.0 * events;
    Bill::new(&Counted {
        // A send, and as many receives.
        to_queue: sent.to_queue * 24.0 / REQUESTS,
        to_fifo: sent.to_fifo * 24.0 / REQUESTS,
        invocations: deliveries,
        // 256 MB: as many sandboxes as both queues may have, as long as they retain a message, and each event for the
        // function's timeout.
        gigabyte_seconds: 0.25 * (6.0 * 7200.0 + 3.0 * 10.0 * events),
        ledger_lines: 2.0 * deliveries,
        records: messages + events,
        log_bytes: 2000.0 * deliveries,
        ..*sent
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_run_costs_less_than_a_dollar_whatever_goes_wrong() {
        // 5000 orders.
        let sent = Counted {
            to_queue: 3690.0,
            to_fifo: 2215.0,
            to_topic: 670.0,
            to_bus: 810.0,
            ..Counted::default()
        };
        let bill = most(&sent);
        assert!(bill.dollars() > 0.5 && bill.dollars() < 1.0, "{bill:?}");
        assert_eq!(bill.rows().len(), 9);
    }
}
