//! Reads, each by the script that only a primary runs.

use lambda_idempotency_core::{key::Key, record::IdempotencyRecord};
use redis::{Cmd, Value};

use crate::{
    config::Address,
    error::{self, Failure, First, is_redirection},
    item::decode,
    retry::{Budget, backoff},
    servers::Request,
    store::RedisStore,
};

/// How often requests that were sent to a wrong server are sent on without a pause.
const REDIRECTIONS: usize = 3;

/// The result for a key: the record or nothing, or the error.
pub(crate) type Answer = Result<Option<IdempotencyRecord>, Failure>;

/// A key that has to be read, and the server that is receiving its record.
struct Pending<'k> {
    index: usize,
    key: &'k Key,
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
        let mut backoff = backoff(&self.config);
        let mut answers: Vec<(usize, Answer)> = Vec::with_capacity(keys.len());
        let pending = keys.iter().enumerate();
        let mut pending: Vec<_> =
            pending.map(|(index, key)| Pending { index, key, go_to: None }).collect();
        let mut redirections = 0;
        let mut last = None;
        while !pending.is_empty() {
            if budget.left().is_zero() {
                last = last.or_else(|| Some(error::too_late(&self.config.address)));
                break;
            }
            let requests = pending.iter_mut().map(|one| self.request(unread, one)).collect();
            let replies = self.servers.send(requests, budget).await;
            let (mut again, mut redirected) = (Vec::new(), true);
            for (mut pending, reply) in pending.into_iter().zip(replies) {
                let failure = match reply {
                    Ok(Value::Nil) => {
                        answers.push((pending.index, Ok(None)));
                        continue;
                    }
                    Ok(Value::BulkString(text)) => {
                        let read = decode(&text).map(Some);
                        let corrupt = |problem| error::corrupt(&self.config.address, &problem);
                        answers.push((pending.index, read.map_err(corrupt)));
                        continue;
                    }
                    Ok(_) => error::unreadable(&self.config.address),
                    Err(failure) => failure,
                };
                if !failure.retry {
                    answers.push((pending.index, Err(failure)));
                    continue;
                }
                redirected &= is_redirection(&failure);
                if let First::GoTo(address) = &failure.detail {
                    pending.go_to = Some(address.clone());
                }
                last = Some(failure);
                again.push(pending);
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
        answers.extend(pending.into_iter().map(|pending| (pending.index, Err(last.clone()))));
        answers.sort_unstable_by_key(|(index, _)| *index);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    fn request(&self, unread: &[&str], pending: &mut Pending<'_>) -> Request {
        let name = self.config.name(pending.key);
        let mut command = Cmd::new();
        let scripts = &self.config.scripts;
        let script = if unread.is_empty() { &scripts.read } else { &scripts.peek };
        command.arg("EVALSHA").arg(&script.hash).arg(1).arg(&name);
        command.arg(unread);
        Request { size: name.len(), name, command, go_to: pending.go_to.take() }
    }
}
