//! What an invocation has done, and what the source does with its messages.

use std::time::Instant;

use lambda_idempotency_local::{Batch, Disposition, Invocation};

use super::rig::Rig;
use crate::{
    Error,
    history::End,
    plan::Plan,
    queues::{self, Received},
    schedule::order_of,
};

impl Rig<'_> {
    pub(super) async fn ended(
        &mut self,
        received: &Received,
        invocation: &Invocation,
    ) -> Result<(), Error> {
        // It may have answered from what another process did, whose effects have to be known then.
        self.local.read_output().await;
        // Lines read from here on belong to the process's next invocation, so read this one's first.
        self.read()?;
        let batch = &received.batch;
        let pid = invocation.pid;
        let stopped = self.injector.was_stopped(pid);
        let end = self.injector.end_of(invocation);
        if end == End::TimedOut {
            self.injector.overran(pid, self.may_run_on(batch));
        }
        let overran = end == End::TimedOut || invocation.duration > self.settings.timeout;
        self.history.ended(invocation, end, stopped, overran);
        let before = self.history.settled.len();
        let is_doomed = received.line == queues::Line::Doomed;
        let dispositions = self.queues.settle(received, &invocation.result);
        for ((id, _), disposition) in batch.records().zip(dispositions) {
            self.look_up(id, disposition)?;
            self.history.delivered(id.unwrap_or_default(), is_doomed, disposition);
        }
        if self.history.settled.len() > before {
            self.moved = Instant::now();
        }
        Ok(())
    }

    /// Asks the store whether the order of an acknowledged message is placed, where effects are in transactions.
    fn look_up(&mut self, message: Option<&str>, disposition: Disposition) -> Result<(), Error> {
        let asks = self.settings.mode.commits() && disposition == Disposition::Done;
        if let Some(order) = message.filter(|_| asks).and_then(order_of)
            && !self.history.is_placed(order)
        {
            let times = self.store.placed(order)?;
            self.history.placed(order, times);
        }
        Ok(())
    }

    /// Whether the plan of an order in this batch lets its process run on past the deadline.
    fn may_run_on(&self, batch: &Batch) -> bool {
        let orders = batch.records().filter_map(|(id, _)| order_of(id?));
        let mut plans = orders.filter_map(|order| Some(&self.schedule.orders.get(order)?.plan));
        plans.any(|plan| matches!(plan, Plan::Overrun { left_running: true, .. }))
    }
}
