//! Shares a table with the real Powertools for AWS Lambda: each side reads what the other wrote.
//!
//! Not among the tests, which need neither Python nor Node; they use recorded requests.
//!
//! ```text
//! python3 -m venv venv && venv/bin/pip install aws-lambda-powertools==3.37.0 jmespath boto3
//! cargo run -p lambda-idempotency-dynamodb --example interop -- python venv/bin/python
//!
//! npm install --prefix DIR @aws-lambda-powertools/idempotency@2.35.0 \
//!     @aws-lambda-powertools/jmespath@2.35.0 @aws-sdk/client-dynamodb @aws-sdk/lib-dynamodb
//! cargo run -p lambda-idempotency-dynamodb --example interop -- typescript DIR
//! ```

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "an example")]

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Credentials, Region},
};
use lambda_idempotency_core::key::Key;
use lambda_idempotency_core::{
    clock::{Clock, SystemClock, Timestamp},
    record::{Fingerprint, IdempotencyRecord, Owner, Status},
    store::{Guard, Store, Verdict, Write},
};
use lambda_idempotency_dynamodb::{Attributes, DataForm, DynamoDbStore};
use lambda_idempotency_powertools::PowertoolsKeys;
use serde_json::{Value, json};

const TABLE: &str = "idem";

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(language), Some(place)) = (arguments.next(), arguments.next()) else {
        panic!("say `python PATH/TO/python` or `typescript DIRECTORY`");
    };
    let endpoint = serve().await;
    let powertools = match &*language {
        "python" => PowertoolsKeys::python("interop"),
        "typescript" => PowertoolsKeys::typescript("interop"),
        other => panic!("{other}: neither `python` nor `typescript`"),
    };
    let mut names = Attributes::default();
    if language == "typescript" {
        names.data_form = DataForm::Native;
    }
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .region(Region::new("eu-west-1"))
        .endpoint_url(&endpoint)
        .credentials_provider(Credentials::new("id", "secret", None, None, "example"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .build();
    let store = DynamoDbStore::builder(Client::from_conf(config), TABLE).attributes(names);
    let mut shop = Shared {
        store: store.build().unwrap(),
        powertools,
        theirs: Theirs::start(&language, &place, &endpoint),
    };
    for (id, result) in [
        (json!("A-1"), json!({"ok": true, "z": [1, 2.5], "a": null})),
        (json!("héllo 😀"), json!("done")),
        (json!(42), json!(12.5)),
        (json!(1.5), json!([{"nested": {"deep": ["x"]}}])),
        (json!({"b": 1, "B": [2, {"é": "ü"}], "10": "ten", "9": "nine"}), json!("42")),
    ] {
        shop.exchange(&id, &result).await;
        println!("{language}: shared");
    }
}

/// Both sides of a table.
struct Shared {
    store: DynamoDbStore,
    powertools: PowertoolsKeys,
    theirs: Theirs,
}

impl Shared {
    async fn exchange(&mut self, id: &Value, result: &Value) {
        let event = |part: &str, amount: u32| json!({ "id": [part, id], "amount": amount });

        // They do it, and we find it done; done again, it is theirs.
        let done = event("theirs", 1);
        assert_eq!(self.theirs.call(&done, result), json!({"executed": true, "result": result}));
        let found = self.read(&done).await.unwrap();
        assert_eq!(found.status, Status::Completed);
        assert_eq!(found.fingerprint, Some(self.fingerprint(&done)));
        assert_eq!(
            serde_json::from_str::<Value>(found.result.as_deref().unwrap()).unwrap(),
            *result
        );

        // We do it, and they replay it; with another amount it is another order.
        let done = event("ours", 1);
        let kept = self.powertools.result(&result.to_string()).unwrap();
        self.write(&done, |record| {
            record.status = Status::Completed;
            record.result = Some(kept.into());
        })
        .await;
        assert_eq!(
            self.theirs.call(&done, &json!("no")),
            json!({"executed": false, "result": result})
        );
        let other = self.theirs.call(&event("ours", 2), &json!("no"));
        assert_eq!(other, json!({"executed": false, "error": "IdempotencyValidationError"}));

        // We are at work, and they wait; we have given up, and they take over.
        let busy = event("busy", 1);
        self.write(&busy, |_| {}).await;
        let answer = self.theirs.call(&busy, &json!("no"));
        assert_eq!(
            answer,
            json!({"executed": false, "error": "IdempotencyAlreadyInProgressError"})
        );
        let released = event("released", 1);
        self.write(&released, |record| {
            record.last_owner = record.owner.take();
            record.lease_until = Some(Timestamp::from_millis(1));
        })
        .await;
        let answer = self.theirs.call(&released, result);
        assert_eq!(answer, json!({"executed": true, "result": result}));
        assert_eq!(self.read(&released).await.unwrap().owner, None, "our token is gone");

        // It failed permanently, and they do not do it either.
        let failed = event("failed", 1);
        self.write(&failed, |record| record.status = Status::PermanentlyFailed).await;
        let answer = self.theirs.call(&failed, &json!("no"));
        assert_eq!(answer["executed"], false, "{answer}");
        assert!(answer["error"].is_string(), "{answer}");
    }

    fn key(&self, event: &Value) -> Key {
        let event = self.powertools.read(&event.to_string()).unwrap();
        self.powertools.key(&event, Some(&self.powertools.compile("id").unwrap())).unwrap()
    }

    fn fingerprint(&self, event: &Value) -> Fingerprint {
        let event = self.powertools.read(&event.to_string()).unwrap();
        let amount = self.powertools.compile("amount").unwrap();
        Fingerprint::new(self.powertools.fingerprint(&event, &amount).unwrap())
    }

    async fn read(&self, event: &Value) -> Option<IdempotencyRecord> {
        let call_deadline = SystemClock.now().plus(Duration::from_secs(5));
        self.store.read(&[self.key(event)], call_deadline).await.remove(0).unwrap()
    }

    /// A claim, or what it is made into.
    async fn write(&self, event: &Value, change: impl FnOnce(&mut IdempotencyRecord)) {
        let now = SystemClock.now();
        let expires_at = now.plus(Duration::from_secs(3600));
        let mut record = IdempotencyRecord::new(Status::InProgress, expires_at);
        record.owner = Some(Owner::random().unwrap());
        record.lease_until = Some(now.plus(Duration::from_secs(60)));
        record.fingerprint = Some(self.fingerprint(event));
        change(&mut record);
        let write = Write::new(self.key(event), Guard::Absent, Some(record));
        let call_deadline = now.plus(Duration::from_secs(5));
        let verdict = self.store.write(&[write], call_deadline).await.remove(0);
        assert!(matches!(verdict, Verdict::Written), "{verdict:?}");
    }
}

/// The other side: a process, asked a line at a time.
struct Theirs {
    process: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Theirs {
    fn start(language: &str, place: &str, endpoint: &str) -> Self {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/interop");
        let (program, script, directory) = match language {
            "python" => (place, scripts.join("powertools.py"), PathBuf::from(".")),
            _ => ("node", scripts.join("powertools.mjs"), PathBuf::from(place)),
        };
        let mut process = Command::new(program)
            .arg(script)
            .arg(endpoint)
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let ask = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { process, ask, answers }
    }

    fn call(&mut self, event: &Value, result: &Value) -> Value {
        writeln!(self.ask, "{}", json!({ "event": event, "result": result })).unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|_| panic!("it answered {answer:?}"))
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// An embedded DynamoDB with the table; its endpoint.
async fn serve() -> String {
    let db = dynoxide::Database::memory().unwrap();
    let table = json!({
        "TableName": TABLE,
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    });
    db.create_table(serde_json::from_value(table).unwrap()).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let server = dynoxide::server::serve_with_shutdown(listener, db, std::future::pending::<()>());
    #[expect(clippy::disallowed_methods, reason = "ends with the example")]
    tokio::spawn(server);
    endpoint
}
