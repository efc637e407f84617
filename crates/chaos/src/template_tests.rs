use super::*;

const SENT: Sent<'_> = Sent { id: "m-2-0", place: 7, group: 3 };

#[test]
fn numbers_and_texts_are_varied() {
    let template = Template::new(r#"{"id":40,"name":"n"}"#, "id").unwrap();
    assert_eq!(template.body(2), r#"{"id":42,"name":"n"}"#);
    let template = Template::new(r#"{"id":40,"name":"n"}"#, "name").unwrap();
    assert_eq!(template.body(2), r#"{"id":40,"name":"n-2"}"#);
}

#[test]
fn a_body_without_the_member_is_refused() {
    let error = Template::new(r#"{"id":1,"list":[]}"#, "list").unwrap_err();
    assert_eq!(error, "the body has no text or whole number `list`; it has: id, list");
    for body in ["text", "[]", "7"] {
        assert!(Template::new(body, "id").unwrap_err().contains("not a JSON object"), "{body}");
    }
}

#[test]
fn a_message_keeps_the_envelope_of_its_event() {
    let fifo = json!({ "Records": [{
        "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-west-1:1:orders.fifo",
        "messageId": "m", "body": "{\"Message\":\"{\\\"id\\\":\\\"p\\\"}\"}", "attributes": {},
    }] });
    let template = Template::of_event(&fifo.to_string(), "Message.id").unwrap();
    let message = template.message(2, SENT);
    assert_eq!(template.origin(), Origin::SqsFifo);
    assert_eq!(message["body"], "{\"Message\":\"{\\\"id\\\":\\\"p-2\\\"}\"}");
    assert_eq!(message["messageId"], "m-2-0");
    assert_eq!(message["attributes"]["MessageGroupId"], "group-3");
    let mut by_hand = fifo;
    by_hand["Records"][0].as_object_mut().unwrap().remove("attributes");
    let template = Template::of_event(&by_hand.to_string(), "Message.id").unwrap();
    assert_eq!(template.message(2, SENT)["attributes"]["MessageGroupId"], "group-3");

    let kinesis = json!({ "Records": [{
        "eventSource": "aws:kinesis", "eventID": "s:1",
        "kinesis": { "sequenceNumber": "1", "data": BASE64_STANDARD.encode("{\"id\":\"p\"}") },
    }] });
    let template = Template::of_event(&kinesis.to_string(), "id").unwrap();
    let message = template.message(2, Sent { id: "80000002", ..SENT });
    assert_eq!(message["kinesis"]["data"], BASE64_STANDARD.encode("{\"id\":\"p-2\"}"));
    assert_eq!(message["eventID"], "shardId-000000000003:80000002");
    assert_eq!(message["kinesis"]["sequenceNumber"], "80000002");

    let table = json!({ "Records": [{
        "eventSource": "aws:dynamodb", "eventID": "e", "dynamodb": {
            "SequenceNumber": "1", "Keys": { "id": { "S": "p" } },
            "NewImage": { "id": { "S": "p" }, "amount": { "N": "5" } },
        },
    }] });
    let template = Template::of_event(&table.to_string(), "id").unwrap();
    let message = template.message(2, Sent { id: "80000002", ..SENT });
    assert_eq!(message["dynamodb"]["Keys"]["id"]["S"], "p-2");
    assert_eq!(message["dynamodb"]["NewImage"]["id"]["S"], "p-2");
    assert_eq!(message["dynamodb"]["SequenceNumber"], "80000002");

    let sns = json!({ "Records": [{
        "EventSource": "aws:sns", "Sns": { "MessageId": "n", "Message": "{\"id\":\"p\"}" },
    }] });
    let template = Template::of_event(&sns.to_string(), "id").unwrap();
    let message = template.message(2, SENT);
    assert_eq!(message["Records"][0]["Sns"]["Message"], "{\"id\":\"p-2\"}");
    assert_eq!(message["Records"][0]["Sns"]["MessageId"], "m-2-0");
}

#[test]
fn an_event_that_is_not_delivered_under_faults_is_refused() {
    let kafka = Template::of_event(r#"{"eventSource":"aws:kafka","records":{}}"#, "id");
    assert!(kafka.unwrap_err().starts_with("events of kafka are not delivered"));
    let two = r#"{"Records":[{"eventSource":"aws:sqs"},{"eventSource":"aws:sqs"}]}"#;
    for (event, said) in
        [(two, "has 2 records"), ("{", "not valid JSON"), (r#"{"id":1}"#, "events of invoke")]
    {
        assert!(Template::of_event(event, "id").unwrap_err().contains(said), "{event}");
    }
}
