//! `Http::verify`: before any stored answer, and before the claim.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lambda_http::{
    Body, Request, RequestExt as _,
    http::{Method, StatusCode, header::AUTHORIZATION},
};
use lambda_idempotency::http::{ByHeader, Http};

use crate::support::{World, charges, post, request};

type Refused = (StatusCode, &'static str);

/// Accepts the token of Ann that is not revoked.
async fn verified(request: Request) -> Result<(), (StatusCode, String)> {
    let token = request.headers().get(AUTHORIZATION).and_then(|token| token.to_str().ok());
    match (token, request.headers().contains_key("x-revoked")) {
        (Some("Bearer ann"), false) => Ok(()),
        _ => Err((StatusCode::UNAUTHORIZED, "not you".to_owned())),
    }
}

/// The extension of `lambda_http` makes a response of a status and a text.
fn checked() -> Http<ByHeader> {
    Http::by_header().verify(async |request| {
        verified(request).await.map_err(|(status, text)| {
            lambda_http::http::Response::builder()
                .status(status)
                .header("www-authenticate", "Bearer")
                .body(Body::from(text))
                .unwrap()
        })
    })
}

fn revoked(mut request: Request) -> Request {
    request.headers_mut().insert("x-revoked", "yes".parse().unwrap());
    request
}

#[tokio::test]
async fn a_replay_goes_only_to_who_is_verified_and_the_error_is_the_answer() {
    let world = World::new();
    let layer = world.layer_with(&charges(), checked());
    assert_eq!(world.answer(&layer, post("k-1", "5")).await.body, "charge 1");
    let refused = world.send(&layer, revoked(post("k-1", "5"))).await.unwrap();
    assert_eq!(
        (refused.status(), refused.body().as_ref()),
        (StatusCode::UNAUTHORIZED, &b"not you"[..])
    );
    assert_eq!(refused.headers()["www-authenticate"], "Bearer");
    let again = world.answer(&layer, post("k-1", "5")).await;
    assert_eq!((again.replayed, &*again.body, world.calls()), (true, "charge 1", 1));
}

#[tokio::test]
async fn who_is_not_verified_claims_nothing_and_is_told_nothing_of_the_key() {
    let world = World::new();
    let layer = world.layer_with(&charges(), checked());
    // Neither a missing key, nor another payload, nor work in progress changes the answer.
    world.answer(&layer, post("k-1", "5")).await;
    for sent in [
        request(Method::POST, "/charges", None, ""),
        post("k-1", "6"),
        post("k-2", "5"),
        post("not a key", ""),
    ] {
        let refused = world.answer(&layer, revoked(sent)).await;
        assert_eq!((refused.status, &*refused.body), (401, "not you"));
    }
    let first = world.answer(&layer, post("k-2", "6")).await;
    assert_eq!((first.status, first.failed_attempts, world.calls()), (201, Some(0), 2));
}

#[tokio::test]
async fn a_second_hook_does_not_take_the_place_of_the_first() {
    let world = World::new();
    let accepts = async |_| Ok::<_, Refused>(());
    let refuses = async |_| Err((StatusCode::FORBIDDEN, "not now"));
    let answer = async |http, sent| world.answer(&world.layer_with(&charges(), http), sent).await;
    let sent = || post("k-1", "5");
    assert_eq!(answer(checked().verify(accepts), revoked(sent())).await.status, 401);
    assert_eq!(answer(checked().verify(refuses), revoked(sent())).await.status, 401, "in order");
    assert_eq!(answer(checked().verify(refuses), sent()).await.status, 403);
    assert_eq!((answer(checked().verify(accepts), sent()).await.status, world.calls()), (201, 1));
}

#[tokio::test]
async fn a_hook_that_panics_answers_with_a_500_before_and_after_the_first_response() {
    let world = World::new();
    let panics = |now: bool| {
        let http = Http::by_header().verify(move |_| {
            assert!(!now, "the key is 7");
            async { Ok::<_, Refused>(()) }
        });
        world.layer_with(&charges(), http)
    };
    let panics_later = Http::by_header().verify(|_| async {
        panic!("the key is 7");
        #[allow(unreachable_code, reason = "names the types")]
        Ok::<(), Refused>(())
    });
    let panics_later = world.layer_with(&charges(), panics_later);
    for _ in 0..2 {
        for layer in [&panics(true), &panics_later] {
            let answer = world.answer(layer, post("k-1", "5")).await;
            assert_eq!((answer.status, answer.kind()), (500, "caller"));
            assert!(!answer.body.contains('7'), "{}", answer.body);
        }
        world.answer(&panics(false), post("k-1", "5")).await;
        assert_eq!(world.calls(), 1);
    }
}

#[tokio::test]
async fn the_hook_and_the_handler_both_get_the_whole_request() {
    let world = World::new();
    let seen = Arc::<AtomicUsize>::default();
    let bytes = Arc::clone(&seen);
    let http = Http::by_header().verify(move |request: Request| {
        let context = request.lambda_context_ref().map(|context| context.request_id.clone());
        assert_eq!(context.as_deref(), Some("request-1"));
        bytes.store(request.body().len(), Ordering::Relaxed);
        async { Ok::<_, Refused>(()) }
    });
    let layer = world.layer_with(&charges(), http);
    let big = || {
        let mut request = post("k-1", "");
        *request.body_mut() = Body::Binary([&b"202 \xff"[..], &[b'x'; 5_000_000]].concat());
        request
    };
    // The handler finds its status in the body.
    assert_eq!(world.answer(&layer, big()).await.status, 202);
    assert_eq!(seen.load(Ordering::Relaxed), 5_000_005);
    assert!(world.answer(&layer, big()).await.replayed);
    let mut other = big();
    *other.body_mut() = Body::Binary([&b"202 \xfe"[..], &[b'x'; 5_000_000]].concat());
    assert_eq!(world.answer(&layer, other).await.status, 422);
}

#[tokio::test]
async fn requests_that_need_no_key_are_the_services_to_verify() {
    let world = World::new();
    let layer = world.layer_with(&charges(), checked());
    let read = revoked(request(Method::GET, "/charges", Some("k-1"), ""));
    assert_eq!((world.answer(&layer, read).await.status, world.calls()), (201, 1));
}

#[tokio::test]
async fn a_response_is_not_given_for_longer_than_results_are_and_its_work_is_not_done_again() {
    let world = World::new();
    let sign_in = charges().result_retention(Duration::from_mins(10));
    let layer = world.layer_with(&sign_in, checked());
    world.answer(&layer, post("k-1", "cookie")).await;
    world.clock.advance(Duration::from_mins(10));
    assert!(world.answer(&layer, post("k-1", "cookie")).await.replayed);
    for after in [Duration::from_secs(1), Duration::from_hours(1)] {
        world.clock.advance(after);
        let late = world.send(&layer, post("k-1", "cookie")).await.unwrap();
        assert_eq!(late.status(), StatusCode::CONFLICT);
        assert!(!late.headers().contains_key("set-cookie"));
        assert!(String::from_utf8_lossy(late.body()).contains("#response-lost"));
    }
    assert_eq!(world.calls(), 1);
}

/// A layer without the hook replays responses that a layer with it has stored, and the other way round.
#[tokio::test]
async fn whether_cookies_are_replayed_depends_on_who_was_verified_both_times() {
    let world = World::new();
    let layers =
        [world.layer_with(&charges(), Http::by_header()), world.layer_with(&charges(), checked())];
    for (key, first, again, has_cookie) in
        [("k-1", 0, 0, false), ("k-2", 1, 1, true), ("k-3", 1, 0, false), ("k-4", 0, 1, false)]
    {
        for (layer, has_cookie) in [(first, true), (again, has_cookie)] {
            let sent = world.send(&layers[layer], post(key, "cookie")).await.unwrap();
            assert_eq!(sent.headers().contains_key("set-cookie"), has_cookie, "{key}");
        }
    }
}
