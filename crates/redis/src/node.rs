//! A server: its address, and the connection to it that requests share.

use std::time::Duration;

use futures_util::lock::Mutex;
use lambda_idempotency_core::clock::Timestamp;

use crate::{
    address::Address,
    config::Config,
    connection::Link,
    error::{self, Failure},
    retry::{Budget, within},
};

/// After so long without a request a connection is tried before it is used. The server, or something on the way, may
/// have closed it, and a write to it would be in doubt.
const IDLE: Duration = Duration::from_secs(10);
/// How long it may take to answer then.
const TRIED_WITHIN: Duration = Duration::from_millis(250);

pub(crate) struct Node {
    pub(crate) address: Address,
    link: Mutex<Option<Used>>,
}

struct Used {
    link: Link,
    at: Timestamp,
}

impl Node {
    pub(crate) fn new(address: Address) -> Self {
        Self { address, link: Mutex::new(None) }
    }

    /// The connection, which is made if there is none. One request makes it, and others wait for that.
    pub(crate) async fn link(&self, config: &Config, budget: &Budget<'_>) -> Result<Link, Failure> {
        match within(budget, config.connect_timeout, self.connected(config, budget)).await {
            Ok(link) => link,
            Err(_) => Err(error::not_connected(&self.address, "timed out".to_owned())),
        }
    }

    async fn connected(&self, config: &Config, budget: &Budget<'_>) -> Result<Link, Failure> {
        let mut kept = self.link.lock().await;
        let now = config.timing.clock.now();
        if let Some(used) = kept.as_mut().filter(|used| !used.link.was_left()) {
            let tried = if now.since(used.at) < IDLE {
                true
            } else {
                let alive = within(budget, TRIED_WITHIN, used.link.is_alive(&self.address)).await;
                matches!(alive, Ok(Ok(())))
            };
            if tried {
                used.at = now;
                return Ok(used.link.clone());
            }
        }
        *kept = None;
        let link = Link::open(config, &self.address).await?;
        *kept = Some(Used { link: link.clone(), at: now });
        Ok(link)
    }

    /// Stops using this connection. Requests that wait for it go on waiting. This does not wait for another call that
    /// is connecting, because no time may be left.
    pub(crate) fn leave(&self, link: &Link) {
        link.leave();
        if let Some(mut kept) = self.link.try_lock()
            && kept.as_ref().is_some_and(|used| used.link.was_left())
        {
            *kept = None;
        }
    }
}
