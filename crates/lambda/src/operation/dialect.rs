//! Operations whose keys another library makes.

use std::sync::Arc;

use lambda_idempotency_core::{outcome::Rejection, record::Fingerprint};
use lambda_idempotency_engine::batch::{Job, Returned};
use lambda_idempotency_keys::{
    Key, KeyPath, Selection, SelectionError, View,
    foreign::{ForeignExpression, ForeignKeys},
};

use super::Operation;
use crate::error::ConfigError;

/// A dialect with its expressions compiled.
#[derive(Debug)]
pub(crate) struct Spoken {
    dialect: Arc<dyn ForeignKeys>,
    key: Place,
    fingerprint: Option<Place>,
}

/// A compiled expression and what it sees.
#[derive(Debug)]
struct Place {
    view: View,
    text: Arc<str>,
    expression: Box<dyn ForeignExpression>,
}

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

impl Place {
    fn of<'t>(&self, (payload, record): (&'t str, &'t str)) -> &'t str {
        match self.view {
            View::Payload => payload,
            View::Record => record,
        }
    }
}

impl Spoken {
    /// What its key and its fingerprint see, with the expressions.
    pub(super) fn places(
        &self,
    ) -> impl Iterator<Item = (&'static str, View, &str, &dyn ForeignExpression)> {
        let places = [("key", Some(&self.key)), ("fingerprint", self.fingerprint.as_ref())];
        places.into_iter().filter_map(|(what, place)| {
            let Place { view, text, expression } = place?;
            Some((what, *view, &**text, &**expression))
        })
    }

    /// The key of a record, from its payload and what is around that, and the text it is a hash of.
    /// The outer error is that there is nothing to look for a key in.
    pub(crate) fn key(
        &self,
        texts: (&str, &str),
        tenant: Option<&str>,
    ) -> Result<Result<(Key, Selection), SelectionError>, Rejection> {
        let made = self.key.expression.make_key(self.key.of(texts), tenant);
        made.map_err(Rejection::Payload)
    }

    /// Where the key is looked for.
    pub(crate) fn key_path(&self) -> KeyPath {
        KeyPath { view: self.key.view, expression: self.key.text.to_string() }
    }

    /// What the fingerprint is taken from, if the operation has one.
    #[cfg(feature = "http")]
    pub(super) fn fingerprint_view(&self) -> Option<View> {
        self.fingerprint.as_ref().map(|place| place.view)
    }

    /// The key's expression.
    pub(crate) fn key_text(&self) -> Arc<str> {
        Arc::clone(&self.key.text)
    }

    /// The fingerprint of a record, if the operation has one.
    pub(crate) fn fingerprint(
        &self,
        texts: (&str, &str),
    ) -> Result<Option<Fingerprint>, Rejection> {
        let Some(place) = &self.fingerprint else { return Ok(None) };
        let made = place.expression.make_fingerprint(place.of(texts));
        match made.map_err(Rejection::Payload)? {
            Ok(hash) => Ok(Some(Fingerprint::new(hash))),
            Err(error) => {
                Err(Rejection::Fingerprint { expression: Arc::clone(&place.text), error })
            }
        }
    }

    /// A handler whose result is kept as the library would.
    pub(crate) fn job<'j>(&'j self, job: Job<'j>) -> Job<'j> {
        Box::new(move |call| {
            let running = job(call);
            Box::pin(async move {
                Ok(match running.await? {
                    Returned::Value(json) => Returned::Value(self.result(json.to_string()).into()),
                    other => other,
                })
            })
        })
    }

    /// A result as the library would keep it.
    pub(crate) fn result(&self, json: String) -> String {
        self.dialect.result(&json).unwrap_or(json)
    }
}
