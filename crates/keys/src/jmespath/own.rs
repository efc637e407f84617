//! Functions of the caller, beside the standard ones.

use std::{collections::BTreeMap, sync::Arc};

use super::{error::EvaluationError, value::Value};

/// A function of the caller.
#[derive(Clone)]
pub(crate) struct Own {
    pub(crate) arity: usize,
    pub(crate) call: Arc<Call>,
}

/// The offset of its error is not used.
pub(crate) type Call = dyn Fn(&[Value]) -> Result<Value, EvaluationError> + Send + Sync;

/// By name.
pub(crate) type OwnFunctions = BTreeMap<Arc<str>, Own>;
