//! Starts PostgreSQL, PgBouncer and Redis for tests, each on free ports and in a new directory.

use std::{
    fs,
    hash::{BuildHasher as _, Hasher as _, RandomState},
    io::Write as _,
    net::{SocketAddr, TcpListener},
    os::unix::{
        fs::{MetadataExt as _, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    thread::sleep,
    time::{Duration, Instant},
};

/// Far longer than anything takes that ends.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The user of PostgreSQL.
pub(crate) const USER: &str = "tests";

/// Runs a program in a directory, and ends when the program does. If the input ends, because this process ended or
/// dropped it, it ends the program and removes the directory.
const GUARD: &str = "exec 3<&0; directory=$1; signal=$2; shift 2; \"$@\" 3<&- & running=$!; echo $running >pid; \
     { read -r _ <&3 && exit; kill -$signal $running; while kill -0 $running; do sleep 0.02; done; \
     rm -rf \"$directory\"; } 2>/dev/null & wait $running";

#[derive(Clone, Copy)]
struct Kind {
    /// Its log has these words when it accepts connections. To connect would not tell: another process may have the port.
    ready: &'static str,
    /// The signal that ends it and all of its processes.
    end: &'static str,
    url: fn(SocketAddr) -> String,
}

const POSTGRES: Kind =
    Kind { ready: "database system is ready to accept", end: "QUIT", url: postgres_url };
const PGBOUNCER: Kind = Kind { ready: "listening on 127.0.0.1", end: "KILL", url: postgres_url };
const REDIS: Kind = Kind {
    ready: "Ready to accept connections",
    end: "KILL",
    url: |address| format!("redis://{address}"),
};

/// A server. Dropping it ends it and removes its directory, also at the end of the process.
pub(crate) struct Server {
    pub(crate) port: u16,
    /// More free ports, for whatever else it listens on.
    pub(crate) more_ports: [u16; 2],
    pub(crate) directory: PathBuf,
    kind: Kind,
    /// The program and its arguments.
    words: Vec<String>,
    running: Option<Child>,
}

impl Server {
    /// A PostgreSQL for all tests that neither end it nor need settings. Each has a table of its own.
    pub(crate) fn shared_postgres() -> &'static Self {
        static SHARED: OnceLock<Server> = OnceLock::new();
        SHARED.get_or_init(|| Self::postgres(&["fsync=off"]))
    }

    /// With these settings of `postgresql.conf`. Without `fsync`, it keeps what it has confirmed if it is killed, though
    /// not if the machine is.
    pub(crate) fn postgres(settings: &[&str]) -> Self {
        let directory = new_directory("postgres");
        let data = directory.join("data").display().to_string();
        let made = owned(&directory, "initdb")
            .args(["--pgdata", &data, "--username", USER, "--auth=trust", "--no-sync"])
            .args(["--locale=C", "--encoding=UTF8"])
            .output()
            .expect("initdb starts");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        Self::start(POSTGRES, directory, |[port, ..]| {
            let mut words = text(["postgres", "-D", &data]);
            let port = format!("port={port}");
            let usual = ["listen_addresses=127.0.0.1", "unix_socket_directories=", &*port];
            for setting in usual.iter().chain(settings) {
                words.extend(text(["-c", setting]));
            }
            words
        })
    }

    /// A PgBouncer in transaction mode, with two connections to this PostgreSQL, so that the clients have to share them:
    /// each transaction may get another. With these words for the database, and this line in its settings.
    pub(crate) fn pgbouncer(server: &Self, database: &str, setting: &str) -> Self {
        let directory = new_directory("pgbouncer");
        let file = directory.join("pgbouncer.ini");
        Self::start(PGBOUNCER, directory, |[port, ..]| {
            // `auth_type = any` logs everybody in as the user of the database.
            let settings = format!(
                "[databases]\n* = host=127.0.0.1 user={USER} dbname=postgres port={} {database}\n\n\
                 [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
                 auth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n\
                 max_client_conn = 200\n{setting}\n",
                server.port
            );
            fs::write(&file, settings).expect("its settings");
            text(["pgbouncer", &file.display().to_string()])
        })
    }

    /// A Redis, or what `IDEMPOTENCY_REDIS_SERVER` names, with these arguments beside the usual ones. Its first other port
    /// is that of the cluster's bus.
    pub(crate) fn redis(arguments: &[&str]) -> Self {
        Self::redis_with(|_| text(arguments))
    }

    /// With arguments that name its second other port.
    pub(crate) fn redis_with(arguments: impl Fn(u16) -> Vec<String>) -> Self {
        let program = std::env::var("IDEMPOTENCY_REDIS_SERVER");
        let program = program.unwrap_or_else(|_| "redis-server".to_owned());
        // It runs as this user, who may read the files that the arguments name.
        let directory = own_directory("redis");
        Self::start(REDIS, directory, |[port, bus, other]| {
            let [port, bus] = [port, bus].map(|port| port.to_string());
            let usual = ["--bind", "127.0.0.1", "--save", "", "--port", &port];
            let mut words = text([&*program]);
            words.extend(text(usual));
            words.extend(text(["--cluster-port", &bus]));
            words.extend(arguments(other));
            words
        })
    }

    fn start(kind: Kind, directory: PathBuf, words: impl Fn([u16; 3]) -> Vec<String>) -> Self {
        let mut server =
            Self { port: 0, more_ports: [0; 2], directory, kind, words: vec![], running: None };
        loop {
            server.port = free_port();
            server.more_ports = [free_port(), free_port()];
            let [bus, other] = server.more_ports;
            server.words = words([server.port, bus, other]);
            if server.runs() {
                return server;
            }
            // Another process may have taken the port meanwhile.
            assert!(server.log().contains(TAKEN), "{server}");
        }
    }

    /// Runs it again, on the same port and with the same files.
    pub(crate) fn run(&mut self) {
        // A PostgreSQL that was killed leaves children, which end by themselves, and so does their memory.
        let start = Instant::now();
        while !self.runs() {
            assert!(start.elapsed() < PATIENCE, "{self}");
            sleep(Duration::from_millis(200));
        }
    }

    /// Starts the program, and waits until it accepts connections; `false` if it does not.
    fn runs(&mut self) -> bool {
        for file in ["log", "pid"] {
            let _ = fs::remove_file(self.directory.join(file));
        }
        let log = fs::File::create(self.directory.join("log")).expect("a log file");
        let (name, arguments) = self.words.split_first().expect("a program");
        let guard = owned(&self.directory, "sh")
            .args(["-c", GUARD, "sh"])
            .arg(&self.directory)
            .arg(self.kind.end)
            .arg(program(name))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("the log file"))
            .stderr(log)
            .spawn();
        let guard = self.running.insert(guard.expect("a shell starts"));
        let start = Instant::now();
        while guard.try_wait().expect("the status").is_none() {
            let log = log_in(&self.directory);
            let has_pid = fs::metadata(self.directory.join("pid")).is_ok_and(|pid| pid.len() > 0);
            if has_pid && log.contains(self.kind.ready) {
                return true;
            }
            if has_pid && log.contains(TAKEN) || start.elapsed() > PATIENCE {
                break;
            }
            sleep(Duration::from_millis(5));
        }
        self.end(self.kind.end);
        false
    }

    /// Kills it, as a machine that fails does.
    pub(crate) fn kill(&mut self) {
        self.end("KILL");
    }

    /// Ends it as its operators do: PostgreSQL rolls open transactions back, and tells its clients.
    pub(crate) fn stop(&mut self) {
        self.end("INT");
    }

    /// Waits until it has ended after this signal. Its directory stays.
    fn end(&mut self, signal: &str) {
        let Some(mut guard) = self.running.take() else { return };
        if guard.try_wait().expect("the status").is_none() {
            // It may end meanwhile.
            self.send(signal);
        }
        let start = Instant::now();
        while guard.try_wait().expect("the status").is_none() {
            assert!(start.elapsed() < PATIENCE, "{self}");
            sleep(Duration::from_millis(5));
        }
        let mut input = guard.stdin.take().expect("the input of the shell");
        input.write_all(b"\n").expect("the shell reads");
    }

    /// Sends a signal: `STOP` suspends the process, `CONT` resumes it.
    pub(crate) fn signal(&self, name: &str) {
        assert!(self.send(name), "{self}");
    }

    /// To its first process, the parent of all others.
    fn send(&self, signal: &str) -> bool {
        let pid = fs::read_to_string(self.directory.join("pid")).expect("its number");
        let mut kill = Command::new("kill");
        kill.args([&format!("-{signal}"), pid.trim()]).status().expect("kill runs").success()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    pub(crate) fn url(&self) -> String {
        (self.kind.url)(self.address())
    }

    fn log(&self) -> String {
        log_in(&self.directory)
    }
}

impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} does not start, or does not end:\n{}", self.words, self.log())
    }
}

impl Drop for Server {
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

/// The words of the log then.
const TAKEN: &str = "Address already in use";

fn log_in(directory: &Path) -> String {
    let log = fs::read(directory.join("log")).unwrap_or_default();
    String::from_utf8_lossy(&log).into_owned()
}

pub(crate) fn postgres_url(address: SocketAddr) -> String {
    format!("postgres://{USER}@{address}/postgres?sslmode=disable")
}

fn text<'a>(words: impl AsRef<[&'a str]>) -> Vec<String> {
    words.as_ref().iter().map(|&word| word.to_owned()).collect()
}

/// A new directory of the account `nobody`, if this one is root: PostgreSQL refuses to run as root.
pub(crate) fn new_directory(name: &str) -> PathBuf {
    let directory = own_directory(name);
    if owner(&directory) == 0 {
        let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let line = accounts.lines().find(|line| line.starts_with("nobody:"));
        let nobody = line.and_then(|line| line.split(':').nth(2)?.parse().ok()).unwrap_or(65534);
        chown(&directory, Some(nobody), None).expect("it can be given away");
    }
    directory
}

fn own_directory(name: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("idempotency-{name}-{}-{number}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    fs::create_dir(&directory).expect("a new directory");
    directory
}

fn owner(directory: &Path) -> u32 {
    fs::metadata(directory).expect("the directory").uid()
}

/// Runs a program in a directory, as the account that has it.
pub(crate) fn owned(directory: &Path, name: &str) -> Command {
    let mut command = Command::new(program(name));
    command.uid(owner(directory)).env("HOME", directory).current_dir(directory);
    command
}

/// A port that nobody listens on now, and that the kernel gives to nobody who asks for any: it is below those from which
/// the kernel takes the ports of connections. So it is still free when a server is started again.
fn free_port() -> u16 {
    const LOWEST: u16 = 10_000;
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_whitespace().next().and_then(|first| first.parse().ok());
    let end = first.filter(|first| *first > LOWEST + 1_000).unwrap_or(32_768);
    // Each search begins somewhere else, in this process and in others.
    let random = RandomState::new().build_hasher().finish() % u64::from(end - LOWEST);
    let random = u16::try_from(random).expect("it is below the end");
    let mut ports = (LOWEST + random..end).chain(LOWEST..LOWEST + random);
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.find(is_free).expect("a free port")
}

/// Where a program is: Debian does not put those of PostgreSQL into the path.
pub(crate) fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<_> = std::env::split_paths(&path).collect();
    folders.push("/usr/sbin".into());
    if let Ok(versions) = fs::read_dir("/usr/lib/postgresql") {
        let mut versions: Vec<_> = versions.flatten().map(|version| version.path()).collect();
        versions.sort();
        folders.extend(versions.into_iter().rev().map(|version| version.join("bin")));
    }
    let mut programs = folders.into_iter().map(|folder| folder.join(name));
    programs.find(|program| program.is_file()).unwrap_or_else(|| {
        panic!("there is no {name}: `bash tests/run postgres redis` installs what is missing")
    })
}
