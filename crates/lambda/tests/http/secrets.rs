//! Log lines contain nothing of a request, its key or its response.

use lambda_http::http::Method;
use lambda_idempotency::{http::Http, observe::TracingObserver, store::StoreErrorKind};
use lambda_idempotency_testkit::faults::{Fault, GuardKind};

use crate::{
    secrets_capture::Captured,
    support::{World, charges, post, request},
};

const SECRET: &str = "s3cr3t";

#[tokio::test]
async fn logs_of_requests_in_every_state_have_no_secrets() {
    let (world, captured) = (World::new(), Captured::default());
    let guard = captured.start();
    let bodies = ["", "422 ", "500 ", "burn ", "huge ", "sleep "];
    for operation in [charges(), charges().fingerprint("body")] {
        let idempotency = world.idempotency().with_log(TracingObserver::new());
        let layer = idempotency.http(&operation, Http::by_header()).unwrap();
        let send = async |request| {
            if let Err(error) = world.send(&layer, request).await {
                captured.shown(&error);
            }
        };
        for (at, body) in bodies.iter().enumerate() {
            let key = format!("{SECRET}-{at}");
            for body in
                [format!("{body}{SECRET}"), format!("{body}{SECRET}"), format!("another {SECRET}")]
            {
                send(post(&key, &body)).await;
            }
        }
        for header in [None, Some(""), Some("\"s3cr3t"), Some("s3cr3t s3cr3t")] {
            let path = format!("/charges/{SECRET}?at={SECRET}");
            send(request(Method::POST, &path, header, SECRET)).await;
        }
        for (header, value) in [
            (None, ""),
            (Some("cookie"), "session=s3cr3t"),
            (Some("x-api-key"), SECRET),
            (Some("authorization"), "Digest s3cr3t"),
        ] {
            let mut request = post("s3cr3t-who", SECRET);
            request.headers_mut().remove("authorization");
            if let Some(header) = header {
                request.headers_mut().insert(header, value.parse().unwrap());
            }
            send(request).await;
        }
        world.store.outage();
        send(post("s3cr3t-out", SECRET)).await;
        world.store.heal();
        let corrupt = Fault::refuse(StoreErrorKind::Corrupt);
        world.store.inject(corrupt.guarded_by(GuardKind::OwnedBy));
        send(post("s3cr3t-lost", SECRET)).await;
    }
    drop(guard);
    let text = captured.text();
    for proof in [
        "executed",
        "replayed",
        "mismatch",
        "timed_out",
        "unavailable",
        "completion_lost",
        "rejected",
        "its caller is not known",
    ] {
        assert!(text.contains(proof), "the test did not capture this: {proof}\n{text}");
    }
    assert_eq!(text.lines().find(|line| line.contains(SECRET)), None, "\n{text}");
}
