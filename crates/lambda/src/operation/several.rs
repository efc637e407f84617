//! Refuses keys that do not tell apart the notifications in one message: S3 may put several into one.

use lambda_idempotency_keys::{View, producer::ExpressionUse};

use super::Operation;
use crate::{envelope::Envelope, error::ConfigError};

impl Operation {
    /// With one key for several notifications only the first would be processed, and the others answered from its record.
    /// With a key for each, a handler that gets the whole message would process all of them each time.
    pub(crate) fn tells_notifications_apart(&self) -> Result<(), ConfigError> {
        if !self.envelopes.contains(&Envelope::S3) {
            return Ok(());
        }
        let prepared = self.prepared()?;
        let operation = self.shared_name();
        if self.whole_record {
            // Any key is of the whole message then.
            return match prepared.names_key() {
                true => Ok(()),
                false => Err(ConfigError::WholeMessageOfSeveral { operation }),
            };
        }
        let powertools = prepared.powertools.iter().flat_map(|settings| settings.paths());
        let powertools = powertools
            .filter(|(what, ..)| *what == ExpressionUse::Key)
            .map(|(_, view, text, _)| (view, text));
        let key = prepared.key.iter().map(|path| (path.view, path.expression.as_str()));
        match key.chain(powertools).find(|(view, _)| *view == View::Record) {
            None => Ok(()),
            Some((_, expression)) => {
                Err(ConfigError::OneKeyForSeveral { operation, expression: expression.to_owned() })
            }
        }
    }
}
