//! The process of the database, and the commands that it takes.

use std::process::Stdio;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::Result;
use crate::options::Options;

pub(crate) struct Database {
    commands: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    proxies: usize,
    _process: Child,
}

/// The number of a proxy.
#[derive(Clone, Copy)]
pub(crate) struct ProxyId(usize);

/// What came through a proxy.
#[derive(Clone, Copy, Default, Deserialize)]
pub(crate) struct Usage {
    pub(crate) requests: u64,
    pub(crate) connections: u64,
    pub(crate) write_units: f64,
    pub(crate) read_units: f64,
    pub(crate) refused: u64,
    /// For how long at least one request was being answered.
    pub(crate) answering_ms: f64,
}

impl Database {
    pub(crate) async fn start(options: &Options) -> Result<Self> {
        let built = env!("CARGO_BIN_EXE_measured-database");
        let mut process = Command::new(options.binary("measured-database", built))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let commands = process.stdin.take().ok_or("no standard input")?;
        let answers = process.stdout.take().ok_or("no standard output")?;
        let answers = BufReader::new(answers).lines();
        Ok(Self { commands, answers, proxies: 0, _process: process })
    }

    /// Opens another proxy, and says its URL.
    pub(crate) async fn proxy(&mut self) -> Result<(ProxyId, String)> {
        let url = self.ask("proxy").await?;
        self.proxies += 1;
        Ok((ProxyId(self.proxies - 1), url))
    }

    /// Delays each request by so many milliseconds from now on.
    pub(crate) async fn delay(&mut self, milliseconds: u64) -> Result<()> {
        self.ask(&format!("delay {milliseconds}")).await
    }

    pub(crate) async fn usage(&mut self, proxy: ProxyId) -> Result<Usage> {
        self.ask(&format!("usage {}", proxy.0)).await
    }

    /// For how long the completions that came since the last usage were missing, in microseconds.
    pub(crate) async fn windows(&mut self, proxy: ProxyId) -> Result<Vec<u64>> {
        self.usage(proxy).await?;
        self.ask("windows").await
    }

    async fn ask<T: DeserializeOwned>(&mut self, command: &str) -> Result<T> {
        self.commands.write_all(format!("{command}\n").as_bytes()).await?;
        let answer = self.answers.next_line().await?.ok_or("the database has ended")?;
        Ok(serde_json::from_str(&answer)?)
    }
}
