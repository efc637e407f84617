//! What a handler says when it fails.

use std::{any::type_name, error::Error, fmt, sync::Arc};

/// A boxed error.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A handler's failure, and whether trying again can help.
///
/// Any error converts to a failure that is tried again (unless the operation says
/// [`OnFailure::Remember`](crate::policy::OnFailure::Remember)), so that `?` works in a handler:
///
/// ```
/// use lambda_idempotency_core::failure::Failure;
///
/// fn quantity(text: &str) -> Result<u32, Failure> {
///     let quantity = text.parse()?; // tried again
///     if quantity == 0 {
///         return Err(Failure::remember("nothing was ordered")); // never again
///     }
///     Ok(quantity)
/// }
/// assert!(quantity("x").unwrap_err().is_retried());
/// assert!(!quantity("0").unwrap_err().is_retried());
/// ```
///
/// What a failure displays and what the library logs is the *type* of the error. Its message may
/// quote the payload; it is there for the handler's own logs, through [`error`](Self::error).
#[derive(Clone)]
pub struct Failure {
    error: Arc<dyn Error + Send + Sync>,
    class: &'static str,
    fate: Fate,
    of_sink: bool,
}

/// What a failure says about trying again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Nothing: the operation's policy decides.
    Unsaid,
    Retry,
    Remember,
}

impl Failure {
    /// The key is released; a later delivery calls the handler again, whatever the operation's
    /// policy is.
    #[must_use]
    pub fn retry<E: Into<BoxError>>(error: E) -> Self {
        Self {
            error: Arc::from(error.into()),
            class: class::<E>(),
            fate: Fate::Retry,
            of_sink: false,
        }
    }

    /// The failure is the outcome: it is recorded, and later deliveries get it as an answer.
    #[must_use]
    pub fn remember<E: Into<BoxError>>(error: E) -> Self {
        Self { fate: Fate::Remember, ..Self::retry(error) }
    }

    /// A handler that panicked. It says nothing about trying again, so the policy decides; whatever
    /// the panic said is not kept.
    pub(crate) fn panicked() -> Self {
        Self { class: "a panic", ..Self::from("the handler panicked") }
    }

    /// The failure of a sink, which was to put a record aside: it says so, and not that the record's
    /// handler failed.
    #[must_use]
    pub const fn of_sink(mut self) -> Self {
        self.of_sink = true;
        self
    }

    /// The error itself.
    #[must_use]
    pub fn error(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.error
    }

    /// The type of the error.
    #[must_use]
    pub const fn class(&self) -> &'static str {
        self.class
    }

    /// Whether a later delivery calls the handler again, unless the operation's policy is to
    /// remember the failures that do not say so.
    #[must_use]
    pub const fn is_retried(&self) -> bool {
        !matches!(self.fate, Fate::Remember)
    }

    /// Whether it was made by [`retry`](Self::retry).
    pub(crate) const fn is_retry_asked_for(&self) -> bool {
        matches!(self.fate, Fate::Retry)
    }
}

/// The name of the type, or of what a type that can hold any error stands for.
fn class<E>() -> &'static str {
    match type_name::<E>() {
        "&str" | "alloc::string::String" => "a message",
        boxed if boxed.starts_with("alloc::boxed::Box<dyn ") => "a boxed error",
        name => name,
    }
}

impl<E: Into<BoxError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { fate: Fate::Unsaid, ..Self::retry(error) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.of_sink { "putting the record aside" } else { "the handler" };
        write!(f, "{what} failed with {}", self.class)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failure({:?}, {})", self.fate, self.class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_names_the_type_and_never_the_message() {
        let failures = [
            (Failure::from(std::io::Error::other("s3cr3t")), "std::io::error::Error"),
            (Failure::retry("s3cr3t"), "a message"),
            (Failure::remember("s3cr3t".to_owned()), "a message"),
            (Failure::from(BoxError::from("s3cr3t")), "a boxed error"),
        ];
        for (failure, class) in failures {
            assert_eq!(failure.class(), class);
            assert!(!format!("{failure} {failure:?}").contains("s3cr3t"));
            assert_eq!(failure.error().to_string(), "s3cr3t");
        }
    }
}
