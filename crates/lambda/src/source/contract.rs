//! The types and the trait that all sources have, the responses to them, and several sources of one handler.

use std::{collections::HashSet, fmt, time::Duration};

use lambda_idempotency_core::policy::OnConflict;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{
    event::Event,
    record::{Item, Record},
    settings::Settings,
    sink::RecordEnd,
};
use crate::error::{InvocationError, NotJson};

/// An event source with its settings: a type of [this module](super). Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event source",
    label = "not an event source",
    note = "sources are types of `lambda_idempotency::source`, each made by `new()`: `Sqs::new()`, `Kinesis::new()`, ...",
    note = "the order of arguments is: source, operation, handler; requests of HTTP are for `Idempotency::http`"
)]
pub trait Source: sealed::Sealed {}

/// A source's settings, and what reads its events.
#[derive(Debug)]
pub struct Parts {
    pub(crate) events: Box<dyn EventSource>,
    pub(crate) settings: Settings,
}

pub(super) mod sealed {
    pub trait Sealed {
        fn parts(self) -> super::Parts;
    }

    pub trait Several {
        fn all(self) -> Vec<super::Parts>;
    }
}

/// Takes a source apart.
pub(crate) fn parts(source: impl Source) -> Parts {
    sealed::Sealed::parts(source)
}

/// The facts about a source that are constant.
#[derive(Debug)]
pub(crate) struct About {
    /// Its name in logs, errors and default keys.
    pub(crate) name: &'static str,
    /// The members of a record that its default key is made of. Shown by [`inspect`](crate::keys::inspect) and documented in
    /// [the guide](crate::guide::sources#default-keys), with the next two.
    pub(crate) identity: &'static str,
    /// Which duplicates the default key recognises.
    pub(crate) catches: &'static str,
    /// Which duplicates it does not recognise: those need a key from the payload.
    pub(crate) misses: &'static str,
    /// The paths of the members of a raw record that differ when it is delivered again: keys and fingerprints must not contain
    /// them.
    pub(crate) volatile: &'static [&'static str],
    /// Whether a record is what Lambda calls the function for. Otherwise, Lambda's poller has fetched it, and the trace of the
    /// invocation is that of the poller.
    pub(crate) is_cause_of_invocation: bool,
}

/// One kind of event source.
pub(crate) trait EventSource: fmt::Debug + Send + Sync {
    /// The facts about it that are constant.
    fn about(&self) -> &'static About;

    /// Its name.
    fn name(&self) -> &'static str {
        self.about().name
    }

    /// The source of the records, where another service delivers them: the source of a pipe.
    fn origin(&self) -> &'static str {
        ""
    }

    /// Whether the answer can name the records that are returned.
    fn has_partial_responses(&self) -> bool {
        true
    }

    /// The members that differ when a record is delivered again: see [`About::volatile`].
    fn volatile(&self) -> &'static [&'static str] {
        self.about().volatile
    }

    /// The default policy for a delivery whose key another worker holds.
    ///
    /// The delivery waits, except for sources where another delivery costs little. Most sources
    /// retry only a few times, perhaps each time within the lease of a worker that died, or deliver
    /// nothing else until they get a response.
    fn conflict(&self) -> OnConflict {
        OnConflict::Wait { up_to: Duration::MAX }
    }

    /// Whether the event is from this source, and passes the filters of `settings`.
    fn recognises(&self, event: &Event<'_>, settings: &Settings) -> bool;

    /// Divides an event that it [recognises](Self::recognises) into the part that `settings` take and the
    /// rest, if there is any, for the next sources.
    fn divide<'e>(&self, event: Event<'e>, _: &Settings) -> (Event<'e>, Option<Event<'e>>) {
        (event, None)
    }

    /// Whether its caller waits for the handler's result. Such a source takes any event, as one record, and is tried last.
    fn answers_its_caller(&self) -> bool {
        false
    }

    /// The event's records, in its order. A record that cannot be read has no payload, and does not
    /// affect the others.
    fn records<'e>(&self, event: &Event<'e>, settings: &Settings) -> Vec<Record<'e>>;

    /// The response to the source. Default, for sources without partial responses: `null` if all
    /// records are acknowledged, else an error.
    fn respond(
        &self,
        _event: &Event<'_>,
        records: &[Record<'_>],
        outcomes: &[RecordEnd],
    ) -> Result<Box<RawValue>, InvocationError> {
        all_or_error(self.name(), records, outcomes)
    }
}

#[derive(Serialize)]
struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'a RawValue>,
    #[serde(rename = "batchItemFailures")]
    failures: Vec<Failure<'a>>,
}

#[derive(Serialize)]
struct Failure<'a> {
    #[serde(rename = "itemIdentifier")]
    item: &'a Item,
}

/// Names every record that is returned or was not started, once, for
/// [queues](https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html) and
/// [streams](https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html).
///
/// Streams and partitions need only the first: they continue from the lowest that is named. Sources
/// that acknowledge each record separately (queues, pipes, Kafka's share groups) treat a record
/// that is not named as done. An identifier is shorter than its record, so the response is smaller
/// than the event, and within Lambda's limit of 6 MB.
///
/// A record without an identifier would count as done. If such a record has to be returned, the
/// invocation fails.
pub(super) fn partial(
    source_name: &'static str,
    state: Option<&RawValue>,
    records: &[Record<'_>],
    outcomes: &[RecordEnd],
) -> Result<Box<RawValue>, InvocationError> {
    let mut failures = Vec::new();
    let mut named = HashSet::new();
    for (record, outcome) in records.iter().zip(outcomes) {
        if outcome.is_acknowledged() {
            continue;
        }
        let Some(item) = &record.item else {
            return all_or_error(source_name, records, outcomes);
        };
        // Several records in one envelope have one identifier.
        if named.insert(item) {
            failures.push(Failure { item });
        }
    }
    to_raw_value(&Response { state, failures })
        .map_err(|_| InvocationError::Json(NotJson::Response))
}

/// The response to a source without partial responses, or that is not to get one: `null` if all records are
/// acknowledged, else an error.
pub(crate) fn all_or_error(
    source_name: &'static str,
    records: &[Record<'_>],
    outcomes: &[RecordEnd],
) -> Result<Box<RawValue>, InvocationError> {
    /// How many problems the error contains; the log has the others.
    const SHOWN: usize = 3;
    let problem = |(at, (record, outcome)): (usize, (&Record<'_>, &RecordEnd))| {
        let problem = outcome.problem()?;
        // A record without an id is named by its position.
        let position = if record.id.id.is_empty() {
            format!("no. {} of the batch", at + 1)
        } else {
            String::new()
        };
        Some(format!("{}{position}: {problem}", record.id))
    };
    let problems: Vec<_> = records.iter().zip(outcomes).enumerate().filter_map(problem).collect();
    if problems.is_empty() {
        return Ok(RawValue::NULL.to_owned());
    }
    let mut shown = problems.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("; ");
    if problems.len() > SHOWN {
        shown.push_str("; ...");
    }
    let (failed, total) = (problems.len(), outcomes.len());
    Err(InvocationError::Records { source_name, failed, total, problems: shown })
}

/// A [`Source`], or several that one handler takes: a tuple of up to eight, or a list of one type. Sealed.
///
/// ```
/// use lambda_idempotency::source::{EventBridge, Sqs};
/// # use lambda_idempotency::{Call, Idempotency, MemoryStore, Operation};
/// # async fn place_order(_: serde_json::Value, _: Call) -> Result<(), std::io::Error> { Ok(()) }
/// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
/// # let idempotency = Idempotency::new(MemoryStore::new());
/// # let place = Operation::new("place-order").key("orderId");
/// let both = (Sqs::new().queue("orders"), EventBridge::new().detail_type("OrderRequested").key("order.id"));
/// idempotency.on(both, &place, place_order)?;
///
/// let queues = ["orders", "orders-of-partners"].map(|queue| Sqs::new().queue(queue));
/// # let idempotency = Idempotency::new(MemoryStore::new());
/// idempotency.on(queues, &place, place_order)?;
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an event source",
    label = "not an event source",
    note = "sources are types of `lambda_idempotency::source`, each made by `new()`: `Sqs::new()`, `Kinesis::new()`, ...",
    note = "several are a tuple: `(Sqs::new(), Kinesis::new())`",
    note = "the order of arguments is: source, operation, handler; requests of HTTP are for `Idempotency::http`"
)]
pub trait Sources: sealed::Several {}

/// Takes each source apart.
pub(crate) fn parts_of_each(sources: impl Sources) -> Vec<Parts> {
    sealed::Several::all(sources)
}

#[diagnostic::do_not_recommend]
impl<S: Source> Sources for S {}

impl<S: Source> sealed::Several for S {
    fn all(self) -> Vec<Parts> {
        vec![parts(self)]
    }
}

#[diagnostic::do_not_recommend]
impl<S: Source> Sources for Vec<S> {}

impl<S: Source> sealed::Several for Vec<S> {
    fn all(self) -> Vec<Parts> {
        self.into_iter().map(parts).collect()
    }
}

#[diagnostic::do_not_recommend]
impl<S: Source, const N: usize> Sources for [S; N] {}

impl<S: Source, const N: usize> sealed::Several for [S; N] {
    fn all(self) -> Vec<Parts> {
        self.into_iter().map(parts).collect()
    }
}

macro_rules! tuple {
    ($($source:ident)*) => {
        #[diagnostic::do_not_recommend]
        impl<$($source: Source),*> Sources for ($($source,)*) {}

        impl<$($source: Source),*> sealed::Several for ($($source,)*) {
            #[allow(non_snake_case, reason = "one name for a type and its value")]
            fn all(self) -> Vec<Parts> {
                let ($($source,)*) = self;
                vec![$(parts($source)),*]
            }
        }
    };
}

tuple!(A B);
tuple!(A B C);
tuple!(A B C D);
tuple!(A B C D E);
tuple!(A B C D E F);
tuple!(A B C D E F G);
tuple!(A B C D E F G H);
