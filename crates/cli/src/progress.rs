//! A progress bar for long deliveries.

use std::future::Future;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lambda_idempotency_local::{Disposition, InvocationReport};

/// With at least this many records, the bar is shown from the start.
const MANY: u64 = 50;
/// With fewer records, the bar is shown after this time.
const LONG: Duration = Duration::from_secs(2);

/// Counts the records that will not be delivered again.
pub(crate) struct Progress {
    bar: ProgressBar,
    total: u64,
}

impl Progress {
    pub(crate) fn new(total: u64, what: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        let template =
            format!("{{spinner}} {{bar:30}} {{pos}}/{{len}} {what}  {{elapsed}}  {{msg}}");
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style);
        }
        Self { bar, total }
    }

    /// Shows the bar during `work`, if that takes long. Shows nothing if stderr is not a terminal.
    pub(crate) async fn during<T>(&self, work: impl Future<Output = T>, hidden: bool) -> T {
        let show = async {
            if hidden {
                std::future::pending::<()>().await;
            }
            if self.total <= MANY {
                tokio::time::sleep(LONG).await;
            }
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.enable_steady_tick(Duration::from_millis(100));
            std::future::pending::<()>().await;
        };
        tokio::pin!(work);
        let result = tokio::select! {
            result = &mut work => result,
            () = show => work.await,
        };
        self.bar.finish_and_clear();
        result
    }

    /// So many records will not be delivered again.
    pub(crate) fn set(&self, count: u64) {
        self.bar.set_position(count);
    }

    /// Counts an invocation that has ended.
    pub(crate) fn advance(&self, invocation: &InvocationReport) {
        let returned = invocation
            .records
            .iter()
            .filter(|record| record.disposition == Disposition::Returned)
            .count();
        self.bar.inc((invocation.records.len() - returned) as u64);
        self.bar.set_message(match returned {
            0 => String::new(),
            count => format!("{count} returned, waiting for their next delivery"),
        });
    }

    /// Prints lines to stderr without spoiling the bar.
    pub(crate) fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }
}
