//! Preparing a [`Local`]: its function, its database, and the settings of its sources.

use std::sync::Arc;
use std::time::Duration;

use super::{Local, OnInvocation};
use crate::function::{OnOutput, Pool};
use crate::{
    DynamoDb, Error, FunctionConfig, InvocationReport, OutputLine, SqsConfig, StreamConfig, Table,
};

impl Local {
    /// Prepares to run this function.
    pub fn builder(function: FunctionConfig) -> LocalBuilder {
        LocalBuilder {
            function,
            dynamodb: None,
            tables: Vec::new(),
            sandboxes: 1,
            sqs: SqsConfig::default(),
            streams: StreamConfig::default(),
            retry_delays: [1, 2].map(Duration::from_secs).into(),
            http_retry_delays: [200, 400, 800, 1600].map(Duration::from_millis).into(),
            on_output: Arc::new(|_| {}),
            on_invocation: Arc::new(|_| {}),
        }
    }
}

/// Prepares a [`Local`].
pub struct LocalBuilder {
    function: FunctionConfig,
    dynamodb: Option<DynamoDb>,
    tables: Vec<Table>,
    sandboxes: usize,
    sqs: SqsConfig,
    streams: StreamConfig,
    retry_delays: Vec<Duration>,
    http_retry_delays: Vec<Duration>,
    on_output: OnOutput,
    on_invocation: OnInvocation,
}

impl LocalBuilder {
    /// Creates a table at the start.
    #[must_use]
    pub fn table(mut self, table: Table) -> Self {
        self.tables.push(table);
        self
    }

    /// Uses an existing database, for example for two functions on the same tables.
    #[must_use]
    pub fn dynamodb(mut self, dynamodb: DynamoDb) -> Self {
        self.dynamodb = Some(dynamodb);
        self
    }

    /// How many processes may run at a time. Default: one. They are started when they are needed.
    #[must_use]
    pub fn sandboxes(mut self, sandboxes: usize) -> Self {
        self.sandboxes = sandboxes.max(1);
        self
    }

    /// Settings of the queue, and of a pipe from one.
    #[must_use]
    pub fn sqs(mut self, config: SqsConfig) -> Self {
        self.sqs = config;
        self
    }

    /// Settings of the event source mapping of a stream or a topic, and of a pipe from a stream.
    #[must_use]
    pub fn streams(mut self, config: StreamConfig) -> Self {
        self.streams = config;
        self
    }

    /// How long to wait before each retry of an asynchronous invocation, and of other events that are retried as a whole.
    /// Default: one second and two more, as in AWS, but with seconds for minutes.
    #[must_use]
    pub fn retry_delays(mut self, delays: Vec<Duration>) -> Self {
        self.retry_delays = delays;
        self
    }

    /// How long a client of HTTP waits before each further attempt. Default: 200 ms, 400 ms, 800 ms and 1.6 s.
    #[must_use]
    pub fn http_retry_delays(mut self, delays: Vec<Duration>) -> Self {
        self.http_retry_delays = delays;
        self
    }

    /// Calls this with each line that the function writes, lines about records included ([`OutputLine::is_record`]).
    /// When an invocation ends, this has been called with all lines of its process; for those of the others, see
    /// [`Local::read_output`].
    #[must_use]
    pub fn on_output(mut self, callback: impl Fn(OutputLine) + Send + Sync + 'static) -> Self {
        self.on_output = Arc::new(callback);
        self
    }

    /// Calls this with each invocation of a delivery as soon as it has ended.
    #[must_use]
    pub fn on_invocation(
        mut self,
        callback: impl Fn(&InvocationReport) + Send + Sync + 'static,
    ) -> Self {
        self.on_invocation = Arc::new(callback);
        self
    }

    /// Starts the database and creates the tables. The function's processes start with the first invocation.
    ///
    /// # Errors
    /// [`Error::Listen`], [`Error::Failed`]: the database does not start, or refuses a table.
    pub async fn start(self) -> Result<Local, Error> {
        let dynamodb = match self.dynamodb {
            Some(dynamodb) => dynamodb,
            None => DynamoDb::start().await?,
        };
        for table in &self.tables {
            dynamodb.create_table(table)?;
        }
        Ok(Local {
            pool: Pool::new(self.function, dynamodb.clone(), self.on_output, self.sandboxes),
            dynamodb,
            sqs: self.sqs,
            streams: self.streams,
            retry_delays: self.retry_delays,
            http_retry_delays: self.http_retry_delays,
            on_invocation: self.on_invocation,
        })
    }
}
