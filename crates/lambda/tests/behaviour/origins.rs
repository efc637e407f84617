//! The identity of a record consists of its id and its origin. A record without one of them has no identity.

use lambda_idempotency::{
    Operation,
    error::Rejection,
    keys::inspect::{self, AnySource},
};
use lambda_runtime::Context;
use serde_json::{Value, json};

use crate::{
    pipes::from_broker,
    support::{batch, bus_event, notification, order},
    support_streams::{
        BROKER, CLUSTER, collection, document, message, of_active_mq, of_rabbit_mq, put, rabbit_mq,
        topic,
    },
};

/// Each event with the members that identify its record or tell where it is from, as paths, and the one that is asked for
/// if they are all missing. `mutated_samples` has all members of all samples; these are what a user is told.
fn events() -> Vec<(Value, &'static [&'static str], &'static str)> {
    let (active, rabbit) = (of_active_mq("1", "{}"), of_rabbit_mq("1", "{}"));
    let mut of_topic = from_broker(message(0, 1, "a", ""), "aws:kafka", CLUSTER);
    of_topic["bootstrapServers"] = "b-1:9092".into();
    let of_topic = json!([of_topic]);
    let kafka = topic([message(0, 1, "a", "")]);
    let piped = json!([from_broker(active, "aws:amq", BROKER)]);
    vec![
        (batch([order("m-1", "a", "")]), &["/Records/0/eventSourceARN"], "eventSourceARN"),
        (notification("n-1", "{}"), &["/Records/0/Sns/TopicArn"], "Sns.TopicArn"),
        (bus_event("e-1", "Placed", &json!({})), &["/account"], "account"),
        (batch([put(1, "k", "a", "")]), &["/Records/0/eventID"], "eventID"),
        (
            collection([document(1, "d", "a", "")]),
            &["/events/0/event/_id/_data"],
            "event._id._data",
        ),
        (kafka, &["/eventSourceArn", "/bootstrapServers"], "bootstrapServers"),
        (
            rabbit_mq([rabbit]),
            &["/rmqMessagesByQueue/orders::~1/0/basicProperties/messageId"],
            "basicProperties.messageId",
        ),
        (of_topic, &["/0/partition"], "partition"),
        (piped, &["/0/destination/physicalName"], "destination.physicalName"),
    ]
}

fn identity(event: &Value) -> Result<Vec<String>, Rejection> {
    let mut records = inspect::event(&event.to_string(), None).unwrap();
    assert_eq!(records.len(), 1, "{event}");
    records.remove(0).identity
}

#[test]
fn a_record_that_does_not_tell_what_it_is_and_where_it_is_from_has_no_identity() {
    for (event, members, asked_for) in events() {
        let known = identity(&event).unwrap();
        assert!(known.iter().all(|part| !part.is_empty()), "{known:?}");
        for unknown in [Value::Null, json!(""), json!(7)] {
            // A partition is a number.
            if asked_for == "partition" && unknown == 7 {
                continue;
            }
            let mut event = event.clone();
            for member in members {
                *event.pointer_mut(member).unwrap() = unknown.clone();
            }
            let refused = identity(&event);
            assert_eq!(refused, Err(Rejection::NoIdentity(asked_for)), "{event}");
            let (whole, by_id) = (AnySource::new().whole_record(), Operation::new("a").key("@"));
            let (text, none) = (event.to_string(), Context::default());
            let keyed = inspect::invocation(&text, &whole, Some(&by_id), &none).unwrap();
            assert!(keyed[0].key.as_ref().unwrap().key.is_ok(), "{event}");
        }
    }
}

/// AWS's documentation and samples of pipes have these forms, too.
#[test]
fn other_published_forms_of_records_in_pipes_have_the_same_identity() {
    let at = |member: &str| {
        let event = events().into_iter().find(|(event, members, _)| {
            event.is_array() && members.len() == 1 && members[0] == member
        });
        event.unwrap().0
    };
    let mut queued = at("/0/destination/physicalName");
    let known = identity(&queued);
    queued[0]["destination"] = json!({ "physicalname": "orders" });
    assert_eq!(identity(&queued), known);
    let mut written = at("/0/partition");
    let known = identity(&written).unwrap();
    let partition = written[0]["partition"].to_string();
    written[0]["partition"] = json!(partition);
    assert_eq!(identity(&written), Ok(known.clone()));
    written[0]["eventSourceKey"] = json!(known[2]);
    written[0]["topic"] = Value::Null;
    assert_eq!(identity(&written), Ok(known));
}
