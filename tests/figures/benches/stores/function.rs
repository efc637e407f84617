//! A function in a process of its own.

use std::time::Duration;

use lambda_idempotency_local::{FunctionConfig, InvocationResult, Local, OutputLine};
use serde_json::Value;

use crate::Result;
use crate::process::{Counts, children, megabytes};
use crate::server::{Path, Server};

const LONG: Duration = Duration::from_secs(300);

pub(crate) struct Function {
    local: Local,
    path: Path,
    pid: u32,
}

/// What some invocations used.
#[derive(Clone, Copy)]
pub(crate) struct Used {
    pub(crate) requests: f64,
    pub(crate) own_micros: f64,
    pub(crate) server_micros: f64,
    pub(crate) millis: f64,
}

impl Function {
    pub(crate) async fn start(variant: &str, server: &Server) -> Result<Self> {
        let path = server.path().await?;
        let config = FunctionConfig::new(env!("CARGO_BIN_EXE_measured-stored"));
        let config = config.timeout(LONG).init_timeout(LONG).env("VARIANT", variant);
        let show = |line: OutputLine| {
            if !line.is_record {
                eprintln!("{}", line.text);
            }
        };
        let others = children()?;
        let builder = match &path {
            Path::DynamoDb(database) => {
                let config = config.env("IDEMPOTENCY_STORE", "dynamodb:idempotency");
                Local::builder(config).dynamodb(database.clone())
            }
            Path::Proxied(_, url) => Local::builder(config.env("IDEMPOTENCY_STORE", url)),
        };
        let local = builder.on_output(show).start().await?;
        local.warm().await?;
        let pid = children()?.into_iter().find(|child| !others.contains(child));
        Ok(Self { local, path, pid: pid.ok_or("the function has ended")? })
    }

    /// Invokes the function once, and fails if a record did.
    pub(crate) async fn invoke(&self, event: &Value) -> Result<Duration> {
        let invocation = self.local.invoke(event).await?;
        match &invocation.result {
            InvocationResult::Response(response)
                if response["batchItemFailures"].as_array().is_none_or(Vec::is_empty) =>
            {
                Ok(invocation.duration)
            }
            result => Err(format!("records failed: {result}").into()),
        }
    }

    /// Invokes the function with each of these events, one after the other.
    pub(crate) async fn measure(&self, events: &[Value], server: &Server) -> Result<Used> {
        let (own, before, requests) =
            (Counts::of(self.pid)?, server.counts()?, self.path.requests());
        let mut took = Vec::with_capacity(events.len());
        for event in events {
            took.push(self.invoke(event).await?.as_secs_f64() * 1000.0);
        }
        let (own_micros, _) = Counts::of(self.pid)?.since(&own);
        let none = Counts::default();
        let after = server.counts()?;
        let server_micros = after.iter().map(|(pid, after)| {
            let before = before.iter().find(|(other, _)| other == pid);
            after.since(before.map_or(&none, |(_, counts)| counts)).0
        });
        let server_micros = server_micros.sum();
        let requests = (self.path.requests() - requests) as f64;
        Ok(Used { requests, own_micros, server_micros, millis: crate::rounds::median(took) })
    }

    pub(crate) fn peak_megabytes(&self) -> Result<f64> {
        megabytes(self.pid, "VmHWM")
    }

    pub(crate) async fn stop(self) {
        self.local.shutdown().await;
    }
}
