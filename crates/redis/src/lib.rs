//! Keeps idempotency records in Redis or Valkey.
//!
//! ```no_run
//! use lambda_idempotency_redis::RedisStore;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = RedisStore::connect("rediss://orders.abc123.euw1.cache.amazonaws.com").await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What it can do
//!
//! | | |
//! |---|---|
//! | [Effects](lambda_idempotency_core::effects), committed with the completion | no: operations that are transactional need another store |
//! | Messages of an [outbox](lambda_idempotency_core::outbox), stored with the completion | yes, in the record |
//! | The server removes expired records | yes, ten minutes after they expire |
//! | [Listing records](lambda_idempotency_core::browse::Browse) | yes, by `SCAN`, which passes over all keys of the server |
//! | Writes of a call | a pipeline of up to 256 for each server, each write by itself |
//! | A guard is compared | by the server, in the script that writes |
//! | Reads see the latest write | yes, except after a failover |
//! | The largest record | 8 MiB |
//! | The time that decides | the worker's, by its [`clock`](RedisStoreBuilder::clock); the server's for the removal, and each new connection compares them, unless it has no permission for `INFO` (with [`allow_eviction`](RedisStoreBuilder::allow_eviction)) |
//! | A write that was confirmed survives the loss of a server | only with MemoryDB |
//! | A failover means | calls are repeated until their deadline; the last writes are lost, except with MemoryDB |
//!
//! # The server
//!
//! Redis 7 or later, or Valkey 7.2 or later. The suite runs on Redis 7.0 of Debian, and on its Valkey where it has one; it was
//! run by hand on Redis 8.0 and on Valkey 8.1 and 9.1. ElastiCache, MemoryDB or your own; a single primary, one with replicas, or
//! a cluster, which the store recognises by itself. Give it the address of the primary, or of any server of the
//! cluster: in ElastiCache the *primary endpoint* or the *configuration endpoint*.
//!
//! Its `maxmemory-policy` has to be `noeviction`. With any other policy the server deletes records when its memory is
//! used up, and then work that was done runs again. In ElastiCache the policy is `volatile-lru` unless a parameter
//! group of your own says otherwise; a serverless cache has no parameter group, so it cannot keep records. Each new connection checks the policy, and refuses a server that evicts;
//! [`RedisStoreBuilder::allow_eviction`] insists. [`RedisStore::connect`] checks when the function starts, and
//! [`RedisStore::new`] leaves it to the first call.
//!
//! While memory is used up under `noeviction`, keys cannot be claimed (the store is unavailable, and
//! [`OnOutage`](lambda_idempotency_core::policy::OnOutage) says what follows), but keys that were claimed can be
//! completed, renewed and released, with the results of their steps, and their messages can be marked as sent. A
//! duplicate of what is recorded is answered, by a second request.
//!
//! # What a failover means
//!
//! A primary confirms a write before its replicas have it. If it is lost then, a replica without the write takes over,
//! and the server has forgotten it:
//!
//! * **A claim that was forgotten** leaves its key free while its handler runs. The next delivery of the record runs
//!   the handler beside it, or again. The first of them to complete is recorded; the other learns that its claim is gone.
//! * **A completion that was forgotten** leaves the claim, or nothing. The next delivery runs the handler again.
//! * A primary that is separated from its cluster, but not from the function, confirms writes for up to
//!   `cluster-node-timeout` that the others never see.
//!
//! So with asynchronous replication this store makes duplicates rare, and cannot exclude them. Where a duplicate costs
//! money, use DynamoDB or PostgreSQL, or MemoryDB, which confirms a write once a log in several zones has it.
//! Without any replica and without `appendonly`, a server that restarts has forgotten everything.
//!
//! # Permissions
//!
//! The rights of [`COMMANDS`], on the keys `idempotency:*`. A test runs the store with a user who has no others.
//!
//! # How it writes
//!
//! * **The claim of a new key** is a `SET` with `NX` and `GET`, which answers with the record that is there. Every other
//!   **write** is a script with one key: it compares the guard, and replaces the record or answers with the one that
//!   it found. Writes of a call are sent in one pipeline for each server, up to 256 in each.
//! * **A read** is a script too, which a replica refuses: no answer comes from a server that only follows.
//! * **A record** is text under `idempotency:` and the key: a line with all that guards compare, and a line for each
//!   other field. The server removes it
//!   ([`expiry_margin`](RedisStoreBuilder::expiry_margin)) after the record has expired and its lease has ended.
//! * **A lost response** (a timeout, a broken connection): the write is sent again on a new connection. If it then
//!   finds the record that it was to write, with its own token, the first request was applied.
//! * **A server that cannot serve now** (it loads its data, is a replica since a failover, has moved the key, has no
//!   memory): the request is sent again, to the server that has the key then, with pauses that double from 25 ms to
//!   400 ms, until the deadline of the call.
//! * **A connection** is shared by all calls of a process, which also make it together, and nothing reads it between them.
//!   After ten seconds without a call it is tried (`PING`) before it is used, since a frozen process does not learn that it was
//!   closed.
//!
//! Powertools for AWS Lambda keeps records of its own in Redis, in another form and under other names. This store does
//! not read them.
//!
//! # What is logged
//!
//! The store logs no keys and no content of records, at any level. It never shows its URL, user or password.
//!
//! # Credentials
//!
//! User and password of the URL, or [`RedisStoreBuilder::password`] for what changes: a secret of AWS Secrets Manager, or
//! a token of IAM authentication. The server closes a connection twelve hours after its token; the next call makes a
//! new one.
//!
//! # Features
//!
//! * `tls` (default): `rediss://`, by rustls with the cryptography of the AWS SDK.

mod browse;
mod builder;
mod check;
mod cluster;
mod config;
mod connection;
mod error;
mod guard;
mod handshake;
mod item;
mod limits;
mod read;
mod script;
mod servers;
mod store;
mod url;
mod write;

pub use crate::{builder::RedisStoreBuilder, config::RedisConfigError, store::RedisStore};

/// The commands that a user of the server needs, as rules of its access control list: `ACL SETUSER orders on
/// >PASSWORD ~idempotency:*`, and then these. `INFO` is not needed with
/// [`allow_eviction`](RedisStoreBuilder::allow_eviction), `CLUSTER SLOTS` and `ASKING` only in a cluster, and
/// `SCAN` and `TIME` only to list records, as the command line does.
pub const COMMANDS: [&str; 13] = [
    "+evalsha",
    "+script|load",
    "+get",
    "+getrange",
    "+set",
    "+del",
    "+info",
    "+ping",
    "+select",
    "+cluster|slots",
    "+asking",
    "+scan",
    "+time",
];

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
