//! What a handler returns when it fails.

use std::{
    any::{Any, type_name},
    error::Error,
    fmt,
    sync::Arc,
};

use crate::{
    contained::{Contained, caught},
    effects::RefusedEffect,
    record::Json,
};

/// A boxed error.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A handler's failure, and whether another attempt can succeed.
///
/// Any error converts to a failure that is tried again, so that `?` works in a handler:
///
/// ```
/// use lambda_idempotency_core::failure::Failure;
///
/// fn quantity(text: &str) -> Result<u32, Failure> {
///     let quantity = text.parse()?; // called again
///     if quantity == 0 {
///         return Err(Failure::permanent("nothing was ordered")); // never called again
///     }
///     Ok(quantity)
/// }
/// assert!(!quantity("x").unwrap_err().is_permanent());
/// assert!(quantity("0").unwrap_err().is_permanent());
/// ```
///
/// `Display` and the library's logs show the *type* of the error, not its message, which may quote
/// the payload. The message is available to the application through [`error`](Self::error), and
/// `TracingObserver::showing_error_messages` logs it.
#[derive(Clone)]
pub struct Failure {
    error: Contained<Arc<dyn Error + Send + Sync>>,
    error_type: &'static str,
    is_permanent: bool,
    /// The answer to the caller of a direct invocation, in place of an error.
    answer: Option<Json>,
}

/// The most characters of an error's messages that are logged, because an error may hold a whole
/// response.
const LONGEST_MESSAGE: usize = 2000;

impl Failure {
    /// The key is released, and a later delivery calls the handler again, as after any error. Attempts that the operation
    /// limits still end.
    #[must_use]
    pub fn transient<E: Into<BoxError>>(error: E) -> Self {
        Self {
            error: Contained::new(Arc::from(error.into())),
            error_type: type_name_of::<E>(),
            is_permanent: false,
            answer: None,
        }
    }

    /// As [`transient`](Self::transient), and the caller of a direct invocation gets this answer in place of an error: for
    /// callers that find in the answer whether they have to try again, such as S3 Batch Operations. Nothing is kept of it.
    ///
    /// The invocation then succeeds, so that Lambda does not repeat an asynchronous one. Once the failure is permanent,
    /// because the operation allows no more attempts, the caller gets an error. Other sources ignore the answer.
    ///
    /// ```
    /// use lambda_idempotency_core::failure::Failure;
    /// use serde_json::json;
    ///
    /// let busy = Failure::answering("the bucket is throttled", json!({ "resultCode": "TemporaryFailure" }));
    /// assert!(!busy.is_permanent());
    /// ```
    #[must_use]
    pub fn answering<E: Into<BoxError>>(error: E, answer: serde_json::Value) -> Self {
        Self { answer: Some(answer.to_string().into()), ..Self::transient(error) }
    }

    /// The failure is permanent: it is recorded, and it answers later deliveries. The handler is not called again for the
    /// key.
    #[must_use]
    pub fn permanent<E: Into<BoxError>>(error: E) -> Self {
        Self { is_permanent: true, ..Self::transient(error) }
    }

    /// The failure of a handler that panicked, which is called again. The panic's message is the error's message.
    #[must_use]
    pub fn panicked(payload: &(dyn Any + Send)) -> Self {
        let said = payload.downcast_ref::<&str>().copied();
        let said = said.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let message =
            said.map_or_else(|| "it panicked".to_owned(), |said| format!("it panicked: {said}"));
        Self { error_type: "a panic", ..Self::from(message) }
    }

    /// The failure of a handler that returned, and one of whose effects the store refused.
    #[must_use]
    pub fn refused(refused: RefusedEffect) -> Self {
        let error_type = refused.reason().error_type();
        Self { error_type, ..Self::from(refused) }
    }

    /// The failure of a key that has lost so many workers in a row that it is not tried again.
    #[must_use]
    pub fn lost(losses: u32) -> Self {
        let message = format!(
            "{losses} worker(s) in a row were lost while they had this key, so its handler is not called again \
             (`max_lost_attempts`): find out what ends the process, then free the key (`records free`)"
        );
        Self { error_type: "lost attempts", ..Self::permanent(message) }
    }

    /// The failure with the name of this type: for a layer that returns the error itself to its caller.
    #[must_use]
    pub fn of_type<E>(self) -> Self {
        Self { error_type: type_name_of::<E>(), ..self }
    }

    /// The error's message. May quote payloads.
    pub fn message(&self) -> String {
        said(self.error())
    }

    /// The error's message and those of its sources, in one line. They may quote payloads: log them
    /// only if the user turned that on.
    pub fn messages(&self) -> String {
        let mut text = self.message();
        let mut next = source(self.error());
        while let Some(error) = next
            && text.len() < LONGEST_MESSAGE
        {
            text.push_str(": ");
            text.push_str(&said(error));
            next = source(error);
        }
        let end = text.char_indices().nth(LONGEST_MESSAGE).map(|(end, _)| end);
        if let Some(end) = end {
            text.truncate(end);
            text.push('…');
        }
        text
    }

    /// The error itself.
    #[must_use]
    pub fn error(&self) -> &(dyn Error + Send + Sync + 'static) {
        // Only the destructor takes the error out.
        self.error.get().map_or(&fmt::Error, |error| &**error)
    }

    /// The answer to the caller of a direct invocation, in place of an error, as JSON text.
    #[must_use]
    pub const fn answer(&self) -> Option<&Json> {
        self.answer.as_ref()
    }

    /// The type of the error.
    #[must_use]
    pub const fn error_type(&self) -> &'static str {
        self.error_type
    }

    /// Whether the failure was declared permanent, so that the handler is not called again.
    #[must_use]
    pub const fn is_permanent(&self) -> bool {
        self.is_permanent
    }
}

/// The message of an error. Its `Display` is user code and may panic.
fn said(error: &dyn Error) -> String {
    caught(|| error.to_string()).unwrap_or_else(|| {
        "the `Display` of the error panicked, so its message is not known".into()
    })
}

/// The cause of an error.
fn source(error: &dyn Error) -> Option<&(dyn Error + 'static)> {
    caught(|| error.source()).flatten()
}

/// The name of the type, or a description if the type can hold any error.
fn type_name_of<E>() -> &'static str {
    match type_name::<E>() {
        "&str" | "alloc::string::String" => "a text",
        boxed if boxed.starts_with("alloc::boxed::Box<dyn ") => "a boxed error",
        name => name,
    }
}

impl<E: Into<BoxError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::transient(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the handler failed with {}", self.error_type)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let permanent = if self.is_permanent { "permanent, " } else { "" };
        write!(f, "Failure({permanent}{})", self.error_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_type_is_a_type_and_never_the_message() {
        let failures = [
            (Failure::from(std::io::Error::other("s3cr3t")), "std::io::error::Error"),
            (Failure::transient("s3cr3t"), "a text"),
            (Failure::permanent("s3cr3t".to_owned()), "a text"),
            (Failure::from(BoxError::from("s3cr3t")), "a boxed error"),
        ];
        for (failure, error_type) in failures {
            assert_eq!(failure.error_type(), error_type);
            assert!(!format!("{failure} {failure:?}").contains("s3cr3t"));
            assert_eq!(failure.error().to_string(), "s3cr3t");
        }
    }

    #[derive(Debug, thiserror::Error)]
    #[error("payment declined")]
    struct Declined(#[source] std::io::Error);

    #[test]
    fn messages_are_those_of_the_whole_chain_and_are_cut_off() {
        let declined = Declined(std::io::Error::other("connection reset"));
        assert_eq!(Failure::from(declined).messages(), "payment declined: connection reset");
        let long = Failure::from("é".repeat(3000)).messages();
        assert_eq!((long.chars().count(), long.ends_with('…')), (LONGEST_MESSAGE + 1, true));
    }

    #[test]
    fn a_panic_is_a_failure_with_its_message() {
        let panics: [(Box<dyn Any + Send>, &str); 3] = [
            (Box::new("s3cr3t"), "it panicked: s3cr3t"),
            (Box::new("s3cr3t".to_owned()), "it panicked: s3cr3t"),
            (Box::new(7), "it panicked"),
        ];
        for (payload, message) in panics {
            let failure = Failure::panicked(&*payload);
            assert_eq!((failure.error_type(), &*failure.messages()), ("a panic", message));
            assert!(!format!("{failure} {failure:?}").contains("s3cr3t"));
        }
    }
}
