//! From a record to its key, its fingerprint and its result, as a library makes them.

use std::{fmt::Write as _, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use lambda_idempotency_keys::{
    DocumentError, ExpressionError, Key, Loss, Selection, SelectionError,
    foreign::{ForeignExpression, ForeignKeys, Made},
    internal::{self, Losses, Selected, VariantDocument},
};

use super::{DialectDocument, DialectExpression, HashFunction, Library};

/// How another library makes its keys; see the [crate](crate).
#[derive(Clone, Debug)]
pub struct Dialect {
    library: Library,
    prefix: Arc<str>,
    hash: HashFunction,
    accept_lossy: bool,
}

impl Dialect {
    /// Powertools for Python. The prefix is its `key_prefix` or, where there is none,
    /// `<AWS_LAMBDA_FUNCTION_NAME>.<module>.<qualified name>` of the decorated function, such as
    /// `orders-fn.app.process`.
    #[must_use]
    pub fn powertools_python(prefix: impl Into<Arc<str>>) -> Self {
        Self::of(Library::Python, prefix)
    }

    /// Powertools for TypeScript. The prefix is its `keyPrefix` or, where there is none,
    /// `<AWS_LAMBDA_FUNCTION_NAME>` (for a method with the decorator, `.` and its name after it).
    #[must_use]
    pub fn powertools_typescript(prefix: impl Into<Arc<str>>) -> Self {
        Self::of(Library::TypeScript, prefix)
    }

    /// The dialect of this library, with a prefix as for
    /// [`powertools_python`](Self::powertools_python) or
    /// [`powertools_typescript`](Self::powertools_typescript).
    ///
    /// ```
    /// use lambda_idempotency_powertools::{Dialect, Library};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let named = "powertools-typescript"; // std::env::var("ORDER_DIALECT")?
    /// let dialect = Dialect::of(named.parse()?, "orders-fn");
    /// assert_eq!(dialect.library(), Library::TypeScript);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn of(library: Library, prefix: impl Into<Arc<str>>) -> Self {
        let given = prefix.into();
        let prefix = match library {
            Library::Python => given,
            Library::TypeScript => match internal::trim_as_javascript(&given) {
                trimmed if trimmed.len() == given.len() => given,
                trimmed => Arc::from(trimmed),
            },
        };
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
        DialectExpression::compile(self.library, text)
    }

    /// Reads a JSON text as the library does.
    ///
    /// # Errors
    /// The library cannot read it; or it nests deeper than 128 levels, or has more than 8 MiB, which
    /// it may well read.
    pub fn read(&self, json: &str) -> Result<DialectDocument, DocumentError> {
        DialectDocument::read(self.library, json)
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
        let selected = match expression {
            Some(expression) => expression.0.evaluate(&document.0, &losses)?,
            None => document.0.whole(self.library.into()),
        };
        if selected.is_nothing() && (self.library == Library::Python || expression.is_some()) {
            return Err(SelectionError::Missing);
        }
        if selected.is_missing() {
            match self.library {
                Library::Python => return Err(SelectionError::Empty),
                Library::TypeScript => losses.note(Loss::TakenForMissing),
            }
        }
        if !self.accept_lossy {
            match expression {
                Some(expression) => expression.0.check(&selected)?,
                None => selected.check()?,
            }
        }
        self.text(&selected, &losses).map(Selection::of_text)
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
    ) -> Result<String, SelectionError> {
        let losses = Losses::default();
        let selected = expression.0.evaluate(&document.0, &losses)?;
        if !self.accept_lossy {
            expression.0.check(&selected)?;
        }
        self.text(&selected, &losses).map(|text| self.digest(text.as_bytes()))
    }

    /// A handler's result, as JSON text, in the form in which the library keeps it: for Python that
    /// of `json.dumps(.., sort_keys=True)`. TypeScript keeps no text, so its form is as it was.
    #[must_use]
    pub fn result(&self, json: &str) -> Option<String> {
        match self.library {
            Library::Python => {
                let document = VariantDocument::read(self.library.into(), json).ok()?;
                document.whole(self.library.into()).text(&Losses::default()).ok()
            }
            Library::TypeScript => Some(json.to_owned()),
        }
    }

    fn text(&self, selected: &Selected, losses: &Losses) -> Result<String, SelectionError> {
        let text = selected.text(losses)?;
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

impl ForeignKeys for Dialect {
    fn key(&self, expression: &str) -> Result<Box<dyn ForeignExpression>, ExpressionError> {
        // Powertools without an expression takes the whole.
        let expression = match expression.trim() {
            "@" => None,
            _ => Some(self.compile(expression)?),
        };
        Ok(Box::new(Bound { dialect: self.clone(), expression }))
    }

    fn fingerprint(&self, expression: &str) -> Result<Box<dyn ForeignExpression>, ExpressionError> {
        let expression = Some(self.compile(expression)?);
        Ok(Box::new(Bound { dialect: self.clone(), expression }))
    }

    fn result(&self, json: &str) -> Option<String> {
        Self::result(self, json)
    }

    /// The hash of a text of our own, so that functions of the user's are told apart too.
    fn settings(&self) -> String {
        format!("{} {} {}", self.library.name(), self.prefix, self.digest(b"\"probe\""))
    }
}

/// An expression with the settings that it is evaluated under; `None` is the whole document.
#[derive(Debug)]
struct Bound {
    dialect: Dialect,
    expression: Option<DialectExpression>,
}

impl ForeignExpression for Bound {
    fn is_constant(&self) -> bool {
        self.expression.as_ref().is_some_and(DialectExpression::is_constant)
    }

    fn few_values(&self) -> Option<&'static str> {
        self.expression.as_ref()?.few_values()
    }

    fn selects(&self, member: &str) -> bool {
        self.expression.as_ref().is_none_or(|expression| expression.selects(member))
    }

    fn make_key(&self, json: &str, tenant: Option<&str>) -> Made<(Key, Selection)> {
        if tenant.is_some() && !self.dialect.accept_lossy {
            return Ok(Err(SelectionError::Lossy(Loss::Tenant)));
        }
        let document = self.dialect.read(json)?;
        let selection = self.dialect.select(&document, self.expression.as_ref());
        Ok(selection.map(|selection| (self.dialect.key_of(&selection), selection)))
    }

    fn make_fingerprint(&self, json: &str) -> Made<String> {
        let document = self.dialect.read(json)?;
        Ok(match &self.expression {
            Some(expression) => self.dialect.fingerprint(&document, expression),
            None => Err(SelectionError::Missing),
        })
    }
}
