//! Copies in one batch. `samples` delivers each event twice, and `costs` to two processes.

use lambda_idempotency_tests::events::{batch, message, order, order_with};
use serde_json::json;

use crate::support::{World, history};

#[tokio::test]
async fn duplicates_inside_a_batch_share_one_execution() {
    let world = World::new().await;
    let other_payload = order_with("o-1", json!({ "sku": "mug-red" }));
    let report = world
        .send(&batch([
            message("m-1", &order("o-1")),
            message("m-2", &order("o-2")),
            message("m-1", &order("o-1")), // delivered twice
            message("m-3", &order("o-1")), // published twice
            message("m-4", &other_payload),
        ]))
        .await;
    assert_eq!(
        history(&report),
        [
            ("m-1", 1, "executed"),
            ("m-2", 1, "executed"),
            ("m-1", 1, "coalesced"),
            ("m-3", 1, "coalesced"),
            // Not a copy: it is answered from the store, as a later delivery would be.
            ("m-4", 1, "replayed"),
        ]
    );
    assert!(report.is_complete());
    world.assert_placed_once(["o-1", "o-2"]);
}
