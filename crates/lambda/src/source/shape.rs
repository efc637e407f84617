//! Events whose default key would never recognise a retry.
//!
//! `.invoke(..)` knows an event by its request id. That stays the same only when Lambda tries an
//! asynchronous invocation again. Who polls or waits for the answer (event source mappings, pipes,
//! Firehose, API Gateway, ...) starts a new invocation for each retry. `.event(..)` and `.run(..)` know
//! an event by its whole content. Some events have parts that differ on each delivery, and some have nothing
//! that tells another occasion from a retry.
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/lambda-services.html>

use serde::Deserialize;
use serde_json::value::RawValue;

use super::event::{Event, Member, list, object, text};
use crate::rejection::{NoDefaultKey, Rejection};

/// A kind of event, known by its members.
pub(crate) struct Shape {
    /// A sentence.
    event: &'static str,
    whole: Whole,
    /// A sentence.
    advice: &'static str,
}

/// What the whole event is worth as a key.
#[derive(Clone, Copy)]
enum Whole {
    /// It is the same when it is delivered again, and no other is like it.
    Key,
    /// It differs when it is delivered again.
    Differs,
    /// It has no id and no time: two sign-ins of a user are the same JSON.
    Repeats,
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
    /// Not HTTP, but the record of an invocation that Lambda gives to a destination.
    #[serde(rename = "functionArn", borrow, default)]
    function: Member<'e>,
}

impl Shape {
    /// What the event is, if it is of a known kind that is delivered again by a new invocation.
    pub(crate) fn of(event: &Event<'_>) -> Option<Self> {
        Self::polled(event).or_else(|| Self::called(event.raw))
    }

    /// Batches of event source mappings and pipes.
    fn polled(event: &Event<'_>) -> Option<Self> {
        let is_piped = event.items.is_some();
        let shape = |event, whole, advice| {
            let advice = if is_piped { "give the operation to `.pipe(..)`" } else { advice };
            Some(Self { event, whole, advice })
        };
        match &*event.source_of_batch()? {
            "aws:sqs" => shape(
                "the event is a batch of SQS",
                Whole::Differs,
                "give the operation to `.sqs(..)`",
            ),
            "aws:kinesis" => shape(
                "the event is a batch of Kinesis",
                Whole::Key,
                "give the operation to `.kinesis(..)`",
            ),
            "aws:dynamodb" => shape(
                "the event is a batch of a DynamoDB stream",
                Whole::Key,
                "give the operation to `.dynamodb_stream(..)`",
            ),
            "aws:docdb" => shape(
                "the event is a batch of a DocumentDB change stream",
                Whole::Key,
                "give the operation to `.document_db(..)`",
            ),
            "aws:kafka" | "SelfManagedKafka" | "aws:SelfManagedKafka" => shape(
                "the event is a batch of Kafka",
                Whole::Key,
                "give the operation to `.kafka(..)`",
            ),
            // Messages say whether they were delivered before.
            "aws:amq" | "aws:mq" => shape(
                "the event is a batch of ActiveMQ",
                Whole::Differs,
                "give the operation to `.active_mq(..)`",
            ),
            "aws:rmq" => shape(
                "the event is a batch of RabbitMQ",
                Whole::Differs,
                "give the operation to `.rabbit_mq(..)`",
            ),
            _ => None,
        }
    }

    /// Events of services that wait for the answer.
    fn called(raw: &RawValue) -> Option<Self> {
        let signs: Signs<'_> = object(Some(raw));
        let request: RequestContext<'_> = object(signs.request);
        let shape = |event, whole, advice| Some(Self { event, whole, advice });
        if request.function.is_none() && request.id.or(request.time).or(request.elb).is_some() {
            let advice = "use `Idempotency::http` (feature `http`)";
            return shape("the event is an HTTP request", Whole::Differs, advice);
        }
        if signs.invocation.is_some() && list(signs.records).is_some() {
            let advice = "do what must be done once for a record by `Idempotency::run`, with \
                           `.key(\"recordId\")`: the answer for the whole batch is often larger than \
                           what a store keeps (400 KB in DynamoDB), and lost to a retry then";
            return shape(
                "the event is a transformation request of Firehose",
                Whole::Differs,
                advice,
            );
        }
        if signs.invocation.is_some() && list(signs.tasks).is_some() {
            let advice = "wrap the whole event, whose answer S3 needs, by `.event(..)` with \
                           `.key(\"[job.id, tasks[0].taskId]\")`, and keep no \
                           `TemporaryFailure` (`.keep(..)`)";
            return shape("the event is a task of S3 Batch Operations", Whole::Differs, advice);
        }
        if text(signs.trigger).is_some() && text(signs.pool).is_some() {
            let advice = "wrap the whole event, whose answer Cognito needs, by `.event(..)` with a key \
                           of what is to be done once (for once per user \
                           `.key(\"[userPoolId, userName, triggerSource]\")`); for what is done at \
                           each sign-in there is no key, since nothing tells a retry from another \
                           sign-in: leave it unprotected";
            return shape("the event is a trigger of a Cognito user pool", Whole::Repeats, advice);
        }
        if signs.bot.is_some() && text(signs.dialog).is_some() {
            let advice = "wrap the whole event, whose answer Lex needs, by `.event(..)` with a key of \
                           what is to be done once, such as the id of an order in its slots; a key \
                           that tells a retry from another turn that says the same does not exist";
            return shape("the event is a request of Lex", Whole::Repeats, advice);
        }
        if text(signs.name).as_deref() == Some("ContactFlowEvent") && signs.details.is_some() {
            let advice = "wrap the whole event, whose answer Connect needs, by `.event(..)` with a key \
                           of what is to be done once (for once per contact \
                           `.key(\"Details.ContactData.ContactId\")`); a key that tells a retry from \
                           another call in the same contact does not exist";
            return shape("the event is a request of Amazon Connect", Whole::Repeats, advice);
        }
        None
    }

    /// Why the request id is not a key.
    pub(crate) fn has_no_request_id(self) -> Rejection {
        self.rejected(NoDefaultKey::NewRequestId)
    }

    /// Why the whole event is not a key, if it is not.
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
