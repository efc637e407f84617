//! The types around your handlers and services. You need them only to write a type down:
//! [`keep_result`](crate::keep_result) returns a [`KeepResult`], and an
//! [`EventLayer`](crate::EventLayer) makes an [`EventService`].

pub use crate::{event::EventService, handler::KeepResult};
