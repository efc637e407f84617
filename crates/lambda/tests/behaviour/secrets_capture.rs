//! Captures everything that is logged, and the texts of errors.

use std::{
    fmt::{Debug, Display},
    io,
    sync::{Arc, Mutex},
};

use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

#[derive(Clone, Default)]
pub(crate) struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    /// Captures what this thread logs at every level, until the guard is dropped.
    pub(crate) fn start(&self) -> tracing::subscriber::DefaultGuard {
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::new("trace"))
            .with_ansi(false)
            .with_writer(self.clone())
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    /// Captures what this thread logs as `lambda_runtime` writes it with the log format JSON.
    pub(crate) fn start_as_lambda_does(&self) -> tracing::subscriber::DefaultGuard {
        let subscriber = tracing_subscriber::fmt()
            .with_target(false)
            .without_time()
            .with_env_filter(EnvFilter::new("info"))
            .with_writer(self.clone())
            .json()
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    /// Adds the texts of an error and of all its sources.
    pub(crate) fn error(&self, error: &(impl std::error::Error + Clone)) {
        self.shown(error);
        let mut source = error.source();
        while let Some(error) = source {
            self.shown(&error);
            source = error.source();
        }
    }

    pub(crate) fn shown(&self, what: &(impl Display + Debug)) {
        self.add(&format!("{what}\n{what:?}\n{what:#?}\n"));
    }

    pub(crate) fn add(&self, text: &str) {
        self.0.lock().unwrap().extend(text.bytes());
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Captured {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
