//! A server of PostgreSQL.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Guarded, program};
use crate::Error;

const USER: &str = "tests";

/// Makes a database with the program `initdb`.
pub(super) fn prepare() -> Result<(Guarded, PathBuf), Error> {
    let directories = directories();
    let find = |name: &str| program(&[name], &directories, "postgresql");
    let (initdb, program) = (find("initdb")?, find("postgres")?);
    let guarded = Guarded::new("postgres")?;
    give_away(&guarded.directory)?;
    let mut command = Command::new(initdb);
    command.arg("--pgdata").arg(guarded.path("data"));
    command.args(["--username", USER, "--auth=trust", "--no-sync", "--locale=C"]);
    command.args(["--encoding=UTF8"]).stdin(Stdio::null());
    let made = as_nobody(&mut command).output().map_err(Error::because("cannot start initdb"))?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr);
        return Err(Error::failed(format!("initdb failed, {}: {}", made.status, said.trim())));
    }
    Ok((guarded, program))
}

pub(super) fn url(address: SocketAddr) -> String {
    format!("postgres://{USER}@{address}/postgres?sslmode=disable")
}

pub(super) fn configure(
    command: &mut Command,
    guarded: &Guarded,
    port: u16,
    settings: &[(String, String)],
) {
    command.arg("-D").arg(guarded.path("data")).arg("-c").arg(format!("port={port}"));
    command.args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]);
    for (name, value) in settings {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    as_nobody(command);
}

/// The file that the server keeps while it runs says in its eighth line what it does.
pub(super) fn is_ready(directory: &Path, address: SocketAddr) -> bool {
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
    given.map_err(Error::because("cannot give the directory to the user nobody"))
}

#[cfg(not(unix))]
fn give_away(_: &Path) -> Result<(), Error> {
    Ok(())
}
