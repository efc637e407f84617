//! A server: its address, and the connection to it that requests share. Their commands are sent one behind the other.
//!
//! No task reads or writes it. The requests that wait for answers drive it together: whichever of them is polled moves
//! the bytes of all. So nothing of the store goes on when no call does, and a frozen process resumes where it stood.
//!
//! A program may stop polling a call that is connecting: one of a stream, while the body of a loop over it waits. So a call
//! never waits for another one to connect. All that need the connection connect together: whichever of them is polled goes
//! on for all.

use std::{
    io,
    net::SocketAddr,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::{Either, select};
use lambda_idempotency_core::{
    clock::Timestamp,
    settings::{LoadPassword, NoPassword},
    together::{Together, WeakTogether},
};
use redis::{
    AsyncConnectionConfig, Cmd, IntoConnectionInfo as _, Pipeline, RedisError, Value,
    aio::MultiplexedConnection,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, lookup_host},
};

use crate::{
    config::{Address, Config, Login},
    error::{self, Failure, server_failure},
    handshake::{self, Facts},
    limits::{Budget, attempt, budget, within},
};

/// How many requests may wait to be sent: more than there are calls. For room among fewer, calls would queue, and one that
/// its program does not poll any more would keep the room that it is given. Room takes no memory, and the requests that
/// wait exist anyway.
const MOST_WAITING: usize = 1 << 20;

/// A connection that is ready. Clones share it.
#[derive(Clone)]
pub(crate) struct Link {
    connection: MultiplexedConnection,
    driver: Together<()>,
    /// No new request is to use it.
    left: Arc<AtomicBool>,
    /// The server's words about itself.
    pub(crate) facts: Facts,
}

impl Link {
    /// Connects and logs in, loads the scripts, and refuses a server that cannot keep idempotency records. A password
    /// counts in place of one in the URL.
    pub(crate) async fn open(
        config: &Config,
        address: &Address,
        password: Option<String>,
        budget: &Budget<'_>,
    ) -> Result<Self, Failure> {
        let mut login = config.login.clone();
        login.password = password.or(login.password);
        let unreachable =
            |error: io::Error| error::not_connected(address, error.kind().to_string());
        // The kind of this error is `uncategorized error`.
        let unknown = |_| error::not_connected(address, "its name was not found".to_owned());
        let found = lookup_host((&*address.host, address.port)).await.map_err(unknown)?;
        let tcp = reach(&found.collect::<Vec<_>>(), budget).await.map_err(unreachable)?;
        tcp.set_nodelay(true).map_err(unreachable)?;
        let (connection, driver) = match &config.tls {
            None => over(tcp).await,
            Some(tls) => over(tls.connect(&address.host, tcp).await.map_err(unreachable)?).await,
        }
        .map_err(|error| error::not_connected(address, format!("{:?}", error.kind())))?;
        let left = Arc::new(AtomicBool::new(false));
        let mut link = Self { connection, driver, left, facts: Facts::default() };
        link.facts = link.greet(config, address, &login).await?;
        Ok(link)
    }

    async fn greet(
        &self,
        config: &Config,
        address: &Address,
        login: &Login,
    ) -> Result<Facts, Failure> {
        let greeting = handshake::commands(config, login);
        let answers = self.send(&greeting).await;
        // Nothing that changes anything was sent.
        let settled = |failure: Failure| failure.with_doubt(false);
        let answers = answers.map_err(|error| settled(error::broken(address, &error)))?;
        handshake::facts(config, address, login, answers).map_err(settled)
    }

    /// Sends the commands and waits for their answers, one each. Errors of the server are among the answers.
    pub(crate) async fn send(&self, commands: &Pipeline) -> Result<Vec<Value>, RedisError> {
        let mut connection = self.connection.clone();
        let answers = pin!(connection.send_packed_commands(commands, 0, commands.len()));
        match select(answers, self.driver.clone()).await {
            Either::Left((answers, _)) => answers,
            // The connection ended. The request has either its answers or an error.
            Either::Right(((), answers)) => answers.await,
        }
    }

    /// Whether the server answers.
    pub(crate) async fn is_alive(&self, address: &Address) -> Result<(), Failure> {
        let mut ping = Pipeline::with_capacity(1);
        ping.cmd("PING");
        match self.send(&ping).await {
            Err(error) => Err(error::broken(address, &error)),
            Ok(answers) => match answers.first() {
                Some(Value::ServerError(error)) => Err(server_failure(address, error)),
                _ => Ok(()),
            },
        }
    }

    /// Lets no new request use it.
    pub(crate) fn leave(&self) {
        self.left.store(true, Ordering::Relaxed);
    }

    pub(crate) fn was_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }
}

/// Connects to the first of these addresses that answers. A name may be that of all servers of a cluster, and one that is
/// gone keeps no time of those behind it.
async fn reach(addresses: &[SocketAddr], budget: &Budget<'_>) -> io::Result<TcpStream> {
    let mut failed = io::Error::from(io::ErrorKind::NotFound);
    let count = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
    for (left, address) in (1..=count).rev().zip(addresses) {
        match within(budget, budget.left() / left, TcpStream::connect(address)).await {
            Ok(Ok(tcp)) => return Ok(tcp),
            Ok(Err(error)) => failed = error,
            Err(_) => failed = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(failed)
}

type Parts = (MultiplexedConnection, Together<()>);

/// The protocol over a stream. Sends nothing yet.
async fn over<S>(stream: S) -> Result<Parts, RedisError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // The address is not used. Time limits are those of the call, by its clock.
    let settings = ("localhost", 0).into_connection_info()?;
    let settings = settings.redis_settings().clone().set_skip_set_lib_name();
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(None)
        .set_pipeline_buffer_size(MOST_WAITING);
    let (connection, driver) =
        MultiplexedConnection::new_with_config(&settings, stream, config).await?;
    Ok((connection, Together::new(Box::pin(driver))))
}

/// After so long without a request a connection is tried before it is used. The server, or something on the way, may
/// have closed it, and a write to it would be in doubt.
const IDLE: Duration = Duration::from_secs(10);
/// How often the limit of a connection is doubled at most.
const MOST_DOUBLED: u32 = 3;
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
    next: Option<Making>,
    /// How often making one has taken too long since the last one was made.
    late: u32,
}

/// The connection that requests share.
struct Used {
    link: Link,
    at: Timestamp,
}

/// The connection that is being made, or tried.
struct Making {
    connecting: WeakTogether<Connecting>,
    until: Timestamp,
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
        let next = links.next.as_ref().filter(|next| now < next.until);
        let connecting = next.and_then(|next| next.connecting.upgrade());
        if let Some(connecting) = connecting.filter(|connecting| connecting.peek().is_none()) {
            return Err(connecting);
        }
        let limit = config
            .connect_timeout
            .saturating_mul(2u32.saturating_pow(links.late.min(MOST_DOUBLED)));
        let until = now.plus(longest(config, limit));
        let (address, shared) = (self.address.clone(), Arc::clone(&self.links));
        let connecting = connect(shared, Arc::clone(config), address, idle, (limit, until));
        let connecting = Together::new(Box::pin(connecting));
        let weak = connecting.downgrade();
        links.next = weak.map(|connecting| Making { connecting, until });
        Err(connecting)
    }

    /// Sends a command on this connection, and waits for its answer.
    pub(crate) async fn ask(
        &self,
        link: &Link,
        command: Cmd,
        budget: &Budget<'_>,
    ) -> Result<Value, Failure> {
        let mut commands = Pipeline::with_capacity(1);
        commands.add_command(command);
        let failure = match attempt(budget, link.send(&commands)).await {
            Ok(Ok(mut answers)) => {
                return match answers.pop() {
                    Some(Value::ServerError(error)) => Err(server_failure(&self.address, &error)),
                    Some(answer) => Ok(answer),
                    None => Err(error::unreadable(&self.address)),
                };
            }
            Ok(Err(error)) => error::broken(&self.address, &error),
            Err(late) => error::timed_out(&self.address, late),
        };
        self.leave(link);
        Err(failure)
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
    (limit, until): (Duration, Timestamp),
) -> Result<Link, Failure> {
    let budget = budget(&config, until);
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
        None => match open(&config, &address, limit, &budget).await {
            Some(opened) => opened?,
            None => {
                let mut links = lock(&links);
                links.late = links.late.saturating_add(1);
                return Err(timed_out(&address));
            }
        },
    };
    let used = Used { link: link.clone(), at: config.timing.clock.now() };
    let mut links = lock(&links);
    (links.used, links.late) = (Some(used), 0);
    Ok(link)
}

/// Makes a new connection; `None` if that takes longer than `limit`. If the server refuses the password that was loaded,
/// somebody may have changed it since: it is loaded once more.
async fn open(
    config: &Config,
    address: &Address,
    limit: Duration,
    budget: &Budget<'_>,
) -> Option<Result<Link, Failure>> {
    let mut was_refused = false;
    loop {
        let password = match &config.load_password {
            Some(password) => Some(password.load(budget).await),
            None => None,
        };
        let password = match password.transpose() {
            Ok(password) => password,
            Err(why) => return Some(Err(error::no_password(address, why))),
        };
        let is_loaded = password.is_some();
        let opening = Link::open(config, address, password, budget);
        match within(budget, limit, opening).await.ok()? {
            Err(failure) if is_loaded && !was_refused && error::is_of_password(&failure) => {
                was_refused = true;
            }
            opened => return Some(opened),
        }
    }
}

/// How long making a connection may take that has this limit, with a password that is loaded twice.
fn longest(config: &Config, limit: Duration) -> Duration {
    match config.load_password {
        Some(_) => LoadPassword::LIMIT.saturating_add(limit).saturating_mul(2),
        None => limit,
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

#[cfg(test)]
mod tests {
    use lambda_idempotency_core::clock::{Clock as _, SystemClock};
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    /// As if its machine was gone: a server that takes no more connections answers none that is new.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn an_address_that_does_not_answer_keeps_no_time_of_those_behind_it() {
        let full = TcpSocket::new_v4().unwrap();
        full.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let full = full.listen(1).unwrap();
        let gone = full.local_addr().unwrap();
        let budget = |millis| {
            let until = SystemClock.now().plus(Duration::from_millis(millis));
            Budget::new(&SystemClock, Duration::from_secs(1), until)
        };
        let mut taken = Vec::new();
        while let Ok(Ok(tcp)) = within(&budget(200), Duration::MAX, TcpStream::connect(gone)).await
        {
            taken.push(tcp);
        }
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addresses = [gone, server.local_addr().unwrap()];
        reach(&addresses, &budget(1000)).await.unwrap();
        let late = reach(&addresses[..1], &budget(200)).await.unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        assert_eq!(reach(&[], &budget(200)).await.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
