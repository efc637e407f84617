//! The sandboxes: a limited number of processes, each with one event at a time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Semaphore;

use super::config::FunctionConfig;
use super::invocation::{AtOnce, InvocationResult};
use super::output::{OnOutput, Progress};
use super::process::{Process, Signal, send};
use crate::dynamodb::{DynamoDb, Usage};
use crate::error::Error;

pub(crate) struct Pool {
    config: FunctionConfig,
    dynamodb: DynamoDb,
    on_output: OnOutput,
    slots: Semaphore,
    concurrency: usize,
    /// How many processes were started.
    started: AtomicUsize,
    /// Processes that wait for an event; the one used last is used first.
    idle: Mutex<Vec<Process>>,
    /// Processes that missed their deadline and were left running.
    stray: Mutex<Vec<Process>>,
    /// The process of each invocation that is running.
    busy: Mutex<BTreeMap<String, u32>>,
    /// How far the output of all these processes is read.
    progress: Mutex<Vec<Progress>>,
}

/// An invocation that is running now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Its request id.
    pub request_id: String,
    /// The process that has it.
    pub pid: u32,
}

impl Pool {
    pub(crate) fn new(
        config: FunctionConfig,
        dynamodb: DynamoDb,
        on_output: OnOutput,
        concurrency: usize,
    ) -> Self {
        Self {
            config,
            dynamodb,
            on_output,
            slots: Semaphore::new(concurrency),
            concurrency,
            started: AtomicUsize::new(0),
            idle: Mutex::default(),
            stray: Mutex::default(),
            busy: Mutex::default(),
            progress: Mutex::default(),
        }
    }

    pub(crate) fn concurrency(&self) -> usize {
        self.concurrency
    }

    pub(crate) fn config(&self) -> &FunctionConfig {
        &self.config
    }

    /// Starts a process ahead of its first event.
    pub(crate) async fn warm(&self) -> Result<(), Error> {
        let _slot = self.slots.acquire().await.map_err(|_| Error::ShutDown)?;
        let registered = Registered { pool: self, request_id: "none" };
        let (mut process, ready) = self.process(&registered).await?;
        match ready {
            Ok(()) => lock(&self.idle).push(process),
            Err(result) => {
                process
                    .conclude(&self.config, not_started([String::new()], &result), Instant::now())
                    .await?;
                let (path, output) = (self.config.binary.clone(), process.last_lines());
                return Err(Error::NotReady { path, result, output });
            }
        }
        Ok(())
    }

    /// Runs invocations in the first free sandbox, at the same time if they are several, as Lambda Managed Instances do.
    /// If the caller gives up, their process is killed.
    pub(crate) async fn invoke(&self, events: Vec<(String, Bytes)>) -> Result<AtOnce, Error> {
        let ids: Vec<String> = events.iter().map(|(request_id, _)| request_id.clone()).collect();
        let Some(first) = ids.first() else {
            return Ok(AtOnce { invocations: Vec::new(), dynamodb: Usage::default() });
        };
        let _slot = self.slots.acquire().await.map_err(|_| Error::ShutDown)?;
        let registered = Registered { pool: self, request_id: first };
        let (mut process, ready) = self.process(&registered).await?;
        let others = ids.iter().skip(1).map(|request_id| Registered { pool: self, request_id });
        let others: Vec<_> = others.inspect(|other| other.set(process.pid())).collect();
        if let Err(result) = ready {
            // A sandbox that cannot start is not used again.
            let ended = not_started(ids.iter().cloned(), &result);
            return process.conclude(&self.config, ended, Instant::now()).await;
        }
        let all = process.invoke(&self.config, events).await?;
        drop(others);
        // If the process ended or was late, that decides whether it is used again.
        let ends = all.invocations.iter().map(|invocation| &invocation.result);
        let end = ends.max_by_key(|result| match result {
            InvocationResult::Exited { .. } => 2,
            InvocationResult::TimedOut => 1,
            _ => 0,
        });
        if let Some(end) = end {
            self.put_away(process, end).await;
        }
        Ok(all)
    }

    /// Keeps a process for the next invocation, unless it ended or missed its deadline.
    async fn put_away(&self, process: Process, result: &InvocationResult) {
        match result {
            InvocationResult::TimedOut if self.config.outlives_timeout => {
                let dead: Vec<_> = {
                    let mut stray = lock(&self.stray);
                    stray.push(process);
                    stray.extract_if(.., |process| !process.is_alive()).collect()
                };
                for process in dead {
                    process.last_words().await;
                }
            }
            InvocationResult::TimedOut | InvocationResult::Exited { .. } => drop(process),
            _ => lock(&self.idle).push(process),
        }
    }

    /// An idle process, or a new one; and whether it is ready, or why not.
    async fn process(
        &self,
        registered: &Registered<'_>,
    ) -> Result<(Process, Result<(), InvocationResult>), Error> {
        while let Some(mut process) = { lock(&self.idle).pop() } {
            registered.set(process.pid());
            if process.is_alive() && process.ready(&self.config).await?.is_ok() {
                return Ok((process, Ok(())));
            }
            // It died since its last answer, or does not ask for an event; the loop takes another one.
            process.last_words().await;
        }
        let proxy = self.dynamodb.proxy().await?;
        let nth = self.started.fetch_add(1, Ordering::Relaxed);
        let on_output = Arc::clone(&self.on_output);
        let mut process = Process::start(&self.config, proxy, on_output, nth).await?;
        {
            let mut progress = lock(&self.progress);
            progress.retain(|one| !one.is_closed());
            progress.extend(process.progress());
        }
        registered.set(process.pid());
        let ready = process.ready(&self.config).await?;
        Ok((process, ready))
    }

    /// Waits until everything that any process has written so far has been read.
    pub(crate) async fn read_output(&self) {
        let readers = lock(&self.progress).clone();
        for reader in readers {
            reader.drain().await;
        }
    }

    pub(crate) fn in_flight(&self) -> Vec<InFlight> {
        lock(&self.busy)
            .iter()
            .map(|(request_id, pid)| InFlight { request_id: request_id.clone(), pid: *pid })
            .collect()
    }

    /// Sends a signal to a process that has an invocation, or missed its deadline and was left running.
    pub(crate) fn signal(&self, pid: u32, signal: Signal) -> bool {
        // The processes of both lists were not yet waited for, so the system has not reused their ids.
        let busy = lock(&self.busy).values().any(|busy| *busy == pid);
        (busy || self.is_stray(pid)) && send(pid, signal)
    }

    /// Whether the process missed its deadline, was left running, and has not ended.
    pub(crate) fn is_stray(&self, pid: u32) -> bool {
        lock(&self.stray).iter_mut().any(|process| process.pid() == pid && process.is_alive())
    }

    /// Kills every process, waits until it has ended, and accepts no further invocations.
    pub(crate) async fn close(&self) {
        self.slots.close();
        let idle = std::mem::take(&mut *lock(&self.idle));
        let stray = std::mem::take(&mut *lock(&self.stray));
        for process in idle.into_iter().chain(stray) {
            process.kill().await;
        }
    }
}

/// Lists an invocation as in flight until it is dropped.
struct Registered<'a> {
    pool: &'a Pool,
    request_id: &'a str,
}

impl Registered<'_> {
    fn set(&self, pid: u32) {
        lock(&self.pool.busy).insert(self.request_id.to_owned(), pid);
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        lock(&self.pool.busy).remove(self.request_id);
    }
}

/// The ends of invocations whose process does not start.
fn not_started(
    ids: impl IntoIterator<Item = String>,
    result: &InvocationResult,
) -> Vec<(String, (InvocationResult, Duration))> {
    ids.into_iter().map(|request_id| (request_id, (result.clone(), Duration::ZERO))).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
