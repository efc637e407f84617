//! A server of PostgreSQL.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use super::{Guarded, LOOK, PATIENCE, failed, free_port, is_free, program};
use crate::Error;

const USER: &str = "tests";

/// A server of PostgreSQL on this machine, with the settings that it has by default: what it has confirmed survives that
/// it is killed. Dropping it ends it, and removes what it kept.
#[derive(Debug)]
pub struct PostgresServer {
    guarded: Guarded,
    program: PathBuf,
    port: u16,
    settings: Vec<(String, String)>,
}

impl PostgresServer {
    /// Makes a database with the program `initdb` and starts `postgres`, with these settings of `postgresql.conf`. As root,
    /// it runs as the user `nobody`, because PostgreSQL does not run as root.
    ///
    /// # Errors
    /// [`Error::Server`]: there are no such programs, or one of them fails.
    pub async fn start(settings: &[(String, String)]) -> Result<Self, Error> {
        let directories = directories();
        let find = |name: &str| program(&[name], &directories, "postgresql");
        let (initdb, program) = (find("initdb")?, find("postgres")?);
        let guarded = Guarded::new("postgres")?;
        give_away(&guarded.directory)?;
        let mut command = Command::new(initdb);
        command.arg("--pgdata").arg(guarded.path("data"));
        command.args(["--username", USER, "--auth=trust", "--no-sync", "--locale=C"]);
        command.args(["--encoding=UTF8"]).stdin(Stdio::null());
        let made = as_nobody(&mut command).output().map_err(failed("start initdb"))?;
        if !made.status.success() {
            let said = String::from_utf8_lossy(&made.stderr);
            let what = format!("initdb failed, {}: {}", made.status, said.trim());
            return Err(Error::Server { what, source: None });
        }
        let settings = settings.to_vec();
        let mut server = Self { guarded, program, port: free_port()?, settings };
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

    /// The URL for clients that connect to this address: the server's, or that of a proxy before it.
    pub fn url(address: SocketAddr) -> String {
        format!("postgres://{USER}@{address}/postgres?sslmode=disable")
    }

    /// Its first process, if it runs: the parent of all others.
    pub fn pid(&self) -> Option<u32> {
        self.guarded.pid()
    }

    /// Kills it, as a machine that fails does.
    pub fn kill(&mut self) {
        self.guarded.kill();
    }

    /// Starts it again, on the same port and with what it kept.
    ///
    /// # Errors
    /// [`Error::Server`] if it does not start.
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

    /// Starts the first process; `false` if it ended by itself.
    async fn launch(&mut self) -> Result<bool, Error> {
        let address = self.address();
        let mut command = Command::new(&self.program);
        command.arg("-D").arg(self.guarded.path("data"));
        for (name, value) in self.all_settings() {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        self.guarded.spawn(as_nobody(&mut command))?;
        self.guarded.until(|directory| is_ready(directory, address)).await
    }

    fn all_settings(&self) -> impl Iterator<Item = (&str, String)> {
        let own = [
            ("listen_addresses", "127.0.0.1".to_owned()),
            ("unix_socket_directories", String::new()),
            ("port", self.port.to_string()),
        ];
        own.into_iter().chain(self.settings.iter().map(|(name, value)| (&**name, value.clone())))
    }
}

/// The file that the server keeps while it runs says in its eighth line what it does.
fn is_ready(directory: &Path, address: SocketAddr) -> bool {
    let status = fs::read_to_string(directory.join("data/postmaster.pid")).unwrap_or_default();
    status.lines().nth(7).is_some_and(|line| line.trim() == "ready")
        && TcpStream::connect(address).is_ok()
}

/// Where the programs are that Debian does not put into the path, newest first.
fn directories() -> Vec<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<_> = versions.map(|version| version.path()).collect();
    versions.sort_unstable();
    versions.into_iter().rev().map(|version| version.join("bin")).collect()
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The number of the account `nobody`.
#[cfg(unix)]
fn nobody() -> u32 {
    let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let line = accounts.lines().find(|line| line.starts_with("nobody:"));
    line.and_then(|line| line.split(':').nth(2)?.parse().ok()).unwrap_or(65534)
}

#[cfg(unix)]
fn as_nobody(command: &mut Command) -> &mut Command {
    use std::os::unix::process::CommandExt as _;
    if is_root() {
        command.uid(nobody()).env("HOME", "/");
    }
    command.current_dir("/")
}

#[cfg(not(unix))]
fn as_nobody(command: &mut Command) -> &mut Command {
    command
}

#[cfg(unix)]
fn give_away(directory: &Path) -> Result<(), Error> {
    if !is_root() {
        return Ok(());
    }
    let given = std::os::unix::fs::chown(directory, Some(nobody()), None);
    given.map_err(failed("give the directory to the user nobody"))
}

#[cfg(not(unix))]
fn give_away(_: &Path) -> Result<(), Error> {
    Ok(())
}
