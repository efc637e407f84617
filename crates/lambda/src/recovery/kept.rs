//! What a claim keeps of its record: an event with this record alone, and what else its key is made of.

use std::borrow::Cow;

use lambda_idempotency_core::record::Json;
use lambda_runtime::{Context, LambdaEvent};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    route::Route,
    source::{Event, Record},
};

/// The text. Later versions may add members, and ignore those that they do not know.
#[derive(Serialize)]
struct Kept<'a> {
    /// The event.
    event: &'a RawValue,
    /// The request id, which identifies the records of some sources.
    request: &'a str,
    /// The tenant, which is part of every key.
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
}

#[derive(Deserialize)]
struct Found {
    event: Box<RawValue>,
    request: String,
    #[serde(default)]
    tenant: Option<String>,
}

impl Route {
    /// What the claim of this record keeps, if the source keeps it and the text is within its limit. Records that keep the
    /// whole event share its text, in `whole`: a copy for each could need more memory than the function has.
    pub(crate) fn kept(
        &self,
        event: &Event<'_>,
        record: &Record<'_>,
        context: &Context,
        whole: &mut Option<Json>,
    ) -> Option<Json> {
        let limit = self.settings.recoverable?;
        let alone = event.with_record_alone(&record.raw)?;
        let is_whole = matches!(alone, Cow::Borrowed(_));
        if is_whole && let Some(kept) = whole {
            return Some(kept.clone());
        }
        let (request, tenant) = (&*context.request_id, context.tenant_id.as_deref());
        let mut bytes = alone.get().len();
        // A whole event is not copied for each of its records in vain.
        if bytes <= limit {
            let kept = to_raw_value(&Kept { event: &alone, request, tenant }).ok()?;
            bytes = kept.get().len();
            if bytes <= limit {
                let kept = Json::from(kept.get());
                if is_whole {
                    *whole = Some(kept.clone());
                }
                return Some(kept);
            }
        }
        tracing::warn!(
            operation = &*self.prepared.name,
            source = record.id.source,
            record = record.id.label(),
            bytes,
            limit,
            "the record is processed, but it is too large to be kept with its claim: if its worker dies and nothing \
             delivers it again, it cannot be recovered; set a higher limit with `.recoverable(..)` of the source"
        );
        None
    }
}

/// The event that a claim has kept, as it was delivered, for an invocation that ends at this time. `None` if
/// another version has kept it in a form that is not known.
pub(super) fn event(kept: &str, deadline: u64) -> Option<LambdaEvent<Box<RawValue>>> {
    let found: Found = serde_json::from_str(kept).ok()?;
    let mut context = Context::default();
    context.request_id = found.request;
    context.tenant_id = found.tenant;
    context.deadline = deadline;
    Some(LambdaEvent::new(found.event, context))
}
