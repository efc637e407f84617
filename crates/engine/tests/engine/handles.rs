//! Fences and subkeys, with which a handler protects systems downstream.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency_core::failure::Failure;

use crate::support::{Rec, World, rec};

type Seen = Arc<Mutex<Vec<(u64, String)>>>;

/// A record whose handler notes its fence and a subkey, and then returns `result`.
fn noting(label: &'static str, seen: &Seen, result: Result<(), &'static str>) -> Rec {
    let seen = Arc::clone(seen);
    rec(label, move |_, call| async move {
        seen.lock().unwrap().push((call.fence(), call.subkey("charge")));
        result.map_err(Failure::transient)
    })
}

#[tokio::test]
async fn fences_rise_and_subkeys_stay_the_same_over_failures_deaths_and_expiry() {
    let world = World::new();
    let seen = Seen::default();
    assert_eq!(world.deliver(vec![noting("a", &seen, Err("no luck"))]).await, ["failed"]);
    let dies = {
        let seen = Arc::clone(&seen);
        rec("a", move |_, call| async move {
            seen.lock().unwrap().push((call.fence(), call.subkey("charge")));
            std::future::pending().await
        })
    };
    world.dies(vec![dies]).await;
    world.clock.advance(Duration::from_mins(1));
    assert_eq!(world.deliver(vec![noting("a", &seen, Ok(()))]).await, ["executed"]);
    world.clock.advance(Duration::from_hours(25));
    assert_eq!(world.deliver(vec![noting("a", &seen, Ok(()))]).await, ["executed"]);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 4);
    assert!(seen.is_sorted_by(|a, b| a.0 < b.0), "each attempt has a higher fence: {seen:?}");
    assert!(seen.iter().all(|attempt| attempt.1 == seen[0].1), "all attempts have one subkey");
}

#[tokio::test]
async fn each_key_has_its_own_subkeys() {
    let world = World::new();
    let seen = Seen::default();
    let outcomes =
        world.deliver(vec![noting("a", &seen, Ok(())), noting("b", &seen, Ok(()))]).await;
    assert_eq!(outcomes, ["executed"; 2]);
    let seen = seen.lock().unwrap();
    assert_ne!(seen[0].1, seen[1].1);
    assert_eq!(seen[0].1.len(), 64);
}
