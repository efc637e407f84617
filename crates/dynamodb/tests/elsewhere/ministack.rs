//! Starts MiniStack on this machine: an implementation of AWS's services in Python, by other authors than the embedded
//! DynamoDB. The tests of `prove` and of the example `senders` read this file, too.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread::sleep,
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(60);

/// The process of MiniStack; dropping this ends it.
pub(crate) struct MiniStack {
    child: Child,
    log: PathBuf,
    url: String,
}

impl MiniStack {
    /// Starts it with these services, on a free port of the loopback interface.
    pub(crate) fn start(services: &str) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
        let pythons = folders.map(|folder| folder.join("target/ministack-venv/bin/python"));
        let python = pythons.into_iter().find(|python| python.exists()).expect(
            "MiniStack is not installed. `bash tests/run ministack` installs it; or do, in the root of the repository:\n  \
             python3 -m venv target/ministack-venv\n  \
             target/ministack-venv/bin/pip install -r tests/ministack-requirements.txt",
        );
        let nth = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("ministack-{}-{nth}.log", std::process::id());
        let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // The command of MiniStack needs a fixed port; its server, Hypercorn, can take any free one.
        let child = Command::new(python)
            .args(["-m", "hypercorn", "ministack.app:app", "--bind", "127.0.0.1:0"])
            .args(["--workers", "0"])
            .envs([("SERVICES", services), ("IOT_MTLS_ENABLED", "0"), ("SFTP_ENABLED", "0")])
            .envs([("LOG_LEVEL", "WARNING"), ("BIND_HOST", "127.0.0.1")])
            .stdin(Stdio::null())
            .stdout(File::create(&log).expect("a log file"))
            .stderr(File::options().append(true).open(&log).expect("the log file"))
            .spawn()
            .expect("MiniStack starts");
        Self { child, log, url: String::new() }.wait()
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
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
