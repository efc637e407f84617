//! One process of the function, from its start to its end, invocation after invocation.

use std::{
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use tokio::{
    io::AsyncRead,
    process::{Child, Command},
    time::{Instant, sleep_until, timeout},
};

use super::{
    config::FunctionConfig,
    invocation::{AtOnce, Invocation, InvocationResult},
    output::{Lines, OnOutput, Progress, Reader},
    record_line::RecordLine,
    runtime_api::{RuntimeApi, Said, Work},
};
use crate::{
    dynamodb::{Proxy, Usage},
    error::Error,
};

/// A process of the function, with its own Runtime API and DynamoDB proxy. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pid: u32,
    api: RuntimeApi,
    proxy: Proxy,
    lines: Arc<Mutex<Lines>>,
    output: Vec<Reader>,
    ready: bool,
    /// The DynamoDB requests of earlier invocations.
    accounted: Usage,
}

type Pipe = Box<dyn AsyncRead + Send + Unpin>;

/// How long after its deadline a process is killed; Lambda also kills a little late.
const GRACE: Duration = Duration::from_millis(50);
/// How long to wait until the streams of a dead process end: one of its children may keep them open.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Process {
    pub(crate) async fn start(
        config: &FunctionConfig,
        proxy: Proxy,
        on_output: OnOutput,
        nth: usize,
    ) -> Result<Self, Error> {
        let api = RuntimeApi::start().await?;
        let failed = |source| Error::Start { path: config.binary.clone(), source };
        let mut command = Command::new(&config.binary);
        // A group of its own, so that what it starts ends with it, as in a sandbox of Lambda.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command
            .env_clear()
            .envs(config.environment(&api.address(), &proxy.url(), nth))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let pid = child.id().unwrap_or_default();
        let lines = Arc::<Mutex<Lines>>::default();
        let start =
            |pipe: Pipe| Reader::start(pipe, pid, Arc::clone(&lines), Arc::clone(&on_output));
        let stdout = child.stdout.take().map(|pipe| Box::new(pipe) as Pipe);
        let stderr = child.stderr.take().map(|pipe| Box::new(pipe) as Pipe);
        let output = stdout.into_iter().chain(stderr).map(start).collect();
        Ok(Self {
            child,
            pid,
            api,
            proxy,
            lines,
            output,
            ready: false,
            accounted: Usage::default(),
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last lines that it wrote, without those about records.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        self.lines().last.iter().cloned().collect()
    }

    /// How far its output is read.
    pub(crate) fn progress(&self) -> impl Iterator<Item = Progress> {
        self.output.iter().map(|reader| reader.progress.clone())
    }

    /// Whether the process has not ended, as far as the system knows.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills the process and waits until it has ended.
    pub(crate) async fn kill(mut self) {
        self.end_group();
        // An error means that the process has ended already.
        let _ = self.child.kill().await;
    }

    /// Kills what the process has started, and the process.
    fn end_group(&self) {
        send(self.pid, Signal::Kill);
    }

    /// Waits until the process asks for an event; an error says why it did not.
    pub(crate) async fn ready(
        &mut self,
        config: &FunctionConfig,
    ) -> Result<Result<(), InvocationResult>, Error> {
        let until = Instant::now() + config.init_timeout;
        while !self.ready {
            match self.listen(until).await? {
                Heard::Said(Said::Ready) => self.ready = true,
                Heard::Said(Said::InitError(error)) => return Ok(Err(error)),
                Heard::Said(Said::Answer { .. }) => {} // too late: its invocation has ended
                Heard::Ended(result) => return Ok(Err(result)),
            }
        }
        Ok(Ok(()))
    }

    /// Gives the process these events at once and waits for all results.
    pub(crate) async fn invoke(
        &mut self,
        config: &FunctionConfig,
        events: Vec<(String, Bytes)>,
    ) -> Result<AtOnce, Error> {
        let begun = Instant::now();
        self.ready = false;
        let mut open = Vec::new();
        for (request_id, event) in events {
            self.hand_over(config, request_id.clone(), event);
            open.push((request_id, None));
        }
        let until = begun + config.timeout + GRACE;
        while open.iter().any(|(_, ended)| ended.is_none()) {
            let ended = match self.listen(until).await? {
                Heard::Said(Said::Answer { request_id, result }) => {
                    let answered =
                        open.iter_mut().find(|(id, ended)| *id == request_id && ended.is_none());
                    if let Some((_, ended)) = answered {
                        *ended = Some((result, begun.elapsed()));
                    }
                    continue;
                }
                Heard::Said(Said::Ready) => {
                    self.ready = true;
                    continue;
                }
                Heard::Said(Said::InitError(result)) | Heard::Ended(result) => result,
            };
            for (_, missing) in &mut open {
                missing.get_or_insert_with(|| (ended.clone(), begun.elapsed()));
            }
        }
        let ended = open.into_iter().filter_map(|(request_id, ended)| Some((request_id, ended?)));
        self.conclude(config, ended.collect(), begun.into_std()).await
    }

    fn hand_over(&self, config: &FunctionConfig, request_id: String, event: Bytes) {
        let deadline =
            (SystemTime::now() + config.timeout).duration_since(UNIX_EPOCH).unwrap_or_default();
        // A closed channel means that the server and its process have ended; the next wait reports that.
        let _ = self.api.work.send(Work {
            request_id,
            arn: config.arn(),
            deadline_ms: u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX),
            event,
        });
    }

    /// Collects the output and usage of invocations that have ended, after their process was killed or kept.
    pub(crate) async fn conclude(
        &mut self,
        config: &FunctionConfig,
        ended: Vec<(String, (InvocationResult, Duration))>,
        began: std::time::Instant,
    ) -> Result<AtOnce, Error> {
        let is_late = ended.iter().any(|(_, (result, _))| *result == InvocationResult::TimedOut);
        if is_late && !config.outlives_timeout {
            self.end_group();
            self.child.kill().await.map_err(Error::Process)?;
        }
        if self.is_alive() {
            self.drain().await;
        } else {
            self.last_words().await;
        }
        let mut lines = std::mem::take(&mut self.lines().records);
        let usage = self.proxy.usage();
        let dynamodb = usage.since(&std::mem::replace(&mut self.accounted, usage.clone()));
        let mut requests = self.proxy.take_requests();
        let is_alone = ended.len() == 1;
        let invocations = ended.into_iter().map(|(request_id, (result, duration))| {
            let is_own =
                |line: &mut RecordLine| is_alone || line.request_id.as_ref() == Some(&request_id);
            let records = lines.extract_if(.., is_own).collect();
            let (dynamodb, requests) = match is_alone {
                true => (dynamodb.clone(), std::mem::take(&mut requests)),
                false => (Usage::default(), Vec::new()),
            };
            let pid = self.pid;
            Invocation { request_id, pid, began, result, duration, records, dynamodb, requests }
        });
        Ok(AtOnce { invocations: invocations.collect(), dynamodb })
    }

    /// The next event: the process makes a request or ends, or the deadline passes.
    async fn listen(&mut self, until: Instant) -> Result<Heard, Error> {
        tokio::select! {
            biased;
            // The endpoint exists as long as the process, so there is always a sender.
            Some(said) = self.api.said.recv() => Ok(Heard::Said(said)),
            status = self.child.wait() => {
                self.end_group();
                Ok(Heard::Ended(InvocationResult::exited(status.map_err(Error::Process)?)))
            }
            () = sleep_until(until) => Ok(Heard::Ended(InvocationResult::TimedOut)),
        }
    }

    /// Waits until everything that the dead process has written is read, and for a while until its children, which may
    /// write to the same streams, are dead as well.
    pub(crate) async fn last_words(&self) {
        self.drain().await;
        let closed = async {
            for reader in &self.output {
                reader.progress.closed().await;
            }
        };
        let _ = timeout(LAST_WORDS, closed).await;
    }

    async fn drain(&self) {
        for reader in &self.output {
            reader.progress.drain().await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A process that has ended had its group killed then, and its number may be another's by now.
        if self.child.id().is_some() {
            self.end_group();
        }
    }
}

enum Heard {
    Said(Said),
    Ended(InvocationResult),
}

/// A signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// `SIGSTOP`: the process stops, with all its connections open, until it gets `SIGCONT`.
    Stop,
    /// `SIGCONT`: the stopped process continues.
    Continue,
    /// `SIGKILL`: the process ends at once.
    Kill,
}

/// Sends a signal to a process and to what it has started; false if there is no such process, or no such thing on this
/// system.
#[cfg(unix)]
pub(crate) fn send(pid: u32, signal: Signal) -> bool {
    use rustix::process::{Pid, kill_process_group};
    let signal = match signal {
        Signal::Stop => rustix::process::Signal::STOP,
        Signal::Continue => rustix::process::Signal::CONT,
        Signal::Kill => rustix::process::Signal::KILL,
    };
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| kill_process_group(pid, signal).is_ok())
}

/// Sends a signal; false if there is no such process, or no such thing on this system.
#[cfg(not(unix))]
pub(crate) fn send(_pid: u32, _signal: Signal) -> bool {
    false
}
