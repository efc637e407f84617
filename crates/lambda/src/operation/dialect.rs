//! Operations whose keys another library makes.

use std::sync::Arc;

use lambda_idempotency_keys::{KeyPath, foreign::ForeignKeys};

use super::{
    Operation,
    spoken::{Place, Spoken},
};
use crate::error::ConfigError;

impl Operation {
    /// Makes its keys, fingerprints and results those of Powertools for AWS Lambda, so that a table
    /// can be shared with, or taken over from, a Python or TypeScript function. Read
    /// [the page about it](crate::guide::powertools) before two fleets share a table. `Dialect` needs the
    /// feature `powertools`.
    ///
    /// [`key`](Self::key) is then Powertools' `event_key_jmespath`, `@` standing for none of it, and
    /// [`fingerprint`](Self::fingerprint) its `payload_validation_jmespath`. The operation's name and
    /// the tenant are in no key; the dialect's prefix is. Powertools keeps records for an hour:
    /// set [`retain`](Self::retain) if that is what the two agreed on.
    ///
    /// ```
    /// # #[cfg(feature = "powertools")]
    /// # {
    /// use lambda_idempotency::{Dialect, Operation};
    ///
    /// let place = Operation::new("place-order")
    ///     .key("order_id")
    ///     .dialect(Dialect::powertools_python("orders-fn.app.process"));
    /// # place.check().unwrap();
    /// # }
    /// ```
    #[must_use]
    pub fn dialect(mut self, dialect: impl ForeignKeys + 'static) -> Self {
        self.dialect = Some(Arc::new(dialect));
        self.changed()
    }

    /// The dialect with its expressions compiled.
    pub(super) fn spoken(&self) -> Result<Option<Spoken>, ConfigError> {
        let Some(dialect) = &self.dialect else { return Ok(None) };
        let Some(key) = self.key_path()? else {
            return Err(ConfigError::DialectKey { operation: Arc::clone(&self.name) });
        };
        let fingerprint = self.fingerprint.as_ref();
        Ok(Some(Spoken {
            dialect: Arc::clone(dialect),
            key: self.place(&**dialect, "key", &key)?,
            fingerprint: fingerprint
                .map(|path| self.place(&**dialect, "fingerprint", path))
                .transpose()?,
        }))
    }

    fn place(
        &self,
        dialect: &dyn ForeignKeys,
        what: &'static str,
        path: &KeyPath,
    ) -> Result<Place, ConfigError> {
        let operation = Arc::clone(&self.name);
        let text = Arc::from(path.expression.as_str());
        let compiled = match what {
            "key" => dialect.key(&path.expression),
            _ => dialect.fingerprint(&path.expression),
        };
        let expression = match compiled {
            Ok(expression) => expression,
            Err(source) => return Err(ConfigError::Expression { operation, what, source }),
        };
        if expression.is_constant() {
            let expression = path.expression.clone();
            return Err(ConfigError::Constant { operation, what, expression });
        }
        self.tells_apart(what, path, expression.few_values())?;
        Ok(Place { view: path.view, text, expression })
    }
}
