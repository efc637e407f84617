//! Events whose default key would never recognise a retry, or would treat other work as one.
//!
//! `Invoke` identifies an event by its request id, which stays the same only when Lambda
//! retries an asynchronous invocation. Services that poll or wait for the answer (event source
//! mappings, pipes, Firehose, API Gateway, ...) start a new invocation for each retry. `.event(..)`
//! and `.run(..)` identify an event by its whole content. Some events have parts that differ on
//! each delivery, and some have nothing that distinguishes another occasion from a retry.
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/lambda-services.html>

use serde::Deserialize;
use serde_json::value::RawValue;

use super::event::{Event, Member, list, object, text};
use crate::rejection::{NoDefaultKey, Rejection};

/// A kind of event, recognised by its members.
pub(crate) struct Shape {
    /// What the event is.
    event: &'static str,
    whole: Whole,
    /// A clause.
    advice: &'static str,
}

/// Whether the whole event can be a key.
#[derive(Clone, Copy)]
enum Whole {
    /// It stays the same when it is delivered again, and no other event is equal.
    Key,
    /// It differs when it is delivered again.
    Differs,
    /// It has no id and no time: two sign-ins of a user are the same JSON.
    Repeats,
}

/// Members that are characteristic of a service's events.
#[derive(Default, Deserialize)]
struct Signs<'e> {
    /// API Gateway, function URLs, load balancers, VPC Lattice.
    #[serde(rename = "requestContext", borrow, default)]
    request: Member<'e>,
    /// Firehose, S3 Batch Operations.
    #[serde(rename = "invocationId", borrow, default)]
    invocation: Member<'e>,
    #[serde(borrow, default)]
    records: Member<'e>,
    #[serde(borrow, default)]
    tasks: Member<'e>,
    /// Cognito user pools.
    #[serde(rename = "triggerSource", borrow, default)]
    trigger: Member<'e>,
    #[serde(rename = "userPoolId", borrow, default)]
    pool: Member<'e>,
    /// Lex.
    #[serde(borrow, default)]
    bot: Member<'e>,
    #[serde(rename = "invocationSource", borrow, default)]
    dialog: Member<'e>,
    /// Amazon Connect.
    #[serde(rename = "Name", borrow, default)]
    name: Member<'e>,
    #[serde(rename = "Details", borrow, default)]
    details: Member<'e>,
    /// Bedrock agents.
    #[serde(rename = "actionGroup", borrow, default)]
    action: Member<'e>,
    #[serde(borrow, default)]
    agent: Member<'e>,
    /// VPC Lattice, event structure version V1.
    #[serde(borrow, default)]
    raw_path: Member<'e>,
    #[serde(borrow, default)]
    method: Member<'e>,
    /// AppSync.
    #[serde(borrow, default)]
    info: Member<'e>,
}

/// The field that AppSync resolves, or the channel of its Event API.
#[derive(Default, Deserialize)]
struct Info<'e> {
    #[serde(rename = "fieldName", borrow, default)]
    field: Member<'e>,
    #[serde(rename = "parentTypeName", borrow, default)]
    parent: Member<'e>,
    #[serde(borrow, default)]
    channel: Member<'e>,
    #[serde(borrow, default)]
    operation: Member<'e>,
}

#[derive(Default, Deserialize)]
struct RequestContext<'e> {
    #[serde(rename = "requestId", borrow, default)]
    id: Member<'e>,
    #[serde(rename = "timeEpoch", borrow, default)]
    time: Member<'e>,
    #[serde(borrow, default)]
    elb: Member<'e>,
    /// Not in HTTP requests, but in the record of an invocation that Lambda sends to a destination.
    #[serde(rename = "functionArn", borrow, default)]
    function: Member<'e>,
    /// WebSocket APIs.
    #[serde(rename = "connectionId", borrow, default)]
    connection: Member<'e>,
}

impl Shape {
    /// The event's kind, if it is a known one that a new invocation delivers again.
    pub(crate) fn of(event: &Event<'_>) -> Option<Self> {
        let first = event.items.as_ref().and_then(|items| items.first().copied());
        Self::polled(event)
            .or_else(|| Self::called(event.raw))
            .or_else(|| first.and_then(Self::resolved_as_batch))
    }

    /// Batches of event source mappings and pipes.
    fn polled(event: &Event<'_>) -> Option<Self> {
        let is_piped = event.items.is_some();
        let shape = |event, whole, advice| {
            let advice = if is_piped {
                "register the operation with `.on(Pipe::of(..), ..)`"
            } else {
                advice
            };
            Some(Self { event, whole, advice })
        };
        match &*event.source_of_batch()? {
            "aws:sqs" => shape(
                "an SQS batch",
                Whole::Differs,
                "register the operation with `.on(Sqs::new(), ..)`",
            ),
            "aws:kinesis" => shape(
                "a Kinesis batch",
                Whole::Key,
                "register the operation with `.on(Kinesis::new(), ..)`",
            ),
            "aws:dynamodb" => shape(
                "a DynamoDB stream batch",
                Whole::Key,
                "register the operation with `.on(DynamoDbStream::new(), ..)`",
            ),
            "aws:docdb" => shape(
                "a DocumentDB change stream batch",
                Whole::Key,
                "register the operation with `.on(DocumentDb::new(), ..)`",
            ),
            "aws:kafka" | "SelfManagedKafka" | "aws:SelfManagedKafka" => shape(
                "a Kafka batch",
                Whole::Key,
                "register the operation with `.on(Kafka::new(), ..)`",
            ),
            // The whole event differs: messages contain whether they were redelivered.
            "aws:amq" | "aws:mq" => shape(
                "an ActiveMQ batch",
                Whole::Differs,
                "register the operation with `.on(ActiveMq::new(), ..)`",
            ),
            "aws:rmq" => shape(
                "a RabbitMQ batch",
                Whole::Differs,
                "register the operation with `.on(RabbitMq::new(), ..)`",
            ),
            _ => None,
        }
    }

    /// Events of services that wait for the response.
    fn called(raw: &RawValue) -> Option<Self> {
        let signs: Signs<'_> = object(Some(raw));
        let request: RequestContext<'_> = object(signs.request);
        let shape = |event, whole, advice| Some(Self { event, whole, advice });
        if request.connection.is_some() {
            let advice = "wrap the whole event with `.event(..)` and a key that the client has chosen, beside whom the \
            authorizer has named: `.key(\"[requestContext.authorizer.principalId, json(body).requestId]\")`; a message \
            that a client sends again has new ids";
            return shape("a WebSocket message", Whole::Differs, advice);
        }
        if text(signs.raw_path).is_some() && text(signs.method).is_some() {
            let advice = "set the event structure version of the target group to V2, and use `Idempotency::http` \
            (feature `http`)";
            return shape("an HTTP request of VPC Lattice in version V1", Whole::Repeats, advice);
        }
        if request.function.is_none() && request.id.or(request.time).or(request.elb).is_some() {
            let advice = "use `Idempotency::http` (feature `http`)";
            return shape("an HTTP request", Whole::Differs, advice);
        }
        if signs.invocation.is_some() && list(signs.records).is_some() {
            let advice = "process each record with `Idempotency::run`, \
            `.key(\"[deliveryStreamArn, recordId]\")` and a payload with both, \
            `json!({ \"deliveryStreamArn\": .., \"recordId\": .. })`: the answer for the whole batch is often too large for the store (400 KB in DynamoDB), \
            so a retry would not get it";
            return shape("a Firehose transformation request", Whole::Differs, advice);
        }
        if signs.invocation.is_some() && list(signs.tasks).is_some() {
            let advice = "S3 needs the answer: wrap the whole event with `.event(..)` and \
            `.key(\"[job.id, tasks[0].taskId]\")`, and do not keep a `TemporaryFailure` \
            (`.keep(..)`)";
            return shape("an S3 Batch Operations task", Whole::Differs, advice);
        }
        if text(signs.trigger).is_some() && text(signs.pool).is_some() {
            let advice = "Cognito needs the answer: wrap the whole event with `.event(..)` and a \
            key for the work (for once per user, after `PostConfirmation`, `.key(\"[userPoolId, \
            request.userAttributes.sub, triggerSource]\")`; before the user exists, \
            `.key(\"[userPoolId, userName, triggerSource]\")`); leave work for each sign-in unprotected, because nothing \
            distinguishes a retry from another sign-in";
            return shape("a Cognito user pool trigger", Whole::Repeats, advice);
        }
        if signs.bot.is_some() && text(signs.dialog).is_some() {
            let advice = "Lex needs the answer: wrap the whole event with `.event(..)` and a key \
            for the work, such as the id of an order in its slots; no key distinguishes a retry \
            from another turn with the same words";
            return shape("a Lex request", Whole::Repeats, advice);
        }
        // The guide of Connect has the first name, the samples of AWS's libraries the second.
        let name = text(signs.name).unwrap_or_default();
        if matches!(&*name, "ContactFlowEvent" | "ContactFlowExecution") && signs.details.is_some()
        {
            let advice = "Connect needs the answer: wrap the whole event with `.event(..)` and a \
            key for the work (for once per contact `.key(\"Details.ContactData.ContactId\")`); no \
            key distinguishes a retry from another call in the same contact";
            return shape("an Amazon Connect request", Whole::Repeats, advice);
        }
        if signs.agent.is_some() && text(signs.action).is_some() {
            let advice = "the agent needs the answer: wrap the whole event with `.event(..)` and a key for the work, \
            such as the id of an order in its parameters; no key distinguishes a retry from another equal action of \
            the session";
            return shape("an action of a Bedrock agent", Whole::Repeats, advice);
        }
        Self::resolved(&object(signs.info))
    }

    /// One item of an AppSync resolver with batches.
    fn resolved_as_batch(item: &RawValue) -> Option<Self> {
        let signs: Signs<'_> = object(Some(item));
        let shape = Self::resolved(&object(signs.info))?;
        let advice = "AppSync needs an answer for each item: process them with `Idempotency::run_many`, with a key that \
        the client has chosen, beside the field and its identity: `.key(\"[info.parentTypeName, info.fieldName, \
        identity.sub, arguments.orderId]\")`";
        Some(Self { event: "a batch of an AppSync resolver", advice, ..shape })
    }

    /// A field that AppSync resolves, or events of its Event API.
    fn resolved(info: &Info<'_>) -> Option<Self> {
        let (event, advice) = if text(info.field).is_some() && text(info.parent).is_some() {
            let advice = "AppSync needs the answer: wrap the resolver of a mutation with `.event(..)` and a key that \
            the client has chosen, beside the field and its identity: `.key(\"[info.parentTypeName, info.fieldName, \
            identity.sub, arguments.orderId]\")`; leave queries unprotected";
            ("a request of an AppSync resolver", advice)
        } else if text(info.operation).is_some() && info.channel.is_some() {
            let advice = "AppSync makes the ids of its events, so a client that publishes again has new ones. With the invocation \
            type `EVENT`, `.key(\"[info.channel.path, events[*].id]\")` recognises what Lambda tries again; with \
            `REQUEST_RESPONSE`, process the events with `Idempotency::run_many` and a key from their payload";
            ("a request of an AppSync channel", advice)
        } else {
            return None;
        };
        Some(Self { event, whole: Whole::Differs, advice })
    }

    /// Why the request id cannot be a key.
    pub(crate) fn has_no_request_id(self) -> Rejection {
        self.rejected(NoDefaultKey::NewRequestId)
    }

    /// Why the whole event cannot be a key, if so.
    pub(crate) fn why_no_key(self) -> Option<Rejection> {
        match self.whole {
            Whole::Key => None,
            Whole::Differs => Some(self.rejected(NoDefaultKey::Differs)),
            Whole::Repeats => Some(self.rejected(NoDefaultKey::Repeats)),
        }
    }

    fn rejected(self, reason: NoDefaultKey) -> Rejection {
        let Self { event, advice, .. } = self;
        Rejection::NoDefaultKey { reason, event, advice }
    }
}
