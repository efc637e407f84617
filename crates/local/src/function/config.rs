//! The configuration of the function.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The function to run and its settings.
///
/// ```
/// # use lambda_idempotency_local::FunctionConfig;
/// # use std::time::Duration;
/// let function = FunctionConfig::new("target/debug/orders")
///     .timeout(Duration::from_secs(10))
///     .env("IDEMPOTENCY_TABLE", "idempotency");
/// ```
#[derive(Clone, Debug)]
pub struct FunctionConfig {
    pub(crate) binary: PathBuf,
    pub(crate) name: String,
    pub(crate) timeout: Duration,
    pub(crate) init_timeout: Duration,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) env_each: BTreeMap<String, Vec<String>>,
    pub(crate) outlives_timeout: bool,
}

impl FunctionConfig {
    /// A function whose compiled binary is at `binary`. Its name is the name of the file.
    pub fn new(binary: impl AsRef<Path>) -> Self {
        let binary = binary.as_ref().to_path_buf();
        let name = binary
            .file_stem()
            .map_or_else(|| "function".to_owned(), |name| name.to_string_lossy().into_owned());
        Self {
            binary,
            name,
            timeout: Duration::from_secs(3),
            init_timeout: Duration::from_secs(10),
            env: BTreeMap::new(),
            env_each: BTreeMap::new(),
            outlives_timeout: false,
        }
    }

    /// `AWS_LAMBDA_FUNCTION_NAME`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// How long an invocation may take. Default: 3 s, as in AWS.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long the function may take before it asks for its first event. Default: 10 s.
    #[must_use]
    pub fn init_timeout(mut self, timeout: Duration) -> Self {
        self.init_timeout = timeout;
        self
    }

    /// An environment variable of the function. It replaces one that Lambda would set.
    ///
    /// The function sees only those variables of the caller that the system needs, such as `PATH`, so that it does not
    /// use an AWS account by accident.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// An environment variable in which the processes differ: the first process gets the first value, the second
    /// the second, and after the last value the first again.
    #[must_use]
    pub fn env_each<V: Into<String>>(
        mut self,
        name: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.env_each.insert(name.into(), values.into_iter().map(Into::into).collect());
        self
    }

    /// Leaves a process that missed its deadline running, beside its own retry, as Lambda Managed Instances do.
    ///
    /// The invocation still counts as timed out; the next one gets a fresh process.
    #[must_use]
    pub fn outlives_timeout(mut self, outlives: bool) -> Self {
        self.outlives_timeout = outlives;
        self
    }

    /// How many invocations one process takes at a time, as on Lambda Managed Instances. Default: one. The function has
    /// to use `lambda_runtime::run_concurrent`. For [`Local::invoke_at_once`](crate::Local::invoke_at_once).
    #[must_use]
    pub fn concurrency(self, concurrency: usize) -> Self {
        self.env("AWS_LAMBDA_MAX_CONCURRENCY", concurrency.to_string())
    }

    pub(crate) fn arn(&self) -> String {
        format!("arn:aws:lambda:{REGION}:{ACCOUNT}:function:{}", self.name)
    }

    /// The environment of the `nth` process, from 0: Lambda's variables, then the user's.
    pub(crate) fn environment(
        &self,
        runtime_api: &str,
        dynamodb: &str,
        nth: usize,
    ) -> Vec<(String, String)> {
        let log_group = format!("/aws/lambda/{}", self.name);
        // The user's level, and the line of each record, also where there is nothing to say of it: reports read it.
        let level = self.env.get("AWS_LAMBDA_LOG_LEVEL").map_or("info", String::as_str);
        let levels = format!("{level},lambda_idempotency::record=debug");
        let lambda = [
            ("AWS_ACCESS_KEY_ID", "local"),
            ("AWS_DEFAULT_REGION", REGION),
            ("AWS_EC2_METADATA_DISABLED", "true"),
            ("AWS_ENDPOINT_URL_DYNAMODB", dynamodb),
            ("AWS_EXECUTION_ENV", "AWS_Lambda_provided.al2023"),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256"),
            ("AWS_LAMBDA_FUNCTION_NAME", &self.name),
            ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST"),
            ("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand"),
            ("AWS_LAMBDA_LOG_FORMAT", "JSON"),
            ("AWS_LAMBDA_LOG_GROUP_NAME", &log_group),
            ("AWS_LAMBDA_LOG_STREAM_NAME", "local"),
            ("AWS_LAMBDA_RUNTIME_API", runtime_api),
            ("AWS_REGION", REGION),
            ("RUST_LOG", &levels),
            ("AWS_SECRET_ACCESS_KEY", "local"),
            ("_HANDLER", "bootstrap"),
        ];
        let lambda = lambda.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        // The variables that the operating system needs, and those for coverage and backtraces of the function.
        let system = [
            "PATH",
            "TMPDIR",
            "SystemRoot",
            "LD_LIBRARY_PATH",
            "LLVM_PROFILE_FILE",
            "RUST_BACKTRACE",
        ]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?)));
        let user = self.env.iter().map(|(name, value)| (name.clone(), value.clone()));
        let own = self.env_each.iter().filter_map(|(name, values)| {
            Some((name.clone(), values.get(nth.checked_rem(values.len())?)?.clone()))
        });
        system.chain(lambda).chain(user).chain(own).collect()
    }
}

pub(crate) const REGION: &str = "us-east-1";
pub(crate) const ACCOUNT: &str = "123456789012";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_variables_override_the_defaults() {
        let config = FunctionConfig::new("/x/orders").env("AWS_REGION", "eu-west-1");
        let config = config.env("AWS_LAMBDA_LOG_LEVEL", "ERROR");
        let environment: BTreeMap<_, _> =
            config.environment("127.0.0.1:1", "http://127.0.0.1:2", 0).into_iter().collect();
        assert_eq!(environment["AWS_REGION"], "eu-west-1");
        assert_eq!(environment["RUST_LOG"], "ERROR,lambda_idempotency::record=debug");
        assert_eq!(environment["AWS_LAMBDA_FUNCTION_NAME"], "orders");
        assert_eq!(environment["AWS_ENDPOINT_URL_DYNAMODB"], "http://127.0.0.1:2");
    }

    #[test]
    fn processes_can_have_different_variables() {
        let config = FunctionConfig::new("/x/orders").env_each("SKEW", ["0", "7"]);
        let skew = |nth| {
            let environment = config.environment("127.0.0.1:1", "http://127.0.0.1:2", nth);
            environment.into_iter().collect::<BTreeMap<_, _>>()["SKEW"].clone()
        };
        assert_eq!([0, 1, 2].map(skew), ["0", "7", "0"]);
    }
}
