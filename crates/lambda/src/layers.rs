//! Layers around services that answer whole events or HTTP requests: [`Idempotency::event`] makes an [`EventLayer`],
//! which makes an [`EventService`].

pub use crate::event::{EventLayer, EventService};

use crate::{
    error::ConfigError, idempotency::Idempotency, names::EntryPoint, operation::Operation,
};

impl Idempotency {
    /// A layer around a service of whole events, which returns the first result to later events of
    /// the same key. The key expression sees the event; without one, the whole event is the key.
    /// Without a key, two kinds of events are refused: those that differ on each delivery, such as
    /// events of SQS and HTTP, and those that are equal for different work, such as events of
    /// Cognito. [`EventLayer::keep`] selects the results that later events get.
    ///
    /// ```
    /// # use lambda_idempotency::{Idempotency, MemoryStore, Operation};
    /// use lambda_runtime::{LambdaEvent, service_fn, tower::ServiceBuilder};
    ///
    /// async fn charge(event: LambdaEvent<serde_json::Value>) -> Result<String, std::io::Error> {
    ///     Ok("charged".to_owned())
    /// }
    /// # fn main() -> Result<(), lambda_idempotency::ConfigError> {
    /// let idempotency = Idempotency::new(MemoryStore::new());
    /// let charged = Operation::new("charge").key("paymentId");
    /// let service = ServiceBuilder::new()
    ///     .layer(idempotency.event(&charged)?)
    ///     .service(service_fn(charge));
    /// // lambda_runtime::run(service).await
    /// # let _: lambda_idempotency::layers::EventService<_, serde_json::Value> = service;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A mistake in the operation; a [mode](Operation::mode) with effects, because a service has no
    /// [`Call`](crate::Call) to collect them with.
    pub fn event<T>(&self, operation: &Operation) -> Result<EventLayer<T>, ConfigError> {
        let layer = EventLayer::new(self.engine.clone(), operation)?;
        self.allow(&*operation.prepared()?, EntryPoint::Event)?;
        Ok(layer)
    }

    /// A layer around a service of HTTP requests, which answers a repeated request with the first
    /// response; see [`http`](crate::http). [`Http`](crate::http::Http) says where the key is: in the
    /// `Idempotency-Key` header, or in the body.
    ///
    /// # Errors
    /// A mistake in the operation; a key of the operation that the layer would not read, or none.
    #[cfg(feature = "http")]
    pub fn http<K>(
        &self,
        operation: &Operation,
        http: crate::http::Http<K>,
    ) -> Result<crate::http::HttpLayer, ConfigError> {
        let layer = crate::http::HttpLayer::new(self.engine.clone(), operation, http)?;
        self.allow(layer.operation(), EntryPoint::Http)?;
        Ok(layer)
    }
}
