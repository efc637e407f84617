//! Charges over HTTP: once per caller and `Idempotency-Key`; whoever asks again gets the first response.
//!
//! **In AWS**: an API Gateway, function URL or load balancer in front, and a function timeout of no more
//! than 29 seconds behind API Gateway: a request whose client is gone holds its key until then. Let the
//! API pass the header `Idempotency-Key` (CORS: `AllowHeaders`).
//!
//! **Here**: the local runner is a client that sends its request twice. Both responses are a 201 with the
//! same receipt, the second with `idempotency-replayed: true`.
//!
//! ```console
//! $ cargo run -p lambda-idempotency-cli -- invoke crates/lambda/examples/http.json \
//!     --package lambda-idempotency --example http --repeat 2 --json
//! ```

use lambda_http::{
    Body, Error, Request, RequestPayloadExt as _,
    http::{Response, StatusCode},
    service_fn,
    tower::ServiceBuilder,
};
use lambda_idempotency::{
    Call, Clock as _, DynamoDbStore, Failure, Idempotency, Operation, SystemClock,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Charge {
    amount: u64,
    currency: String,
}

/// The receipt stands for the work that is to be done once.
async fn charge(request: Request) -> Result<Response<Body>, Failure> {
    let Ok(Some(charge)) = request.payload::<Charge>() else {
        // A 400 releases the key: the client may correct its request.
        return respond(StatusCode::BAD_REQUEST, r#"{"wanted":"amount and currency"}"#);
    };
    let call = request.extensions().get::<Call>().ok_or("a request without protection")?;
    // To be given to the payment provider as its own key: the same in every attempt.
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
    // The caller is whom the API's authorizer names. Here there is none, so it is the `Authorization`
    // header as it was sent; nobody checks it, which is for the authorizer or the handler to do.
    let charges = idempotency.http(&Operation::new("charges"))?;
    lambda_http::run(ServiceBuilder::new().layer(charges).service(service_fn(charge))).await
}
