//! The check of all servers when a store is built.

use crate::{
    error::Failure,
    retry::{Backoff, Budget},
    store::RedisStore,
};

impl RedisStore {
    /// Connects to each primary, which checks it. What may pass is tried again.
    pub(crate) async fn check(&self, budget: &Budget<'_>) -> Result<(), Failure> {
        let mut backoff = Backoff::new(&self.config);
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
