//! Starts MiniStack, an implementation of the services, on this machine.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread::sleep,
    time::{Duration, Instant},
};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;

const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const REGION: &str = "us-east-1";

/// The process; dropping this ends it.
pub(crate) struct MiniStack {
    child: Child,
    log: PathBuf,
    pub(crate) url: String,
}

impl MiniStack {
    /// Starts it on a free port of the loopback interface.
    pub(crate) fn start() -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/ministack-venv");
        let python = folder.join("bin/python");
        assert!(python.exists(), "MiniStack is not installed. `bash tests/run prove` installs it");
        let nth = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("ministack-prove-{}-{nth}.log", std::process::id());
        let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // The command of MiniStack needs a fixed port; its server, Hypercorn, can take any free one.
        let child = Command::new(python)
            .args(["-m", "hypercorn", "ministack.app:app", "--bind", "127.0.0.1:0"])
            .args(["--workers", "0"])
            .envs([("SERVICES", "sqs,sns,events,dynamodb,logs"), ("IOT_MTLS_ENABLED", "0")])
            .envs([("SFTP_ENABLED", "0"), ("LOG_LEVEL", "WARNING"), ("BIND_HOST", "127.0.0.1")])
            .stdin(Stdio::null())
            .stdout(File::create(&log).unwrap())
            .stderr(File::options().append(true).open(&log).unwrap())
            .spawn()
            .unwrap();
        Self { child, log, url: String::new() }.wait()
    }

    /// How clients find it.
    pub(crate) async fn config(&self) -> SdkConfig {
        aws_config::defaults(BehaviorVersion::v2026_01_12())
            .endpoint_url(&self.url)
            .region(Region::from_static(REGION))
            .credentials_provider(Credentials::new("local", "local", None, None, "test"))
            .load()
            .await
    }

    /// Waits until its log contains its address.
    fn wait(mut self) -> Self {
        let start = Instant::now();
        loop {
            let text = fs::read_to_string(&self.log).unwrap();
            if let Some((_, rest)) = text.split_once("Running on ") {
                self.url = rest.split_whitespace().next().unwrap_or_default().to_owned();
                assert!(self.url.starts_with("http://127.0.0.1:"), "it listens on {}", self.url);
                return self;
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "MiniStack ended at once ({ended:?}):\n{text}");
            assert!(start.elapsed() < PATIENCE, "MiniStack does not listen:\n{text}");
            sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for MiniStack {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if !std::thread::panicking() {
            let _ = fs::remove_file(&self.log);
        }
    }
}
