//! A server of Redis or Valkey.

use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;

use super::{Guarded, program};
use crate::Error;

pub(super) fn prepare() -> Result<(Guarded, PathBuf), Error> {
    let program = match std::env::var_os("IDEMPOTENCY_REDIS_SERVER") {
        Some(program) => program.into(),
        None => program(&["redis-server", "valkey-server"], &[], "redis-server")?,
    };
    Ok((Guarded::new("redis")?, program))
}

pub(super) fn configure(
    command: &mut Command,
    guarded: &Guarded,
    port: u16,
    settings: &[(String, String)],
) {
    command
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
        .args(["--appendonly", "yes", "--appendfsync", "always", "--dir"])
        .arg(&guarded.directory);
    for (name, value) in settings {
        command.arg(format!("--{name}")).arg(value);
    }
}

/// Whether the server answers `PING`, as it does when it has read its files.
pub(super) fn is_ready(address: SocketAddr) -> bool {
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
