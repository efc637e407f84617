//! The error of what users implement.

use std::error::Error;

/// The error of a [`KeyProvider`](crate::KeyProvider) or of a [`ResultStore`](crate::ResultStore). Its message may be
/// logged, so it must hold neither keys nor results.
pub type BoxError = Box<dyn Error + Send + Sync>;
