//! Calls as tests make them, and what the crate above sets in the calls that it makes.

use std::sync::Arc;

use super::{Call, History, RecordId, Shared, Subject, TraceContext};
use crate::delivered::{Delivered, Invocation};
use lambda_idempotency_core::clock::{SystemClock, Timestamp};
use lambda_idempotency_keys::Key;

impl Call {
    /// A call for the unit test of a handler: the first for a key made of `name`, no deadline.
    #[must_use]
    pub fn test(name: &str) -> Self {
        let key = Some(Key::from_text(format!("test#{name}")));
        let history = History::none(Timestamp::from_millis(1));
        let subject = Subject { key, identity: None, attempt: None };
        let (record, clock) = (RecordId::new("test", name), Arc::new(SystemClock));
        Self::new(subject, record, history, None, clock, Delivered::default(), Shared::default())
    }

    /// As if the handler had failed this often before.
    #[must_use]
    pub const fn with_failed_attempts(mut self, failed_attempts: u32) -> Self {
        self.history.failed_attempts = failed_attempts;
        self
    }

    /// As if this many earlier calls had disappeared.
    #[must_use]
    pub const fn with_lost_attempts(mut self, lost_attempts: u32) -> Self {
        self.history.lost_attempts = lost_attempts;
        self
    }

    /// As if the call had this fence; a test call's is 1.
    #[must_use]
    pub const fn with_fence(mut self, fence: u64) -> Self {
        self.history.fence = fence;
        self
    }

    /// As if the handler were stopped at `handler_deadline`.
    #[must_use]
    pub const fn with_handler_deadline(mut self, handler_deadline: Timestamp) -> Self {
        self.handler_deadline = Some(handler_deadline);
        self
    }

    /// As if it belonged to this invocation.
    // For `lambda-idempotency`, which has the invocation.
    #[doc(hidden)]
    #[must_use]
    pub fn with_invocation(mut self, invocation: Arc<dyn Invocation>) -> Self {
        self.delivered.set_invocation(invocation);
        self
    }

    /// As if its record had been received this often, this time included.
    #[must_use]
    pub fn with_receives(mut self, receives: u32) -> Self {
        self.delivered = self.delivered.receives(Some(receives));
        self
    }

    /// As if its record were this JSON. [`attribute`](Self::attribute) does not look into it: set
    /// what the handler asks for with [`with_attribute`](Self::with_attribute).
    ///
    /// ```
    /// use lambda_idempotency_engine::call::Call;
    /// let call = Call::test("o-1").with_raw_record(r#"{"messageId":"m-1"}"#);
    /// let message: serde_json::Value = call.record_as().unwrap();
    /// assert_eq!(message["messageId"], "m-1");
    /// ```
    #[must_use]
    pub fn with_raw_record(mut self, json: &str) -> Self {
        self.delivered.set_record(json);
        self
    }

    /// As if its record had been sent in this trace.
    #[must_use]
    pub fn with_trace_context(mut self, context: TraceContext) -> Self {
        self.delivered.set_trace_context(context);
        self
    }

    /// As if its record had this attribute.
    ///
    /// ```
    /// use lambda_idempotency_engine::call::Call;
    /// let call = Call::test("o-1").with_attribute("tenant", "acme");
    /// assert_eq!(call.attribute("tenant").as_deref(), Some("acme"));
    /// assert_eq!(call.attribute("trace"), None);
    /// ```
    #[must_use]
    pub fn with_attribute(mut self, name: &str, value: &str) -> Self {
        self.delivered.set_attribute(name, value);
        self
    }
}
