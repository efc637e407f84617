//! Services with another body than that of `lambda_http`, and the errors of services.

use std::{error::Error, fmt, sync::atomic::Ordering};

use http_body_util::{BodyExt as _, Full};
use lambda_http::{
    Body,
    http::{Request, Response},
    tower::{Layer as _, ServiceExt as _, service_fn},
};
use lambda_idempotency::{Call, Failure, http::HandlerError};
use lambda_runtime::Diagnostic;

use crate::support::{OnFire, World, charges, post};

type Bytes = Full<axum::body::Bytes>;

#[tokio::test]
async fn a_service_with_a_body_of_its_own_gets_it_and_its_responses_have_it() {
    let world = World::instant();
    let calls = world.calls.clone();
    let echo = service_fn(move |request: Request<Bytes>| {
        let number = calls.fetch_add(1, Ordering::Relaxed) + 1;
        async move {
            assert!(request.extensions().get::<Call>().is_some());
            let body = request.into_body().collect().await?.to_bytes();
            let body = [number.to_string().as_bytes(), b"\xff ", &*body].concat();
            Ok::<_, std::convert::Infallible>(Response::new(Bytes::from(body)))
        }
    });
    let service = world.layer(&charges()).layer(echo);
    let sent = |body: &'static [u8]| post("k-1", "").map(|_| Bytes::from(body));
    for replayed in [false, true] {
        let response = service.clone().oneshot(sent(b"\xfe five")).await.unwrap();
        assert_eq!(response.headers().contains_key("idempotency-replayed"), replayed);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(&*body, b"1\xff \xfe five");
    }
    let other = service.oneshot(sent(b"\xfd five")).await.unwrap();
    assert_eq!(other.status(), 422);
    let problem = other.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&problem).contains("#mismatch"));
}

/// An error with a cause, both of which quote the request.
#[derive(Debug)]
struct Declined(OnFire);

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("card 4242 was declined")
    }
}

impl Error for Declined {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

async fn error<E: fmt::Display + Send + 'static>(
    world: &World,
    key: &str,
    fails: fn() -> E,
) -> Result<Response<Body>, HandlerError<E>> {
    let failing =
        service_fn(move |_: lambda_http::Request| async move { Err::<Response<Body>, E>(fails()) });
    world.clock.drive(world.layer(&charges()).layer(failing).oneshot(post(key, ""))).await
}

#[tokio::test]
async fn an_error_shows_its_type_and_never_its_text() {
    let world = World::new();
    let typed = error(&world, "k-1", || Declined(OnFire)).await.unwrap_err();
    let boxed = error(&world, "k-2", || lambda_http::Error::from(Declined(OnFire))).await;
    let boxed = boxed.unwrap_err();
    for text in [typed.to_string(), format!("{typed:?}"), boxed.to_string(), format!("{boxed:?}")] {
        assert!(!text.contains("4242") && !text.contains("fire"), "{text}");
    }
    assert!(typed.to_string().contains("Declined"), "{typed}");
    assert!(typed.source().is_none());
    let diagnostic = Diagnostic::from(boxed);
    assert_eq!(diagnostic.error_type, "Idempotency.HandlerFailed");
    assert!(!diagnostic.error_message.contains("4242"), "{}", diagnostic.error_message);
    assert_eq!(typed.into_inner().to_string(), "card 4242 was declined");
}

#[tokio::test]
async fn an_error_leaves_the_key_free_unless_it_says_that_no_attempt_can_succeed() {
    let world = World::new();
    for _ in 0..2 {
        assert!(error(&world, "k-1", || Failure::transient("later")).await.is_err());
    }
    let refused = error(&world, "k-2", || Failure::permanent("never")).await.unwrap_err();
    assert!(refused.into_inner().is_permanent());
    let again = error(&world, "k-2", || Failure::permanent("never")).await.unwrap();
    assert_eq!(again.status(), 500);
    assert!(String::from_utf8_lossy(again.body()).contains("#permanently-failed"));
}

/// An error whose text panics.
struct Unspeakable;

impl fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("the test wants it")
    }
}

#[tokio::test]
async fn an_error_whose_text_panics_is_an_error() {
    let world = World::new();
    for _ in 0..2 {
        let unspeakable = error(&world, "k-1", || Unspeakable).await.unwrap_err();
        assert!(unspeakable.to_string().contains("Unspeakable"), "{unspeakable}");
    }
}
