//! A function that takes orders over HTTP, with the scripted shop.

mod scripted;

use lambda_http::{
    Body, Error, Request,
    http::{Response, StatusCode},
    service_fn,
    tower::ServiceBuilder,
};
use lambda_idempotency::{Call, Failure, Operation, http::Http};

use crate::scripted::{Order, Shop};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    lambda_http::tracing::init_default_subscriber();
    let (shop, idempotency) = Shop::from_env().await?;
    let layer = idempotency.http(&shop.operation(Operation::new("orders")), Http::by_header())?;
    let handler = service_fn(move |request: Request| {
        let shop = shop.clone();
        async move { place(&shop, &request).await }
    });
    lambda_http::run(ServiceBuilder::new().layer(layer).service(handler)).await
}

async fn place(shop: &Shop, request: &Request) -> Result<Response<Body>, Failure> {
    let Ok(order) = serde_json::from_slice::<Order>(request.body()) else {
        return Ok(answer(StatusCode::BAD_REQUEST, "no order"));
    };
    let location = format!("/orders/{}", order.order_id);
    let call = request.extensions().get::<Call>().cloned().ok_or("a call without protection")?;
    shop.place(order, call).await?;
    let mut response = answer(StatusCode::CREATED, "placed");
    response.headers_mut().insert("location", location.parse().map_err(Failure::transient)?);
    Ok(response)
}

fn answer(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response
}
