//! A server: its address, and the connection to it that requests share.
//!
//! A program may stop polling a call that is connecting: one of a stream, while the body of a loop over it waits. So a call
//! never waits for another one to connect. All that need the connection connect together: whichever of them is polled goes
//! on for all.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lambda_idempotency_core::{
    clock::Timestamp,
    settings::{LoadPassword, NoPassword},
    together::{Together, WeakTogether},
};

use crate::{
    address::Address,
    config::Config,
    connection::Link,
    error::{self, Failure},
    retry::{Budget, budget, within},
};

/// After so long without a request a connection is tried before it is used. The server, or something on the way, may
/// have closed it, and a write to it would be in doubt.
const IDLE: Duration = Duration::from_secs(10);
/// How long it may take to answer then.
const TRIED_WITHIN: Duration = Duration::from_millis(250);

pub(crate) struct Node {
    pub(crate) address: Address,
    links: Arc<Mutex<Links>>,
}

#[derive(Default)]
struct Links {
    used: Option<Used>,
    /// It lasts as long as a call waits for it.
    next: Option<Next>,
}

/// The connection that requests share.
struct Used {
    link: Link,
    at: Timestamp,
}

/// The connection that is being made, or tried.
struct Next {
    connecting: WeakTogether<Connecting>,
    since: Timestamp,
}

type Connecting = Result<Link, Failure>;

impl Node {
    pub(crate) fn new(address: Address) -> Self {
        Self { address, links: Arc::default() }
    }

    /// The connection, which is made if there is none.
    pub(crate) async fn link(
        &self,
        config: &Arc<Config>,
        budget: &Budget<'_>,
    ) -> Result<Link, Failure> {
        let connecting = match self.used_or_connecting(config) {
            Ok(link) => return Ok(link),
            Err(connecting) => connecting,
        };
        match budget.within(budget.left(), connecting).await {
            Ok(link) => link,
            // That the server is not reached is known after `connect_timeout` only.
            Err(_) => Err(match loading_for(config, budget) {
                Some(late) => error::no_password(&self.address, NoPassword::Late(late)),
                None => error::ended_connecting(&self.address),
            }),
        }
    }

    fn used_or_connecting(&self, config: &Arc<Config>) -> Result<Link, Together<Connecting>> {
        let now = config.timing.clock.now();
        let mut links = lock(&self.links);
        let used = links.used.as_mut().filter(|used| !used.link.was_left());
        let idle = match used {
            Some(used) if now.since(used.at) < IDLE => {
                used.at = now;
                return Ok(used.link.clone());
            }
            used => used.map(|used| used.link.clone()),
        };
        // Not one that began long ago and that nobody has polled: the server may have closed it since. Nor one that has
        // failed, and is kept by a call that does not know yet.
        let next = links.next.as_ref().filter(|next| now.since(next.since) < longest(config));
        let connecting = next.and_then(|next| next.connecting.upgrade());
        if let Some(connecting) = connecting.filter(|connecting| connecting.peek().is_none()) {
            return Err(connecting);
        }
        let connecting =
            connect(Arc::clone(&self.links), Arc::clone(config), self.address.clone(), idle);
        let connecting = Together::new(Box::pin(connecting));
        let weak = connecting.downgrade();
        links.next = weak.map(|connecting| Next { connecting, since: now });
        Err(connecting)
    }

    /// Stops using this connection. Requests that wait for it go on waiting.
    pub(crate) fn leave(&self, link: &Link) {
        link.leave();
        let mut links = lock(&self.links);
        links.used.take_if(|used| used.link.was_left());
    }
}

/// Tries the idle connection, makes a new one if it does not answer, and keeps it for the next requests.
async fn connect(
    links: Arc<Mutex<Links>>,
    config: Arc<Config>,
    address: Address,
    idle: Option<Link>,
) -> Result<Link, Failure> {
    let budget = budget(&config, config.timing.clock.now().plus(longest(&config)));
    let mut alive = None;
    if let Some(link) = idle {
        let answer = within(&budget, TRIED_WITHIN, link.is_alive(&address)).await;
        if matches!(answer, Ok(Ok(()))) && !link.was_left() {
            alive = Some(link);
        } else {
            link.leave();
        }
    }
    let link = match alive {
        Some(link) => link,
        None => open(&config, &address, &budget).await?,
    };
    let used = Used { link: link.clone(), at: config.timing.clock.now() };
    lock(&links).used = Some(used);
    Ok(link)
}

/// Makes a new connection. If the server refuses the password that was loaded, somebody may have changed it since: it is loaded
/// once more.
async fn open(config: &Config, address: &Address, budget: &Budget<'_>) -> Result<Link, Failure> {
    let mut was_refused = false;
    loop {
        let password = match &config.load_password {
            Some(password) => Some(password.load(budget).await),
            None => None,
        };
        let password = password.transpose().map_err(|why| error::no_password(address, why))?;
        let is_loaded = password.is_some();
        let opening = Link::open(config, address, password, budget);
        let opened = within(budget, config.connect_timeout, opening).await;
        match opened.map_err(|_| timed_out(address))? {
            Err(failure) if is_loaded && !was_refused && error::is_of_password(&failure) => {
                was_refused = true;
            }
            opened => return opened,
        }
    }
}

/// How long making a connection may take, with a password that is loaded twice.
fn longest(config: &Config) -> Duration {
    match config.load_password {
        Some(_) => (LoadPassword::LIMIT.saturating_add(config.connect_timeout)).saturating_mul(2),
        None => config.connect_timeout,
    }
}

fn loading_for(config: &Config, budget: &Budget<'_>) -> Option<Duration> {
    config.load_password.as_ref()?.loading_for(budget.now())
}

fn timed_out(address: &Address) -> Failure {
    error::not_connected(address, "timed out".to_owned())
}

// A panic cannot leave them half-changed, so a poisoned lock is still sound.
fn lock(links: &Mutex<Links>) -> MutexGuard<'_, Links> {
    links.lock().unwrap_or_else(PoisonError::into_inner)
}
