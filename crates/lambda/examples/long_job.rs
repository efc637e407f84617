//! A long job with a lease that is renewed: an export of twelve minutes, whose worker is killed in the third part. The
//! lease has 30 seconds, so another worker takes over a minute later. A lease until the end of the invocation would
//! have held the key for ten minutes more. Steps keep the parts that are done.
//!
//! The example injects the faults in simulated time, and prints what each delivery did; the last line is the ledger.
//!
//! ```console
//! $ cargo run -p lambda-idempotency --example long_job
//! ```

use std::{error::Error, sync::Arc, time::Duration};

use lambda_idempotency::{
    Call, Clock, Failure, Idempotency, Lease, MemoryStore, Operation, Timestamp, testing,
};
use lambda_idempotency_testkit::{clock::ManualClock, ledger::Ledger};
use lambda_runtime::Context;
use serde_json::{Value, json};

const BEGIN: Timestamp = Timestamp::from_secs(1_800_000_000);
const PARTS: [&str; 6] = ["part-1", "part-2", "part-3", "part-4", "part-5", "part-6"];

async fn export(call: Call, clock: ManualClock, ledger: Ledger) -> Result<(), Failure> {
    for part in PARTS {
        let write = |_| async {
            clock.sleep(Duration::from_mins(2)).await;
            ledger.record(part, format!("lost attempts before: {}", call.lost_attempts()));
            say(&clock, &format!("wrote {part}"));
            Ok::<_, Failure>(())
        };
        call.step(part, write).await?;
    }
    Ok(())
}

fn say(clock: &ManualClock, what: &str) {
    let seconds = clock.now().since(BEGIN).as_secs();
    println!("{:>3}:{:02}  {what}", seconds / 60, seconds % 60);
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (store, clock) = (Arc::new(MemoryStore::new()), ManualClock::new(BEGIN));
    let ledger = Ledger::new();
    // A process of its own for each delivery: they share nothing but the store.
    let deliver = async |after: u64, killed_after: u64| {
        let (at, shared) = (clock.clone(), ledger.clone());
        let handler = move |_: Value, call| export(call, at.clone(), shared.clone());
        let lease = Lease::Renewed { length: Duration::from_secs(30) };
        let exports = Operation::new("export").key("exportId").lease(lease);
        let process = Idempotency::new(Arc::clone(&store)).with_clock(clock.clone());
        let function = process.sqs(exports, handler)?;
        clock.sleep(Duration::from_secs(after)).await;
        say(&clock, "delivered");
        let mut context = Context::default();
        context.deadline = clock.now().plus(Duration::from_mins(15)).as_millis();
        let message = json!({ "messageId": "m-1", "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:eu-west-1:111122223333:exports",
            "body": r#"{"exportId":"e-1"}"# });
        let event = json!({ "Records": [message] });
        tokio::select! {
            answer = testing::invoke_with(&function, &event, context) => {
                let returned = answer?.to_string().contains("m-1");
                say(&clock, if returned { "returned: another worker has it" } else { "acknowledged" });
            }
            () = clock.sleep(Duration::from_secs(killed_after)) => say(&clock, "KILLED in a part"),
        }
        Ok::<_, Box<dyn Error>>(())
    };
    let never = 3600;
    clock
        .drive(async {
            tokio::try_join!(
                deliver(0, 300),     // killed after five minutes
                deliver(310, never), // the lease still stands
                deliver(360, never), // takes over, and goes on with part 3
                deliver(600, never), // a copy, while the job runs
                deliver(900, never), // a copy afterwards
            )
        })
        .await?;
    let times = PARTS.map(|part| ledger.executed(part));
    println!("{} parts, written {times:?} times", PARTS.len());
    ledger.assert_each_once(PARTS);
    Ok(())
}
