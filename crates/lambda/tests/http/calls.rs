//! What a handler of requests gets from its `Call`.

use lambda_http::tower::{Layer as _, ServiceExt as _};
use lambda_http::{Request, RequestExt as _, tower::service_fn};
use lambda_idempotency::{Call, CallExt as _, RecordError};

use crate::support::{World, charges, post};

#[tokio::test]
async fn the_call_of_a_request_has_the_invocation_and_no_record() {
    async fn describe(request: Request) -> Result<String, std::io::Error> {
        let call = request.extensions().get::<Call>().unwrap();
        assert_eq!(call.record_as::<serde_json::Value>(), Err(RecordError::Missing));
        assert_eq!((call.receives(), call.attribute("a")), (None, None));
        let context = call.context().unwrap();
        Ok(format!("{:?} {}", call.request_id(), context.request_id))
    }
    let mut context = lambda_runtime::Context::default();
    context.request_id = "r-1".to_owned();
    let service = World::new().layer(&charges()).layer(service_fn(describe));
    let request = post("k-1", "").with_lambda_context(context);
    let answer = service.oneshot(request).await.unwrap();
    assert_eq!(answer.body().as_ref(), br#"Some("r-1") r-1"#);
}
