//! What a handler of requests gets from its `Call`.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use lambda_http::tower::{Layer as _, ServiceExt as _};
use lambda_http::{Request, RequestExt as _, tower::service_fn};
use lambda_idempotency::{Call, CallExt as _, Failure, source::RecordError};

use crate::support::{World, charges, post};

#[tokio::test]
async fn the_call_of_a_request_has_the_invocation_and_its_trace_and_no_record() {
    async fn describe(request: Request) -> Result<String, std::io::Error> {
        let call = request.extensions().get::<Call>().unwrap();
        assert_eq!(call.record_as::<serde_json::Value>(), Err(RecordError::Missing));
        assert_eq!((call.receives(), call.attribute("a")), (None, None));
        let context = call.context().unwrap();
        let trace = call.trace_context().unwrap().x_ray();
        Ok(format!("{:?} {} {trace}", call.request_id(), context.request_id))
    }
    let mut context = lambda_runtime::Context::default();
    context.request_id = "r-1".to_owned();
    let trace = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
    context.xray_trace_id = Some(trace.to_owned());
    let service = World::instant().layer(&charges()).layer(service_fn(describe));
    let request = post("k-1", "").with_lambda_context(context);
    let answer = service.oneshot(request).await.unwrap();
    assert_eq!(answer.body().as_ref(), format!(r#"Some("r-1") r-1 {trace}"#).as_bytes());
}

/// Local tools send such deadlines.
#[tokio::test]
async fn a_request_is_handled_under_a_deadline_that_lambda_cannot_mean() {
    for deadline in [600_000, 3_218_000_000_000] {
        let mut context = lambda_runtime::Context::default();
        context.deadline = deadline;
        let handler = async |_: Request| Ok::<_, std::io::Error>("handled");
        let service = World::instant().layer(&charges()).layer(service_fn(handler));
        let answer = service.oneshot(post("k-1", "").with_lambda_context(context)).await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), answer.body().as_ref()),
            (200, b"handled".as_slice())
        );
    }
}

#[tokio::test]
async fn a_step_of_a_request_runs_once_and_its_retry_goes_on_after_it() {
    let (world, steps) = (World::new(), Arc::<AtomicUsize>::default());
    let counted = Arc::clone(&steps);
    let layer = world.layer(&charges());
    for succeeds in [false, true, true] {
        let counted = Arc::clone(&counted);
        let handler = service_fn(move |request: Request| {
            let (call, counted) =
                (request.extensions().get::<Call>().unwrap().clone(), Arc::clone(&counted));
            async move {
                let number = call
                    .step("pay", |_| async { Ok(counted.fetch_add(1, Ordering::Relaxed)) })
                    .await?;
                match call.failed_attempts() {
                    0 => Err(Failure::transient("not yet")),
                    _ => Ok(format!("payment {number}")),
                }
            }
        });
        let request = post("k-1", "").with_lambda_context(world.context());
        let answer = world.clock.drive(layer.layer(handler).oneshot(request)).await;
        let body = answer.as_ref().map(|answer| answer.body().as_ref());
        assert_eq!(body.ok(), succeeds.then_some("payment 0".as_bytes()));
    }
    assert_eq!(steps.load(Ordering::Relaxed), 1);
}
