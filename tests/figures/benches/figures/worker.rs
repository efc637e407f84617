//! The functions that are compared, and their processes.

use std::path::PathBuf;
use std::time::Duration;

use lambda_idempotency_local::{FunctionConfig, InvocationResult, Local, OutputLine};
use serde_json::Value;

use crate::database::{Database, ProxyId};
use crate::options::Options;
use crate::process::Counts;
use crate::sample::Sample;
use crate::{Result, process};

const LONG: Duration = Duration::from_secs(300);
/// The largest event that Lambda hands to a function.
const MOST_BYTES: usize = 6 * 1024 * 1024;

/// A function that is compared.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) label: &'static str,
    variant: &'static str,
    runtime: &'static str,
    /// Variables that are set for it.
    variables: &'static [&'static str],
    binary: PathBuf,
}

impl Function {
    pub(crate) fn all(options: &Options) -> Vec<Self> {
        let ours = options.binary("measured", env!("CARGO_BIN_EXE_measured"));
        let mut all = Vec::new();
        for runtime in ["current_thread", "multi_thread"] {
            let new = |label, variant, binary: &PathBuf| Self {
                label,
                variant,
                runtime,
                variables: &[],
                binary: binary.clone(),
            };
            all.push(new("floor", "floor", &ours));
            all.push(new("by hand", "by-hand", &ours));
            all.push(new("this", "protected", &ours));
            all.extend(options.beside.as_ref().map(|other| new("beside", "protected", other)));
        }
        all
    }

    /// Those that get a thousand pieces of work at once.
    pub(crate) fn of_calls(options: &Options) -> [Self; 3] {
        let binary = options.binary("measured", env!("CARGO_BIN_EXE_measured"));
        [("batch", "protected"), ("run_many", "run-many"), ("run", "run")].map(
            |(label, variant)| Self {
                label,
                variant,
                runtime: "current_thread",
                variables: &[],
                binary: binary.clone(),
            },
        )
    }

    /// Whether it gets records of SQS, and not a list of orders.
    pub(crate) fn is_of_batches(&self) -> bool {
        self.variant == "protected"
    }

    /// Its name in the tables that are printed.
    pub(crate) fn name(&self) -> String {
        match self.threads() {
            "one" => self.label.to_owned(),
            threads => format!("{}, {threads} threads", self.label),
        }
    }

    /// How many threads its runtime has.
    pub(crate) fn threads(&self) -> &'static str {
        if self.runtime == "current_thread" { "one" } else { "several" }
    }

    pub(crate) fn does_nothing(&self) -> bool {
        self.variant == "floor"
    }

    /// Whether `other` is the function by hand on the same runtime.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        other.variant == "by-hand" && other.runtime == self.runtime
    }
}

/// A function that runs, in one process, with a proxy of its own.
pub(crate) struct Worker {
    local: Local,
    pub(crate) proxy: ProxyId,
    /// Whether each of its requests has one write.
    writes_alone: bool,
    pub(crate) pid: u32,
}

/// Shows what a function says beside its lines about records: errors.
fn show(line: OutputLine) {
    if !line.is_record {
        eprintln!("{}", line.text);
    }
}

impl Worker {
    /// Starts the process and waits until it asks for an event. `variables` are set for it.
    pub(crate) async fn start(
        function: &Function,
        variables: &[&str],
        database: &mut Database,
    ) -> Result<Self> {
        let (proxy, url) = database.proxy().await?;
        Self::launch(function, variables, proxy, Some(url)).await
    }

    /// Starts the process as in AWS, where nothing names an endpoint. It must not be invoked.
    pub(crate) async fn start_only(function: &Function, database: &mut Database) -> Result<Self> {
        let (proxy, _) = database.proxy().await?;
        Self::launch(function, &[], proxy, None).await
    }

    async fn launch(
        function: &Function,
        variables: &[&str],
        proxy: ProxyId,
        url: Option<String>,
    ) -> Result<Self> {
        let mut config = FunctionConfig::new(&function.binary)
            .timeout(LONG)
            .init_timeout(LONG)
            .env("VARIANT", function.variant)
            .env("RUNTIME", function.runtime)
            .env("IDEMPOTENCY_TABLE", "idempotency");
        // An empty variable names no endpoint.
        config = config.env("AWS_ENDPOINT_URL_DYNAMODB", url.unwrap_or_default());
        for variable in variables.iter().chain(function.variables) {
            config = config.env(*variable, "1");
        }
        let others = process::children()?;
        let local = Local::builder(config).on_output(show).start().await?;
        local.warm().await?;
        let children = process::children()?;
        let pid = children.into_iter().find(|child| !others.contains(child));
        let writes_alone = function.variant == "by-hand";
        Ok(Self { local, proxy, writes_alone, pid: pid.ok_or("the function has ended")? })
    }

    /// Invokes the function once, and fails if a record did.
    pub(crate) async fn invoke(&self, event: &Value) -> Result<Duration> {
        let bytes = event.to_string().len();
        if bytes > MOST_BYTES {
            return Err(format!("Lambda takes no event of {bytes} bytes").into());
        }
        let invocation = self.local.invoke(event).await?;
        let InvocationResult::Response(response) = &invocation.result else {
            return Err(invocation.result.to_string().into());
        };
        let failed =
            response.get("batchItemFailures").and_then(Value::as_array).map_or(0, Vec::len);
        let orders = event.get("orders").and_then(Value::as_array).map(Vec::len);
        let undone = orders.is_some_and(|orders| response.get("done") != Some(&orders.into()));
        if failed > 0 || undone {
            return Err(format!("records failed: {response}").into());
        }
        Ok(invocation.duration)
    }

    /// Invokes the function with each of these events, one after the other, and counts.
    pub(crate) async fn measure(
        &self,
        events: &[Value],
        records: usize,
        database: &mut Database,
    ) -> Result<Sample> {
        let (counts, usage) = (Counts::of(self.pid)?, database.usage(self.proxy).await?);
        let mut took = Vec::with_capacity(events.len());
        for event in events {
            took.push(self.invoke(event).await?);
        }
        let (cpu, switches) = Counts::of(self.pid)?.since(&counts);
        let used = database.usage(self.proxy).await?;
        Ok(Sample::new(records as f64, (cpu, switches), (usage, used), self.writes_alone, took))
    }

    pub(crate) async fn stop(self) {
        self.local.shutdown().await;
    }
}
