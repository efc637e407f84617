//! Runs the command, and makes events for it.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::ran::{self, Ran};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The command in the workspace.
pub(crate) fn command<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = ran::command(["keys"]);
    command.args(arguments).current_dir(root());
    command
}

pub(crate) fn keys<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ran {
    Ran::from(&mut command(arguments))
}

/// Runs the command with these events in files; `{0}` and `{1}` in the arguments are their paths.
pub(crate) fn keys_of(name: &str, events: &[Value], arguments: &[&str]) -> Ran {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = |at: usize| folder.join(format!("keys-{name}-{at}.json")).display().to_string();
    for (at, event) in events.iter().enumerate() {
        std::fs::write(path(at), event.to_string()).unwrap();
    }
    keys(arguments.iter().map(|argument| match *argument {
        "{0}" => path(0),
        "{1}" => path(1),
        other => other.to_owned(),
    }))
}

pub(crate) fn messages(bodies: &[Value]) -> Value {
    let record = |(at, body): (usize, &Value)| {
        json!({
            "messageId": format!("m-{at}"), "eventSource": "aws:sqs", "body": body.to_string(),
            "receiptHandle": "r", "attributes": { "ApproximateReceiveCount": "1" },
            "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:orders",
        })
    };
    json!({ "Records": bodies.iter().enumerate().map(record).collect::<Vec<_>>() })
}

/// A request to a load balancer.
pub(crate) fn request(key: &str, body: &str) -> Value {
    json!({
        "requestContext": { "elb": { "targetGroupArn": "arn:aws:elasticloadbalancing:eu-west-1:1:a" } },
        "httpMethod": "POST", "path": "/charges", "queryStringParameters": {},
        "headers": { "host": "lb.example.com", "idempotency-key": key, "authorization": "s3cr3t" },
        "body": body, "isBase64Encoded": false,
    })
}
