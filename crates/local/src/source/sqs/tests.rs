//! The rules of the queue, with given instants instead of waits.

use super::*;

const TIMEOUT: Duration = Duration::from_secs(3);

fn record(id: &str) -> Value {
    json!({ "messageId": id, "body": "{}", "eventSource": "aws:sqs" })
}

fn queue(config: SqsConfig, now: Instant, ids: &[&str]) -> Queue {
    let mut queue = Queue::new(config, TIMEOUT);
    for id in ids {
        queue.send(record(id), now);
    }
    queue
}

fn failing(id: &str) -> InvocationResult {
    InvocationResult::Response(json!({ "batchItemFailures": [{ "itemIdentifier": id }] }))
}

#[test]
fn a_failed_message_is_delivered_again_after_its_visibility_timeout() {
    let now = Instant::now();
    let mut queue = queue(SqsConfig::default(), now, &["a", "b"]);
    let batch = queue.receive(now).unwrap();
    assert_eq!(
        queue.dispose(&batch, &failing("b"), now),
        [Disposition::Done, Disposition::Returned]
    );
    assert!(queue.receive(now + TIMEOUT - Duration::from_millis(1)).is_none());
    assert_eq!(queue.next(), Some(now + TIMEOUT));
    let again = queue.receive(now + TIMEOUT).unwrap();
    assert_eq!(again.records().collect::<Vec<_>>(), [(Some("b"), 2)]);
    let [first, second] = [&batch.event()["Records"][1], &again.event()["Records"][0]];
    assert_ne!(first["receiptHandle"], second["receiptHandle"]);
    assert_eq!(second["attributes"]["ApproximateReceiveCount"], "2");
    for kept in ["ApproximateFirstReceiveTimestamp", "SentTimestamp"] {
        assert_eq!(first["attributes"][kept], second["attributes"][kept]);
    }
}

#[test]
fn a_message_received_too_often_is_dead_lettered() {
    let mut now = Instant::now();
    let mut queue = queue(SqsConfig { max_receive_count: 2, ..SqsConfig::default() }, now, &["a"]);
    for disposition in [Disposition::Returned, Disposition::DeadLettered] {
        let batch = queue.receive(now).unwrap();
        assert_eq!(queue.dispose(&batch, &InvocationResult::TimedOut, now), [disposition]);
        now += TIMEOUT;
    }
    assert_eq!(queue.left(), 0);
    assert_eq!(Box::new(queue).into_dead_letters()[0].record.as_deref(), Some("a"));
}

#[test]
fn batches_are_no_larger_than_allowed_and_duplicates_stay() {
    let now = Instant::now();
    let mut queue =
        queue(SqsConfig { batch_size: 2, ..SqsConfig::default() }, now, &["a", "a", "b"]);
    assert_eq!(queue.receive(now).unwrap().records().count(), 2);
    assert_eq!(queue.receive(now).unwrap().records().count(), 1);
    assert!(queue.receive(now).is_none());
}

#[test]
fn a_short_visibility_lets_a_message_be_delivered_twice_at_once() {
    let now = Instant::now();
    let config = SqsConfig { visibility: Some(Duration::ZERO), ..SqsConfig::default() };
    let mut queue = queue(config, now, &["a"]);
    let first = queue.receive(now).unwrap();
    let second = queue.receive(now).unwrap();
    assert_eq!(
        queue.dispose(&second, &InvocationResult::Response(Value::Null), now),
        [Disposition::Done]
    );
    assert_eq!(queue.dispose(&first, &InvocationResult::TimedOut, now), [Disposition::Done]);
    assert_eq!(queue.left(), 0);
}

#[test]
fn a_failed_message_blocks_only_its_group() {
    let now = Instant::now();
    let mut queue = Queue::new(SqsConfig::default(), TIMEOUT);
    for (id, group) in [("a1", "a"), ("b1", "b"), ("a2", "a")] {
        let mut record = record(id);
        record["eventSourceARN"] = json!("arn:aws:sqs:eu-west-1:1:orders.fifo");
        record["attributes"] = json!({ "MessageGroupId": group });
        queue.send(record, now);
    }
    fn ids(batch: &Batch) -> Vec<&str> {
        batch.records().map(|(id, _)| id.unwrap()).collect()
    }
    let batch = queue.receive(now).unwrap();
    assert_eq!(ids(&batch), ["a1", "b1", "a2"], "a batch may hold several of a group");
    let dispositions = queue.dispose(&batch, &failing("a1"), now);
    assert_eq!(dispositions, [Disposition::Returned, Disposition::Done, Disposition::Done]);
    let mut late = record("a3");
    late["eventSourceARN"] = json!("arn:aws:sqs:eu-west-1:1:orders.fifo");
    late["attributes"] = json!({ "MessageGroupId": "a" });
    queue.send(late, now);
    assert!(queue.receive(now).is_none(), "a3 waits for a1, which is invisible");
    assert_eq!(ids(&queue.receive(now + TIMEOUT).unwrap()), ["a1", "a3"]);
}

#[test]
fn a_malformed_record_is_delivered_unchanged() {
    let now = Instant::now();
    let mut queue = Queue::new(SqsConfig::default(), TIMEOUT);
    for record in [json!(7), json!({ "body": "no id" }), json!({ "messageId": "", "body": "" })] {
        queue.send(record, now);
    }
    let batch = queue.receive(now).unwrap();
    assert_eq!(
        batch.event()["Records"],
        json!([7, { "body": "no id" }, { "messageId": "", "body": "" }])
    );
}
