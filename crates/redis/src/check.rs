//! The check of all servers when a store is built.

use std::time::Duration;

use crate::{
    config_error::RedisConfigError,
    error::Failure,
    retry::{Budget, backoff, budget},
    store::RedisStore,
};

/// How long the servers are tried to reach.
const START: Duration = Duration::from_secs(5);

impl RedisStore {
    /// Connects to each primary and checks that it can keep idempotency records: it accepts the login, is not a
    /// replica, has version 7 or later, and does not evict keys. What may pass is tried again for up to five seconds.
    ///
    /// Call it once, before the runtime starts: then a function that cannot work does not start. Without it the first
    /// calls report the same.
    ///
    /// # Errors
    /// [`RedisConfigError::Server`].
    pub async fn check(&self) -> Result<(), RedisConfigError> {
        let budget = budget(&self.config, self.config.timing.clock.now().plus(START));
        let checked = self.check_all(&budget).await;
        checked.map_err(|failure| RedisConfigError::Server(failure.report(false)))
    }

    async fn check_all(&self, budget: &Budget<'_>) -> Result<(), Failure> {
        let mut backoff = backoff(&self.config);
        loop {
            match self.check_once(budget).await {
                Err(failure) if failure.retry => {
                    self.servers.forget_map(None);
                    if !backoff.pause(budget).await {
                        return Err(failure);
                    }
                }
                checked => return checked,
            }
        }
    }

    async fn check_once(&self, budget: &Budget<'_>) -> Result<(), Failure> {
        for node in self.servers.map(budget).await?.primaries() {
            node.link(&self.config, budget).await?;
        }
        Ok(())
    }
}
