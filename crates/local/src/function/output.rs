//! The function's standard output and error, line by line.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::sync::{mpsc, oneshot};

use super::RecordLine;
use crate::http::Task;

/// A line that the function wrote.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OutputLine {
    /// The process that wrote it.
    pub pid: u32,
    /// The stream to which the process wrote it.
    pub stream: Stream,
    /// The line, without its end.
    pub text: String,
    /// Whether it is the library's line about a record, which is also in the report.
    pub is_record: bool,
}

/// One of a process's two output streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

pub(crate) type OnOutput = Arc<dyn Fn(OutputLine) + Send + Sync>;

/// Reads one stream in the background until it ends.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) progress: Progress,
    _task: Task,
}

/// How far a reader is, for who does not own it.
#[derive(Clone, Debug)]
pub(crate) struct Progress(mpsc::UnboundedSender<oneshot::Sender<()>>);

/// The record lines of a process, as they come.
pub(crate) type RecordLines = Arc<Mutex<Vec<RecordLine>>>;

impl Reader {
    pub(crate) fn start(
        stream: Stream,
        pipe: impl AsyncRead + Send + Unpin + 'static,
        pid: u32,
        record_lines: RecordLines,
        on_output: OnOutput,
    ) -> Self {
        let (progress, mut asked) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
        let task = Task(tokio::spawn(async move {
            let mut lines = BufReader::new(pipe).split(b'\n');
            loop {
                // Biased: a question is answered only when there is nothing left to read at the moment.
                tokio::select! {
                    biased;
                    line = lines.next_segment() => match line {
                        Ok(Some(line)) => {
                            let text = String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
                            let record = RecordLine::parse(&text);
                            let is_record = record.is_some();
                            record_lines.lock().unwrap_or_else(PoisonError::into_inner).extend(record);
                            on_output(OutputLine { pid, stream, text, is_record });
                        }
                        // The stream has ended: dropping `asked` with the task answers all open questions.
                        Ok(None) | Err(_) => return,
                    },
                    Some(answer) = asked.recv() => { let _ = answer.send(()); }
                }
            }
        }));
        Self { progress: Progress(progress), _task: task }
    }
}

impl Progress {
    /// Waits until everything that the process has written so far has been read, and the callback has returned.
    ///
    /// The process writes a line before the request or answer that tells of it. So whoever has seen what follows from
    /// that finds the line in the pipe: the event loop has seen it first. But the task that reads it may still wait for
    /// a thread.
    pub(crate) async fn drain(&self) {
        let (answer, answered) = oneshot::channel();
        if self.0.send(answer).is_ok() {
            let _ = answered.await;
        }
    }

    /// Waits until the stream ends: the process is dead, and so are its children.
    pub(crate) async fn closed(&self) {
        self.0.closed().await;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}
