//! Makes keys, fingerprints and results as Powertools does.

use std::sync::Arc;

use super::{
    HashFunction, PowertoolsDocument, PowertoolsExpression, PowertoolsLanguage,
    expression::Selected,
};
use crate::{
    Collision, DocumentError, ExpressionError, Key, Selection, SelectionError, digest::hex,
    selector::Made,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};

/// The settings of Powertools keys; see the [module](super).
#[derive(Clone, Debug)]
pub struct PowertoolsKeys {
    language: PowertoolsLanguage,
    prefix: Arc<str>,
    hash: HashFunction,
    accept_collisions: bool,
}

impl PowertoolsKeys {
    /// Powertools for Python. The prefix is its `key_prefix` or, where there is none,
    /// `<AWS_LAMBDA_FUNCTION_NAME>.<module>.<qualified name>` of the decorated function, such as
    /// `orders-fn.app.process`.
    #[must_use]
    pub fn python(prefix: impl Into<Arc<str>>) -> Self {
        Self::of(PowertoolsLanguage::Python, prefix)
    }

    /// Powertools for TypeScript. The prefix is its `keyPrefix` or, where there is none,
    /// `<AWS_LAMBDA_FUNCTION_NAME>`, also for a method with the decorator.
    #[must_use]
    pub fn typescript(prefix: impl Into<Arc<str>>) -> Self {
        Self::of(PowertoolsLanguage::TypeScript, prefix)
    }

    /// The keys of this language, with a prefix as for
    /// [`python`](Self::python) or
    /// [`typescript`](Self::typescript).
    ///
    /// ```
    /// use lambda_idempotency_keys::powertools::{PowertoolsKeys, PowertoolsLanguage};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let named = "powertools-typescript"; // std::env::var("ORDER_LANGUAGE")?
    /// let powertools = PowertoolsKeys::of(named.parse()?, "orders-fn");
    /// assert_eq!(powertools.language(), PowertoolsLanguage::TypeScript);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn of(language: PowertoolsLanguage, prefix: impl Into<Arc<str>>) -> Self {
        let given = prefix.into();
        let prefix = match language {
            PowertoolsLanguage::Python => given,
            PowertoolsLanguage::TypeScript => match given.trim_matches(is_javascript_space) {
                trimmed if trimmed.len() == given.len() => given,
                trimmed => Arc::from(trimmed),
            },
        };
        Self { language, prefix, hash: HashFunction::default(), accept_collisions: false }
    }

    /// The library's `hash_function` or `hashFunction`. Default: MD5, which is also the default of
    /// Powertools.
    #[must_use]
    pub fn hash_function(mut self, hash: HashFunction) -> Self {
        self.hash = hash;
        self
    }

    /// Also accepts records that could share a key with distinct records, exactly as Powertools
    /// does.
    ///
    /// One customer may then get another customer's result. Use it only if a table already has such
    /// records and must be kept.
    #[must_use]
    pub fn accept_collisions(mut self) -> Self {
        self.accept_collisions = true;
        self
    }

    /// The language whose keys are made.
    #[must_use]
    pub const fn language(&self) -> PowertoolsLanguage {
        self.language
    }

    /// Whether [`accept_collisions`](Self::accept_collisions) was chosen.
    #[must_use]
    pub const fn accepts_collisions(&self) -> bool {
        self.accept_collisions
    }

    /// Compiles a JMESPath expression, with the functions that the library has.
    ///
    /// # Errors
    /// The first mistake, with its offset.
    pub fn compile(&self, text: &str) -> Result<PowertoolsExpression, ExpressionError> {
        PowertoolsExpression::compile(self.language, text)
    }

    /// Reads a JSON text as the library does.
    ///
    /// # Errors
    /// The library cannot read it, or it is nested deeper than 128 levels or larger than 8 MiB,
    /// which the library might accept.
    pub fn read(&self, json: &str) -> Result<PowertoolsDocument, DocumentError> {
        PowertoolsDocument::read(self.language, json)
    }

    /// The key of the value that `expression` selects, or without an expression of the whole
    /// document.
    ///
    /// # Errors
    /// The selected value cannot be a key; distinct records could share the key, and
    /// [`accept_collisions`](Self::accept_collisions) is not set; or the library itself fails for
    /// this record.
    pub fn key(
        &self,
        document: &PowertoolsDocument,
        expression: Option<&PowertoolsExpression>,
    ) -> Result<Key, SelectionError> {
        self.select(document, expression).map(|selection| self.key_of(&selection))
    }

    /// The key of a [selection](Self::select).
    #[must_use]
    pub fn key_of(&self, selection: &Selection) -> Key {
        Key::from_text(format!("{}#{}", self.prefix, self.digest(selection.canonical_bytes())))
    }

    /// The selected value, as the text whose hash is in the [`key`](Self::key).
    ///
    /// # Errors
    /// As [`key`](Self::key).
    pub fn select(
        &self,
        document: &PowertoolsDocument,
        expression: Option<&PowertoolsExpression>,
    ) -> Result<Selection, SelectionError> {
        let mut selected = match expression {
            Some(expression) => expression.evaluate(document)?,
            None => document.whole(self.language),
        };
        if selected.is_nothing()
            && (self.language == PowertoolsLanguage::Python || expression.is_some())
        {
            return Err(SelectionError::Missing);
        }
        if selected.is_missing() {
            match self.language {
                PowertoolsLanguage::Python => return Err(SelectionError::Empty),
                PowertoolsLanguage::TypeScript => {
                    selected.collisions.note(Collision::TakenForMissing);
                }
            }
        }
        self.text(&mut selected).map(|text| Selection(text.into_bytes()))
    }

    /// The fingerprint of the value that `expression` selects, as with
    /// `payload_validation_jmespath` or `payloadValidationJmesPath`.
    ///
    /// # Errors
    /// As [`key`](Self::key); with [`accept_collisions`](Self::accept_collisions) a missing value
    /// counts as `null`.
    pub fn fingerprint(
        &self,
        document: &PowertoolsDocument,
        expression: &PowertoolsExpression,
    ) -> Result<String, SelectionError> {
        let mut selected = expression.evaluate(document)?;
        self.text(&mut selected).map(|text| self.digest(text.as_bytes()))
    }

    /// A handler's result, as JSON text, in the form in which the library keeps it: for Python that
    /// of `json.dumps(.., sort_keys=True)`. TypeScript does not store text, so the text is
    /// unchanged.
    #[must_use]
    pub fn result(&self, json: &str) -> Option<String> {
        match self.language {
            PowertoolsLanguage::Python => {
                let document = self.read(json).ok()?;
                document.whole(self.language).text().ok()
            }
            PowertoolsLanguage::TypeScript => Some(json.to_owned()),
        }
    }

    /// The text that is hashed, unless the value is refused.
    fn text(&self, selected: &mut Selected) -> Result<String, SelectionError> {
        if !self.accept_collisions {
            selected.check()?;
        }
        let text = selected.text()?;
        match selected.collisions.first() {
            Some(collision) if !self.accept_collisions => Err(SelectionError::Collision(collision)),
            _ => Ok(text),
        }
    }

    /// The key of a JSON text, and the selected text that it is a hash of.
    pub(crate) fn make_key(
        &self,
        json: &str,
        expression: Option<&PowertoolsExpression>,
        tenant: Option<&str>,
    ) -> Made<(Key, Selection)> {
        if tenant.is_some() && !self.accept_collisions {
            return Ok(Err(SelectionError::Collision(Collision::Tenant)));
        }
        let selection = self.select(&self.read(json)?, expression);
        Ok(selection.map(|selection| (self.key_of(&selection), selection)))
    }

    /// The fingerprint of a JSON text.
    pub(crate) fn make_fingerprint(
        &self,
        json: &str,
        expression: Option<&PowertoolsExpression>,
    ) -> Made<String> {
        let document = self.read(json)?;
        Ok(match expression {
            Some(expression) => self.fingerprint(&document, expression),
            None => Err(SelectionError::Missing),
        })
    }

    /// A text that differs between settings that make different keys from the same payload. It includes the hash of a
    /// fixed text, so that different hash functions of the user have different settings.
    pub(crate) fn settings(&self) -> String {
        format!("{} {} {}", self.language.name(), self.prefix, self.digest(b"\"probe\""))
    }

    fn digest(&self, bytes: &[u8]) -> String {
        let digest = self.hash.digest(bytes);
        match self.language {
            PowertoolsLanguage::Python => hex(&digest),
            PowertoolsLanguage::TypeScript => STANDARD.encode(digest),
        }
    }
}

/// The characters that `trim()` removes: <https://tc39.es/ecma262/#prod-WhiteSpace>
fn is_javascript_space(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{FEFF}'
}
