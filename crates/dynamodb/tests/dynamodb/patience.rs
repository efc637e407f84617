//! How long a request may take.

use std::time::Duration;

use crate::support::{Fault, Fixture, PlainVerdict, claimed, one, plain, write};
use lambda_idempotency_core::{
    clock::{Clock, SystemClock},
    store::{Guard, Store, Write},
};

fn claim(n: usize) -> Write {
    write(n, Guard::Absent, Some(claimed(n as u128 + 1)))
}

/// A request that is cut off has to be sent again, which makes a slow table slower.
#[tokio::test]
async fn a_request_may_take_twice_as_long_as_the_last_one() {
    let fixture = Fixture::start().await;
    let store = fixture.builder().attempt_timeout(Duration::from_secs(2)).build().unwrap();
    fixture.wire.fault([1_500, 2_100].map(|took| Fault::Slow(Duration::from_millis(took))));
    for n in 0..2 {
        assert_eq!(plain(&one(&store, claim(n)).await), PlainVerdict::Written);
    }
    assert_eq!(fixture.wire.operations(), ["PutItem"; 2]);
}

/// The one before may have been slow because this process was frozen.
#[tokio::test]
async fn after_a_slow_request_one_that_hangs_leaves_time_for_another() {
    let fixture = Fixture::start().await;
    let store = fixture.builder().attempt_timeout(Duration::from_secs(3)).build().unwrap();
    fixture.wire.fault([Fault::Slow(Duration::from_millis(1_800)), Fault::Hang]);
    assert_eq!(plain(&one(&store, claim(0)).await), PlainVerdict::Written);
    let due = SystemClock.now().plus(Duration::from_millis(3_500));
    assert_eq!(plain(&store.write(&[claim(1)], due).await.remove(0)), PlainVerdict::Written);
    assert_eq!(fixture.wire.operations(), ["PutItem"; 3]);
}
