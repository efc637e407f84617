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
    drained: mpsc::UnboundedSender<oneshot::Sender<()>>,
    _task: Task,
}

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
        let (drained, mut asked) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
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
        Self { drained, _task: task }
    }

    /// Waits until everything that the process has written so far has been read.
    ///
    /// The process writes its lines before it posts its answer. So after an answer the lines are in the pipe, and the
    /// event loop, which has seen the answer, has seen them too.
    pub(crate) async fn drain(&self) {
        let (answer, answered) = oneshot::channel();
        if self.drained.send(answer).is_ok() {
            let _ = answered.await;
        }
    }

    /// Waits until the stream ends: the process is dead, and so are its children.
    pub(crate) async fn closed(&self) {
        self.drained.closed().await;
    }
}
