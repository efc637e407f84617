//! Pages of all records, by `SCAN` of one primary after the other.
//!
//! The server is asked for about [`COUNT`] keys at a time. It reads all of its keys sooner or later, also those of
//! others, in steps that do not block it. While it shrinks its table it may return a key twice.

use std::{num::NonZeroUsize, sync::Arc};

use lambda_idempotency_core::{
    browse::{Browse, Cursor, Page},
    clock::{BoxFuture, Timestamp},
    key::Key,
    store::{StoreError, StoreErrorKind},
};
use redis::{Pipeline, Value};

use crate::{
    error::{self, Failure, server_failure},
    node::Node,
    retry::{Budget, attempt, backoff, budget},
    store::RedisStore,
};

/// How many keys the server passes over in one step.
const COUNT: usize = 256;

/// Where a page begins: with these names, and then at this step of the scan of this primary.
///
/// The names are those that a step returned and a page had no room for. The step cannot be taken again for them: it
/// passes over so many keys, and goes further if some were deleted meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Position {
    primary: usize,
    step: u64,
    names: Vec<String>,
}

impl Position {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ' ');
        let (primary, step) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let (mut names, mut rest) = (Vec::new(), parts.next()?);
        while !rest.is_empty() {
            let (length, text) = rest.split_once(' ')?;
            let (name, next) = text.split_at_checked(length.parse().ok()?)?;
            names.push(name.to_owned());
            rest = next;
        }
        Some(Self { primary, step, names })
    }

    fn text(&self) -> String {
        let names = self.names.iter().map(|name| format!("{} {name}", name.len()));
        format!("{} {} {}", self.primary, self.step, names.collect::<String>())
    }
}

impl RedisStore {
    /// The names of records in one step, each once, and the next step; 0 at the end.
    async fn scan(
        &self,
        node: &Node,
        step: u64,
        budget: &Budget<'_>,
    ) -> Result<(Vec<String>, u64), Failure> {
        let at = &node.address;
        let mut commands = Pipeline::with_capacity(1);
        let pattern = format!("{}*", escaped(&self.config.prefix));
        commands.cmd("SCAN").arg(step).arg("MATCH").arg(pattern).arg("COUNT").arg(COUNT);
        let link = node.link(&self.config, budget).await?;
        let answer = match attempt(budget, link.send(&commands)).await {
            Ok(Ok(mut answers)) => answers.pop(),
            Ok(Err(error)) => {
                node.leave(&link);
                return Err(error::broken(at, &error));
            }
            Err(late) => {
                node.leave(&link);
                return Err(error::timed_out(at, late));
            }
        };
        match answer {
            Some(Value::ServerError(error)) => Err(server_failure(at, &error)),
            Some(Value::Array(parts)) => scanned(&parts).ok_or_else(|| error::unreadable(at)),
            _ => Err(error::unreadable(at)),
        }
    }

    /// The same, repeated until the budget ends.
    async fn step(
        &self,
        position: &Position,
        budget: &Budget<'_>,
    ) -> Result<Option<(Vec<String>, u64)>, Failure> {
        let mut backoff = backoff(&self.config);
        loop {
            if budget.left().is_zero() {
                return Err(error::too_late(&self.config.address));
            }
            let answer = match self.primary(position.primary, budget).await {
                Ok(None) => return Ok(None),
                Ok(Some(node)) => self.scan(&node, position.step, budget).await,
                Err(failure) => Err(failure),
            };
            match answer {
                Err(failure) if failure.retry => {
                    self.servers.forget_map(None);
                    if !backoff.pause(budget).await {
                        return Err(failure);
                    }
                }
                answer => return answer.map(Some),
            }
        }
    }

    async fn primary(
        &self,
        index: usize,
        budget: &Budget<'_>,
    ) -> Result<Option<Arc<Node>>, Failure> {
        Ok(self.servers.map(budget).await?.primaries().into_iter().nth(index))
    }

    /// The names of the next records: at most `limit`, and some if there are any.
    async fn names(
        &self,
        mut position: Position,
        limit: usize,
        budget: &Budget<'_>,
    ) -> Result<(Vec<String>, Option<Position>), Failure> {
        while position.names.is_empty() {
            let Some((names, step)) = self.step(&position, budget).await? else {
                return Ok((Vec::new(), None));
            };
            let primary =
                if step == 0 { position.primary.saturating_add(1) } else { position.primary };
            position = Position { primary, step, names };
        }
        let later = position.names.split_off(limit.min(position.names.len()));
        let names = std::mem::replace(&mut position.names, later);
        Ok((names, Some(position)))
    }
}

/// The next step, and the names without those that it repeats.
fn scanned(parts: &[Value]) -> Option<(Vec<String>, u64)> {
    let [Value::BulkString(step), Value::Array(names)] = parts else { return None };
    let step = std::str::from_utf8(step).ok()?.parse().ok()?;
    // A name that is not text is not one of ours.
    let text = |name: &Value| match name {
        Value::BulkString(name) => String::from_utf8(name.clone()).ok(),
        _ => None,
    };
    let mut names: Vec<_> = names.iter().filter_map(text).collect();
    names.sort_unstable();
    names.dedup();
    Some((names, step))
}

/// The text as a pattern that only it matches.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

impl Browse for RedisStore {
    fn page<'a>(
        &'a self,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(async move {
            let budget = budget(&self.config, call_deadline);
            let position = match after {
                None => Position::default(),
                Some(cursor) => Position::read(cursor.as_str()).ok_or_else(|| {
                    StoreError::new(StoreErrorKind::Refused, "a cursor that is not of this store")
                })?,
            };
            let names = self.names(position, limit.get(), &budget).await;
            let (names, next) = names.map_err(|failure| failure.report(false))?;
            let keys: Vec<Key> = names.iter().filter_map(|name| self.config.key(name)).collect();
            let records = self.read_all(&keys, &budget).await;
            let items = keys.into_iter().zip(records).filter_map(|(key, record)| match record {
                Ok(record) => Some((key, Ok(record?))),
                Err(failure) => Some((key, Err(failure.report(false)))),
            });
            Ok(Page::new(items.collect(), next.map(|next| Cursor::from_text(next.text()))))
        })
    }

    fn count<'a>(&'a self, call_deadline: Timestamp) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            let budget = budget(&self.config, call_deadline);
            let (mut count, mut position) = (0u64, Position::default());
            loop {
                let names = self.names(position, usize::MAX, &budget).await;
                let (names, next) = names.map_err(|failure| failure.report(false))?;
                count = count.saturating_add(u64::try_from(names.len()).unwrap_or(u64::MAX));
                let Some(next) = next else { return Ok(count) };
                position = next;
            }
        })
    }
}
