//! Why a command failed, and what the user can do about it.

use std::{error::Error, fmt};

/// A usage or environment error: exit code 2.
#[derive(Debug)]
pub(crate) struct Failure {
    error: Box<dyn Error + Send + Sync>,
    remedy: Option<String>,
}

impl Failure {
    /// Adds what to do.
    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Names the file that it is about.
    #[cfg(feature = "records")]
    pub(crate) fn in_file(mut self, path: &std::path::Path) -> Self {
        self.error = format!("{}: {}", path.display(), self.error).into();
        self
    }

    /// The error of this type among the error and its causes.
    #[cfg(feature = "records")]
    pub(crate) fn cause<E: Error + 'static>(&self) -> Option<&E> {
        let mut error: &(dyn Error + 'static) = &*self.error;
        loop {
            match error.downcast_ref() {
                Some(found) => return Some(found),
                None => error = error.source()?,
            }
        }
    }
}

/// The error, those causes that its own text does not contain, and the remedy.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.error.to_string();
        write!(f, "{message}")?;
        let mut cause = self.error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !message.contains(&text) {
                write!(f, "\n  because: {text}")?;
            }
            cause = error.source();
        }
        self.remedy.iter().try_for_each(|remedy| write!(f, "\n\n  {remedy}"))
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { error: error.into(), remedy: None }
    }
}

/// A command that needs a feature of Cargo with which this program was not built.
#[cfg(not(all(feature = "local", feature = "chaos", feature = "records", feature = "prove")))]
pub(crate) fn left_out(what: &str, feature: &str) -> Failure {
    Failure::from(format!("{what} is not compiled in")).remedy(format!(
        "Install the command line with the feature `{feature}`:\n    cargo install --locked --git {} \
         lambda-idempotency-cli --features {feature}",
        env!("CARGO_PKG_REPOSITORY")
    ))
}
