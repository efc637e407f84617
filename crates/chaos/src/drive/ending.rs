//! The messages of the function, and what is left of them at the end of a run.

use std::{
    net::SocketAddr,
    process::Stdio,
    time::{Duration, Instant},
};

use lambda_idempotency_local::{Batch, Disposition};
use serde_json::json;
use tokio::process::Command;

use super::rig::{Rig, request_id};
use crate::{
    Error, FaultKind,
    history::Offence,
    messages::Told,
    parcels::SIGNAL,
    plan::{CLOCKS, Plan},
    queues::Received,
    schedule::order_of,
    store::CLAIMS,
};

/// How often the relay is run, as a schedule does, if it cannot send everything at once.
const RELAYS: u32 = 5;

impl Rig<'_> {
    /// Notes what the queue of the messages tells, and sends the signal for which a process waits in it.
    pub(super) fn hear(&mut self, told: Told) {
        let (order, pid, step) = match told {
            Told::Arrived(arrival) => {
                if arrival.answer.is_taken() {
                    let parcel = self.parcels.add(&arrival);
                    self.queues.publish(parcel);
                }
                return self.history.arrived(arrival);
            }
            Told::Waits { order, pid, step } => (order, pid, step),
        };
        let fault = match self.schedule.orders.get(order).map(|order| &order.plan) {
            Some(Plan::Signalled { at, fault, .. }) if *at == step => *fault,
            Some(Plan::Abandoned) => FaultKind::Kill,
            _ => return,
        };
        if self.signalled.insert(order) {
            self.injector.signal(self.local, pid, fault);
        }
    }

    /// Signals the process that gets these messages of the function, if one of them asks for it.
    pub(super) fn signal_consumer(&mut self, received: &Received) {
        let mut faults = vec![FaultKind::Kill, FaultKind::Stop];
        faults.retain(|kind| self.settings.has(*kind));
        for (id, _) in received.batch.records() {
            let Some(number) = id.and_then(|id| self.parcels.signals(id)) else { continue };
            let Some(fault) = faults.get(number / SIGNAL % faults.len().max(1)) else { continue };
            let delay = Duration::from_millis(number as u64 * 7 % 20);
            let request = request_id(self.invocations);
            self.injector.signal_later(delay, request, *fault);
        }
    }

    /// Waits until the queue has told of everything that a process has sent before its end.
    pub(super) async fn wait_for_messages(&self) {
        while self.messages.is_some_and(|messages| !messages.has_told_all()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Notes what the queue did with messages of the function.
    pub(super) fn consumed(&mut self, batch: &Batch, dispositions: &[Disposition]) {
        for ((id, _), disposition) in batch.records().zip(dispositions) {
            let again = self.parcels.delivered(id.unwrap_or_default(), *disposition);
            if *disposition == Disposition::Done {
                self.moved = Instant::now();
            }
            if let Some(record) = again {
                self.queues.publish(record);
            }
        }
    }

    /// A delivery may be acknowledged only if the messages of its order have arrived.
    pub(super) fn look_for_messages(&mut self, message: Option<&str>, disposition: Disposition) {
        let Some(message) = message.filter(|_| disposition == Disposition::Done) else { return };
        let order = order_of(message);
        let Some(of) = order.and_then(|order| self.schedule.orders.get(order)) else { return };
        let sent = order.map_or(0, |order| self.history.sent(order));
        if sent < of.sending.messages {
            let expected = of.sending.messages;
            let what = format!("{message}: acknowledged, and {sent} of {expected} messages sent");
            self.history.offend(Offence::Unsent, what);
        }
    }

    /// The end of a run with messages. The last orders are delivered once, and their processes are killed before a
    /// message is taken. A relay sends what is left. Another delivery then finds nothing to send.
    pub(super) async fn end(&mut self, queue: SocketAddr) -> Result<(), Error> {
        self.deliver_last().await?;
        self.relay(queue).await?;
        let rows = self.store.rows()?;
        if let left @ 1.. = rows.iter().filter(|row| row.has_messages).count() {
            let what = format!("{left} record(s) have messages after the relay has run");
            self.history.offend(Offence::Unsent, what);
        }
        self.deliver_last().await
    }

    async fn deliver_last(&mut self) -> Result<(), Error> {
        self.store.heal_all();
        for message in &self.schedule.abandoned {
            self.invocations += 1;
            let event = json!({ "Records": [self.schedule.delivered(message)] }).to_string();
            let invocation = self.local.invoke_bytes(request_id(self.invocations), event);
            tokio::pin!(invocation);
            let invocation = loop {
                tokio::select! {
                    invocation = &mut invocation => break invocation?,
                    Some(told) = self.told.recv() => self.hear(told),
                }
            };
            self.local.read_output().await;
            self.wait_for_messages().await;
            self.read()?;
            let end = self.injector.end_of(&invocation);
            self.history.ended(&invocation, end, false, false);
        }
        Ok(())
    }

    /// Runs a relay over the whole table, past all faults, and again if it could not send everything.
    async fn relay(&mut self, queue: SocketAddr) -> Result<(), Error> {
        self.store.heal_all();
        self.read()?;
        let before = self.history.sends.len();
        // The clocks of the processes may be ahead, and a relay leaves records alone that were claimed after now.
        tokio::time::sleep(CLOCKS).await;
        let mut runs = 1;
        while let Err(error) = self.run_relay(queue).await {
            if runs == RELAYS {
                return Err(error);
            }
            runs += 1;
        }
        self.read()?;
        self.relayed = self.history.sends.len().saturating_sub(before);
        Ok(())
    }

    async fn run_relay(&self, queue: SocketAddr) -> Result<(), Error> {
        let proxy = self.local.dynamodb().proxy().await?;
        let output = Command::new(&self.settings.binary)
            .env("AWS_ACCESS_KEY_ID", "local")
            .env("AWS_SECRET_ACCESS_KEY", "local")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ENDPOINT_URL_DYNAMODB", proxy.url())
            .env("IDEMPOTENCY_TABLE", CLAIMS)
            .env("SCRIPTED_QUEUE", queue.to_string())
            .env("SCRIPTED_RELAY", "1")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = output.await.map_err(|error| Error::Rig(format!("the relay: {error}")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Error::Rig(format!("the relay: {}, {}", output.status, said.trim())));
        }
        Ok(())
    }
}
