//! Checks that two sources of one operation can make the same keys.

use std::{collections::BTreeSet, mem::discriminant};

use lambda_idempotency_keys::{Key, KeyFormat, Scope};

use super::{Operation, Prepared, modes_agree};
use crate::error::ConfigError;

impl Operation {
    /// Refuses an operation if the keys of two of its sources can never agree. The *place* of a key
    /// may differ from source to source; its number of parts and their structure (`id`, `[id]`,
    /// `{order: id}`) may not.
    pub(crate) fn agree(pair: [(&'static str, &Self); 2]) -> Result<(), ConfigError> {
        let [(_, first), (source_name, second)] = pair;
        let operation = || first.shared_name();
        if first.name() != second.name() {
            let other = second.shared_name();
            return Err(ConfigError::SourceName { operation: operation(), source_name, other });
        }
        modes_agree(first.policy.mode, second.policy.mode, &operation())?;
        for (source_name, one) in pair {
            if !one.prepared()?.names_key() {
                return Err(ConfigError::SourceWithoutKey { operation: operation(), source_name });
            }
        }
        match first.differs(second)? {
            Some(setting) => {
                Err(ConfigError::SourceKeys { operation: operation(), source_name, setting })
            }
            None => Ok(()),
        }
    }

    /// The setting that makes the keys or the fingerprints of two operations of one name always differ.
    fn differs(&self, other: &Self) -> Result<Option<&'static str>, ConfigError> {
        let (mine, theirs) = (self.prepared()?, other.prepared()?);
        // The paths of optional parts may differ, because the expressions may.
        let optional = |one: &Self| one.keys.optional_parts().iter().collect::<BTreeSet<_>>().len();
        let powertools = |one: &Self| one.keys.external().map(|keys| keys.settings());
        let shape = |one: &Prepared| one.key.as_ref().map(|path| path.expression.shape());
        let compared =
            |one: &Prepared| one.fingerprint.as_ref().map(|path| path.expression.shape());
        // Those of Powertools have no shape here.
        let compares = |one: &Self| one.fingerprint.is_some();
        Ok(if powertools(self) != powertools(other) {
            Some("powertools")
        } else if discriminant(&mine.key_format) != discriminant(&theirs.key_format)
            || probe(&mine.key_format) != probe(&theirs.key_format)
        {
            Some("key_format")
        } else if shape(&mine) != shape(&theirs) {
            Some("key")
        } else if optional(self) != optional(other) {
            Some("optional")
        } else if compared(&mine) != compared(&theirs) || compares(self) != compares(other) {
            Some("fingerprint")
        } else {
            None
        })
    }
}

/// A key that is made to compare two secrets without exposing them.
fn probe(format: &KeyFormat) -> Key {
    format.identity(&Scope { operation: "probe", tenant: None }, &[])
}
