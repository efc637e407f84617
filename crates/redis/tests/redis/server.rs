//! A server of its own for each test, on ports that nobody else gets.

use std::{
    fs,
    hash::{BuildHasher as _, Hasher as _, RandomState},
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use lambda_idempotency_core::{
    clock::{Clock as _, SystemClock, Timestamp},
    key::Key,
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, Store as _, StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_redis::{RedisStore, RedisStoreBuilder};
use redis::{Cmd, Value};

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A server, which ends with this value.
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) bus_port: u16,
    /// More free ports, for whatever the test needs.
    pub(crate) ports: [u16; 1],
    arguments: Vec<String>,
    directory: PathBuf,
    pub(crate) process: Option<Child>,
}

impl Server {
    /// With these arguments beside the usual ones.
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        Self::start_with(|_| arguments.iter().map(|&argument| argument.to_owned()).collect()).await
    }

    /// With arguments that name more ports.
    pub(crate) async fn start_with(arguments: impl Fn([u16; 1]) -> Vec<String>) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("idempotency-redis-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let mut server =
            Self { port: 0, bus_port: 0, ports: [0], arguments: vec![], directory, process: None };
        // Another process may have taken the port since it was tried.
        for _ in 0..5 {
            server.port = free_port();
            server.bus_port = free_port();
            server.ports = [free_port()];
            server.arguments = arguments(server.ports);
            if server.run().await {
                return server;
            }
            server.kill();
        }
        panic!("{} does not start: install redis-server, or see {:?}", program(), server.directory);
    }

    /// Starts the process, again on the same port and with the same files.
    pub(crate) async fn run(&mut self) -> bool {
        let path = self.directory.join("log");
        let log = fs::File::create(&path).unwrap();
        let process = Command::new(program())
            .args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"])
            .args(["--dir", self.directory.to_str().unwrap()])
            .args(["--save", "", "--cluster-port", &self.bus_port.to_string()])
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(Stdio::null())
            .spawn();
        let process = process.unwrap_or_else(|error| panic!("{}: {error}", program()));
        self.process = Some(process);
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if self.process.as_mut().unwrap().try_wait().unwrap().is_some() {
                return false;
            }
            // A connection would not show it: another test's server may have taken the port, and this one not ended yet.
            if fs::read_to_string(&path).unwrap().contains("Ready to accept connections") {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        false
    }

    /// Ends the process at once, as a crash does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Sends a signal: `STOP` suspends the process, `CONT` resumes it.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.process.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn builder(&self) -> RedisStoreBuilder {
        RedisStore::builder(&self.url())
            .attempt_timeout(Duration::from_secs(20))
            .connect_timeout(Duration::from_secs(20))
            .backoff(Duration::from_millis(1), Duration::from_millis(16))
    }

    pub(crate) fn store(&self) -> RedisStore {
        self.builder().build().unwrap()
    }

    /// Sends a command on a connection of its own.
    pub(crate) async fn command(&self, words: &[&str]) -> Value {
        self.try_command(words).await.unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    pub(crate) async fn try_command(&self, words: &[&str]) -> redis::RedisResult<Value> {
        let client = redis::Client::open(self.url()).unwrap();
        let config =
            redis::AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(20)));
        let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        let mut command = Cmd::new();
        for word in words {
            command.arg(*word);
        }
        command.query_async(&mut connection).await
    }

    /// Sends a command whose answer is text.
    pub(crate) async fn text(&self, words: &[&str]) -> String {
        redis::from_redis_value(self.command(words).await).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// The server program under test.
pub(crate) fn program() -> String {
    std::env::var("IDEMPOTENCY_REDIS_SERVER").unwrap_or_else(|_| "redis-server".to_owned())
}

/// A port that is free now, and that the kernel gives to nobody: it is below those from which the kernel takes the ports of
/// connections and of listeners without one. So it is still free when a server is started again.
fn free_port() -> u16 {
    const LOWEST: u32 = 10_000;
    // Other processes that run these tests begin elsewhere.
    static NEXT: LazyLock<AtomicU32> =
        LazyLock::new(|| AtomicU32::new(RandomState::new().build_hasher().finish() as u32));
    static ABOVE: LazyLock<u32> = LazyLock::new(|| {
        let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
        let first = range.ok().and_then(|range| range.split_whitespace().next()?.parse().ok());
        first.filter(|first| *first > LOWEST + 1_000).unwrap_or(32_768)
    });
    (0..*ABOVE - LOWEST)
        .map(|_| NEXT.fetch_add(1, Ordering::Relaxed) % (*ABOVE - LOWEST) + LOWEST)
        .map(|port| u16::try_from(port).unwrap())
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}

pub(crate) fn key(n: usize) -> Key {
    Key::from_text(format!("op#{n}"))
}

pub(crate) fn owner(n: u128) -> Owner {
    Owner::from_bits(n)
}

/// The deadline of a call that may take so many milliseconds.
pub(crate) fn within(millis: u64) -> Timestamp {
    SystemClock.now().plus(Duration::from_millis(millis))
}

/// Far longer than anything takes that ends.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn soon() -> Timestamp {
    within(60_000)
}

pub(crate) fn claimed(by: u128) -> IdempotencyRecord {
    let now = SystemClock.now();
    let mut record =
        IdempotencyRecord::new(Status::InProgress, now.plus(Duration::from_secs(3600)));
    record.owner = Some(owner(by));
    record.lease_until = Some(now.plus(Duration::from_secs(60)));
    record
}

pub(crate) fn completed(by: u128, result: &str) -> IdempotencyRecord {
    let mut record = claimed(by);
    record.status = Status::Completed;
    record.lease_until = None;
    record.result = Some(result.into());
    record
}

pub(crate) fn claim(n: usize, by: u128) -> Write {
    Write::new(key(n), Guard::Absent, Some(claimed(by)))
}

pub(crate) fn complete(n: usize, by: u128, result: &str) -> Write {
    Write::new(key(n), Guard::OwnedBy(owner(by)), Some(completed(by, result)))
}

/// Sends one write.
pub(crate) async fn one(store: &RedisStore, write: Write, millis: u64) -> Verdict {
    store.write(&[write], within(millis)).await.pop().unwrap()
}

/// Sends one write, which is to succeed.
pub(crate) async fn wrote(store: &RedisStore, write: Write) {
    written(&[one(store, write, 60_000).await]);
}

#[track_caller]
pub(crate) fn written(verdicts: &[Verdict]) {
    let is_written = |verdict: &Verdict| matches!(verdict, Verdict::Written);
    assert!(verdicts.iter().all(is_written), "{verdicts:?}");
}

/// The error of this kind, after which the write may have been applied or not.
#[track_caller]
pub(crate) fn unknown(verdict: Verdict, kind: StoreErrorKind, in_doubt: bool) -> StoreError {
    let Verdict::Unknown(error) = verdict else { panic!("{verdict:?}") };
    assert_eq!((error.kind(), error.may_have_applied()), (kind, in_doubt), "{error}");
    assert!(!format!("{error} {error:?}").contains("op#"), "no key is in {error:?}");
    error
}
