//! Starts PostgreSQL for a test, on a free port and in a new directory.

use std::{
    fs,
    io::Write,
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    thread::sleep,
    time::{Duration, Instant},
};

use lambda_idempotency_core::record::Owner;
use rustix::process::{Pid, Signal, geteuid, kill_process};

const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const USER: &str = "tests";

/// Runs a program in a directory, and ends when the program does. If the input ends, because this process ended or
/// dropped it, it ends the program and removes the directory.
const GUARD: &str = "exec 3<&0; directory=$1; shift; \"$@\" 3<&- & running=$!; \
     { read -r _ <&3 && exit; kill -QUIT $running; while kill -0 $running; do sleep 0.02; done; \
     rm -rf \"$directory\"; } 2>/dev/null & wait $running";

/// A PostgreSQL server. Dropping it ends it and removes its directory, also at the end of the process.
pub(crate) struct Postgres {
    directory: PathBuf,
    port: u16,
    settings: Vec<String>,
    running: Option<Child>,
}

impl Postgres {
    /// A server for all tests that neither end it nor need settings. Each has a table of its own.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// A server that keeps what it has confirmed if it is killed, though not if the machine is.
    pub(crate) fn start() -> Self {
        Self::start_with(&["fsync=off"])
    }

    /// With these settings of `postgresql.conf`.
    pub(crate) fn start_with(settings: &[&str]) -> Self {
        Self::start_on(free_port, settings)
    }

    /// On the first of these ports that no other process has.
    fn start_on(mut port: impl FnMut() -> u16, settings: &[&str]) -> Self {
        let directory = new_directory("postgres");
        let data = directory.join("data");
        let made = as_nobody(&mut Command::new(program("initdb")))
            .arg("--pgdata")
            .arg(&data)
            .args([
                "--username",
                USER,
                "--auth=trust",
                "--no-sync",
                "--locale=C",
                "--encoding=UTF8",
            ])
            .stdin(Stdio::null())
            .output()
            .expect("initdb starts");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let settings = settings.iter().map(ToString::to_string).collect();
        let mut server = Self { directory, port: port(), settings, running: None };
        // Another process may have taken the port meanwhile.
        while !server.runs() {
            let log = server.log();
            assert!(log.contains("Address already in use"), "PostgreSQL does not start:\n{log}");
            fs::remove_file(server.directory.join("log")).expect("its log");
            server.port = port();
        }
        server
    }

    /// Makes it a standby that has lost its primary, at its next start.
    pub(crate) fn make_standby(&self) {
        fs::write(self.directory.join("data/standby.signal"), "").expect("the file of a standby");
    }

    pub(crate) fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    pub(crate) fn url(&self) -> String {
        url(self.address())
    }

    /// Kills it, as a machine that fails does.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.wait();
    }

    /// Ends it as its operators do: open transactions are rolled back, and clients are told.
    pub(crate) fn stop(&mut self) {
        self.signal(Signal::INT);
        self.wait();
    }

    /// Runs it again, on the same port.
    pub(crate) fn run(&mut self) {
        // A server that was killed leaves children, which end by themselves, and so does their memory.
        let start = Instant::now();
        while !self.runs() {
            assert!(start.elapsed() < PATIENCE, "PostgreSQL does not start:\n{}", self.log());
            sleep(Duration::from_millis(200));
        }
    }

    /// Starts the program; `false` if it ended.
    fn runs(&mut self) -> bool {
        let child = self.spawn();
        self.running = Some(child);
        let listens = self.listens();
        if !listens {
            self.wait();
        }
        listens
    }

    fn spawn(&self) -> Child {
        let log = fs::File::options().create(true).append(true).open(self.directory.join("log"));
        let log = log.expect("a log file");
        let mut command = Command::new("sh");
        command.args(["-c", GUARD, "sh"]).arg(&self.directory);
        command.arg(program("postgres")).arg("-D").arg(self.directory.join("data"));
        command.args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]);
        command.arg("-c").arg(format!("port={}", self.port));
        for setting in &self.settings {
            command.arg("-c").arg(setting);
        }
        as_nobody(&mut command)
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("the log file"))
            .stderr(log)
            .spawn()
            .expect("PostgreSQL starts")
    }

    /// Waits until it accepts connections; `false` if it ended instead.
    fn listens(&mut self) -> bool {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let status = fs::read_to_string(self.directory.join("data/postmaster.pid"));
            if status
                .is_ok_and(|text| text.lines().nth(7).is_some_and(|line| line.trim() == "ready"))
                && TcpStream::connect(self.address()).is_ok()
            {
                return true;
            }
            let guard = self.running.as_mut().expect("it was started");
            if guard.try_wait().expect("the status").is_some() {
                return false;
            }
            sleep(Duration::from_millis(20));
        }
        false
    }

    /// Its first process, if it runs: the parent of all others.
    pub(crate) fn pid(&self) -> Option<Pid> {
        let text = fs::read_to_string(self.directory.join("data/postmaster.pid")).ok()?;
        Pid::from_raw(text.lines().next()?.trim().parse().ok()?)
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid().expect("PostgreSQL runs"), signal).expect("it can be signalled");
    }

    /// Waits until it has ended. Its directory stays.
    fn wait(&mut self) {
        let Some(mut guard) = self.running.take() else { return };
        let start = Instant::now();
        while guard.try_wait().expect("the status").is_none() {
            assert!(start.elapsed() < PATIENCE, "PostgreSQL does not end:\n{}", self.log());
            sleep(Duration::from_millis(20));
        }
        let mut input = guard.stdin.take().expect("the input of the shell");
        input.write_all(b"\n").expect("the shell reads");
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        match self.running.take() {
            Some(mut guard) => {
                drop(guard.stdin.take());
                let _ = guard.wait();
            }
            None => drop(fs::remove_dir_all(&self.directory)),
        }
    }
}

pub(crate) fn url(address: SocketAddr) -> String {
    format!("postgres://{USER}@{address}/postgres?sslmode=disable")
}

/// A new directory that the server's account may use.
pub(crate) fn new_directory(name: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("idempotency-{name}-{}-{number}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    fs::create_dir(&directory).expect("a new directory");
    if geteuid().is_root() {
        std::os::unix::fs::chown(&directory, Some(nobody()), None).expect("it can be given away");
    }
    directory
}

/// PostgreSQL refuses to run as root.
pub(crate) fn as_nobody(command: &mut Command) -> &mut Command {
    if geteuid().is_root() {
        command.uid(nobody()).env("HOME", "/");
    }
    command.current_dir("/")
}

/// The number of the account `nobody`.
fn nobody() -> u32 {
    let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let line = accounts.lines().find(|line| line.starts_with("nobody:"));
    line.and_then(|line| line.split(':').nth(2)?.parse().ok()).unwrap_or(65534)
}

/// A port that nobody listens on now, and that the kernel gives to nobody who asks for any.
pub(crate) fn free_port() -> u16 {
    const LOWEST: u16 = 10_000;
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_whitespace().next().and_then(|first| first.parse().ok());
    let end = first.filter(|first| *first > LOWEST).unwrap_or(32_768);
    // Other processes look for ports as well, so each begins somewhere else.
    let random = Owner::random().expect("random bits").to_bits();
    let random = u16::try_from(random % u128::from(end - LOWEST)).expect("it is below the end");
    let mut ports = (LOWEST + random..end).chain(LOWEST..LOWEST + random);
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.find(is_free).expect("a free port")
}

#[test]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
fn a_server_whose_port_is_taken_gets_another() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut ports = vec![free_port(), taken.local_addr().expect("its address").port()];
    let server =
        Postgres::start_on(|| ports.pop().expect("the second port is free"), &["fsync=off"]);
    assert_ne!(server.address(), taken.local_addr().expect("its address"));
    assert!(ports.is_empty(), "both were used");
}

/// Where a program of PostgreSQL is: Debian does not put them into the path.
pub(crate) fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<_> = std::env::split_paths(&path).collect();
    folders.push("/usr/sbin".into());
    if let Ok(versions) = fs::read_dir("/usr/lib/postgresql") {
        let mut versions: Vec<_> = versions.flatten().map(|version| version.path()).collect();
        versions.sort();
        folders.extend(versions.into_iter().rev().map(|version| version.join("bin")));
    }
    let programs = folders.into_iter().map(|folder| folder.join(name));
    programs.into_iter().find(|program| program.is_file()).unwrap_or_else(|| {
        panic!(
            "there is no {name}: install the packages `postgresql` and `pgbouncer` of Debian or Ubuntu"
        )
    })
}
