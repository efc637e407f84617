//! Captures what is logged, and the texts of values and errors; finds a canary in them.

use std::{
    error::Error,
    fmt::Debug,
    io,
    sync::{Arc, LazyLock, Mutex},
};

use tracing::{Dispatch, Subscriber, subscriber::DefaultGuard};
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

/// Tests plant this in everything that an application or a client chooses.
pub(crate) const CANARY: &str = "c4n4ry";

/// The canary as a line can show it: as text, as a list of bytes, in hexadecimal, and in base64, which depends on
/// where the canary begins.
const FORMS: [&str; 6] =
    [CANARY, "99, 52, 110, 52, 114, 121", "63346e347279", "YzRuNHJ5", "M0bjRye", "jNG40cn"];

/// A second subscriber, which nothing is given to. Where there is only one, a line that another thread reaches first is left
/// out for all: `tracing` then asks that thread's subscriber alone, and it has none.
static ANOTHER: LazyLock<Dispatch> =
    LazyLock::new(|| Dispatch::new(tracing_subscriber::registry()));

fn begin(subscriber: impl Subscriber + Send + Sync + 'static) -> DefaultGuard {
    LazyLock::force(&ANOTHER);
    tracing::subscriber::set_default(subscriber)
}

#[derive(Clone, Default)]
pub(crate) struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    /// Captures what this thread logs at every level, until the guard is dropped; but not what an embedded server logs.
    pub(crate) fn start(&self) -> DefaultGuard {
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::new("trace,dynoxide=off"))
            .with_ansi(false)
            .with_writer(self.clone())
            .finish();
        begin(subscriber)
    }

    /// Captures what this thread logs as `lambda_runtime` writes it with the log format JSON.
    pub(crate) fn start_as_lambda_does(&self) -> DefaultGuard {
        let subscriber = tracing_subscriber::fmt()
            .with_target(false)
            .without_time()
            .with_env_filter(EnvFilter::new("info"))
            .with_writer(self.clone())
            .json()
            .finish();
        begin(subscriber)
    }

    /// Adds the texts of an error and of all its sources.
    pub(crate) fn error(&self, error: &(dyn Error + 'static)) {
        let mut next = Some(error);
        while let Some(error) = next {
            self.add(&format!("{error}\n"));
            self.debug(error);
            next = error.source();
        }
    }

    /// Adds what `Debug` shows of a value, which users log, and the name of its type.
    pub(crate) fn debug(&self, what: &(impl Debug + ?Sized)) {
        self.add(&format!("{}: {what:?}\n{what:#?}\n", std::any::type_name_of_val(what)));
    }

    pub(crate) fn add(&self, text: &str) {
        self.0.lock().unwrap().extend(text.bytes());
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }

    /// The lines that have the canary.
    pub(crate) fn leaks(&self) -> Vec<String> {
        let has = |line: &&str| FORMS.iter().any(|form| line.contains(form));
        self.text().lines().filter(has).map(str::to_owned).collect()
    }

    /// Fails if a line has the canary, or if one of these texts, with `|` between them, was not captured.
    #[track_caller]
    pub(crate) fn assert_silent(&self, proofs: &str) {
        assert_eq!(self.leaks().first(), None);
        let text = self.text();
        let missing: Vec<_> = proofs.split('|').filter(|proof| !text.contains(proof)).collect();
        assert!(missing.is_empty(), "the test did not capture {missing:?}");
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
