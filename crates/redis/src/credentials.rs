//! Credentials that change: who logs in is asked for each new connection.

use std::{error::Error, fmt, future::Future, sync::Arc};

use lambda_idempotency_core::clock::BoxFuture;

use crate::address::Login;

/// A user and its password, or a token in its place. `Debug` shows neither.
#[derive(Clone)]
pub struct RedisCredentials(pub(crate) Login);

impl RedisCredentials {
    /// This user with this password or token.
    #[must_use]
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self(Login { user: Some(user.into()), password: Some(password.into()) })
    }
}

impl fmt::Debug for RedisCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisCredentials").finish_non_exhaustive()
    }
}

/// The user's function that has the credentials.
pub(crate) type Provider = Arc<dyn Fn() -> BoxFuture<'static, Option<RedisCredentials>> + Send + Sync>;

/// Wraps the user's function. Its error may hold a secret, so it is not passed on.
pub(crate) fn provider<F, R, E>(function: F) -> Provider
where
    F: Fn() -> R + Send + Sync + 'static,
    R: Future<Output = Result<RedisCredentials, E>> + Send + 'static,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    Arc::new(move || {
        let credentials = function();
        Box::pin(async move { credentials.await.ok() })
    })
}
