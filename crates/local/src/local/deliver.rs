//! Delivers events as their sources do, until each record is done, dead-lettered or lost.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;

use super::Local;
use crate::function::new_id;
use crate::source::{Event, Kafka, Pipe, Poller, Queue, Shards, is_final, record_ids, report};
use crate::{
    DeadLetter, DeliveryReport, Disposition, Error, InvocationReport, Source, parse_event,
};

impl Local {
    /// Delivers an event as its source would, until each of its records is done, dead-lettered or lost.
    ///
    /// The records of an SQS event are sent to a queue and polled from there, by as many pollers as there are sandboxes;
    /// those of a stream or of Kafka are read by shard or partition; a bare list of records is delivered by
    /// a pipe; an HTTP request is sent again by its client; SNS, EventBridge, Scheduler and S3 invoke
    /// asynchronously; a broker's batch is delivered again as a whole; any other event is invoked once.
    ///
    /// # Errors
    /// [`Error::Event`] if it is not JSON, and as [`Local::invoke`].
    pub async fn deliver(&self, event: &str) -> Result<DeliveryReport, Error> {
        self.deliver_event(parse_event("event", event)?).await
    }

    /// Delivers the event in a file.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Event`] if it cannot be read or is not JSON, and as [`Local::invoke`].
    pub async fn deliver_file(&self, path: impl AsRef<Path>) -> Result<DeliveryReport, Error> {
        let path = path.as_ref();
        let text = tokio::fs::read_to_string(path)
            .await
            .map_err(|source| Error::Read { path: path.to_path_buf(), source })?;
        self.deliver_event(parse_event(&path.display().to_string(), &text)?).await
    }

    /// Delivers an event that has been recognised.
    ///
    /// # Errors
    /// As [`Local::invoke`].
    pub async fn deliver_event(&self, event: Event) -> Result<DeliveryReport, Error> {
        let now = Instant::now();
        match event {
            Event::Sqs(records) => self.poll(self.queue(records, now)).await,
            Event::Stream(source, records) => {
                self.poll(Box::new(self.shards(source, records, now))).await
            }
            Event::Pipe(source, records) => {
                let from = match source {
                    Source::Sqs => self.queue(records, now),
                    _ => Box::new(self.shards(source, records, now).behind_a_pipe()),
                };
                self.poll(Box::new(Pipe::new(from))).await
            }
            Event::Kafka(event) => {
                self.poll(Box::new(Kafka::new(self.streams.clone(), event, now))).await
            }
            Event::Http(event) => self.attempt(Source::Http, &event, &self.http.retry_delays).await,
            Event::Whole(Source::Direct, event) => self.attempt(Source::Direct, &event, &[]).await,
            Event::Whole(source, event) => {
                self.attempt(source, &event, &self.asynchronous.retry_delays).await
            }
        }
    }

    fn queue(&self, records: Vec<Value>, now: Instant) -> Box<dyn Poller> {
        let mut queue = Queue::new(self.sqs.clone(), self.pool.config().timeout);
        for record in records {
            queue.send(record, now, epoch_ms());
        }
        Box::new(queue)
    }

    fn shards(&self, source: Source, records: Vec<Value>, now: Instant) -> Shards {
        Shards::new(source, self.streams.clone(), records, now)
    }

    /// Polls a source until it has no records left.
    async fn poll(&self, mut poller: Box<dyn Poller>) -> Result<DeliveryReport, Error> {
        let source = poller.source();
        let mut done = DeliveryReport::default();
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < self.pool.concurrency()
                && let Some(batch) = poller.receive(Instant::now(), epoch_ms())
            {
                running.push(async move {
                    let result = self.invoke(batch.event()).await;
                    (batch, result)
                });
            }
            let full = running.len() >= self.pool.concurrency();
            let next = poller.next();
            if running.is_empty() && next.is_none() {
                break;
            }
            tokio::select! {
                Some((batch, invocation)) = running.next() => {
                    let invocation = invocation?;
                    let dispositions = poller.settle(&batch, &invocation.result, Instant::now());
                    let delivered = batch.records().zip(dispositions);
                    let delivered = delivered.map(|((id, count), disposition)| (id.map(str::to_owned), count, disposition)).collect();
                    self.conclude(&mut done, report(source, delivered, invocation));
                }
                () = until(next), if !full => {}
            }
        }
        done.dead_letters = poller.into_dead_letters();
        Ok(done)
    }

    /// Invokes with a whole event, and again after each delay for as long as it fails.
    async fn attempt(
        &self,
        source: Source,
        event: &Value,
        retry_delays: &[Duration],
    ) -> Result<DeliveryReport, Error> {
        let request_id = new_id();
        let ids = record_ids(source, event);
        let mut done = DeliveryReport::default();
        let mut delays = retry_delays.iter();
        for receive_count in 1.. {
            let invocation = self.invoke_bytes(request_id.clone(), event.to_string()).await?;
            let ends = match source {
                Source::Http => is_final(&invocation.result),
                _ => invocation.result.is_response(),
            };
            let delay = if ends { None } else { delays.next() };
            let disposition = match (ends, delay, source) {
                (true, ..) => Disposition::Done,
                (false, Some(_), _) => Disposition::Returned,
                (false, None, Source::Direct | Source::Http) => Disposition::Lost,
                (false, None, _) => Disposition::DeadLettered,
            };
            let delivered = ids.iter().map(|id| (id.clone(), receive_count, disposition)).collect();
            self.conclude(&mut done, report(source, delivered, invocation));
            if disposition == Disposition::DeadLettered {
                let record = ids.first().cloned().flatten();
                done.dead_letters.push(DeadLetter {
                    source,
                    record,
                    receive_count,
                    event: event.clone(),
                });
            }
            match delay {
                Some(delay) => tokio::time::sleep(*delay).await,
                None => break,
            }
        }
        Ok(done)
    }

    fn conclude(&self, done: &mut DeliveryReport, invocation: InvocationReport) {
        (self.on_invocation)(&invocation);
        done.invocations.push(invocation);
    }
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}

fn epoch_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
