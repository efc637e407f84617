//! Delivers events as their sources do, until each record is done, dead-lettered or lost.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;

use super::Local;
use crate::error::Error;
use crate::source::{
    AsyncEvents, DeliveryReport, Event, Poller, Queue, Shards, Source, parse_event, report,
};

/// How long a client of HTTP waits before each further attempt.
const HTTP_RETRY_DELAYS: [Duration; 4] = [
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
    Duration::from_millis(1600),
];

impl Local {
    /// Delivers an event as its source would, until each of its records is done, dead-lettered or lost.
    ///
    /// The records of an SQS event are sent to a queue and polled from there, by as many pollers as there are sandboxes;
    /// those of a stream or of Kafka are read by shard or partition; a bare list of records is delivered by
    /// a pipe; an HTTP request is sent again by its client; SNS, EventBridge, Scheduler and S3 invoke
    /// asynchronously; a broker's batch is delivered again as a whole; any other event is invoked once.
    ///
    /// # Errors
    /// [`Error::Failed`] if it is not JSON, and as [`Local::invoke`].
    pub async fn deliver(&self, event: &str) -> Result<DeliveryReport, Error> {
        let mut report = DeliveryReport::default();
        self.deliver_event(parse_event("event", event)?, &mut report).await?;
        Ok(report)
    }

    /// Delivers an event that has been recognised. Each invocation is added to the report when it ends, so that
    /// whoever drops the future has it.
    ///
    /// # Errors
    /// As [`Local::invoke`].
    pub async fn deliver_event(
        &self,
        event: Event,
        report: &mut DeliveryReport,
    ) -> Result<(), Error> {
        let now = Instant::now();
        let poller: Box<dyn Poller> = match event {
            Event::Polled(source, records) => self.source(source, records, false, now),
            Event::Pipe(source, records) => self.source(source, records, true, now),
            Event::Whole(Source::Kafka, event) => {
                Box::new(Shards::kafka(self.streams.clone(), event, now))
            }
            Event::Whole(source, event) => {
                let mut events = AsyncEvents::new(
                    source,
                    match source {
                        Source::Invoke => Vec::new(),
                        Source::Http => HTTP_RETRY_DELAYS.into(),
                        _ => self.retry_delays.clone(),
                    },
                );
                events.send(event, now);
                Box::new(events)
            }
        };
        self.poll(poller, report).await
    }

    /// A queue or a stream with these records.
    fn source(
        &self,
        source: Source,
        records: Vec<Value>,
        piped: bool,
        now: Instant,
    ) -> Box<dyn Poller> {
        if source != Source::Sqs {
            let shards = Shards::new(source, self.streams.clone(), records, now);
            return Box::new(if piped { shards.behind_a_pipe() } else { shards });
        }
        let mut queue = Queue::new(self.sqs.clone(), self.pool.config().timeout);
        records.into_iter().for_each(|record| queue.send(record, now));
        Box::new(if piped { queue.behind_a_pipe() } else { queue })
    }

    /// Polls a source until it has no records left.
    async fn poll(
        &self,
        mut poller: Box<dyn Poller>,
        done: &mut DeliveryReport,
    ) -> Result<(), Error> {
        let source = poller.source();
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < self.pool.concurrency()
                && let Some(batch) = poller.receive(Instant::now())
            {
                running.push(async move {
                    let event = batch.event().to_string();
                    let result = self.invoke_bytes(batch.request_id(), event).await;
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
                    let dispositions = poller.dispose(&batch, &invocation.result, Instant::now());
                    let delivered = batch.records().zip(dispositions);
                    let delivered = delivered.map(|((id, count), then)| (id.map(str::to_owned), count, then));
                    let invocation = report(source, delivered.collect(), invocation);
                    (self.on_invocation)(&invocation);
                    done.invocations.push(invocation);
                }
                () = until(next), if !full => {}
            }
        }
        done.dead_letters.extend(poller.into_dead_letters());
        Ok(())
    }
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}
