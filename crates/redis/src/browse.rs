//! Pages of all records, by `SCAN` of one primary after the other.
//!
//! The server is asked for about [`COUNT`] keys at a time. It reads all of its keys sooner or later, also those of
//! others, in steps that do not block it. While it shrinks its table it may return a key twice.
//!
//! A step counts in the memory of one process. Another server, and the same one after a restart, has the keys in another
//! order, so a listing that went on there would pass over some of them. It ends with an error instead.

use std::{num::NonZeroUsize, sync::Arc};

use lambda_idempotency_core::{
    browse::{Browse, Cursor, Left, Page, PageBuilder},
    clock::{BoxFuture, Timestamp},
    key::Key,
    store::{Guard, RecordVersion, StoreError, StoreErrorKind},
};
use redis::Value;

use crate::{
    connection::Node,
    error::{self, Failure},
    guard::beginning,
    item::decode,
    limits::{Budget, backoff, budget},
    store::RedisStore,
};

/// How many keys the server passes over in one step.
const COUNT: usize = 256;
/// How many records of a page are read at a time.
const AT_A_TIME: usize = 8;

/// Where a page begins: with these names, and then at this step of the scan of this primary.
///
/// The names are those that a step returned and a page had no room for. The step cannot be taken again for them: it
/// passes over so many keys, and goes further if some were deleted meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Position {
    /// Which server had which keys when the listing began; 0 before.
    servers: u64,
    primary: usize,
    /// The process that counts the steps.
    process: u64,
    step: u64,
    names: Vec<String>,
}

/// The answer to one step of a scan.
struct Step {
    servers: u64,
    process: u64,
    names: Vec<String>,
    /// 0 at the end.
    next: u64,
}

impl Position {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(5, ' ');
        let (servers, primary) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let (process, step) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let (mut names, mut rest) = (Vec::new(), parts.next()?);
        while !rest.is_empty() {
            let (length, text) = rest.split_once(' ')?;
            let (name, next) = text.split_at_checked(length.parse().ok()?)?;
            names.push(name.to_owned());
            rest = next;
        }
        Some(Self { servers, primary, process, step, names })
    }

    /// Another one for each position to which a call may come from this one.
    const fn measure(&self) -> (usize, u64, usize) {
        (self.primary, self.step, self.names.len())
    }

    fn text(&self) -> String {
        let Self { servers, primary, process, step, names } = self;
        let names = names.iter().map(|name| format!("{} {name}", name.len()));
        format!("{servers} {primary} {process} {step} {}", names.collect::<String>())
    }
}

impl RedisStore {
    /// The names of records in one step, each once.
    async fn scan(
        &self,
        node: &Node,
        position: &Position,
        servers: u64,
        budget: &Budget<'_>,
    ) -> Result<Step, Failure> {
        let at = &node.address;
        let mut command = redis::cmd("SCAN");
        let pattern = format!("{}*", escaped(&self.config.prefix));
        command.arg(position.step).arg("MATCH").arg(pattern).arg("COUNT").arg(COUNT);
        let link = node.link(&self.config, budget).await?;
        let process = link.facts.process;
        if position.step != 0 && position.process != process {
            return Err(error::listing_ended(at));
        }
        let answer = node.ask(&link, command, budget).await?;
        let (names, next) = scanned(&answer).ok_or_else(|| error::unreadable(at))?;
        Ok(Step { servers, process, names, next })
    }

    /// The same, repeated until the budget ends.
    async fn step(
        &self,
        position: &Position,
        budget: &Budget<'_>,
    ) -> Result<Option<Step>, Failure> {
        let mut backoff = backoff(&self.config);
        loop {
            if budget.left().is_zero() {
                return Err(error::too_late(&self.config.address));
            }
            let answer = match self.primary(position.primary, budget).await {
                Ok(None) => return Ok(None),
                Ok(Some((_, servers))) if ![0, servers].contains(&position.servers) => {
                    return Err(error::listing_ended(&self.config.address));
                }
                Ok(Some((node, servers))) => self.scan(&node, position, servers, budget).await,
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
    ) -> Result<Option<(Arc<Node>, u64)>, Failure> {
        let map = self.servers.map(budget).await?;
        Ok(map.primaries().into_iter().nth(index).map(|node| (node, map.fingerprint())))
    }

    /// The next records without these fields.
    async fn page_without(
        &self,
        unread: &[&str],
        after: Option<&Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> Result<Page, Failure> {
        let budget = &budget(&self.config, call_deadline);
        let position = match after {
            None => Position::default(),
            Some(cursor) => Position::read(cursor.as_str()).ok_or_else(error::other_cursor)?,
        };
        let from = position.measure();
        let (mut names, mut next) = self.names(position, limit.get(), budget).await?;
        let (mut page, mut failed) = (PageBuilder::new(limit), None);
        while page.has_room() && !names.is_empty() && failed.is_none() {
            let later = names.split_off(AT_A_TIME.min(names.len()));
            let now = std::mem::replace(&mut names, later);
            let keys: Vec<Key> = now.iter().filter_map(|name| self.config.key(name)).collect();
            let records = self.read_without(unread, &keys, budget).await;
            for (key, record) in keys.into_iter().zip(records) {
                let name = self.config.name(&key);
                if let Err(failure) = page.add(key, record) {
                    names.push(name);
                    failed = Some(failure);
                }
            }
        }
        if let Some(next) = &mut next {
            // They had no room, or no time.
            names.append(&mut next.names);
            next.names = names;
        }
        match failed {
            // The next call would fail as well.
            Some(failure) if !has_no_time(&failure) => Err(failure),
            Some(failure) if next.as_ref().is_some_and(|next| next.measure() == from) => {
                Err(failure)
            }
            _ => Ok(page.until(next.map(|next| Cursor::from_text(next.text())))),
        }
    }

    /// The names of the next records, at most `limit`. If none is found in half of the time of the call, there is only the
    /// position to go on from: a server may have millions of keys of others.
    async fn names(
        &self,
        mut position: Position,
        limit: usize,
        budget: &Budget<'_>,
    ) -> Result<(Vec<String>, Option<Position>), Failure> {
        let (half, mut has_moved) = (budget.left() / 2, false);
        while position.names.is_empty() && !(has_moved && budget.left() < half) {
            let step = match self.step(&position, budget).await {
                Err(failure) if has_moved && has_no_time(&failure) => break,
                step => step?,
            };
            let Some(step) = step else { return Ok((Vec::new(), None)) };
            let Step { servers, process, names, next } = step;
            let primary = position.primary.saturating_add(usize::from(next == 0));
            position = Position { servers, primary, process, step: next, names };
            has_moved = true;
        }
        let later = position.names.split_off(limit.min(position.names.len()));
        let names = std::mem::replace(&mut position.names, later);
        Ok((names, Some(position)))
    }
}

/// The next step, and the names without those that it repeats.
fn scanned(answer: &Value) -> Option<(Vec<String>, u64)> {
    let Value::Array(parts) = answer else { return None };
    let [Value::BulkString(step), Value::Array(names)] = &**parts else { return None };
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

/// Whether another call may succeed.
fn has_no_time(failure: &Failure) -> bool {
    failure.kind() == StoreErrorKind::Unavailable
}

/// The answer to the caller, with an error for a failure.
fn told<'a, T>(
    call: impl Future<Output = Result<T, Failure>> + Send + 'a,
) -> BoxFuture<'a, Result<T, StoreError>> {
    Box::pin(async move { call.await.map_err(|failure| failure.report(false)) })
}

impl Browse for RedisStore {
    fn page<'a>(
        &'a self,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        told(self.page_without(Left::unread(None), after, limit, call_deadline))
    }

    fn left<'a>(
        &'a self,
        left: Left,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        told(self.page_without(Left::unread(Some(left)), after, limit, call_deadline))
    }

    fn mark_sent<'a>(
        &'a self,
        records: &'a [(Key, RecordVersion)],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), StoreError>>> {
        Box::pin(async move {
            let budget = &budget(&self.config, call_deadline);
            let commands = records.iter().map(|(key, seen)| {
                let mut command = self.config.scripts.forget.command(&self.config.name(key));
                command.arg(beginning(&Guard::Unchanged(seen.clone()))).arg("outbox");
                (key, command)
            });
            let corrupt = |problem| Err(error::corrupt(&self.config.address, &problem));
            let is_done = |answer| match answer {
                Value::Int(_) => Some(Ok(())),
                Value::BulkString(text) => decode(&text).err().map(corrupt),
                _ => None,
            };
            let marked = self.ask_all(commands, is_done, budget).await.into_iter();
            marked.map(|done| done.map_err(|failure| failure.report(false))).collect()
        })
    }

    fn count<'a>(&'a self, call_deadline: Timestamp) -> BoxFuture<'a, Result<u64, StoreError>> {
        told(async move {
            let budget = budget(&self.config, call_deadline);
            let (mut count, mut position) = (0u64, Position::default());
            loop {
                let (names, next) = self.names(position, usize::MAX, &budget).await?;
                count = count.saturating_add(u64::try_from(names.len()).unwrap_or(u64::MAX));
                let Some(next) = next else { return Ok(count) };
                position = next;
            }
        })
    }
}
