//! Keys of other libraries, so that a table can be shared with them or taken over.
//!
//! A [`Dialect`] gives a record the key, the fingerprint and the result text that Powertools for AWS
//! Lambda gives it: Python ([`Dialect::powertools_python`], 3.37) or TypeScript
//! ([`Dialect::powertools_typescript`], 2.35). Both hash a JSON text of what an expression selects:
//!
//! | | Python | TypeScript |
//! |---|---|---|
//! | the text | `json.dumps(.., sort_keys=True)` | `JSON.stringify(deepSort(..))` |
//! | the key | prefix, `#`, hexadecimal | prefix, `#`, base64 |
//! | the prefix | `key_prefix`, or `<function>.<module>.<qualified name>` | `keyPrefix`, or `<function>` |
//!
//! ```
//! use lambda_idempotency_core::key::dialect::Dialect;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dialect = Dialect::powertools_python("orders-fn.app.process");
//! let by_order = dialect.compile("order_id")?;
//! let event = dialect.read(r#"{"order_id": "A-1", "ts": 1}"#)?;
//! let key = dialect.key(&event, Some(&by_order))?;
//! assert_eq!(key.as_str(), "orders-fn.app.process#35e4083ba11d7d06184c72e37b6428b7");
//! # Ok(())
//! # }
//! ```
//!
//! # What is refused
//!
//! Both libraries give some distinct records one key, and answer one with the other's result. Such
//! records are refused here ([`SelectionError::Lossy`], and for what is missing the errors that our
//! own keys have), unless [`Dialect::accept_lossy`] asks for exactly what Powertools does.
//!
//! What a dialect cannot reproduce at all is an error under either: `sort` of texts in TypeScript
//! follows the machine's locale.

mod compare;
mod decode;
mod digits;
mod evaluate;
mod functions;
mod hash;
mod loss;
mod numbers;
mod parts;
mod read;
mod value;
mod write;

use std::{fmt, fmt::Write as _, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jmespath::{ErrorReason, ast::Ast};

pub use hash::{HashFunction, UnknownHashFunction};
pub use loss::Loss;
use loss::Losses;
use value::Value;
use write::Layout;

use super::{DocumentError, ExpressionError, Key, Selection, SelectionError, syntax};
use crate::record::Fingerprint;

/// How another library makes its keys; see the [module](self).
#[derive(Clone, Debug)]
pub struct Dialect {
    library: Library,
    prefix: Arc<str>,
    hash: HashFunction,
    accept_lossy: bool,
}

/// A library whose keys a [`Dialect`] speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Library {
    /// Powertools for AWS Lambda (Python).
    Python,
    /// Powertools for AWS Lambda (TypeScript).
    TypeScript,
}

/// A compiled JMESPath expression, to be evaluated as the library of its dialect does.
#[derive(Clone)]
pub struct DialectExpression {
    text: String,
    ast: Ast,
    library: Library,
}

/// A JSON text as the library of its dialect reads it.
#[derive(Clone)]
pub struct DialectDocument(Value);

impl Dialect {
    /// Powertools for Python. The prefix is its `key_prefix` or, where there is none,
    /// `<AWS_LAMBDA_FUNCTION_NAME>.<module>.<qualified name>` of the decorated function, such as
    /// `orders-fn.app.process`.
    #[must_use]
    pub fn powertools_python(prefix: impl Into<Arc<str>>) -> Self {
        Self::new(Library::Python, prefix.into())
    }

    /// Powertools for TypeScript. The prefix is its `keyPrefix` or, where there is none,
    /// `<AWS_LAMBDA_FUNCTION_NAME>` (for a method with the decorator, `.` and its name after it).
    #[must_use]
    pub fn powertools_typescript(prefix: impl Into<Arc<str>>) -> Self {
        let prefix = prefix.into();
        let trimmed = prefix.trim();
        let prefix = if trimmed.len() == prefix.len() { prefix } else { Arc::from(trimmed) };
        Self::new(Library::TypeScript, prefix)
    }

    fn new(library: Library, prefix: Arc<str>) -> Self {
        Self { library, prefix, hash: HashFunction::default(), accept_lossy: false }
    }

    /// Its `hash_function` or `hashFunction`. Default: MD5, as theirs.
    #[must_use]
    pub fn hash_function(mut self, hash: HashFunction) -> Self {
        self.hash = hash;
        self
    }

    /// Takes also what could give distinct records one key, exactly as Powertools does.
    ///
    /// One customer may then be answered with another's result: for a table whose records it cannot
    /// do without.
    #[must_use]
    pub fn accept_lossy(mut self) -> Self {
        self.accept_lossy = true;
        self
    }

    /// Whose keys they are.
    #[must_use]
    pub const fn library(&self) -> Library {
        self.library
    }

    /// Whether [`accept_lossy`](Self::accept_lossy) was chosen.
    #[must_use]
    pub const fn accepts_lossy(&self) -> bool {
        self.accept_lossy
    }

    /// Compiles a JMESPath expression, with the functions that the library has.
    ///
    /// # Errors
    /// The first thing that is wrong, with its offset.
    pub fn compile(&self, text: &str) -> Result<DialectExpression, ExpressionError> {
        let error = |(offset, reason)| ExpressionError::at(text, offset, reason);
        syntax::check_size(text).map_err(error)?;
        let ast = jmespath::parse(text).map_err(|e| {
            let reason = match e.reason {
                ErrorReason::Parse(reason) => reason,
                ErrorReason::Runtime(reason) => reason.to_string(),
            };
            error((e.offset, reason))
        })?;
        evaluate::check(self.library, &ast, text)?;
        Ok(DialectExpression { text: text.to_owned(), ast, library: self.library })
    }

    /// Reads a JSON text as the library does.
    ///
    /// # Errors
    /// The library cannot read it, or it nests deeper than 128 levels.
    pub fn read(&self, json: &str) -> Result<DialectDocument, DocumentError> {
        read::read(self.library, json).map(DialectDocument)
    }

    /// The key of what `expression` selects; without one, of the whole document.
    ///
    /// # Errors
    /// What is selected cannot be a key; it could be that of distinct records, and
    /// [`accept_lossy`](Self::accept_lossy) was not chosen; or the library fails here itself.
    pub fn key(
        &self,
        document: &DialectDocument,
        expression: Option<&DialectExpression>,
    ) -> Result<Key, SelectionError> {
        self.select(document, expression).map(|selection| self.key_of(&selection))
    }

    /// The key of what was [selected](Self::select).
    #[must_use]
    pub fn key_of(&self, selection: &Selection) -> Key {
        Key::from_text(format!("{}#{}", self.prefix, self.digest(selection.canonical_bytes())))
    }

    /// What `expression` selects, as the text whose hash is in the [`key`](Self::key).
    ///
    /// # Errors
    /// As [`key`](Self::key).
    pub fn select(
        &self,
        document: &DialectDocument,
        expression: Option<&DialectExpression>,
    ) -> Result<Selection, SelectionError> {
        let losses = Losses::default();
        let selected = evaluate(document, expression, &losses)?;
        if is_nothing(&selected) && (self.library == Library::Python || expression.is_some()) {
            return Err(SelectionError::Missing);
        }
        match self.library {
            Library::Python if parts::is_missing_to_python(&selected) => {
                return Err(SelectionError::Empty);
            }
            Library::TypeScript if parts::is_missing_to_typescript(&selected) => {
                losses.note(Loss::TakenForMissing);
            }
            _ => {}
        }
        if !self.accept_lossy {
            parts::check(expression.map(|expression| &expression.ast), &selected)?;
        }
        self.text(&selected, &losses).map(|text| Selection(text.into_bytes()))
    }

    /// The fingerprint of what `expression` selects: `payload_validation_jmespath` or
    /// `payloadValidationJmesPath`.
    ///
    /// # Errors
    /// As [`key`](Self::key); with [`accept_lossy`](Self::accept_lossy) what is missing counts as
    /// `null`.
    pub fn fingerprint(
        &self,
        document: &DialectDocument,
        expression: &DialectExpression,
    ) -> Result<Fingerprint, SelectionError> {
        let losses = Losses::default();
        let selected = evaluate(document, Some(expression), &losses)?;
        if !self.accept_lossy {
            parts::check(Some(&expression.ast), &selected)?;
        }
        self.text(&selected, &losses).map(|text| Fingerprint::new(self.digest(text.as_bytes())))
    }

    /// A handler's result, as JSON text, in the form in which the library keeps it: for Python that
    /// of `json.dumps(.., sort_keys=True)`. TypeScript keeps no text, so its form is as it was.
    #[must_use]
    pub fn result(&self, json: &str) -> Option<String> {
        match self.library {
            Library::Python => {
                let value = read::read(self.library, json).ok()?;
                write::write(Layout::hashed(self.library), &value, &Losses::default())
            }
            Library::TypeScript => Some(json.to_owned()),
        }
    }

    fn text(&self, selected: &Value, losses: &Losses) -> Result<String, SelectionError> {
        let text = write::write(Layout::hashed(self.library), selected, losses);
        let text = text.ok_or(SelectionError::Missing)?;
        match losses.first() {
            Some(loss) if !self.accept_lossy => Err(SelectionError::Lossy(loss)),
            _ => Ok(text),
        }
    }

    fn digest(&self, bytes: &[u8]) -> String {
        let digest = self.hash.digest(bytes);
        match self.library {
            Library::Python => digest.iter().fold(String::new(), |mut hex, byte| {
                // Writing to a string does not fail.
                let _ = write!(hex, "{byte:02x}");
                hex
            }),
            Library::TypeScript => STANDARD.encode(digest),
        }
    }
}

fn evaluate(
    document: &DialectDocument,
    expression: Option<&DialectExpression>,
    losses: &Losses,
) -> Result<Value, SelectionError> {
    let Some(expression) = expression else { return Ok(document.0.clone()) };
    let DialectExpression { text, ast, library } = expression;
    evaluate::Evaluation { library: *library, text, losses }.run(ast, &document.0)
}

const fn is_nothing(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Undefined)
}

impl DialectExpression {
    /// The expression as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it selects the same from every record: `'orderId'` is a text, `orderId` a field.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        !syntax::reads_data(&self.ast)
    }
}

impl fmt::Debug for DialectExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DialectExpression({:?})", self.text)
    }
}

/// Says nothing of what it holds: that is for no log.
impl fmt::Debug for DialectDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DialectDocument").finish_non_exhaustive()
    }
}
