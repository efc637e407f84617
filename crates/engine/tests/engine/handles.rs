//! What a handler is given to protect systems downstream: fences and subkeys.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency_core::failure::Failure;
use lambda_idempotency_testkit::crashing::drop_after;

use crate::support::{Rec, World, rec};

type Told = Arc<Mutex<Vec<(u64, String)>>>;

/// A record that notes its fence and a subkey, and then does what `ends` says.
fn noting(label: &'static str, told: &Told, ends: Result<(), &'static str>) -> Rec {
    let told = Arc::clone(told);
    rec(label, move |_, call| async move {
        told.lock().unwrap().push((call.fence(), call.subkey("charge")));
        ends.map_err(Failure::transient)
    })
}

#[tokio::test]
async fn fences_rise_and_subkeys_stay_over_failures_deaths_and_expiry() {
    let world = World::new();
    let told = Told::default();
    assert_eq!(world.deliver(vec![noting("a", &told, Err("no luck"))]).await, ["failed"]);
    let dies = {
        let told = Arc::clone(&told);
        rec("a", move |_, call| async move {
            told.lock().unwrap().push((call.fence(), call.subkey("charge")));
            std::future::pending().await
        })
    };
    assert!(drop_after(1, world.invoke(vec![dies])).await.is_none());
    world.clock.advance(Duration::from_mins(1));
    assert_eq!(world.deliver(vec![noting("a", &told, Ok(()))]).await, ["executed"]);
    world.clock.advance(Duration::from_hours(25));
    assert_eq!(world.deliver(vec![noting("a", &told, Ok(()))]).await, ["executed"]);
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 4);
    assert!(told.is_sorted_by(|a, b| a.0 < b.0), "each call has a higher fence: {told:?}");
    assert!(told.iter().all(|call| call.1 == told[0].1), "and the same subkey");
}

#[tokio::test]
async fn keys_and_names_have_subkeys_of_their_own() {
    let world = World::new();
    let told = Told::default();
    let outcomes =
        world.deliver(vec![noting("a", &told, Ok(())), noting("b", &told, Ok(()))]).await;
    assert_eq!(outcomes, ["executed"; 2]);
    let told = told.lock().unwrap();
    assert_ne!(told[0].1, told[1].1);
    assert_eq!(told[0].1.len(), 64);
}
