//! What the builders of stores have in common, for crates that implement a [`Store`](crate::store::Store).

use std::{
    env::{self, VarError},
    error::Error,
    fmt,
    future::{Future, poll_fn},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use crate::{
    clock::{BoxFuture, Clock, SystemClock, Timestamp},
    contained::{Contained, caught},
    retry::{Backoff, Budget},
};

/// How long one request may take before it is sent again.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause after a failed attempt, and the most it grows to.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(400));

/// The times of a store's requests.
#[derive(Clone)]
#[non_exhaustive]
pub struct Timing {
    /// How long one request may take before it is sent again. Default 1 s.
    pub attempt_timeout: Duration,
    /// The pause after a failed attempt, and the most it doubles to. Default 25 ms and 400 ms.
    pub backoff: (Duration, Duration),
    /// The clock. Default: the machine's.
    pub clock: Arc<dyn Clock>,
}

impl Default for Timing {
    fn default() -> Self {
        let clock = Arc::new(SystemClock);
        Self { attempt_timeout: ATTEMPT_TIMEOUT, backoff: BACKOFF, clock }
    }
}

impl Timing {
    /// The time of one call of the store.
    #[must_use]
    pub fn budget(&self, call_deadline: Timestamp) -> Budget<'_> {
        Budget::new(&*self.clock, self.attempt_timeout, call_deadline)
    }

    /// The pauses between the requests of a call. `shortest` is the least time for a request.
    #[must_use]
    pub fn backoff(&self, shortest: Duration) -> Backoff {
        Backoff::new(self.backoff, shortest)
    }
}

impl fmt::Debug for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timing")
            .field("attempt_timeout", &self.attempt_timeout)
            .field("backoff", &self.backoff)
            .finish_non_exhaustive()
    }
}

/// The user's function that loads the password of a new connection. Its error is left out, because it may hold the
/// password.
///
/// ```
/// use lambda_idempotency_core::settings::LoadPassword;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let password = LoadPassword::new(|| async { Ok::<_, std::io::Error>("s3cr3t".to_owned()) });
/// assert_eq!(password.load().await.as_deref(), Some("s3cr3t"));
/// assert_eq!(format!("{password:?}"), "LoadPassword");
/// # }
/// ```
#[derive(Clone)]
pub struct LoadPassword(Arc<dyn Fn() -> BoxFuture<'static, Option<String>> + Send + Sync>);

impl LoadPassword {
    /// Loads the password with this function.
    pub fn new<F, L, E>(load: F) -> Self
    where
        F: Fn() -> L + Send + Sync + 'static,
        L: Future<Output = Result<String, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        Self(Arc::new(move || {
            let loading = load();
            Box::pin(async move { loading.await.ok() })
        }))
    }

    /// The password; `None` if the function failed or panicked: calls that did not ask for it may share the connection.
    pub async fn load(&self) -> Option<String> {
        let mut loading = Contained::new(caught(|| (self.0)())?);
        poll_fn(|cx| {
            let polled = loading.get_mut().and_then(|loading| caught(|| loading.as_mut().poll(cx)));
            polled.unwrap_or(Poll::Ready(None))
        })
        .await
    }
}

impl fmt::Debug for LoadPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LoadPassword")
    }
}

/// An environment variable whose value is not valid UTF-8 text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {0} is not valid UTF-8 text")]
pub struct NotText(pub &'static str);

/// The value of an environment variable, without the white space around it; `None` if it is not set, or empty.
///
/// # Errors
/// [`NotText`]: its value is not valid UTF-8 text, so what it says is not known.
pub fn variable(name: &'static str) -> Result<Option<String>, NotText> {
    value(env::var(name)).map_err(|()| NotText(name))
}

fn value(read: Result<String, VarError>) -> Result<Option<String>, ()> {
    match read {
        Ok(value) => Ok(Some(value.trim().to_owned()).filter(|value| !value.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use std::{future::Ready, io};

    use super::*;

    #[tokio::test]
    async fn a_password_function_that_panics_fails() {
        async fn late() -> Result<String, io::Error> {
            tokio::task::yield_now().await;
            panic!("told to")
        }
        fn early() -> Ready<Result<String, io::Error>> {
            panic!("told to")
        }
        assert_eq!(LoadPassword::new(late).load().await, None);
        assert_eq!(LoadPassword::new(early).load().await, None);
    }

    #[test]
    fn a_variable_that_is_not_text_is_not_taken_for_unset() {
        assert_eq!(value(Err(VarError::NotPresent)), Ok(None));
        assert_eq!(value(Ok(" \n".into())), Ok(None));
        assert_eq!(value(Ok(" redis://cache\n".into())), Ok(Some("redis://cache".into())));
        assert_eq!(value(Err(VarError::NotUnicode("?".into()))), Err(()));
        let text = NotText("IDEMPOTENCY_STORE").to_string();
        assert!(text.contains("IDEMPOTENCY_STORE is not valid UTF-8"), "{text}");
    }
}
