use std::collections::HashSet;

use lambda_idempotency_engine::batch::Returned;
use serde_json::{json, value::to_raw_value};

use super::*;
use crate::{
    operation::Operation,
    source::{ALL, Event, Settings, share_arns},
};

#[test]
fn an_event_keeps_the_payloads_that_are_compared_and_one_name_of_its_queue() {
    let message = |(at, id): (usize, u8)| {
        let body = json!({ "id": id }).to_string();
        json!({ "messageId": at.to_string(), "eventSourceARN": "arn", "body": body })
    };
    let messages: Vec<Value> = [7, 8, 7].into_iter().enumerate().map(message).collect();
    let event = to_raw_value(&json!({ "Records": messages })).unwrap();
    let place = Operation::new("place").key("id");
    let settings = Settings::default();
    let prepared = place.prepared_for(&settings).unwrap();
    let extraction = Extraction { operation: &prepared, tenant: None };
    let mut records = ALL[0].records(&Event::read(&event, "r-1"), &settings);
    share_arns(&mut records);
    let arns = records.iter().filter_map(|record| record.id.arn.as_ref());
    assert_eq!(arns.map(Arc::as_ptr).collect::<HashSet<_>>().len(), 1);
    let job = |_: &str| -> Result<Job<'static>, Rejection> {
        Ok(Box::new(|_| Box::pin(async { Ok(Returned::Nothing) })))
    };
    let works: Vec<_> = records.iter().map(|one| extraction.work_of(one, job)).collect();
    Extraction::forget_payloads(&mut records, &works);
    let kept = records.iter().map(|one| one.payload.as_deref() != Ok(""));
    assert_eq!(kept.collect::<Vec<_>>(), [true, false, true]);
}
