//! A canary in each part of requests, responses and handlers' errors is in no log line, error or `Debug` text.

use std::time::Duration;

use lambda_http::{
    Body, Request, RequestExt as _,
    http::Method,
    tower::{Layer as _, Service as _, ServiceExt as _, service_fn},
};
use lambda_idempotency::{
    http::{Http, HttpLayer},
    observe::TracingObserver,
    store::StoreErrorKind,
};
use lambda_idempotency_testkit::{
    crashing::drop_after,
    faults::{Fault, GuardKind},
};

use crate::{
    capture::{CANARY, Captured},
    support::{World, charges, post, request},
};

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Quoting(String);

/// Sends a request whose handler puts all of it into its response or its error.
async fn send(world: &World, captured: &Captured, layer: &HttpLayer, mut request: Request) {
    request.headers_mut().insert("x-note", CANARY.parse().unwrap());
    let mut context = world.context();
    context.tenant_id = Some(CANARY.to_owned());
    let answering = world.clone();
    let handler = service_fn(move |request: Request| {
        let text = format!("{CANARY} {request:?}");
        let running = answering.handle(request);
        async move {
            let mut response = running.await.map_err(|_| Quoting(text.clone()))?;
            let length = response.body().len();
            response.headers_mut().insert("x-note", CANARY.parse().unwrap());
            *response.body_mut() = Body::from(text + &" ".repeat(length));
            Ok::<_, Quoting>(response)
        }
    });
    let dies = request.body().starts_with(b"die");
    let mut service = layer.layer(handler);
    let request = request.with_lambda_context(context);
    let sending = async { service.ready().await?.call(request).await };
    if dies {
        drop(drop_after(1, sending).await);
    } else if let Err(error) = world.clock.drive(sending).await {
        captured.debug(&error);
        captured.add(&format!("{error}\n"));
    }
}

#[tokio::test]
async fn requests_in_every_state() {
    let (world, captured) = (World::instant(), Captured::default());
    let guard = captured.start();
    for operation in [charges(), charges().fingerprint("body"), charges().key("[id]")] {
        let idempotency = world.idempotency().with_log(TracingObserver::new());
        let layer = match operation.producer() {
            Ok(_) => idempotency.http(&operation, Http::by_body()).unwrap(),
            Err(_) => idempotency.http(&operation, Http::by_header()).unwrap(),
        };
        captured.debug(&layer);
        let send = async |request| send(&world, &captured, &layer, request).await;
        let kinds = ["", "422 ", "500 ", "burn ", "huge ", "sleep ", "cookie ", "die "];
        for (at, kind) in kinds.iter().enumerate() {
            let body = format!("{kind}{CANARY}");
            let in_body = format!("{{\"id\": \"{kind}{CANARY}\"}}");
            for body in [&body, &body, &in_body, &in_body, &format!("another {CANARY}")] {
                send(post(&format!("{CANARY}-{at}"), body)).await;
            }
            world.clock.advance(Duration::from_secs(1));
        }
        for header in [None, Some(""), Some("\"c4n4ry"), Some("c4n4ry c4n4ry")] {
            send(request(Method::POST, "/charges/c4n4ry?at=c4n4ry", header, CANARY)).await;
        }
        for header in ["x-note", "cookie", "x-api-key", "authorization"] {
            let mut request = post("c4n4ry-who", CANARY);
            request.headers_mut().remove("authorization");
            request.headers_mut().insert(header, "session=c4n4ry".parse().unwrap());
            send(request).await;
        }
        let body = format!("{{\"id\": \"{CANARY} fault\"}}");
        world.store.outage();
        send(post("c4n4ry-out", &body)).await;
        world.store.heal();
        let corrupt = Fault::refuse(StoreErrorKind::Corrupt);
        world.store.inject(corrupt.guarded_by(GuardKind::OwnedBy));
        send(post("c4n4ry-lost", &body)).await;
    }
    drop(guard);
    captured.assert_silent(
        "\"executed\"|\"replayed\"|\"busy\"|\"mismatch\"|\"timed_out\"|\"unavailable\"|\
         \"completion_lost\"|\"rejected\"|Quoting|its caller is not known|HttpLayer",
    );
}
