//! Reports effects to the program that tests a function, such as `lambda-idempotency chaos`.

use std::io::Write as _;

use serde_json::json;

use crate::Call;

/// Without it, [`effect`] does nothing.
const REPORTED: &str = "IDEMPOTENCY_REPORT_EFFECTS";

/// Reports that an effect happened, for a test that counts effects. Call it right after the effect; give each effect
/// of a handler a `name` of its own.
///
/// `lambda-idempotency chaos` and `invoke --report` set the variable `IDEMPOTENCY_REPORT_EFFECTS=1` for the function.
/// Then this writes one line to standard error: the name, the record's id, the hash of its key and the fence. Without
/// the variable it does nothing, so it may stay in the code that is deployed. It never fails.
///
/// ```
/// use lambda_idempotency::{Call, Failure, testing};
///
/// async fn charge(payment: serde_json::Value, call: Call) -> Result<(), Failure> {
///     // .. call the payment service ..
///     testing::effect(&call, "charge");
///     Ok(())
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() { charge(serde_json::json!({}), Call::test("p-1")).await.unwrap() }
/// ```
pub fn effect(call: &Call, name: &str) {
    if std::env::var(REPORTED).is_ok_and(|value| value == "1") {
        // Who tests the function reads this line; nobody else does, so a failure to write it has no consequence. One
        // write for the line: a process that is killed has written all of it or nothing.
        let _ = std::io::stderr().write_all(line(call, name).as_bytes());
    }
}

fn line(call: &Call, name: &str) -> String {
    let line = json!({
        "lambda_idempotency_effect": name,
        "record": call.record().label(),
        "key_hash": call.key_hash(),
        "fence": call.fence(),
    });
    format!("{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_the_effect_and_its_attempt() {
        let call = Call::test("o-1").with_fence(7);
        let line: serde_json::Value = serde_json::from_str(&line(&call, "a \"name\"")).unwrap();
        assert_eq!(line["lambda_idempotency_effect"], "a \"name\"");
        assert_eq!((&line["fence"], &line["record"]), (&json!(7), &json!(call.record().label())));
        assert_eq!(line["key_hash"].as_str(), call.key_hash());
    }
}
