//! This library, on the table that it shares.

use std::time::Duration;

use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Credentials, Region},
};
use lambda_idempotency::{
    DynamoDbStore, Failure, Idempotency, Operation, Run, RunContext, RunError,
    clock::{Clock, SystemClock, Timestamp},
    keys::powertools::{HashFunction, PowertoolsKeys},
    store::{
        BoxFuture, Cache,
        dynamodb::{Attributes, DataForm, SortKey},
    },
};
use serde_json::{Value, value::RawValue};

use crate::{
    Language, TABLE,
    theirs::{FUNCTION, Form, Settings},
};

#[derive(Clone)]
pub(crate) struct Ours {
    language: Language,
    endpoint: String,
    clock: Shifted,
}

/// The machine's clock, plus so many milliseconds. Powertools reads the machine's clock, so this is how something expires
/// between the two without a wait.
#[derive(Clone, Copy)]
struct Shifted(i64);

impl Clock for Shifted {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().as_millis().saturating_add_signed(self.0))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        SystemClock.sleep(duration)
    }
}

impl Ours {
    pub(crate) fn new(language: Language, endpoint: &str) -> Self {
        Self { language, endpoint: endpoint.to_owned(), clock: Shifted(0) }
    }

    /// The same later (or, if negative, earlier), by the clock.
    pub(crate) fn after(&self, milliseconds: i64) -> Self {
        Self { clock: Shifted(milliseconds), ..self.clone() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A new process of the function: it has no cache.
    pub(crate) fn idempotency(&self, sort_key: Option<&'static str>) -> Idempotency {
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new("eu-west-1"))
            .endpoint_url(&self.endpoint)
            .credentials_provider(Credentials::new("id", "secret", None, None, "test"))
            .build();
        let mut names = Attributes::default();
        if self.language == Language::TypeScript {
            names.data_form = DataForm::Native;
        }
        names.sort_key = sort_key.map(|name| SortKey::new(name, format!("idempotency#{FUNCTION}")));
        let store = DynamoDbStore::builder(Client::from_conf(config), TABLE).attributes(names);
        // A machine under load can be slow.
        let store = store.attempt_timeout(Duration::from_secs(10)).clock(self.clock);
        let idempotency = Idempotency::new(store.build().unwrap());
        idempotency.with_cache(Cache::off()).with_clock(self.clock)
    }

    /// The settings of Powertools, as an operation of this library.
    pub(crate) fn operation(&self, settings: &Settings) -> Operation {
        self.named("place-order", settings)
    }

    /// As [`operation`](Self::operation), with another name, which is not in the keys.
    pub(crate) fn named(&self, name: &str, settings: &Settings) -> Operation {
        let prefix = settings.prefix.unwrap_or(match (self.language, settings.form) {
            (Language::Python, Form::Function | Form::Method) => "orders-fn.app.process",
            (Language::Python, Form::Handler) => "orders-fn.app.handler",
            (Language::Python, Form::Records) => "orders-fn.app.process_record",
            (Language::TypeScript, _) => FUNCTION,
        });
        let powertools = match self.language {
            Language::Python => PowertoolsKeys::python(prefix),
            Language::TypeScript => PowertoolsKeys::typescript(prefix),
        };
        let hash: HashFunction = settings.hash.parse().unwrap();
        let operation = Operation::new(name)
            .key(settings.key.unwrap_or("@"))
            .retention(Duration::from_secs(settings.expires))
            .powertools(powertools.hash_function(hash));
        match settings.validation {
            Some(path) => operation.fingerprint(path),
            None => operation,
        }
    }

    /// Does the work of an event, unless it is done, and returns `result`.
    pub(crate) async fn run(
        &self,
        settings: &Settings,
        event: &str,
        result: &str,
    ) -> Result<Run<Value>, RunError> {
        let result: Value = serde_json::from_str(result).unwrap();
        self.run_with(settings, event, async move || Ok::<_, Failure>(result)).await
    }

    /// Does the work of an event, unless it is done, by calling `work`.
    pub(crate) async fn run_with<F, Fut>(
        &self,
        settings: &Settings,
        event: &str,
        work: F,
    ) -> Result<Run<Value>, RunError>
    where
        F: FnOnce() -> Fut + Send,
        Fut: Future<Output = Result<Value, Failure>> + Send,
    {
        let (operation, context) = (self.operation(settings), RunContext::without_deadline());
        let idempotency = self.idempotency(settings.sort_key);
        idempotency.run(&operation, &raw(event), &context, |_| work()).await
    }
}

/// A payload whose numbers stay as they are written.
pub(crate) fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

/// Fails unless our function was called and returned `result`.
#[track_caller]
pub(crate) fn assert_executed(run: Result<Run<Value>, RunError>, result: &str) {
    let run = run.unwrap();
    assert_eq!((run.result, run.replayed), (serde_json::from_str(result).unwrap(), false));
}

/// Fails unless our function was not called, and `result` is that of earlier work.
#[track_caller]
pub(crate) fn assert_replayed(run: Result<Run<Value>, RunError>, result: &str) {
    let run = run.unwrap();
    assert_eq!((run.result, run.replayed), (serde_json::from_str(result).unwrap(), true));
}
