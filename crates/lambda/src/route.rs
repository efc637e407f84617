//! A source with the operation and the handler of its records, and whether the routes of a function can work together.

use std::{borrow::Cow, mem::discriminant, sync::Arc};

use lambda_idempotency_core::{
    outcome::{Outcome, ResultKept},
    policy::Policy,
};
use lambda_idempotency_engine::{
    batch::{Delivery, Engine, Job, Work},
    delivered::Delivered,
};
use lambda_idempotency_keys::{
    Key, KeyFormat, Scope, View,
    producer::{ExpressionUse, Selector},
};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    decode::Format,
    envelope::Envelope,
    error::{ConfigError, ResultLost, RunError},
    find_key::Extraction,
    handler::{ErasedHandler, ResultFrom, result_of},
    names::HandlerType,
    operation::{Operation, Prepared, modes_agree},
    rejection::Rejection,
    source::{Event, EventSource, Parts, Record, Settings, records_of},
};

/// A source, and what is done with its records.
pub(crate) struct Route {
    pub(crate) source: Box<dyn EventSource>,
    pub(crate) settings: Settings,
    pub(crate) operation: Operation,
    pub(crate) prepared: Prepared,
    pub(crate) policy: Policy,
    pub(crate) handler: Arc<dyn ErasedHandler>,
    pub(crate) handler_type: HandlerType,
    /// Whether a result that is not `()` is kept, because the caller of a direct invocation gets it.
    pub(crate) keeps_result: bool,
}

impl Route {
    /// Whether this route takes every event of the other, if it comes first.
    pub(crate) fn shadows(&self, other: &Self) -> bool {
        is_same(&*self.source, &*other.source) && self.settings.covers(&other.settings)
    }

    /// The records of an event, or of the route's share of it.
    pub(crate) fn records<'e>(&self, event: &Event<'e>) -> Vec<Record<'e>> {
        let secret = self.operation.secret();
        let mut records = records_of(&*self.source, event, &self.settings, secret);
        if self.settings.in_order {
            let batch: Arc<str> = Arc::from("");
            records.iter_mut().for_each(|record| record.group = Some(Arc::clone(&batch)));
        }
        records
    }

    /// The delivery of a record.
    pub(crate) fn delivery<'r>(
        &'r self,
        record: &'r Record<'_>,
        delivered: Delivered,
        extraction: &Extraction<'_>,
    ) -> Delivery<'r> {
        let work = match &record.payload {
            Ok(payload) => extraction.work(&record.id, record.texts(payload), |payload| {
                self.job(payload, record.format)
            }),
            Err(rejection) => Work::Reject(rejection.clone().into()),
        };
        let sink = match work {
            Work::Reject(_) => &self.settings.bad_records,
            _ => &self.settings.failures,
        };
        let (group, has_sink) = (record.group.clone(), sink.is_some());
        Delivery::alone(record.id.clone(), delivered, work).in_group(group).letting_pass(has_sink)
    }

    /// Says at the start that the handler's results go nowhere.
    pub(crate) fn warn_of_dropped_result(&self) {
        if self.handler.drops_result() && !self.keeps_result {
            tracing::warn!(
                operation = &*self.prepared.name,
                source = self.source.name(),
                "the handler returns a result that nobody gets: this source ignores it, and it is not kept; return `()`, or \
                 keep it with `keep_result(..)` for duplicates and `kept_result`"
            );
        }
    }

    /// The handler's call for a payload.
    fn job(&self, payload: &str, format: Format) -> Result<Job<'_>, Rejection> {
        let format = match format {
            Format::Text if self.prepared.reads_payload() => Format::JsonText,
            format => format,
        };
        let job = Arc::clone(&self.handler).job(payload, format, self.keeps_result)?;
        Ok(self.prepared.keeping(job))
    }

    /// The answer to an event with this outcome: the handler's result, now or earlier, or why there is none.
    pub(crate) fn answer(
        &self,
        event: &Event<'_>,
        outcome: Option<Outcome>,
    ) -> Result<Box<RawValue>, RunError> {
        let result = self.result(outcome)?;
        let Some(answer) = &self.settings.answer else { return Ok(result) };
        let answer = answer.make(&result, event.raw).map_err(RunError::ResultLost)?;
        to_raw_value(&answer).map_err(|_| RunError::ResultLost(ResultLost::Unserializable))
    }

    fn result(&self, outcome: Option<Outcome>) -> Result<Box<RawValue>, RunError> {
        // A handler that ran in this call and returned a value has a result here, unless it cannot be JSON.
        let lost = match &outcome {
            Some(
                Outcome::Executed { kept: ResultKept::Unserializable, .. }
                | Outcome::Unprotected { .. }
                | Outcome::CompletionLost { .. },
            ) => ResultLost::Unserializable,
            _ => ResultLost::NotKept,
        };
        let answered = match &outcome {
            Some(Outcome::Failed { failure, permanent: false, .. }) => failure.answer().cloned(),
            _ => None,
        };
        let result = match answered {
            Some(answer) => Some(answer),
            None => match result_of(outcome)? {
                ResultFrom::Now(result) | ResultFrom::Earlier(result) => result,
            },
        };
        let json = match &result {
            Some(json) => Cow::Borrowed(&**json),
            None if self.handler.returns_nothing() => Cow::Borrowed("null"),
            None => return Err(RunError::ResultLost(lost)),
        };
        // Another library may have stored the result, which need not be JSON.
        RawValue::from_string(json.into_owned())
            .map_err(|_| RunError::ResultLost(ResultLost::OtherType))
    }

    /// The source, with the names of its filters.
    pub(crate) fn describe(&self) -> String {
        let source = match (self.source.name(), self.source.origin()) {
            (name, "") => name.to_owned(),
            (name, origin) => format!("{name} of {origin}"),
        };
        let names: Vec<&str> = self.settings.filter_names().collect();
        if names.is_empty() { source } else { format!("{source} from {}", names.join(", ")) }
    }
}

/// Whether both read the same events.
fn is_same(one: &dyn EventSource, other: &dyn EventSource) -> bool {
    (one.name(), one.origin()) == (other.name(), other.origin())
}

const EVENTS_CRATE: &str = "aws_lambda_events::";

/// The types of that crate for a source's whole events, and for its records with all that is around their payload.
const TYPES: [(&str, &[&str], &[&str]); 10] = [
    ("sqs", &["SqsEvent", "SqsEventObj"], &["SqsMessage", "SqsMessageObj"]),
    ("sns", &["SnsEvent", "SnsEventObj"], &["SnsRecord", "SnsRecordObj"]),
    ("s3", &["S3Event"], &[]),
    ("kinesis", &["KinesisEvent", "KinesisTimeWindowEvent"], &["KinesisEventRecord"]),
    ("dynamodb", &["Event", "TimeWindowEvent"], &["EventRecord"]),
    ("documentdb", &["DocumentDbEvent"], &["DocumentDbInnerEvent"]),
    ("kafka", &["KafkaEvent"], &["KafkaRecord"]),
    ("activemq", &["ActiveMqEvent"], &["ActiveMqMessage"]),
    ("rabbitmq", &["RabbitMqEvent"], &["RabbitMqMessage"]),
    ("eventbridge", &[], &["EventBridgeEvent", "CloudWatchEvent"]),
];

/// A route that has not been checked.
pub(crate) struct Draft {
    pub(crate) source: Parts,
    pub(crate) operation: Operation,
    pub(crate) handler: Arc<dyn ErasedHandler>,
    pub(crate) handler_type: HandlerType,
    /// The name of the type that the handler takes.
    pub(crate) payload: &'static str,
}

impl Draft {
    /// Compiles the operation for its source, and refuses what cannot work there.
    pub(crate) fn checked(self, engine: &Engine) -> Result<Route, ConfigError> {
        self.takes_records()?;
        let Self {
            source: Parts { events: source, settings },
            operation,
            handler,
            handler_type,
            ..
        } = self;
        if let Some(problem) = settings.mistake(source.name()) {
            let name = operation.name();
            return Err(ConfigError::source(format!("operation `{name}`: {problem}")));
        }
        if settings.returns_whole_batch && !source.has_partial_responses() {
            return Err(ConfigError::source(format!(
                "operation `{}`: `.without_partial_responses()` has no effect for {} from {}, which has none; remove it",
                operation.name(),
                source.name(),
                source.origin()
            )));
        }
        let prepared = operation.prepared_for(&settings).map_err(|mistake| match mistake {
            // The expression may be the source's own.
            ConfigError::Key(problem) => ConfigError::key(format!("{}: {problem}", source.name())),
            other => other,
        })?;
        let mut policy = prepared.policy.clone();
        policy.on_conflict = prepared.on_conflict.unwrap_or_else(|| source.conflict());
        let route = Route {
            source,
            settings,
            operation,
            prepared,
            policy,
            handler,
            handler_type,
            keeps_result: false,
        };
        route.chooses_key()?;
        route.refuse_volatile()?;
        route.tells_notifications_apart()?;
        route.prepared.names_what_it_excludes()?;
        route.prepared.commits_with(engine)?;
        Ok(route)
    }

    /// Refuses a handler that could decode no record, or would decode every record to a type whose members are all
    /// missing.
    fn takes_records(&self) -> Result<(), ConfigError> {
        let (payload, name) = (self.payload, self.operation.name());
        let type_name = payload.split('<').next().unwrap_or_default();
        let Some((_, type_name)) = type_name.rsplit_once("::") else { return Ok(()) };
        let (source, settings) = (&self.source.events, &self.source.settings);
        let is_mine = |mine: &str| mine == source.name() || mine == source.origin();
        let types = TYPES.iter().find(|(mine, ..)| is_mine(mine));
        let Some((_, events, records)) = types.filter(|_| payload.starts_with(EVENTS_CRATE)) else {
            return Ok(());
        };
        if events.contains(&type_name) {
            return Err(ConfigError::source(format!(
                "the handler of operation `{name}` takes a whole event, `{payload}`, and would refuse everything, because \
                 a handler gets one record: take the payload of one, such as `Order`, or call `Idempotency::run` in a \
                 function of whole events"
            )));
        }
        if records.contains(&type_name) && !settings.whole_record {
            return Err(ConfigError::source(format!(
                "the handler of operation `{name}` takes a whole record, `{payload}`, and would get its payload: add \
                 `.whole_record()` to the source, or take the payload, such as `Order`"
            )));
        }
        Ok(())
    }
}

impl Route {
    /// Refuses direct invocations without a key that their user chose.
    fn chooses_key(&self) -> Result<(), ConfigError> {
        if !self.source.answers_its_caller() {
            return Ok(());
        }
        let name = &self.prepared.name;
        match (self.settings.by_request_id, self.prepared.names_key()) {
            (false, true) | (true, false) => Ok(()),
            (false, false) => Err(ConfigError::key(format!(
                "operation `{name}` takes direct invocations, which have no default key; choose one with `.key(\"...\")` \
                 (`\"@\"` is the whole event), or, if Lambda alone repeats them, because they are asynchronous, take them \
                 with `Invoke::by_request_id()`"
            ))),
            (true, true) => Err(ConfigError::key(format!(
                "operation `{name}` has a key, and its source is `Invoke::by_request_id()`, which has no effect beside it; \
                 write `Invoke::new()`, or leave the key out"
            ))),
        }
    }

    /// Refuses a key or a fingerprint that can contain a value that differs on each delivery from this
    /// source: no duplicate would be recognised, or each would be a mismatch.
    fn refuse_volatile(&self) -> Result<(), ConfigError> {
        let prepared = &self.prepared;
        for (what, selector) in [
            (ExpressionUse::Key, &prepared.key),
            (ExpressionUse::Fingerprint, &prepared.fingerprint),
        ] {
            let Some(selector) = selector else { continue };
            if let Some(member) = self.volatile(selector.view).find(|it| selector.reads(it)) {
                let (name, source) = (self.operation.name(), self.source.name());
                let expression = &selector.text;
                return Err(ConfigError::key(format!(
                    "the {what} of operation `{name}` does not recognise redeliveries: `{expression}` contains `{member}`, \
                     which differs each time {source} delivers a record; use values that stay the same, such as a part of \
                     the payload or the record's id"
                )));
            }
        }
        Ok(())
    }

    /// The members that differ on each delivery and that the expression can read. With
    /// `whole_record`, the payload has the record's members.
    fn volatile(&self, view: View) -> impl Iterator<Item = &'static str> {
        let sees_record = view == View::Record || self.settings.whole_record;
        self.source.volatile().iter().copied().filter(move |_| sees_record)
    }

    /// Refuses keys that do not tell apart the notifications in one message: S3 may put several into one. With one key for
    /// several notifications only the first would be processed, and the others answered from its record. With a key for
    /// each, a handler that gets the whole message would process all of them each time.
    fn tells_notifications_apart(&self) -> Result<(), ConfigError> {
        if !self.settings.envelopes.contains(&Envelope::S3) {
            return Ok(());
        }
        let (prepared, name) = (&self.prepared, self.operation.name());
        if self.settings.whole_record {
            // Any key is of the whole message then.
            if prepared.names_key() {
                return Ok(());
            }
            return Err(ConfigError::source(format!(
                "operation `{name}` has a source with `.whole_record()` and `.envelope(Envelope::S3)`, and S3 may put \
                 several notifications into one message: each has a key of its own, and the handler would get the whole \
                 message for each; name a key of the message, such as `.key(\"messageId\")`, or leave `.whole_record()` out"
            )));
        }
        match prepared.key.as_ref().filter(|key| key.view == View::Record) {
            None => Ok(()),
            Some(key) => Err(ConfigError::key(format!(
                "the key of operation `{name}` reads the whole message, with `{}`, and S3 may put several \
                 notifications into one: they would have one key, and only the first would be processed; select the key \
                 from the notification, such as `s3.object.key`, or take the message as one record with `.whole_record()`",
                key.text
            ))),
        }
    }

    /// Refuses two routes of one operation name if they are not the same work, or if their keys can never agree. The *place* of
    /// a key may differ from source to source; its number of parts and their structure (`id`, `[id]`, `{order: id}`) may
    /// not.
    pub(crate) fn agrees_with(&self, first: &Self) -> Result<(), ConfigError> {
        let name = &self.prepared.name;
        if !Arc::ptr_eq(&self.handler, &first.handler) {
            first.handler_type.agrees_with(self.handler_type, name)?;
        }
        modes_agree(first.policy.mode, self.policy.mode, name)?;
        for route in [first, self] {
            if !route.prepared.names_key() {
                return Err(ConfigError::source(format!(
                    "operation `{name}` has several sources and no key for {}: default keys are made for one source alone; \
                     name a part of the payload with `.key(\"...\")`",
                    route.source.name()
                )));
            }
        }
        match self
            .operation
            .differs(&first.operation)
            .or_else(|| self.prepared.differs(&first.prepared))
        {
            None => {
                self.warn_of_spellings(first);
                Ok(())
            }
            Some(setting) => Err(ConfigError::source(format!(
                "operation `{name}` makes other keys or fingerprints for {} than for its first source, because \
                 `.{setting}(..)` differs; give both the same (a key or a fingerprint: the same number of parts in the same \
                 structure), or set it on the operation alone",
                self.source.name()
            ))),
        }
    }

    /// Says that one object of S3 has two keys here.
    fn warn_of_spellings(&self, first: &Self) {
        let reads = |route: &Self, envelope: Envelope, source: &str, member: &str| {
            let inner = route.settings.envelopes.last();
            let key = route.prepared.key.as_ref();
            inner.map_or(route.source.name() == source, |inner| *inner == envelope)
                && key.is_some_and(|key| key.reads(member))
        };
        let encoded = |route| reads(route, Envelope::S3, "s3", "s3.object.key");
        let plain = |route| reads(route, Envelope::EventBridge, "eventbridge", "object.key");
        // `s3.object | url_decode(key)` decodes it, too.
        let decodes = |route: &Self, member: &str| {
            let text: String =
                route.prepared.key.iter().flat_map(|key| key.text.split_whitespace()).collect();
            let ends = member.match_indices('.').filter_map(|(dot, _)| member.get(dot + 1..));
            let mut named = ends.chain([member, "@"]);
            named.any(|named| text.contains(&format!("url_decode({named})")))
        };
        let differ = |s3, bus| {
            let is_decoded = decodes(s3, "s3.object.key") && !decodes(bus, "object.key");
            encoded(s3) && plain(bus) && !is_decoded
        };
        if differ(self, first) || differ(first, self) {
            tracing::warn!(
                operation = &*self.prepared.name,
                "S3's own notifications have URL-encoded object keys and those through EventBridge plain ones, so one \
                 object has two idempotency keys here, and its work is done twice; write `url_decode(s3.object.key)` for the \
                 former, and `object.key` for the latter"
            );
        }
    }
}

impl Prepared {
    /// The setting that makes the keys or the fingerprints of two sources of one operation always differ.
    fn differs(&self, other: &Self) -> Option<&'static str> {
        let [one, two] = [self, other].map(|one| {
            let shape = |selector: &Option<Selector>| selector.as_ref().map(Selector::shape);
            (shape(&one.key), shape(&one.fingerprint))
        });
        // The paths of optional parts may differ, because the expressions may.
        let optional = |one: &Self| one.key.as_ref().map(Selector::optional_parts);
        if discriminant(&self.key_format) != discriminant(&other.key_format)
            || probe(&self.key_format) != probe(&other.key_format)
        {
            Some("key_format")
        } else if one.0 != two.0 {
            Some("key")
        } else if optional(self) != optional(other) {
            Some("optional")
        } else if one.1 != two.1 {
            Some("fingerprint")
        } else {
            None
        }
    }
}

/// A key that is made to compare two secrets without exposing them.
fn probe(format: &KeyFormat) -> Key {
    format.identity(&Scope { operation: "probe", tenant: None }, &[])
}
