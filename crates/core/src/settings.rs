//! Settings that the builders of stores have in common, for crates that implement a [`Store`](crate::store::Store).

use std::{
    env::{self, VarError},
    error::Error,
    fmt,
    future::{Future, pending},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    clock::{BoxFuture, Timestamp},
    contained::{Ended, run},
    retry::Budget,
    together::Together,
};

/// The user's function that loads the password of a new connection. Its error is left out, because it may hold the
/// password.
///
/// Loading has a [time of its own](Self::LIMIT), which no limit of a connection cuts off: a call that ends meanwhile leaves it to
/// the next one, and all calls that need a password at the same time load it together.
///
/// ```
/// use lambda_idempotency_core::{
///     clock::Timestamp, retry::Timing, settings::LoadPassword,
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let password = LoadPassword::new(|| async { Ok::<_, std::io::Error>("s3cr3t".to_owned()) });
/// let timing = Timing::default();
/// let budget = timing.budget(Timestamp::from_secs(4_000_000_000));
/// assert_eq!(password.load(&budget).await, Ok("s3cr3t".to_owned()));
/// assert_eq!(format!("{password:?}"), "LoadPassword");
/// # }
/// ```
#[derive(Clone)]
pub struct LoadPassword {
    load: Arc<Load>,
    running: Arc<Mutex<Option<Loading>>>,
}

type Load = dyn Fn() -> BoxFuture<'static, Option<String>> + Send + Sync;

/// A password that calls load together.
#[derive(Clone)]
struct Loading {
    password: Together<Option<String>>,
    since: Timestamp,
}

/// Why there is no password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPassword {
    /// The function failed or panicked.
    #[error("the function given to `password` failed")]
    Failed,
    /// It has not returned for so long.
    #[error("the function given to `password` has not returned for {} ms", .0.as_millis())]
    Late(Duration),
}

impl LoadPassword {
    /// How long loading may take.
    pub const LIMIT: Duration = Duration::from_secs(10);

    /// Loads the password with this function.
    pub fn new<F, L, E>(load: F) -> Self
    where
        F: AsyncFnOnce() -> Result<String, E> + FnOnce() -> L + Clone + Send + Sync + 'static,
        L: Future<Output = Result<String, E>> + Send + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        let load = move || -> BoxFuture<'static, Option<String>> {
            let loading = load.clone()();
            Box::pin(async move { loading.await.ok() })
        };
        Self { load: Arc::new(load), running: Arc::default() }
    }

    /// The password. A function that panics has failed: calls that did not ask for it may share the connection.
    ///
    /// # Errors
    /// The function failed, or the call or the [limit](Self::LIMIT) ended before it returned.
    pub async fn load(&self, budget: &Budget<'_>) -> Result<String, NoPassword> {
        let Loading { password, since } = self.running(budget.now());
        let limit = Self::LIMIT.saturating_sub(budget.now().since(since)).min(budget.left());
        let loaded = budget.within(limit, password).await;
        let took = budget.now().since(since);
        if loaded.is_ok() || took >= Self::LIMIT {
            self.lock().take_if(|running| running.since == since);
        }
        match loaded {
            Ok(password) => password.ok_or(NoPassword::Failed),
            Err(_) => Err(NoPassword::Late(took)),
        }
    }

    /// For how long a call has loaded the password, if one does.
    #[must_use]
    pub fn loading_for(&self, now: Timestamp) -> Option<Duration> {
        let running = self.lock();
        let is_running = |running: &&Loading| running.password.peek().is_none();
        running.as_ref().filter(is_running).map(|running| now.since(running.since))
    }

    /// The loading that runs, unless it began so long ago that its process was frozen, or its password may be old.
    fn running(&self, now: Timestamp) -> Loading {
        let mut running = self.lock();
        if let Some(running) = running.as_ref().filter(|r| now.since(r.since) < Self::LIMIT) {
            return running.clone();
        }
        let password = Together::new(Box::pin(contained(Arc::clone(&self.load))));
        running.insert(Loading { password, since: now }).clone()
    }

    // A panic cannot leave it half-changed, so a poisoned lock is still sound.
    fn lock(&self) -> MutexGuard<'_, Option<Loading>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The password that the function returns; `None` if it failed or panicked.
async fn contained(load: Arc<Load>) -> Option<String> {
    match run(|| load(), pending()).await {
        Ended::Through(password) => password,
        _ => None,
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
    use std::{
        future::Ready,
        io,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use tokio::time::Instant;

    use super::*;
    use crate::{clock::Clock, retry::Timing};

    #[tokio::test]
    async fn a_password_function_that_panics_fails() {
        async fn late() -> Result<String, io::Error> {
            tokio::task::yield_now().await;
            panic!("told to")
        }
        fn early() -> Ready<Result<String, io::Error>> {
            panic!("told to")
        }
        let timing = Timing::default();
        let budget = timing.budget(timing.clock.now().plus(LoadPassword::LIMIT));
        for password in [LoadPassword::new(late), LoadPassword::new(early)] {
            assert_eq!(password.load(&budget).await, Err(NoPassword::Failed));
        }
    }

    /// Each try has less time than the function takes.
    #[tokio::test(start_paused = true)]
    async fn loading_goes_on_over_the_calls_that_end_meanwhile_and_not_for_ever() {
        let begun = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&begun);
        let (clock, start) = (Arc::new(Paused(Instant::now())), Timestamp::EPOCH);
        let timing = Timing { clock, ..Timing::default() };
        let try_for = async |password: &LoadPassword, millis| {
            let budget = timing.budget(timing.clock.now().plus(Duration::from_millis(millis)));
            password.load(&budget).await
        };
        let slow = LoadPassword::new(move || {
            let count = counted.fetch_add(1, Ordering::Relaxed);
            async move {
                tokio::time::sleep(Duration::from_secs(if count == 0 { 3 } else { 30 })).await;
                Ok::<_, io::Error>(format!("password {count}"))
            }
        });
        let late = |millis| Err(NoPassword::Late(Duration::from_millis(millis)));
        assert_eq!(try_for(&slow, 1000).await, late(1001));
        assert_eq!(try_for(&slow, 1000).await, late(2002));
        assert_eq!(slow.loading_for(timing.clock.now()), Some(timing.clock.now().since(start)));
        let (first, second) = tokio::join!(try_for(&slow, 5000), try_for(&slow, 5000));
        assert_eq!((first, second), (Ok("password 0".into()), Ok("password 0".into())));
        assert_eq!((begun.load(Ordering::Relaxed), slow.loading_for(start)), (1, None));
        // The next one never returns in time, and is begun anew after its limit.
        let text = try_for(&slow, 60_000).await.unwrap_err().to_string();
        assert!(text.contains("has not returned for 1000"), "{text}");
        try_for(&slow, 1000).await.unwrap_err();
        assert_eq!(begun.load(Ordering::Relaxed), 3);
    }

    /// Tokio's time, which stands still while anything can be done.
    struct Paused(Instant);

    impl Clock for Paused {
        fn now(&self) -> Timestamp {
            Timestamp::EPOCH.plus(self.0.elapsed())
        }

        fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
            Box::pin(tokio::time::sleep(duration))
        }
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
