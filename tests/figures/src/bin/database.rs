//! The embedded DynamoDB in a process of its own, so that its processor time is not the function's. It reads
//! commands from its standard input, a line each, and answers each with a line of JSON.
#![allow(clippy::disallowed_methods, reason = "it measures")]

use std::error::Error;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lambda_idempotency_local::{DynamoDb, Fault, ItemAnswer, Proxy, StoreRequest, Table};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, stdin};

const TABLE: &str = "idempotency";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // Each connection of a function takes three files here, and the limit is that of a function.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    let database = DynamoDb::start().await?;
    database.create_table(&Table::new(TABLE, "id").ttl("expiration"))?;
    let mut proxies: Vec<Proxy> = Vec::new();
    let mut requests: Vec<StoreRequest> = Vec::new();
    let mut answering = Duration::ZERO;
    let epoch = (Instant::now(), SystemTime::now());
    let mut commands = BufReader::new(stdin()).lines();
    while let Some(line) = commands.next_line().await? {
        let mut words = line.split(' ');
        let command = words.next().unwrap_or_default();
        let number: u64 = words.next().unwrap_or_default().parse().unwrap_or_default();
        let answer = match command {
            // Opens another proxy. The answer is its URL; the next numbers of proxies follow from 0.
            "proxy" => {
                let proxy = database.proxy().await?;
                let url = proxy.url();
                proxies.push(proxy);
                json!(url)
            }
            // From now on, each request waits for so many milliseconds.
            "delay" => {
                database.faults().clear();
                if number > 0 {
                    database.faults().add(Fault::delay(Duration::from_millis(number)));
                }
                Value::Null
            }
            // What came through a proxy since it was opened.
            "usage" => {
                let proxy = proxies.get(usize::try_from(number)?).ok_or("no such proxy")?;
                requests = proxy.take_requests();
                let usage = proxy.usage();
                answering += answering_for(&requests);
                json!({
                    "requests": usage.requests(),
                    "connections": proxy.connections(),
                    "write_units": usage.write_units,
                    "read_units": usage.read_units,
                    "refused": usage.refused_conditions,
                    "answering_ms": answering.as_secs_f64() * 1000.0,
                })
            }
            // For how long each completion of the requests that the last `usage` took was missing.
            "windows" => json!(windows(&database, &requests, epoch)?),
            _ => return Err(format!("`{command}` is not a command").into()),
        };
        println!("{answer}");
    }
    Ok(())
}

/// For how long at least one of these requests was being answered, delays included.
fn answering_for(requests: &[StoreRequest]) -> Duration {
    let mut spans: Vec<_> = requests.iter().map(|it| (it.began, it.began + it.took)).collect();
    spans.sort_unstable();
    let mut answering = Duration::ZERO;
    let mut until = None;
    for (began, ended) in spans {
        let counted = until.map_or(began, |until| began.max(until));
        answering += ended.saturating_duration_since(counted);
        until = until.max(Some(ended));
    }
    answering
}

/// From the time that the handler returned, which is in the record, to the completion, in microseconds.
fn windows(
    database: &DynamoDb,
    requests: &[StoreRequest],
    (instant, time): (Instant, SystemTime),
) -> Result<Vec<u64>, Box<dyn Error>> {
    let mut windows = Vec::new();
    for request in requests {
        let done = time + (request.began + request.took).duration_since(instant);
        let done = u64::try_from(done.duration_since(UNIX_EPOCH)?.as_micros())?;
        let completed = request.items.iter().filter(|item| {
            item.status.as_deref() == Some("COMPLETED") && item.answer == ItemAnswer::Done
        });
        for item in completed {
            let key = json!({ "id": { "S": item.key } });
            let Some(item) = database.item(TABLE, &key)? else { continue };
            let stamp = item.get("data").and_then(|data| data.get("S")).and_then(Value::as_str);
            let stamp = stamp.and_then(|stamp| stamp.parse::<u64>().ok());
            windows.extend(stamp.map(|stamp| done.saturating_sub(stamp)));
        }
    }
    Ok(windows)
}
