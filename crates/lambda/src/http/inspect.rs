//! Inspects a request without handling it.

use lambda_http::{Request, RequestExt as _, request};
use lambda_idempotency_keys::Digest;
use lambda_runtime::Context;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use super::{
    HttpLayer,
    builder::LayerSettings,
    request_key::{RequestKey, of_body, text},
};
use crate::{
    find_key::Extraction,
    keys::inspect::{InspectError, NoKey, Record, RecordKey},
    rejection::Rejection,
};

/// The member that all events of API Gateway, function URLs and load balancers have, and no others.
#[derive(Deserialize)]
struct GatewayEvent {
    #[serde(rename = "requestContext")]
    context: RequestContext,
}

#[derive(Deserialize)]
struct RequestContext {
    /// Only WebSocket APIs have it.
    #[serde(rename = "connectionId")]
    connection: Option<IgnoredAny>,
}

impl HttpLayer {
    /// The HTTP request in an event, with its key, as [`inspect`](crate::keys::inspect) shows records;
    /// `None` if the event is not an HTTP request, or is of a WebSocket API: for those the layer has no keys.
    ///
    /// Its identity consists of the caller (as a hash, because it may be a credential) and the key
    /// in the header.
    ///
    /// ```
    /// # use lambda_idempotency::{Idempotency, MemoryStore, Operation, http::Http};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let shared = Http::by_header().all_callers_are_one();
    /// let charges =
    ///     Idempotency::new(MemoryStore::new()).http(&Operation::new("charges"), shared)?;
    /// let event = r#"{"httpMethod":"POST","path":"/charges","body":"EUR 5.00","requestContext":{"elb":{
    ///     "targetGroupArn":"arn:aws:elasticloadbalancing:eu-west-1:1:targetgroup/a/b"}},
    ///     "headers":{"idempotency-key":"k-1"},"isBase64Encoded":false}"#;
    /// let request = charges.inspect(event, &Default::default())?.unwrap();
    /// assert_eq!(request.identity.unwrap(), ["http", "all callers", "k-1"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The text is not JSON; `lambda_http` cannot convert it to a request.
    pub fn inspect(&self, event: &str, context: &Context) -> Result<Option<Record>, InspectError> {
        let raw: &RawValue =
            serde_json::from_str(event).map_err(|error| InspectError::json(&error))?;
        match serde_json::from_str::<GatewayEvent>(raw.get()) {
            Ok(GatewayEvent { context: RequestContext { connection: None } }) => {}
            _ => return Ok(None),
        }
        // `lambda_http` panics if the event's host is not valid.
        let request = std::panic::catch_unwind(|| request::from_str(raw.get()).ok())
            .map_err(|_| InspectError::Request)?;
        Ok(request.map(|request| self.0.inspect(request.with_lambda_context(context.clone()))))
    }
}

impl LayerSettings {
    fn inspect(&self, request: Request) -> Record {
        let (parts, body) = request.into_parts();
        let passes_by = !self.options.needs_key(&parts);
        let request = &Request::from_parts(parts, body);
        let body = text(request.body());
        let shown = body.clone().unwrap_or_default();
        let none = |reason| RecordKey::none(&self.operation, reason);
        let (key, header) = match self.request_key(request) {
            _ if passes_by => (none(NoKey::PassesBy(request.method().to_string())), None),
            Err(problem) => (none(NoKey::Problem(problem.describe())), None),
            Ok(request_key) => (
                match &body {
                    Ok(body) => self.key(&request_key, body),
                    Err(rejection) if self.operation.names_key() => none(rejection.clone().into()),
                    Err(_) => self.key(&request_key, ""),
                },
                request_key.key,
            ),
        };
        let identity = header.map(|key| vec!["http".to_owned(), self.caller_label(request), key]);
        Record {
            source: "http",
            id: request.lambda_context_ref().map(|c| c.request_id.clone()).unwrap_or_default(),
            arn: None,
            raw: shown.to_owned(),
            payload: Ok(shown.to_owned()),
            identity: identity.ok_or(Rejection::NoHeader),
            identity_parts: "the header `Idempotency-Key`, for one caller",
            catches: "a client that sends its request again, with the key that it chose",
            misses: "a client that sends it again with another key; or under other credentials, \
                     where no authorizer says who it is",
            group: None,
            key: Some(key),
        }
    }

    fn key(&self, request_key: &RequestKey, body: &str) -> RecordKey {
        let Some(texts) = self.texts(request_key, body) else {
            return RecordKey::none(&self.operation, NoKey::Unprotected);
        };
        let extraction =
            Extraction { operation: &self.operation, tenant: Some(&request_key.scope) };
        let mut key = RecordKey::of(&extraction, texts);
        if let Err(NoKey::Refused(rejection)) = &key.key {
            key.key = Err(of_body(rejection.clone()).into());
        }
        if key.key.is_ok() {
            key.fingerprint = Some(self.fingerprint(request_key, key.fingerprint.take()));
        }
        key
    }

    /// The caller as a short hash, which can be compared but does not reveal the caller.
    fn caller_label(&self, request: &Request) -> String {
        let caller = match self.options.callers.of(request) {
            Ok(Some(caller)) => caller.name,
            Ok(None) => return "all callers".to_owned(),
            Err(_) => return "caller unknown".to_owned(),
        };
        let mut digest = Digest::new(b"lambda-idempotency http caller 1");
        digest.part(caller.as_bytes());
        let hash = digest.hex();
        format!("caller {}", hash.get(..8).unwrap_or(&hash))
    }
}
