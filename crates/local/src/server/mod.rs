//! Servers of PostgreSQL and Redis, started from the programs of this machine: on a free port, in a new directory.
//!
//! A server ends with its value. It also ends, and its directory is removed, if this process is killed: a shell waits for
//! the end of its input, which this process has in its hands.

mod postgres;
mod redis;

use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::Error;

/// How long a server may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(10);

/// The lowest port of a server: few programs have a port of their own above.
const LOWEST: u16 = 10_000;

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// PostgreSQL, with the settings that it has by default: what it has confirmed survives that it is killed. As root, it
    /// runs as the user `nobody`, because PostgreSQL does not run as root.
    Postgres,
    /// Redis or Valkey, which writes each change to its file before it answers (`appendfsync always`). The variable
    /// `IDEMPOTENCY_REDIS_SERVER` names another program than `redis-server` or `valkey-server`.
    Redis,
}

impl ServerKind {
    /// The URL for clients that connect to this address: the server's, or that of a proxy before it.
    pub fn url(self, address: SocketAddr) -> String {
        match self {
            Self::Postgres => postgres::url(address),
            Self::Redis => format!("redis://{address}"),
        }
    }
}

/// A server on this machine. Dropping it ends it, and removes what it kept.
#[derive(Debug)]
pub struct StoreServer {
    kind: ServerKind,
    guarded: Guarded,
    program: PathBuf,
    port: u16,
    settings: Vec<(String, String)>,
}

impl StoreServer {
    /// Starts the server, with these further settings of its configuration.
    ///
    /// # Errors
    /// [`Error::Failed`]: there are no such programs, or one of them fails.
    pub async fn start(kind: ServerKind, settings: &[(String, String)]) -> Result<Self, Error> {
        let (guarded, program) = match kind {
            ServerKind::Postgres => postgres::prepare()?,
            ServerKind::Redis => redis::prepare()?,
        };
        let settings = settings.to_vec();
        let mut server = Self { kind, guarded, program, port: free_port()?, settings };
        while !server.launch().await? {
            if is_free(server.port) {
                return Err(server.guarded.does_not_start());
            }
            // Somebody else has taken it meanwhile.
            server.port = free_port()?;
        }
        Ok(server)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// The URL for clients that connect to it.
    pub fn url(&self) -> String {
        self.kind.url(self.address())
    }

    /// Which server it is.
    pub fn kind(&self) -> ServerKind {
        self.kind
    }

    /// Its first process, if it runs: the parent of all others.
    pub fn pid(&self) -> Option<u32> {
        self.guarded.process.as_ref().map(Child::id)
    }

    /// Kills it, as a machine that fails does.
    pub fn kill(&mut self) {
        self.guarded.kill();
    }

    /// Starts it again, on the same port and with what it kept.
    ///
    /// # Errors
    /// [`Error::Failed`] if it does not start.
    pub async fn run(&mut self) -> Result<(), Error> {
        let start = Instant::now();
        // The other processes of a server that was killed end by themselves, and it cannot start before.
        while start.elapsed() < PATIENCE {
            if self.launch().await? {
                return Ok(());
            }
            self.guarded.kill();
            tokio::time::sleep(LOOK * 10).await;
        }
        Err(self.guarded.does_not_start())
    }

    /// Starts the first process, and waits until it is ready; `false` if it ended by itself.
    async fn launch(&mut self) -> Result<bool, Error> {
        let (address, kind) = (self.address(), self.kind);
        let mut command = Command::new(&self.program);
        match kind {
            ServerKind::Postgres => {
                postgres::configure(&mut command, &self.guarded, self.port, &self.settings);
            }
            ServerKind::Redis => {
                redis::configure(&mut command, &self.guarded, self.port, &self.settings);
            }
        }
        self.guarded.spawn(&mut command)?;
        let is_ready = |directory: &Path| match kind {
            ServerKind::Postgres => postgres::is_ready(directory, address),
            ServerKind::Redis => redis::is_ready(address),
        };
        self.guarded.until(is_ready).await
    }
}

/// Reads the number of the process that runs, whenever it changes. At the end of its input it kills that process, and
/// removes the directory. The signals of a terminal, or to a group of processes, end this process and not the shell.
const GUARD: &str = "trap '' HUP INT TERM; running=0; while read -r next; do running=$next; done; \
     if [ \"$running\" -gt 0 ]; then kill -KILL \"$running\"; sleep 0.1; fi 2>/dev/null; \
     rm -rf \"$1\" || { sleep 1; rm -rf \"$1\"; }";

/// A directory with a process that works in it. Dropping it ends the process and removes the directory.
#[derive(Debug)]
struct Guarded {
    directory: PathBuf,
    process: Option<Child>,
    guard: Child,
}

impl Guarded {
    fn new(name: &str) -> Result<Self, Error> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lambda-idempotency-{name}-{}-{count}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir(&directory)
            .map_err(Error::because("cannot make a directory for the server"))?;
        let guard = Command::new("sh")
            .args(["-c", GUARD, "sh"])
            .arg(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(Error::because("cannot start a shell"))?;
        Ok(Self { directory, process: None, guard })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Starts the process; what it writes is added to the file `log`.
    fn spawn(&mut self, command: &mut Command) -> Result<(), Error> {
        let log = fs::File::options().create(true).append(true).open(self.path("log"));
        let log = log.map_err(Error::because("cannot write the log of the server"))?;
        let errors =
            log.try_clone().map_err(Error::because("cannot write the log of the server"))?;
        let process = command.stdin(Stdio::null()).stdout(log).stderr(errors).spawn();
        let process = process.map_err(Error::because("cannot start the server"))?;
        self.tell(process.id());
        self.process = Some(process);
        Ok(())
    }

    /// Whether the process has not ended by itself.
    fn is_running(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| matches!(process.try_wait(), Ok(None)))
    }

    fn kill(&mut self) {
        self.tell(0);
        if let Some(mut process) = self.process.take() {
            // An error means that it has ended already.
            let _ = (process.kill(), process.wait());
        }
    }

    fn tell(&mut self, pid: u32) {
        if let Some(input) = &mut self.guard.stdin {
            // The guard reads until it ends.
            let _ = writeln!(input, "{pid}");
        }
    }

    /// Waits until the server is ready; `false` if it ended instead.
    async fn until(&mut self, mut is_ready: impl FnMut(&Path) -> bool) -> Result<bool, Error> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if is_ready(&self.directory) {
                return Ok(true);
            }
            if !self.is_running() {
                return Ok(false);
            }
            tokio::time::sleep(LOOK).await;
        }
        Err(self.does_not_start())
    }

    fn does_not_start(&self) -> Error {
        let log = fs::read_to_string(self.path("log")).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        let last = lines.get(lines.len().saturating_sub(5)..).unwrap_or_default();
        let last = last.join("\n  ");
        Error::failed(format!(
            "the server of the store does not start; its log ends with:\n  {last}"
        ))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = (process.kill(), process.wait());
        }
        self.tell(0);
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// A port that nobody uses now, and that the system gives to nobody, also while a server that was killed is down.
fn free_port() -> Result<u16, Error> {
    let ports = LOWEST..given_from();
    let count = usize::from(ports.end.saturating_sub(ports.start)).max(1);
    let random = RandomState::new().hash_one(Instant::now());
    // So that tests that start at the same time do not all try the same.
    let skip = usize::try_from(random % count as u64).unwrap_or_default();
    let mut ports = ports.clone().skip(skip).chain(ports.take(skip));
    let free = ports.find(|port| is_free(*port));
    free.ok_or_else(|| Error::Listen(io::ErrorKind::AddrInUse.into()))
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

/// The first of the ports that the system gives to who does not name one.
fn given_from() -> u16 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_whitespace().next().and_then(|first| first.parse().ok());
    first.filter(|first| *first > LOWEST).unwrap_or(32_768)
}

/// Where a program is: in the path, or in one of these directories.
fn program(names: &[&str], others: &[PathBuf], package: &str) -> Result<PathBuf, Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<_> = std::env::split_paths(&path).chain(others.iter().cloned()).collect();
    let found = names.iter().flat_map(|name| directories.iter().map(move |at| at.join(name)));
    found.into_iter().find(|program| program.is_file()).ok_or_else(|| {
        Error::failed(format!(
            "there is no program `{}`: install the package `{package}` of Debian or Ubuntu",
            names.join("` or `")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise it could be taken while the server that has it is down.
    #[test]
    fn the_port_of_a_server_is_none_that_the_system_gives_away() {
        for _ in 0..100 {
            let port = free_port().unwrap();
            assert!((LOWEST..given_from()).contains(&port), "{port}");
        }
    }

    #[test]
    fn a_port_in_use_is_not_free() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(!is_free(listener.local_addr().unwrap().port()));
    }
}
