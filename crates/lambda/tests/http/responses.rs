//! What clients get: the handler's response, a replay, or a problem.

use lambda_http::{
    Body, Request, RequestExt as _,
    http::{Method, Response, request::Parts},
    tower::{Layer as _, Service as _, ServiceExt as _, service_fn},
};
use lambda_idempotency::{
    Call, Mode,
    http::{HandlerError, Http},
    observe::Completion,
    policy::OnTimeout,
    store::StoreErrorKind,
};
use lambda_idempotency_core::memory::MemoryEffects;
use lambda_idempotency_testkit::faults::{Fault, GuardKind};
use lambda_runtime::Diagnostic;
use serde_json::Value;

use crate::support::{OnFire, World, charges, post, request};

#[tokio::test]
async fn a_second_request_gets_the_first_response_marked_as_replayed() {
    let world = World::new();
    let layer = world.layer(&charges());
    let first = world.answer(&layer, post("k-1", "EUR 5.00 202")).await;
    assert_eq!((first.status, first.replayed, first.charge.as_deref()), (202, false, Some("1")));
    let again = world.answer(&layer, post("k-1", "EUR 5.00 202")).await;
    assert_eq!((again.status, again.replayed, again.charge.as_deref()), (202, true, Some("1")));
    assert_eq!(again.body, first.body);
    assert_eq!(world.calls(), 1);
    let other = world.answer(&layer, post("k-2", "EUR 5.00 202")).await;
    assert_eq!(other.charge.as_deref(), Some("2"));
}

#[tokio::test]
async fn a_second_request_during_the_first_gets_a_409_with_retry_after() {
    let world = World::instant();
    let layer = world.layer(&charges());
    let during = world.clone();
    let mut service = layer.layer(service_fn(move |request| {
        let world = during.clone();
        async move {
            let second = {
                let world = world.clone();
                service_fn(move |request| world.handle(request))
            };
            let second = world.layer(&charges()).layer(second).oneshot(post("k-1", ""));
            let second = second.await.unwrap();
            assert_eq!(second.status(), 409);
            assert_eq!(second.headers()["retry-after"], "2", "shorter than the lease");
            world.handle(request).await
        }
    }));
    let first = service.ready().await.unwrap().call(post("k-1", ""));
    assert_eq!(first.await.unwrap().status(), 201);
    assert_eq!(world.calls(), 1);
}

/// The name of the other application is only in the log, for the operator.
#[tokio::test]
async fn a_request_of_another_application_is_not_answered() {
    let world = World::new();
    let of = |name: &str| {
        world.idempotency().application(name).http(&charges(), Http::by_header()).unwrap()
    };
    world.answer(&of("billing"), post("k-1", "EUR 5.00")).await;
    let refused = world.answer(&of("shipping"), post("k-1", "EUR 5.00")).await;
    assert_eq!((refused.status, refused.replayed), (500, false));
    assert!(refused.body.contains("#foreign") && !refused.body.contains("billing"));
    assert_eq!(world.calls(), 1);
    assert!(world.answer(&of("billing"), post("k-1", "EUR 5.00")).await.replayed);
}

#[tokio::test]
async fn another_request_with_the_same_key_is_a_mismatch() {
    let world = World::new();
    let layer = world.layer(&charges());
    world.answer(&layer, post("k-1", "EUR 5.00")).await;
    for other in [
        post("k-1", "EUR 6.00"),
        post("k-1", ""),
        request(Method::POST, "/charges?dry=1", Some("k-1"), "EUR 5.00"),
    ] {
        let answer = world.answer(&layer, other).await;
        assert_eq!((answer.status, answer.kind()), (422, "mismatch"));
    }
    assert_eq!(world.calls(), 1);
}

#[tokio::test]
async fn a_rejected_request_can_be_corrected_and_sent_again() {
    let world = World::new();
    let layer = world.layer(&charges());
    for status in [400, 401, 404, 409, 422, 429] {
        let answer = world.answer(&layer, post("k-1", &status.to_string())).await;
        assert_eq!((answer.status, answer.problem), (status, None), "the handler's own response");
    }
    assert_eq!(world.calls(), 6);
    let corrected = world.answer(&layer, post("k-1", "corrected")).await;
    assert_eq!((corrected.status, corrected.failed_attempts), (201, Some(0)), "no failed attempt");
    assert!(world.answer(&layer, post("k-1", "corrected")).await.replayed);
}

/// With it, a hook for problems or for replays is three lines of the user's.
#[tokio::test]
async fn a_layer_around_this_one_tells_problems_and_replays_from_first_responses() {
    let world = World::new();
    let layer = world.layer(&charges());
    let send = async |key, body| {
        let sent = world.send(&layer, request(Method::POST, "/charges", key, body)).await.unwrap();
        let is = |name, value| sent.headers().get(name).is_some_and(|found| found == value);
        let completion = sent.extensions().get::<Completion>();
        let is_done = completion.is_some_and(|one| one.done_at.unwrap() < one.answers_until);
        let is_replay = is("idempotency-replayed", "true");
        assert_eq!(is_done, is_replay, "a replay says when its work was done");
        (sent.status().as_u16(), is("content-type", "application/problem+json"), is_replay)
    };
    assert_eq!(send(None, "").await, (400, true, false));
    assert_eq!(send(Some("k-1"), "").await, (201, false, false));
    assert_eq!(send(Some("k-1"), "").await, (201, false, true));
    assert_eq!(send(Some("k-1"), "other").await, (422, true, false));
    assert_eq!(send(Some("k-2"), "huge").await, (201, false, false));
    assert_eq!(send(Some("k-2"), "huge").await, (409, true, false));
}

#[tokio::test]
async fn retry_after_is_short_and_never_exceeds_the_lease() {
    let world = World::new();
    let layer = world.layer(&charges());
    // A worker is stopped: its lease stays until it ends.
    assert_eq!(world.answer(&layer, post("k-1", "sleep")).await.kind(), "timed-out");
    let mut waits = Vec::new();
    loop {
        let answer = world.answer(&layer, post("k-1", "sleep")).await;
        if answer.kind() != "in-progress" {
            break;
        }
        let wait = answer.retry_after.unwrap();
        waits.push(wait);
        world.clock.advance(std::time::Duration::from_secs(wait));
    }
    assert!(!waits.is_empty());
    assert!(waits.iter().all(|wait| (1..=2).contains(wait)), "{waits:?}");
}

#[tokio::test]
async fn a_client_that_is_rejected_repeatedly_keeps_its_key() {
    let world = World::new();
    let layer = world.layer(&charges().max_failed_attempts(2));
    for _ in 0..5 {
        assert_eq!(world.answer(&layer, post("k-1", "429")).await.status, 429);
    }
    let answer = world.answer(&layer, post("k-1", "")).await;
    assert_eq!((answer.status, answer.problem), (201, None));
}

#[tokio::test]
async fn a_server_error_is_kept_unless_configured_otherwise() {
    let world = World::new();
    let layer = world.layer(&charges());
    for (key, status) in [("k-0", 402), ("k-1", 500)] {
        for replayed in [false, true] {
            let answer = world.answer(&layer, post(key, &status.to_string())).await;
            assert_eq!((answer.status, answer.replayed), (status, replayed));
        }
    }
    let keep = Http::by_header().keep(|status| status.is_success());
    let layer = world.layer_with(&charges(), keep);
    for _ in 0..2 {
        let answer = world.answer(&layer, post("k-2", "503")).await;
        assert_eq!((answer.status, answer.replayed), (503, false));
    }
    assert_eq!(world.calls(), 4);
}

#[tokio::test]
async fn a_failed_handler_fails_the_invocation_and_can_be_tried_again() {
    let world = World::new();
    let layer = world.layer(&charges());
    for calls in [1, 2] {
        let error = world.send(&layer, post("k-1", "burn")).await.unwrap_err();
        assert!(!format!("{error:?} {error}").contains("fire"), "{error:?}");
        assert_eq!(Diagnostic::from(error).error_type, "Idempotency.HandlerFailed");
        assert_eq!(world.calls(), calls);
    }
}

#[tokio::test]
async fn during_an_outage_no_request_is_processed() {
    let world = World::new();
    let layer = world.layer(&charges());
    world.store.outage();
    let answer = world.answer(&layer, post("k-1", "")).await;
    assert_eq!((answer.status, answer.kind()), (503, "unavailable"));
    assert_eq!((answer.retry_after, world.calls()), (Some(1), 0));
}

/// A client that is told that nothing was done may use another key, and do the work twice.
#[tokio::test]
async fn while_its_response_cannot_be_read_a_client_learns_that_its_request_was_processed() {
    let world = World::new();
    let layer = world.layer(&charges());
    assert_eq!(world.answer(&layer, post("k-1", "")).await.status, 201);
    let unreadable = || Fault::refuse(StoreErrorKind::ResultUnavailable).always();
    world.store.inject(unreadable());
    world.store.inject(unreadable().on_reads());
    // Another process, which remembers nothing.
    let again = world.answer(&world.layer(&charges()), post("k-1", "")).await;
    assert_eq!((again.status, again.kind()), (503, "response-unavailable"));
    assert_eq!((again.retry_after, world.calls()), (Some(1), 1));
}

#[tokio::test]
async fn a_response_that_cannot_be_recorded_is_still_sent() {
    let world = World::new();
    let layer = world.layer(&charges());
    let refused =
        Fault::refuse(StoreErrorKind::Unavailable).guarded_by(GuardKind::OwnedBy).always();
    world.store.inject(refused);
    assert_eq!(world.answer(&layer, post("k-1", "")).await.status, 201);
}

#[tokio::test]
async fn a_response_that_is_too_large_to_keep_is_sent_once() {
    let world = World::new();
    let layer = world.layer(&charges());
    assert_eq!(world.answer(&layer, post("k-1", "huge")).await.status, 201);
    let again = world.answer(&layer, post("k-1", "huge")).await;
    assert_eq!((again.status, again.kind()), (409, "response-lost"));
    assert_eq!(world.calls(), 1);
}

/// With this key nothing is processed any more, so the client must not be told to use it again.
#[tokio::test]
async fn a_request_that_timed_out_permanently_is_not_asked_for_again() {
    let world = World::new();
    let layer = world.layer(&charges().on_timeout(OnTimeout::FailPermanently));
    let answer = world.answer(&layer, post("k-1", "sleep")).await;
    assert_eq!((answer.status, answer.kind(), answer.retry_after), (504, "timed-out", None));
    let text = answer.problem.unwrap()["detail"].to_string();
    assert!(text.contains("Use a new key") && !text.contains("same key"), "{text}");
    let again = world.answer(&layer, post("k-1", "sleep")).await;
    assert_eq!((again.status, again.kind()), (500, "permanently-failed"));
}

#[tokio::test]
async fn idempotent_methods_are_not_deduplicated() {
    let world = World::new();
    let layer = world.layer(&charges());
    for method in [Method::GET, Method::HEAD, Method::PUT, Method::DELETE, Method::OPTIONS] {
        for _ in 0..2 {
            let passing = request(method.clone(), "/charges", Some("k-1"), "");
            assert!(!world.answer(&layer, passing).await.replayed);
        }
    }
    assert_eq!((world.calls(), world.store.write_calls()), (10, 0));
    let needs_key = |request: &Parts| request.method == Method::PUT;
    let layer = world.layer_with(&charges(), Http::by_header().needs_key(needs_key));
    world.answer(&layer, request(Method::PUT, "/charges", Some("k-1"), "")).await;
    let again = world.answer(&layer, request(Method::PUT, "/charges", Some("k-1"), "")).await;
    assert!(again.replayed);
}

/// The work is done at this point: a retry must not do it again.
#[tokio::test]
async fn a_panic_after_the_handlers_response_does_not_repeat_its_call() {
    let world = World::new();
    let layer = world.layer_with(&charges(), Http::by_header().keep(|_| panic!("deliberate")));
    let first = world.answer(&layer, post("k-1", "EUR 5.00")).await;
    let again = world.answer(&layer, post("k-1", "EUR 5.00")).await;
    assert_eq!((first.status, again.status, again.replayed), (201, 201, true));
    assert_eq!(world.calls(), 1);
}

/// A response that panics when it is converted.
struct PanickingResponse;

impl lambda_http::IntoResponse for PanickingResponse {
    fn into_response(self) -> std::pin::Pin<Box<dyn Future<Output = Response<Body>> + Send>> {
        panic!("deliberate")
    }
}

#[tokio::test]
async fn work_whose_response_panics_is_completed_without_it() {
    let world = World::instant();
    let counted = world.clone();
    let mut service = world.layer(&charges()).layer(service_fn(move |request| {
        let world = counted.clone();
        async move { world.handle(request).await.map(|_| PanickingResponse) }
    }));
    for _ in 0..2 {
        let answer = service.ready().await.unwrap().call(post("k-1", "EUR 5.00")).await.unwrap();
        assert_eq!(answer.status(), 409);
    }
    assert_eq!(world.calls(), 1);
}

/// After its last attempt nothing is processed with this key: the client is not told to use it again.
#[tokio::test]
async fn a_panic_of_the_last_attempt_is_not_asked_for_again() {
    let world = World::instant();
    let layer = world.layer(&charges().max_failed_attempts(2));
    for kind in ["failed", "permanently-failed", "permanently-failed"] {
        let panicking =
            service_fn(async |_: Request| -> Result<Response<Body>, HandlerError<OnFire>> {
                panic!("deliberate")
            });
        let answer = layer.layer(panicking).oneshot(post("k-1", "EUR 5.00")).await.unwrap();
        let problem: Value = serde_json::from_slice(answer.body().as_ref()).unwrap();
        assert!(
            problem["type"].as_str().unwrap().ends_with(&format!("#{kind}")),
            "{kind}: {problem}"
        );
    }
}

#[tokio::test]
async fn panics_in_functions_of_the_layer_become_problems() {
    let world = World::new();
    let panicking =
        world.layer_with(&charges(), Http::by_header().caller(|_| panic!("deliberate")));
    let refused = world.answer(&panicking, post("k-1", "")).await;
    assert_eq!((refused.status, refused.kind()), (500, "caller"));
    assert_eq!(world.calls(), 0);
}

/// What a response says must have been done.
#[tokio::test]
async fn a_response_whose_effects_were_not_committed_is_not_sent() {
    for (fault, holds, status) in [
        (Some(Fault::refuse(StoreErrorKind::Throttled).always()), true, 503),
        // It was applied, which the write that gives the commit up finds out.
        (Some(Fault::lose_answer().always()), true, 201),
        (Some(Fault::refuse(StoreErrorKind::Denied)), true, 500),
        (None, false, 500),
        (None, true, 201),
    ] {
        let world = World::new();
        if let Some(fault) = fault {
            world.store.inject(fault.for_writes(|write| write.effects.is_some()));
        }
        let during = world.clone();
        let mut service = world.layer(&charges().mode(Mode::Transactional)).layer(service_fn(
            move |request: Request| {
                let call = request.extensions().get::<Call>().unwrap();
                let add = |effects: &mut MemoryEffects| effects.add_if(move || holds, || ());
                call.collect(add).unwrap();
                during.handle(request)
            },
        ));
        let request = post("k-1", "").with_lambda_context(world.context());
        let answer = world.clock.drive(async { service.ready().await?.call(request).await }).await;
        assert_eq!(answer.unwrap().status(), status);
        assert_eq!(world.calls(), 1);
    }
}
