//! Starts MiniStack, an implementation of the three services, on this machine.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_sqs::config::Credentials;

const PATIENCE: Duration = Duration::from_secs(60);

/// The process; dropping this ends it.
pub struct MiniStack {
    child: Child,
    log: PathBuf,
    url: String,
}

impl MiniStack {
    /// Starts it on a free port of the loopback interface.
    pub fn start() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/ministack-venv");
        let python = folder.join("bin/python");
        assert!(
            python.exists(),
            "MiniStack is not installed. `bash tests/run examples` installs it; or do, in the root of the \
             repository:\n  python3 -m venv target/ministack-venv\n  \
             target/ministack-venv/bin/pip install -r tests/ministack-requirements.txt"
        );
        static STARTED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let nth = STARTED.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("ministack-{}-{nth}.log", std::process::id());
        let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // The command of MiniStack needs a fixed port; its server, Hypercorn, can take any free one.
        let child = Command::new(python)
            .args(["-m", "hypercorn", "ministack.app:app", "--bind", "127.0.0.1:0"])
            .args(["--workers", "0"])
            .envs([("SERVICES", "sqs,sns,events"), ("IOT_MTLS_ENABLED", "0")])
            .envs([("SFTP_ENABLED", "0"), ("LOG_LEVEL", "WARNING"), ("BIND_HOST", "127.0.0.1")])
            .stdin(Stdio::null())
            .stdout(File::create(&log).expect("a log file"))
            .stderr(File::options().append(true).open(&log).expect("the log file"))
            .spawn()
            .expect("MiniStack starts");
        Self { child, log, url: String::new() }.wait()
    }

    /// Its address.
    #[allow(dead_code, reason = "not each test uses it")]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How clients find it.
    pub async fn config(&self) -> SdkConfig {
        aws_config::defaults(BehaviorVersion::v2026_01_12())
            .endpoint_url(&self.url)
            .region(Region::from_static("us-east-1"))
            .credentials_provider(Credentials::new("local", "local", None, None, "test"))
            .load()
            .await
    }

    /// Waits until its log contains its address.
    fn wait(mut self) -> Self {
        let start = Instant::now();
        loop {
            let text = fs::read_to_string(&self.log).expect("the log");
            if let Some((_, rest)) = text.split_once("Running on ") {
                self.url = rest.split_whitespace().next().unwrap_or_default().to_owned();
                assert!(self.url.starts_with("http://127.0.0.1:"), "it listens on {}", self.url);
                return self;
            }
            let ended = self.child.try_wait().expect("the status");
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
