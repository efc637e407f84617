//! A long job with a lease that is renewed: an export of twelve minutes, whose worker is killed in the third part. The
//! lease has 30 seconds, so the delivery a minute later takes over; with a lease until the end of the invocation, it
//! would have come ten minutes too early. Steps keep the parts that are done. Time is simulated.
//!
//! ```console
//! $ cargo run -p lambda-idempotency --example long_job
//! ```

use lambda_idempotency::{
    Call, Failure, Idempotency, MemoryStore, Operation, clock::Clock, policy::Lease, source::Sqs,
    testing,
};
use lambda_idempotency_testkit::{clock::ManualClock, ledger::Ledger};
use serde_json::{Value, json};
use std::{error::Error, sync::Arc, time::Duration};

const PARTS: [&str; 6] = ["part-1", "part-2", "part-3", "part-4", "part-5", "part-6"];

async fn export(call: Call, clock: ManualClock, ledger: Ledger) -> Result<(), Failure> {
    for part in PARTS {
        let write = async |_| {
            clock.sleep(Duration::from_mins(2)).await;
            println!("{:>4} s: wrote {part}", clock.now().as_secs());
            ledger.record(part, call.lost_attempts());
            Ok::<_, Failure>(())
        };
        call.step(part, write).await?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (clock, ledger) = (ManualClock::new(Default::default()), Ledger::new());
    let store = Arc::new(MemoryStore::new());
    let body = json!({ "exportId": "e-1" }).to_string();
    let event = json!({ "Records": [{ "messageId": "m-1", "eventSource": "aws:sqs", "body": body,
        "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:exports" }] });
    // Each delivery is in a process of its own: they share nothing but the store.
    let deliver = async |at: u64, lives: u64| {
        let (own, shared) = (clock.clone(), ledger.clone());
        let handler = move |_: Value, call| export(call, own.clone(), shared.clone());
        let lease = Lease::Renewed { length: Duration::from_secs(30) };
        let exports = Operation::new("export").key("exportId").lease(lease);
        let process = Idempotency::new(Arc::clone(&store)).with_clock(clock.clone());
        let function = process.on(Sqs::new(), &exports, handler)?;
        clock.sleep(Duration::from_secs(at)).await;
        let mut context = lambda_runtime::Context::default();
        context.deadline = clock.now().plus(Duration::from_mins(15)).as_millis();
        let end = tokio::select! {
            answer = testing::invoke_with(&function, &event, context) => answer?.to_string(),
            () = clock.sleep(Duration::from_secs(lives)) => "KILLED".to_owned(),
        };
        println!("{:>4} s: the delivery at {at} s: {end}", clock.now().as_secs());
        Ok::<_, Box<dyn Error>>(())
    };
    // The first is killed. The others find the lease, take over, find the lease again, and find the job done.
    let [first, second, third, fourth, last] =
        [(0, 300), (310, 900), (360, 900), (600, 900), (900, 900)]
            .map(|(at, lives)| deliver(at, lives));
    clock.drive(async { tokio::try_join!(first, second, third, fourth, last) }).await?;
    println!("how often each part was written: {:?}", PARTS.map(|part| ledger.executed(part)));
    ledger.assert_each_once(PARTS);
    Ok(())
}
