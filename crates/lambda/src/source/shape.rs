//! Events whose default key would never recognise a retry.
//!
//! `.invoke(..)` knows an event by its request id. That stays the same only when Lambda tries an
//! asynchronous invocation again. Who polls or waits for the answer (event source mappings, pipes,
//! Firehose, API Gateway, ...) starts a new invocation for each retry. `.event(..)` and `.run(..)` know
//! an event by its whole content, and some events have parts that differ on each delivery.
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/lambda-services.html>

use lambda_idempotency_core::outcome::Rejection;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::event::{Event, Member, list, object, text};

/// A kind of event, known by its members.
pub(crate) struct Shape {
    what: &'static str,
    /// Whether two deliveries of the same event differ.
    differs: bool,
    instead: &'static str,
}

/// The members by which the services write their events.
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
}

#[derive(Default, Deserialize)]
struct RequestContext<'e> {
    #[serde(rename = "requestId", borrow, default)]
    id: Member<'e>,
    #[serde(rename = "timeEpoch", borrow, default)]
    time: Member<'e>,
    #[serde(borrow, default)]
    elb: Member<'e>,
}

impl Shape {
    /// What the event is, if it is of a known kind that is delivered again by a new invocation.
    pub(crate) fn of(event: &Event<'_>) -> Option<Self> {
        Self::polled(event).or_else(|| Self::called(event.raw))
    }

    /// Batches of event source mappings and pipes.
    fn polled(event: &Event<'_>) -> Option<Self> {
        let is_piped = event.items.is_some();
        let shape = |what, differs, instead| {
            let instead = if is_piped { "give the operation to `.pipe(..)`" } else { instead };
            Some(Self { what, differs, instead })
        };
        match &*event.source_of_batch()? {
            "aws:sqs" => shape("a batch of SQS", true, "give the operation to `.sqs(..)`"),
            "aws:kinesis" => {
                shape("a batch of Kinesis", false, "give the operation to `.kinesis(..)`")
            }
            "aws:dynamodb" => shape(
                "a batch of a DynamoDB stream",
                false,
                "give the operation to `.dynamodb_stream(..)`",
            ),
            "aws:docdb" => shape(
                "a batch of a DocumentDB change stream",
                false,
                "give the operation to `.document_db(..)`",
            ),
            "aws:kafka" | "SelfManagedKafka" | "aws:SelfManagedKafka" => {
                shape("a batch of Kafka", false, "give the operation to `.kafka(..)`")
            }
            // Messages say whether they were delivered before.
            "aws:amq" | "aws:mq" => {
                shape("a batch of ActiveMQ", true, "give the operation to `.active_mq(..)`")
            }
            "aws:rmq" => {
                shape("a batch of RabbitMQ", true, "give the operation to `.rabbit_mq(..)`")
            }
            _ => None,
        }
    }

    /// Events of services that wait for the answer.
    fn called(raw: &RawValue) -> Option<Self> {
        let signs: Signs<'_> = object(Some(raw));
        let request: RequestContext<'_> = object(signs.request);
        let shape = |what, differs, instead| Some(Self { what, differs, instead });
        if request.id.or(request.time).or(request.elb).is_some() {
            let instead = "use `Idempotency::http` (feature `http`)";
            return shape("an HTTP request", true, instead);
        }
        if signs.invocation.is_some() && list(signs.records).is_some() {
            let instead = "wrap the whole event, whose answer Firehose needs, by `.event(..)` with \
                           `.key(\"records[].recordId\")`";
            return shape("a transformation request of Firehose", true, instead);
        }
        if signs.invocation.is_some() && list(signs.tasks).is_some() {
            let instead = "wrap the whole event, whose answer S3 needs, by `.event(..)` with \
                           `.key(\"[job.id, tasks[0].taskId]\")`";
            return shape("a task of S3 Batch Operations", true, instead);
        }
        if text(signs.trigger).is_some() && text(signs.pool).is_some() {
            let instead = "wrap the whole event, whose answer Cognito needs, by `.event(..)`";
            return shape("a trigger of a Cognito user pool", false, instead);
        }
        if signs.bot.is_some() && text(signs.dialog).is_some() {
            let instead = "wrap the whole event, whose answer Lex needs, by `.event(..)`";
            return shape("a request of Lex", false, instead);
        }
        if text(signs.name).as_deref() == Some("ContactFlowEvent") && signs.details.is_some() {
            let instead = "wrap the whole event, whose answer Connect needs, by `.event(..)`";
            return shape("a request of Amazon Connect", false, instead);
        }
        None
    }

    /// Why the request id is not a key.
    pub(crate) fn has_no_request_id(self) -> Rejection {
        let Self { what, instead, .. } = self;
        let why = "which gets a new request id each time it is delivered again";
        Rejection::NoDefaultKey { what, why, instead }
    }

    /// Why the whole event is not a key, if it is not.
    pub(crate) fn differs(self) -> Option<Rejection> {
        let Self { what, differs, instead } = self;
        let why = "parts of which differ each time it is delivered again";
        differs.then_some(Rejection::NoDefaultKey { what, why, instead })
    }
}
