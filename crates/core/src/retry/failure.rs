//! A request that failed.

use std::error::Error;

use crate::store::{StoreError, StoreErrorKind};

/// A failed request of a store, and whether another may succeed. A store makes one from each error of its server, and
/// [reports](Self::report) the last one when the call ends.
///
/// `D` is what the store has to know of it besides, for instance that it has to connect again.
///
/// ```
/// use lambda_idempotency_core::retry::RequestFailure;
///
/// let failure: RequestFailure = RequestFailure::unanswered("writing to table orders: no answer within 1000 ms");
/// assert!(failure.retry && failure.report(false).may_have_applied());
/// ```
#[derive(Clone, Debug)]
pub struct RequestFailure<D = ()> {
    kind: StoreErrorKind,
    context: String,
    cause: Option<Cause>,
    /// Another request may succeed.
    pub retry: bool,
    /// The write may have been applied, or may still be applied.
    pub in_doubt: bool,
    /// A detail that the store has to know besides.
    pub detail: D,
}

/// The words of the server or the connection.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
struct Cause(String);

impl<D: Default> RequestFailure<D> {
    /// A request that was not applied, and that would fail again. `context` says what failed and what to do; it must not
    /// hold a payload or a raw key.
    #[must_use]
    pub fn new(kind: StoreErrorKind, context: impl Into<String>) -> Self {
        let (context, detail) = (context.into(), D::default());
        Self { kind, context, cause: None, retry: false, in_doubt: false, detail }
    }

    /// A request that was not applied, and that may succeed if it is sent again.
    #[must_use]
    pub fn transient(kind: StoreErrorKind, context: impl Into<String>) -> Self {
        Self { retry: true, ..Self::new(kind, context) }
    }

    /// A request without a response, or with one that says nothing. It may have been applied.
    #[must_use]
    pub fn unanswered(context: impl Into<String>) -> Self {
        Self { in_doubt: true, ..Self::transient(StoreErrorKind::Unavailable, context) }
    }
}

impl<D> RequestFailure<D> {
    /// Sets the class of the error.
    #[must_use]
    pub fn with_kind(self, kind: StoreErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// Sets whether the write may have been applied.
    #[must_use]
    pub fn with_doubt(self, in_doubt: bool) -> Self {
        Self { in_doubt, ..self }
    }

    /// Adds what the store has to know of it besides.
    #[must_use]
    pub fn with_detail(self, detail: D) -> Self {
        Self { detail, ..self }
    }

    /// Adds what the server or the connection said. It must not hold data: see [`unquoted`].
    #[must_use]
    pub fn because(self, cause: impl Into<String>) -> Self {
        Self { cause: Some(Cause(cause.into())), ..self }
    }

    /// The class of the error.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// The words of the server or the connection, if they are known.
    #[must_use]
    pub fn cause(&self) -> Option<&str> {
        self.cause.as_ref().map(|Cause(said)| said.as_str())
    }

    /// The error to report, given whether an earlier attempt was left in doubt.
    #[must_use]
    pub fn report(self, in_doubt: bool) -> StoreError {
        let context = if in_doubt && !self.in_doubt {
            let context = self.context;
            format!("an attempt had no answer and may have been applied; after it: {context}")
        } else {
            self.context
        };
        let error = StoreError::new(self.kind, context).with_doubt(in_doubt || self.in_doubt);
        match self.cause {
            Some(cause) => error.with_source(cause),
            None => error,
        }
    }
}

/// The message of a server up to its first quotation, because the rest may be data.
#[must_use]
pub fn unquoted(message: &str) -> &str {
    let quotes = ['\'', '"', '{', '[', '`', '«', '„', '»', '“', '”', '‘', '’'];
    let end = message.find(quotes).unwrap_or(message.len());
    message.get(..end).unwrap_or_default().trim_end()
}

/// An error and its causes in one line, for errors of connections, which quote no data.
#[must_use]
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_that_an_earlier_attempt_is_in_doubt() {
        let refused =
            RequestFailure::<()>::new(StoreErrorKind::Refused, "refused").because("22000");
        let error = refused.clone().report(true);
        assert!(error.may_have_applied());
        assert_eq!(
            error.to_string(),
            "refused by the store: an attempt had no answer and may have been applied; after it: refused"
        );
        let error = refused.report(false);
        assert!(!error.may_have_applied());
        assert_eq!(chain(&error), "refused by the store: refused: 22000");
    }

    #[test]
    fn a_message_ends_before_what_it_quotes() {
        for message in ["value of key \"s3cr3t\"", "value of key 's3cr3t'", "value of key „s3cr3t“"]
        {
            assert_eq!(unquoted(message), "value of key");
        }
        assert_eq!(unquoted("no space left"), "no space left");
    }
}
