//! Checks that two sources of one operation can make the same keys.

use std::{mem::discriminant, sync::Arc};

use lambda_idempotency_keys::{Key, KeyFormat, Scope, producer::Selector};

use super::Route;
use crate::{
    error::ConfigError,
    operation::{Prepared, prepare::modes_agree},
};

impl Route {
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
            None => Ok(()),
            Some(setting) => Err(ConfigError::source(format!(
                "operation `{name}` makes other keys or fingerprints for {} than for its first source, because \
                 `.{setting}(..)` differs; give both the same (a key or a fingerprint: the same number of parts in the same \
                 structure), or set it on the operation alone",
                self.source.name()
            ))),
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
