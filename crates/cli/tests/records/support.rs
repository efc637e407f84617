//! A table, the command, and pages that are the same on every run.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use aws_sdk_dynamodb::primitives::{DateTime, DateTimeFormat};
use lambda_idempotency_local::{DynamoDb, Proxy, Table};
use serde_json::{Value, json};

use crate::ran::{self, Ran};

pub(crate) const TABLE: &str = "idempotency";
/// What options of all commands in these tests say about the operation.
pub(crate) const OPERATION: [&str; 4] = ["--operation", "place", "--key", "orderId"];

pub(crate) struct World {
    pub(crate) db: DynamoDb,
    proxy: Proxy,
}

impl World {
    /// A database with a table.
    pub(crate) async fn new() -> Self {
        let world = Self::empty().await;
        world.db.create_table(&Table::new(TABLE, "id").ttl("expiration")).unwrap();
        world
    }

    pub(crate) async fn empty() -> Self {
        let db = DynamoDb::start().await.unwrap();
        let proxy = db.proxy().await.unwrap();
        Self { db, proxy }
    }

    /// Runs `records` with these arguments, on the table.
    pub(crate) fn records(&self, arguments: &[&str]) -> Ran {
        ran(self.start(arguments))
    }

    /// What the environment of a command says of the table.
    pub(crate) fn environment(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ENDPOINT_URL", self.proxy.url()),
            ("AWS_REGION", "eu-west-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "id".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
            ("IDEMPOTENCY_TABLE", TABLE.to_owned()),
        ]
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        records_at(&self.proxy.url(), arguments)
    }

    /// Stores an item with this status and these other attributes, which expires in a day.
    pub(crate) fn put(&self, key: &str, status: &str, more: &Value) {
        let mut item = json!({
            "id": { "S": key },
            "status": { "S": status },
            "expiration": { "N": seconds_from_now(86_430).to_string() },
        });
        let more = more.as_object().unwrap().clone();
        item.as_object_mut().unwrap().extend(more);
        self.db.put_item(TABLE, &item).unwrap();
    }

    pub(crate) fn item(&self, key: &str) -> Option<Value> {
        let found = self.db.item(TABLE, &json!({ "id": { "S": key } })).unwrap();
        found.filter(|item| !item.is_null())
    }
}

/// Starts `records` with these arguments, on the table at this endpoint.
pub(crate) fn records_at(endpoint: &str, arguments: &[&str]) -> Child {
    let mut command = ran::command(["records"]);
    command.args(arguments);
    command.args(["--endpoint-url", endpoint, "--region", "eu-west-1"]);
    command.env("AWS_ACCESS_KEY_ID", "id").env("AWS_SECRET_ACCESS_KEY", "secret");
    command.env("IDEMPOTENCY_TABLE", TABLE);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// An endpoint that gives one request this answer, at this time by its clock (in seconds since the epoch).
pub(crate) fn answering(body: String, at: i64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let at = UNIX_EPOCH + Duration::from_secs(at.try_into().unwrap());
    let date = DateTime::from(at).fmt(DateTimeFormat::HttpDate).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap();
        let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
        stream.read_exact(&mut vec![0; length]).unwrap();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ndate: {date}\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).unwrap();
    });
    url
}

pub(crate) fn ran(child: Child) -> Ran {
    child.wait_with_output().unwrap().into()
}

/// Expects the page of this file.
#[track_caller]
pub(crate) fn page(ran: &Ran, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records").join(name);
    let page = steady(&ran.out);
    if std::env::var_os("RECORDS_UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(page, expected, "{}", path.display());
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// In so many seconds, in seconds since the epoch.
pub(crate) fn seconds_from_now(seconds: i64) -> i64 {
    i64::try_from(now().as_secs()).unwrap() + seconds
}

/// In milliseconds, as an attribute.
pub(crate) fn millis_from_now(seconds: i64) -> Value {
    json!({ "N": (seconds_from_now(seconds) * 1000).to_string() })
}

/// The attributes of a claim whose lease ends in so many seconds.
pub(crate) fn claimed(lease: i64) -> Value {
    json!({
        "owner": { "S": "00000000000000000000000000000001" },
        "in_progress_expiration": millis_from_now(lease),
        "provenance": provenance(),
    })
}

/// The attributes of a claim that was given up after a failure.
pub(crate) fn released() -> Value {
    json!({
        "last_owner": { "S": "00000000000000000000000000000001" },
        "in_progress_expiration": { "N": "1" },
        "failed_attempts": { "N": "2" },
        "error": { "S": "payments::Declined" },
        "provenance": provenance(),
    })
}

/// Claimed 5 minutes ago.
pub(crate) fn provenance() -> Value {
    json!({ "M": {
        "claimed_at": millis_from_now(-330),
        "request_id": { "S": "8f5d9c3e-6c3a-4a52-b0ae-9d7f4a8c1b22" },
        "function": { "S": "orders-prod" },
        "version": { "S": "7" },
        "log_stream": { "S": "2026/11/22/[7]0123456789abcdef0123456789abcdef" },
        "source": { "S": "sqs" },
        "record": { "S": "2e1424d4-f796-459a-8184-9c92662be6da" },
    } })
}

/// An event of SQS with an order for each id.
pub(crate) fn orders(ids: &[&str]) -> Value {
    let records = ids.iter().map(|id| {
        json!({
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:orders",
            "messageId": format!("m-{id}"),
            "body": json!({ "orderId": id }).to_string(),
            "attributes": { "ApproximateReceiveCount": "1" },
        })
    });
    json!({ "Records": records.collect::<Vec<_>>() })
}

/// A file with this text.
pub(crate) fn file(name: &str, text: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("records-{name}.json"));
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// The keys of the orders, made by `keys`.
pub(crate) fn keys_of(name: &str, ids: &[&str]) -> Vec<String> {
    let event = file(name, &orders(ids).to_string());
    let report = Ran::from(ran::command(["keys", "--json", &event]).args(OPERATION)).json();
    let records = report["records"].as_array().unwrap().iter();
    records.map(|record| record["key"].as_str().unwrap().to_owned()).collect()
}

/// The text with `<time>` in the place of each instant.
fn steady(text: &str) -> String {
    const LENGTH: usize = "2026-11-22T09:30:00Z".len();
    let is_instant = |text: &str| {
        let bytes = text.as_bytes();
        bytes.len() == LENGTH
            && text.ends_with('Z')
            && [4, 7].iter().all(|at| bytes[*at] == b'-')
            && bytes[10] == b'T'
    };
    let (mut out, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        if rest.get(..LENGTH).is_some_and(is_instant) {
            out.push_str("<time>");
            rest = &rest[LENGTH..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}
