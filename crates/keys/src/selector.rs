//! A compiled key or fingerprint, whatever makes it.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use crate::{
    Document, DocumentError, Expression, Key, KeyFormat, Scope, Selection, SelectionError, Shape,
    View,
    jmespath::value::Value,
    selection::{Made, write_canonical},
};
#[cfg(feature = "powertools")]
use crate::{
    jmespath::ast::{FieldSets, Node},
    powertools::PowertoolsKeys,
};

/// A compiled key or fingerprint: an expression of this library or of Powertools, or a function.
#[derive(Clone)]
pub struct Selector {
    /// The view of the record that it is applied to.
    pub view: View,
    /// The expression as it was written; for a function its setting.
    pub text: Arc<str>,
    how: How,
}

#[derive(Clone)]
pub(crate) enum How {
    Expression(Expression),
    Function(KeyFn),
    /// Without an expression, the whole document.
    #[cfg(feature = "powertools")]
    Powertools(PowertoolsKeys, Option<Node>),
}

impl Selector {
    /// An expression of this library.
    #[must_use]
    pub fn of(view: View, expression: Expression) -> Self {
        let text = Arc::from(expression.as_str());
        Self { view, text, how: How::Expression(expression) }
    }

    pub(crate) fn made_by(view: View, text: &str, how: How) -> Self {
        Self { view, text: Arc::from(text), how }
    }

    /// The expression, if it is one of this library. It needs the text as a document.
    #[must_use]
    pub const fn expression(&self) -> Option<&Expression> {
        match &self.how {
            How::Expression(expression) => Some(expression),
            _ => None,
        }
    }

    /// The key of a text, and what was selected for it. `document` parses the text for the expression of this library.
    ///
    /// # Errors
    /// See [`Made`].
    pub fn key<'d>(
        &self,
        text: &str,
        document: impl FnOnce() -> Result<&'d Document, DocumentError>,
        (format, scope): (&KeyFormat, &Scope<'_>),
    ) -> Made<(Key, Selection)> {
        let selection = match &self.how {
            How::Expression(expression) => expression.select(document()?),
            How::Function(function) => function.select(text),
            #[cfg(feature = "powertools")]
            How::Powertools(keys, expression) => {
                return keys.key(text, expression.as_ref(), scope.tenant);
            }
        };
        Ok(selection.map(|selection| (format.key(scope, &selection), selection)))
    }

    /// The fingerprint of a text.
    ///
    /// # Errors
    /// See [`Made`].
    pub fn fingerprint<'d>(
        &self,
        text: &str,
        document: impl FnOnce() -> Result<&'d Document, DocumentError>,
        format: &KeyFormat,
    ) -> Made<String> {
        let selection = match &self.how {
            How::Expression(expression) => expression.select(document()?),
            How::Function(function) => function.select(text),
            #[cfg(feature = "powertools")]
            How::Powertools(keys, expression) => {
                return keys.fingerprint(text, expression.as_ref());
            }
        };
        Ok(selection.map(|selection| {
            let mut digest = format.digest(b"lambda-idempotency fingerprint 1");
            digest.part(selection.canonical_bytes());
            digest.hex()
        }))
    }

    /// Whether it reads the member with this path, or a part of the member, for any record. Nobody can tell of a
    /// function.
    #[must_use]
    pub fn reads(&self, member: &str) -> bool {
        match &self.how {
            How::Expression(expression) => expression.reads(member),
            How::Function(_) => false,
            #[cfg(feature = "powertools")]
            How::Powertools(_, expression) => {
                let reads = |node: &Node| FieldSets::of(node).document.reaches(member);
                expression.as_ref().is_none_or(reads)
            }
        }
    }

    /// Whether it reads the text as JSON; a function may read it in any way.
    #[must_use]
    pub const fn reads_json(&self) -> bool {
        !matches!(self.how, How::Function(_))
    }

    /// How its parts are combined; `None` for a function.
    #[must_use]
    pub fn shape(&self) -> Option<Shape> {
        match &self.how {
            How::Expression(expression) => Some(expression.shape()),
            How::Function(_) => None,
            #[cfg(feature = "powertools")]
            How::Powertools(_, expression) => {
                Some(expression.as_ref().map_or(Shape::Value, Shape::of))
            }
        }
    }

    /// How many of its parts may be missing.
    #[must_use]
    pub fn optional_parts(&self) -> usize {
        self.expression().map_or(0, Expression::optional_parts)
    }

    /// Whether it makes keys as Powertools does.
    #[must_use]
    pub const fn is_of_powertools(&self) -> bool {
        !matches!(self.how, How::Expression(_) | How::Function(_))
    }

    /// Whether it makes no key for a tenant or caller, whatever the payload is.
    #[must_use]
    pub const fn refuses_tenants(&self) -> bool {
        match &self.how {
            #[cfg(feature = "powertools")]
            How::Powertools(keys, _) => !keys.accept_collisions,
            _ => false,
        }
    }

    /// A handler's result, as JSON text, as the library whose keys these are keeps it.
    #[must_use]
    pub fn result(&self, json: String) -> String {
        match &self.how {
            #[cfg(feature = "powertools")]
            How::Powertools(keys, _) => keys.result(json),
            _ => json,
        }
    }
}

impl fmt::Debug for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Selector({:?})", self.text)
    }
}

/// A function that makes the parts of a key from a payload.
#[derive(Clone)]
pub(crate) struct KeyFn(Arc<dyn Fn(&str) -> KeyParts + Send + Sync>);

type KeyParts = Result<Vec<String>, &'static str>;

impl KeyFn {
    pub(super) fn new(function: impl Fn(&str) -> KeyParts + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }

    /// The parts as the expression `[a, b]` selects texts.
    pub(super) fn select(&self, payload: &str) -> Result<Selection, SelectionError> {
        // A panic for one record must not end the invocation for all of them.
        let parts = catch_unwind(AssertUnwindSafe(|| (self.0)(payload)));
        let parts = parts.unwrap_or(Err("it panicked")).map_err(SelectionError::Function)?;
        if parts.is_empty() {
            return Err(SelectionError::Missing);
        }
        if let Some(at) = parts.iter().position(String::is_empty) {
            return Err(SelectionError::PartEmpty { part: (at + 1).to_string() });
        }
        let mut bytes = Vec::with_capacity(64);
        let parts = parts.iter().map(|part| Value::text(part)).collect();
        write_canonical(&Value::array(parts), None, &mut bytes)?;
        Ok(Selection(bytes))
    }
}

impl fmt::Debug for KeyFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyFn(..)")
    }
}
