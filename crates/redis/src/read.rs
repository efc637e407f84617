//! Reads, each by the script that only a primary runs.

use lambda_idempotency_core::{key::Key, record::IdempotencyRecord};
use redis::{Cmd, Value};

use crate::{
    config::Address,
    error::{self, Failure, First, is_redirection},
    item::decode,
    limits::{Budget, backoff},
    servers::Request,
    store::RedisStore,
};

/// How often requests that were sent to a wrong server are sent on without a pause.
const REDIRECTIONS: usize = 3;

/// The result for a key: the record or nothing, or the error.
pub(crate) type Answer = Result<Option<IdempotencyRecord>, Failure>;

/// A record that is asked for, and the server that is receiving it.
struct Asked {
    index: usize,
    name: String,
    command: Cmd,
    go_to: Option<Address>,
}

impl RedisStore {
    /// Reads each key, and repeats requests until the budget ends. The answers are in the order of the keys.
    pub(crate) async fn read_all(&self, keys: &[Key], budget: &Budget<'_>) -> Vec<Answer> {
        self.read_without(&[], keys, budget).await
    }

    /// The same, without these fields of the records.
    pub(crate) async fn read_without(
        &self,
        unread: &[&str],
        keys: &[Key],
        budget: &Budget<'_>,
    ) -> Vec<Answer> {
        let scripts = &self.config.scripts;
        let script = if unread.is_empty() { &scripts.read } else { &scripts.peek };
        let commands = keys.iter().map(|key| {
            let mut command = script.command(&self.config.name(key));
            command.arg(unread);
            (key, command)
        });
        let corrupt = |problem| error::corrupt(&self.config.address, &problem);
        let read = |answer| match answer {
            Value::Nil => Some(Ok(None)),
            Value::BulkString(text) => Some(decode(&text).map(Some).map_err(corrupt)),
            _ => None,
        };
        self.ask_all(commands, read, budget).await
    }

    /// Sends a command for each of these keys, which may be repeated, until the budget ends. The answers are in the order
    /// of the keys; one that `read` does not know is asked for again.
    pub(crate) async fn ask_all<'k, T>(
        &self,
        commands: impl Iterator<Item = (&'k Key, Cmd)>,
        read: impl Fn(Value) -> Option<Result<T, Failure>>,
        budget: &Budget<'_>,
    ) -> Vec<Result<T, Failure>> {
        let mut backoff = backoff(&self.config);
        let mut answers = Vec::new();
        let mut pending: Vec<_> = commands
            .enumerate()
            .map(|(index, (key, command))| {
                let name = self.config.name(key);
                Asked { index, name, command, go_to: None }
            })
            .collect();
        let mut redirections = 0;
        let mut last = None;
        while !pending.is_empty() {
            if budget.left().is_zero() {
                last = last.or_else(|| Some(error::too_late(&self.config.address)));
                break;
            }
            let requests = pending.iter_mut().map(Asked::request).collect();
            let replies = self.servers.send(requests, budget).await;
            let (mut again, mut redirected) = (Vec::new(), true);
            for (mut asked, reply) in pending.into_iter().zip(replies) {
                let answer = reply.and_then(|answer| {
                    read(answer).unwrap_or_else(|| Err(error::unreadable(&self.config.address)))
                });
                match answer {
                    Err(failure) if failure.retry => {
                        redirected &= is_redirection(&failure);
                        if let First::GoTo(address) = &failure.detail {
                            asked.go_to = Some(address.clone());
                        }
                        last = Some(failure);
                        again.push(asked);
                    }
                    answer => answers.push((asked.index, answer)),
                }
            }
            pending = again;
            if pending.is_empty() {
                break;
            }
            if redirected && redirections < REDIRECTIONS {
                redirections += 1;
            } else if !backoff.pause(budget).await {
                break;
            }
        }
        let last = last.unwrap_or_else(|| error::too_late(&self.config.address));
        answers.extend(pending.into_iter().map(|asked| (asked.index, Err(last.clone()))));
        answers.sort_unstable_by_key(|(index, _)| *index);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }
}

impl Asked {
    fn request(&mut self) -> Request {
        let (name, command) = (self.name.clone(), self.command.clone());
        Request { size: name.len(), name, command, go_to: self.go_to.take() }
    }
}
