//! A server of Redis or Valkey.

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;

use super::{Guarded, free_port, is_free, program};
use crate::Error;

/// A server of Redis or Valkey on this machine, which writes each change to its file before it answers
/// (`appendfsync always`). Dropping it ends it, and removes what it kept.
#[derive(Debug)]
pub struct RedisServer {
    guarded: Guarded,
    program: PathBuf,
    port: u16,
    settings: Vec<(String, String)>,
}

impl RedisServer {
    /// Starts the program `redis-server` or `valkey-server`, with these further settings of its configuration. The
    /// variable `IDEMPOTENCY_REDIS_SERVER` names another program.
    ///
    /// # Errors
    /// [`Error::Server`]: there is no such program, or it does not start.
    pub async fn start(settings: &[(String, String)]) -> Result<Self, Error> {
        let program = match std::env::var_os("IDEMPOTENCY_REDIS_SERVER") {
            Some(program) => program.into(),
            None => program(&["redis-server", "valkey-server"], &[], "redis-server")?,
        };
        let settings = settings.to_vec();
        let (guarded, port) = (Guarded::new("redis")?, free_port()?);
        let mut server = Self { guarded, program, port, settings };
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
        format!("redis://{address}")
    }

    /// Its process, if it runs.
    pub fn pid(&self) -> Option<u32> {
        self.guarded.pid()
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.guarded.kill();
    }

    /// Starts it again, on the same port and with what it kept.
    ///
    /// # Errors
    /// [`Error::Server`] if it does not start.
    pub async fn run(&mut self) -> Result<(), Error> {
        match self.launch().await? {
            true => Ok(()),
            false => Err(self.guarded.does_not_start()),
        }
    }

    /// Starts the process; `false` if it ended by itself.
    async fn launch(&mut self) -> Result<bool, Error> {
        let mut command = Command::new(&self.program);
        command
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .args(["--appendonly", "yes", "--appendfsync", "always", "--dir"])
            .arg(&self.guarded.directory);
        for (name, value) in &self.settings {
            command.arg(format!("--{name}")).arg(value);
        }
        self.guarded.spawn(&mut command)?;
        let address = self.address();
        self.guarded.until(|_| is_loaded(address)).await
    }
}

/// Whether the server answers `PING`, as it does when it has read its files.
fn is_loaded(address: SocketAddr) -> bool {
    use std::io::{Read as _, Write as _};
    let answer = || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(super::LOOK * 100))?;
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 5];
        stream.read_exact(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    };
    // A server with a password is ready, too, when it asks for it.
    answer().is_ok_and(|answer| answer == *b"+PONG" || answer == *b"-NOAU")
}
