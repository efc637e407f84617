//! The function's standard output and error, line by line.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::task::coop::consume_budget;

use super::record_line::RecordLine;
use crate::http::Task;

/// A line that the function wrote.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OutputLine {
    /// The process that wrote it.
    pub pid: u32,
    /// The line, without its end.
    pub text: String,
    /// Whether it is the library's line about a record, which is also in the report.
    pub is_record: bool,
}

/// How many bytes are read at once.
const CHUNK: usize = 8 << 10;
/// From here on, what has no end of a line yet is taken for one: a function may print for ever.
const LONGEST: usize = 256 << 10;
/// How many bytes a pipe holds on Linux; more of it were written after the question.
const PIPE: usize = 64 << 10;

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

/// The lines of a process, as they come: those about records, and the last of the others.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) records: Vec<RecordLine>,
    pub(crate) last: VecDeque<String>,
}

/// How many lines are kept, for a function that does not start, and how many characters of each.
const KEPT: usize = 20;
const SHOWN: usize = 2000;

impl Lines {
    fn take(&mut self, text: &str, record: Option<RecordLine>) {
        if let Some(record) = record {
            let same = |line: &&mut RecordLine| {
                (&line.record, &line.operation) == (&record.record, &record.operation)
                    && !line.is_diverted
            };
            // Its sink was called after its outcome.
            match self.records.iter_mut().find(same) {
                Some(line) if record.is_diverted => line.is_diverted = true,
                Some(line) if record.not_diverted.is_some() => {
                    line.not_diverted = record.not_diverted
                }
                _ => self.records.push(record),
            }
            return;
        }
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(text.chars().take(SHOWN).collect());
    }
}

impl Reader {
    pub(crate) fn start(
        mut pipe: impl AsyncRead + Send + Unpin + 'static,
        pid: u32,
        lines: Arc<Mutex<Lines>>,
        on_output: OnOutput,
    ) -> Self {
        let (progress, mut asked) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
        let task = Task(tokio::spawn(async move {
            let line = |line: &[u8]| {
                let text = String::from_utf8_lossy(line).trim_end_matches('\r').to_owned();
                let record = RecordLine::parse(&text);
                let is_record = record.is_some();
                lines.lock().unwrap_or_else(PoisonError::into_inner).take(&text, record);
                on_output(OutputLine { pid, text, is_record });
            };
            let (mut read, mut questions) = (BytesMut::new(), Questions::default());
            loop {
                read.reserve(CHUNK);
                let is_asked = !questions.0.is_empty();
                // Biased: a question is answered when there is nothing left to read at the moment.
                let count = tokio::select! {
                    biased;
                    Some(question) = asked.recv() => {
                        questions.0.push((question, PIPE));
                        continue;
                    }
                    count = pipe.read_buf(&mut read) => count.unwrap_or(0),
                    // Not ready if the others were pending only because it is the turn of other tasks.
                    () = consume_budget(), if is_asked => {
                        questions.0.clear();
                        continue;
                    }
                };
                let mut begin = read.len() - count;
                while let Some(end) = read.iter().skip(begin).position(|byte| *byte == b'\n') {
                    let whole = read.split_to(begin + end + 1);
                    line(whole.strip_suffix(b"\n").unwrap_or(&whole));
                    begin = 0;
                }
                if read.len() >= LONGEST {
                    line(&read.split());
                }
                if count == 0 {
                    if !read.is_empty() {
                        line(&read);
                    }
                    // The stream has ended: dropping the questions answers them.
                    return;
                }
                questions.has_read(count);
            }
        }));
        Self { progress: Progress(progress), _task: task }
    }
}

/// A question to a reader, and how many bytes the pipe can still have that were in it then. Dropping a question answers
/// it.
#[derive(Default)]
struct Questions(Vec<(oneshot::Sender<()>, usize)>);

impl Questions {
    /// Answers those before which everything is read, although more has come since.
    fn has_read(&mut self, count: usize) {
        for (_, left) in &mut self.0 {
            *left = left.saturating_sub(count);
        }
        self.0.retain(|(_, left)| *left > 0);
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
            // A reader that ends at this moment may leave the question where it is.
            tokio::select! {
                _ = answered => {}
                () = self.0.closed() => {}
            }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncWriteExt as _, duplex, repeat};
    use tokio::time::timeout;

    use super::*;

    type Texts = Arc<Mutex<Vec<String>>>;

    fn start(pipe: impl AsyncRead + Send + Unpin + 'static) -> (Reader, Texts) {
        let texts = Texts::default();
        let read = Arc::clone(&texts);
        let on_output = Arc::new(move |line: OutputLine| read.lock().unwrap().push(line.text));
        (Reader::start(pipe, 1, Arc::default(), on_output), texts)
    }

    /// Such as a process that was stopped in the middle of its work, and continues.
    #[tokio::test]
    async fn a_question_is_answered_although_the_process_writes_without_pause() {
        let (reader, texts) = start(repeat(b'\n'));
        let answered = timeout(Duration::from_secs(20), reader.progress.drain()).await;
        assert!(answered.is_ok() && texts.lock().unwrap().len() >= PIPE);
    }

    #[tokio::test]
    async fn lines_are_read_whole_and_the_last_one_without_its_end() {
        let (mut process, pipe) = duplex(7);
        let (reader, texts) = start(pipe);
        process.write_all(b"one\r\ntwo, which is longer\n\nrest").await.unwrap();
        reader.progress.drain().await;
        assert_eq!(*texts.lock().unwrap(), ["one", "two, which is longer", ""]);
        drop(process);
        reader.progress.closed().await;
        reader.progress.drain().await;
        assert_eq!(texts.lock().unwrap().last().unwrap(), "rest");
    }

    #[tokio::test]
    async fn a_line_without_an_end_comes_in_pieces() {
        let (reader, texts) = start(repeat(b'x').take(3 * LONGEST as u64 + 5));
        reader.progress.closed().await;
        let texts = texts.lock().unwrap();
        assert!(texts.iter().all(|text| text.len() < 2 * LONGEST), "kept until its end");
        assert_eq!(texts.iter().map(String::len).sum::<usize>(), 3 * LONGEST + 5);
    }
}
