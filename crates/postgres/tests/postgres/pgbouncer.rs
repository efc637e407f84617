//! Starts PgBouncer for a test, in front of a server: each transaction may get another connection to it.

use std::{
    fs,
    net::SocketAddr,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use crate::server::{Postgres, USER, as_nobody, free_port, new_directory, program, url};

/// A running PgBouncer. Dropping it ends it.
pub(crate) struct PgBouncer {
    directory: std::path::PathBuf,
    port: u16,
    running: Child,
}

impl PgBouncer {
    /// In transaction mode, with two connections to the server, so that the clients have to share them.
    pub(crate) fn start(server: &Postgres) -> Self {
        Self::start_with(server, "")
    }

    /// With this line in its settings.
    pub(crate) fn start_with(server: &Postgres, setting: &str) -> Self {
        Self::before(server.address(), setting)
    }

    /// With one connection to the server, on which it runs this before others use it.
    pub(crate) fn start_with_query(server: &Postgres, query: &str) -> Self {
        let database = format!(" connect_query='{query}'");
        Self::run(server.address(), &database, "default_pool_size = 1")
    }

    /// In front of the server at this address.
    pub(crate) fn before(server: SocketAddr, setting: &str) -> Self {
        Self::run(server, "", setting)
    }

    fn run(server: SocketAddr, database: &str, setting: &str) -> Self {
        loop {
            let pooler = Self::spawn(server, database, setting);
            if pooler.listens() {
                return pooler;
            }
        }
    }

    fn spawn(server: SocketAddr, database: &str, setting: &str) -> Self {
        let (directory, port) = (new_directory("pgbouncer"), free_port());
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={}{database}\n\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n\
             default_pool_size = 2\nmax_client_conn = 200\n\
             {setting}\nlogfile = {}\n",
            server.port(),
            directory.join("log").display()
        );
        // `auth_type = any` logs everybody in as the user of the database.
        let settings = settings
            .replace("host=127.0.0.1", &format!("host=127.0.0.1 user={USER} dbname=postgres"));
        let file = directory.join("pgbouncer.ini");
        fs::write(&file, settings).expect("its settings");
        let mut command = Command::new("sh");
        command.args(["-c", "\"$@\" & read -r _; kill -TERM $!; wait", "sh"]);
        command.arg(program("pgbouncer")).arg("--quiet").arg(&file);
        let running = as_nobody(&mut command)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("PgBouncer starts");
        Self { directory, port, running }
    }

    /// Waits until it accepts connections; `false` if another process has taken the port meanwhile. To connect would not tell.
    fn listens(&self) -> bool {
        let start = Instant::now();
        loop {
            let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
            if log.contains("LOG listening on 127.0.0.1") {
                return true;
            }
            if log.contains("Address already in use") {
                return false;
            }
            let took = start.elapsed();
            assert!(took < Duration::from_secs(30), "PgBouncer does not start:\n{log}");
            sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    pub(crate) fn url(&self) -> String {
        url(self.address())
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        drop(self.running.stdin.take());
        let _ = self.running.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
