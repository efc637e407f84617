//! The check of all servers when a store is built.

use std::time::Duration;

use lambda_idempotency_core::{clock::Timestamp, store::StoreError};
use redis::Value;

use crate::{
    config::RedisConfigError,
    error::{self, Failure},
    limits::{Budget, backoff, budget},
    store::RedisStore,
};

/// How long the servers are tried to reach.
const START: Duration = Duration::from_secs(5);

impl RedisStore {
    /// Connects to each primary and checks that it can keep idempotency records: it accepts the login, is not a
    /// replica, has version 7 or later, does not evict keys, and has no clock that is further ahead than
    /// [`expiry_margin`](crate::RedisStoreBuilder::expiry_margin). A failure that may pass is tried again for up to five seconds.
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

    /// The time by the clock of one of the servers (`TIME`). A worker does not need it: stores decide by their own
    /// [`clock`](crate::RedisStoreBuilder::clock). A tool on a machine whose clock may be wrong does.
    ///
    /// # Errors
    /// The server did not answer until `call_deadline`, or refused.
    pub async fn server_time(&self, call_deadline: Timestamp) -> Result<Timestamp, StoreError> {
        let budget = budget(&self.config, call_deadline);
        let mut backoff = backoff(&self.config);
        loop {
            match self.time(&budget).await {
                Err(failure) if failure.retry && backoff.pause(&budget).await => {}
                time => return time.map_err(|failure| failure.report(false)),
            }
        }
    }

    async fn time(&self, budget: &Budget<'_>) -> Result<Timestamp, Failure> {
        let primaries = self.servers.map(budget).await?.primaries();
        let node = primaries.first().ok_or_else(|| error::no_server(&self.config.address))?;
        let link = node.link(&self.config, budget).await?;
        let answer = node.ask(&link, redis::cmd("TIME"), budget).await?;
        read_time(&answer).ok_or_else(|| error::unreadable(&node.address))
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

/// Seconds and microseconds.
fn read_time(answer: &Value) -> Option<Timestamp> {
    let Value::Array(parts) = answer else { return None };
    let [Value::BulkString(seconds), Value::BulkString(micros)] = &**parts else { return None };
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<u64>().ok();
    let millis = number(seconds)?.checked_mul(1000)?;
    Some(Timestamp::from_millis(millis.checked_add(number(micros)? / 1000)?))
}
