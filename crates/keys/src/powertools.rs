//! Keys of Powertools for AWS Lambda, to share a table with it or to migrate one.
//!
//! [`PowertoolsKeys`] make the same keys, fingerprints and result texts as Powertools for AWS
//! Lambda: Python ([`PowertoolsKeys::python`], 3.37) or TypeScript
//! ([`PowertoolsKeys::typescript`], 2.35). Both hash the JSON text of the selected
//! value:
//!
//! | | Python | TypeScript |
//! |---|---|---|
//! | the text | `json.dumps(.., sort_keys=True)` | `JSON.stringify(deepSort(..))` |
//! | the key | prefix, `#`, hexadecimal | prefix, `#`, base64 |
//! | the prefix | `key_prefix`, or `<function>.<module>.<qualified name>` | `keyPrefix`, or `<function>` |
//!
//! ```
//! use lambda_idempotency_keys::{powertools::PowertoolsKeys, producer::KeySpec};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let powertools = PowertoolsKeys::python("orders-fn.app.process");
//! let orders = KeySpec::new("process", "order_id").powertools(powertools).producer()?;
//! let key = orders.key(r#"{"order_id": "A-1", "ts": 1}"#)?;
//! assert_eq!(key.as_str(), "orders-fn.app.process#35e4083ba11d7d06184c72e37b6428b7");
//! # Ok(())
//! # }
//! ```
//!
//! # What is refused
//!
//! Both libraries give some distinct records the same key, and answer one record with the other's
//! result. Such records are refused here ([`SelectionError::Collision`], or the errors for missing
//! keys), unless [`PowertoolsKeys::accept_collisions`] turns on the exact behaviour of Powertools.
//!
//! Expressions are those of this library, with the functions `powertools_json`, `powertools_base64` and
//! `powertools_base64_gzip`: others, and in TypeScript members that every JavaScript object inherits (`toString`), are
//! refused at start. Excessive sizes are errors too: texts of more than 8 MiB, JSON that is nested
//! deeper than 128 levels, and more than 8 MiB of decompressed text in one record.

use std::{str::FromStr, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::Digest as _;

pub use crate::Collision;
use crate::{
    ExpressionError, Key, Selection, SelectionError,
    jmespath::{
        ast::Node,
        evaluate::Evaluation,
        parser::parse,
        read::read,
        value::{Absent, Collisions, Optional, Value, Variant},
        write::write,
    },
    make_key::hex,
    selection::{Made, check},
};

/// A language whose keys [`PowertoolsKeys`] makes. Its name is that of [`PowertoolsLanguage::name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PowertoolsLanguage {
    /// Powertools for AWS Lambda (Python): `powertools-python`.
    Python,
    /// Powertools for AWS Lambda (TypeScript): `powertools-typescript`.
    TypeScript,
}

impl PowertoolsLanguage {
    /// The name that [`from_str`](FromStr::from_str) parses, for instance from an environment
    /// variable.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Python => "powertools-python",
            Self::TypeScript => "powertools-typescript",
        }
    }
}

impl FromStr for PowertoolsLanguage {
    type Err = UnknownPowertoolsLanguage;

    fn from_str(name: &str) -> Result<Self, UnknownPowertoolsLanguage> {
        let mut known = [Self::Python, Self::TypeScript].into_iter();
        known.find(|language| language.name() == name).ok_or(UnknownPowertoolsLanguage)
    }
}

/// No [`PowertoolsLanguage`] has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the Powertools language is unknown; use `powertools-python` or `powertools-typescript`")]
#[non_exhaustive]
pub struct UnknownPowertoolsLanguage;

/// The settings of Powertools keys; see the [module](super).
#[derive(Clone, Debug)]
pub struct PowertoolsKeys {
    language: PowertoolsLanguage,
    prefix: Arc<str>,
    hash: HashFunction,
    pub(crate) accept_collisions: bool,
}

/// The value that an expression selected, not yet checked to be a usable key.
struct Selected {
    value: Value,
    absent: Option<Absent>,
    /// How distinct documents could have the same value.
    collisions: Collisions,
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

    /// The keys of this language, with a prefix as for [`python`](Self::python) or [`typescript`](Self::typescript).
    ///
    /// ```
    /// use lambda_idempotency_keys::powertools::PowertoolsKeys;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let named = "powertools-typescript"; // std::env::var("ORDER_LANGUAGE")?
    /// let powertools = PowertoolsKeys::of(named.parse()?, "orders-fn");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn of(language: PowertoolsLanguage, prefix: impl Into<Arc<str>>) -> Self {
        let mut prefix = prefix.into();
        if language == PowertoolsLanguage::TypeScript {
            prefix = prefix.trim_matches(is_javascript_space).into();
        }
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

    pub(crate) fn compile(&self, text: &str) -> Result<Node, ExpressionError> {
        let error = |(offset, reason)| ExpressionError::at(text, offset, reason);
        parse(self.variant(), text).map_err(error)
    }

    /// The key of what an expression selects from a JSON text, or without one of the whole text; and the selected text that
    /// it is a hash of.
    pub(crate) fn key(
        &self,
        json: &str,
        expression: Option<&Node>,
        tenant: Option<&str>,
    ) -> Made<(Key, Selection)> {
        if tenant.is_some() && !self.accept_collisions {
            return Ok(Err(SelectionError::Collision(Collision::Tenant)));
        }
        let text = self.select(json, expression)?.and_then(|selected| {
            let is_python = self.language == PowertoolsLanguage::Python;
            let is_nothing = matches!(selected.value, Value::Null | Value::Undefined);
            match is_missing(self.language, &selected.value) {
                _ if is_nothing && (is_python || expression.is_some()) => {
                    return Err(SelectionError::Missing);
                }
                true if is_python => return Err(SelectionError::Empty),
                true => selected.collisions.note(Collision::TakenForMissing),
                false => {}
            }
            self.text(selected)
        });
        Ok(text.map(|text| {
            let key = format!("{}#{}", self.prefix, self.digest(text.as_bytes()));
            (Key::from_text(key), Selection(text.into_bytes()))
        }))
    }

    /// The fingerprint of what an expression selects, as with `payload_validation_jmespath` or
    /// `payloadValidationJmesPath`. With [`accept_collisions`](Self::accept_collisions), a missing value counts as `null`.
    pub(crate) fn fingerprint(&self, json: &str, expression: Option<&Node>) -> Made<String> {
        let text = self.select(json, expression)?.and_then(|selected| self.text(selected));
        Ok(text.map(|text| self.digest(text.as_bytes())))
    }

    /// A handler's result, as JSON text, in the form in which the library keeps it: for Python that
    /// of `json.dumps(.., sort_keys=True)`. TypeScript does not store text, so the text is
    /// unchanged.
    pub(crate) fn result(&self, json: String) -> String {
        let is_python = self.language == PowertoolsLanguage::Python;
        let value = is_python.then(|| read(self.variant(), &json).ok()).flatten();
        let written = value.and_then(|value| self.write(&value, &Collisions::default()).ok());
        written.unwrap_or(json)
    }

    fn select(&self, json: &str, expression: Option<&Node>) -> Made<Selected> {
        let value = read(self.variant(), json)?;
        let Some(expression) = expression else {
            return Ok(Ok(Selected { value, absent: None, collisions: Collisions::default() }));
        };
        let evaluation = Evaluation::new(self.variant());
        Ok(evaluation.run(expression, &value).map_err(SelectionError::from).map(|value| {
            let (absent, collisions) = evaluation.found();
            Selected { value, absent, collisions }
        }))
    }

    /// The text that is hashed, unless the value is refused.
    fn text(&self, selected: Selected) -> Result<String, SelectionError> {
        let Selected { value, absent, collisions } = selected;
        if !self.accept_collisions {
            check(&value, absent, &Optional::default())?;
        }
        let text = self.write(&value, &collisions)?;
        match collisions.first() {
            Some(collision) if !self.accept_collisions => Err(SelectionError::Collision(collision)),
            _ => Ok(text),
        }
    }

    fn write(&self, value: &Value, collisions: &Collisions) -> Result<String, SelectionError> {
        write(self.variant(), value, collisions)?.ok_or(SelectionError::Missing)
    }

    const fn variant(&self) -> Variant {
        match self.language {
            PowertoolsLanguage::Python => Variant::Python(()),
            PowertoolsLanguage::TypeScript => Variant::TypeScript(()),
        }
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

/// Whether the library treats a value as a missing key. `is_missing_idempotency_key` of Python: `null`, an empty value, or
/// one that holds only nulls. `isMissingIdempotencyKey` of TypeScript: a falsy value, or a list or object of falsy values
/// only.
fn is_missing(language: PowertoolsLanguage, value: &Value) -> bool {
    let is_nothing = |value: &Value| match language {
        PowertoolsLanguage::Python => value.is_null(),
        PowertoolsLanguage::TypeScript => !value.is_truthy_to_javascript(),
    };
    match value {
        Value::Undefined | Value::Null => true,
        Value::Array(items) => items.iter().all(is_nothing),
        Value::Object(members) => members.iter().all(|(_, value)| is_nothing(value)),
        Value::String(text) => text.is_empty(),
        scalar => is_nothing(scalar),
    }
}

/// A hash function, as `hash_function` (Python) or `hashFunction` (TypeScript) names it.
///
/// MD5 is the default of both libraries, and is broken: anyone who can choose payloads can make two
/// with the same key. To keep a table of a function that used MD5, you have to use it too; that
/// function had the same risk.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum HashFunction {
    /// `md5`, the default.
    #[default]
    Md5,
    /// `sha1`.
    Sha1,
    /// `sha224`.
    Sha224,
    /// `sha256`.
    Sha256,
    /// `sha384`.
    Sha384,
    /// `sha512`.
    Sha512,
    /// Another function, which returns the digest of the bytes.
    Other(fn(&[u8]) -> Vec<u8>),
}

impl HashFunction {
    pub(super) fn digest(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Md5 => md5::Md5::digest(bytes).to_vec(),
            Self::Sha1 => sha1::Sha1::digest(bytes).to_vec(),
            Self::Sha224 => sha2::Sha224::digest(bytes).to_vec(),
            Self::Sha256 => sha2::Sha256::digest(bytes).to_vec(),
            Self::Sha384 => sha2::Sha384::digest(bytes).to_vec(),
            Self::Sha512 => sha2::Sha512::digest(bytes).to_vec(),
            Self::Other(function) => function(bytes),
        }
    }
}

/// Parses the name of the function in `hashlib` and Node's `crypto`.
impl FromStr for HashFunction {
    type Err = UnknownHashFunction;

    fn from_str(name: &str) -> Result<Self, UnknownHashFunction> {
        use HashFunction::{Md5, Sha1, Sha224, Sha256, Sha384, Sha512};
        let named = |hash: &Self| format!("{hash:?}").eq_ignore_ascii_case(name);
        let known = [Md5, Sha1, Sha224, Sha256, Sha384, Sha512];
        known.into_iter().find(named).ok_or(UnknownHashFunction)
    }
}

/// The error of an unknown hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown hash function: use md5, sha1, sha224, sha256, sha384 or sha512; \
     give another as `HashFunction::Other`"
)]
#[non_exhaustive]
pub struct UnknownHashFunction;
