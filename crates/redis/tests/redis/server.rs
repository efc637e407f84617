//! Commands that the tests send to a Redis.

use std::time::Duration;

use lambda_idempotency_redis::{RedisStore, RedisStoreBuilder};
use redis::{Cmd, Value};

use crate::servers::Server;

impl Server {
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
