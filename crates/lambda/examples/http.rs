//! Charges over HTTP: once per caller and `Idempotency-Key`. A repeated request gets the first
//! response.
//!
//! **In AWS**: use an API Gateway, a function URL or a load balancer. Behind API Gateway, set a
//! function timeout of no more than 29 seconds: a request whose client has disconnected holds its
//! key until then. Allow the header `Idempotency-Key` in the API (CORS: `AllowHeaders`).
//!
//! **Here**: the local runner sends the request twice. Both responses are a 201 with the same
//! receipt, the second with `idempotency-replayed: true`.
//!
//! ```console
//! $ cargo run --bin lambda-idempotency -- invoke crates/lambda/examples/http.json \
//!     --example http --repeat 2 --json
//! ```

use lambda_http::{
    Body, Error, Request, RequestPayloadExt as _,
    http::{Response, StatusCode},
    service_fn,
    tower::ServiceBuilder,
};
use lambda_idempotency::{
    Call, DynamoDbStore, Failure, Idempotency, Operation,
    clock::{Clock as _, SystemClock},
    http::Http,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Charge {
    amount: u64,
    currency: String,
}

/// The work that is done once; here it only makes a receipt.
async fn charge(request: Request) -> Result<Response<Body>, Failure> {
    let Ok(Some(charge)) = request.payload::<Charge>() else {
        // A 400 releases the key: the client may correct its request.
        return respond(StatusCode::BAD_REQUEST, r#"{"wanted":"amount and currency"}"#);
    };
    let call = request.extensions().get::<Call>().ok_or("a request without protection")?;
    // Give this to the payment provider as its idempotency key: it is the same in every attempt.
    let provider_key = call.subkey("charge");
    let receipt = serde_json::json!({
        "charged": charge.amount, "currency": charge.currency, "providerKey": provider_key,
        "receipt": format!("r-{}", SystemClock.now().as_millis()),
    });
    respond(StatusCode::CREATED, &receipt.to_string())
}

fn respond(status: StatusCode, body: &str) -> Result<Response<Body>, Failure> {
    let response = Response::builder().status(status).header("content-type", "application/json");
    response.body(Body::from(body)).map_err(Failure::transient)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    lambda_runtime::tracing::init_default_subscriber(); // a line for each request
    let idempotency = Idempotency::new(DynamoDbStore::from_env().await?); // IDEMPOTENCY_TABLE
    // The caller is the one that the API's authorizer names. This API has no authorizer, so the
    // caller is the `Authorization` header as it was sent. This library does not verify it: an
    // authorizer or the handler has to.
    let charges = idempotency.http(&Operation::new("charges"), Http::by_header())?;
    lambda_http::run(ServiceBuilder::new().layer(charges).service(service_fn(charge))).await
}
