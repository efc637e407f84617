//! A compiled key or fingerprint, whatever makes it.

use std::sync::Arc;

#[cfg(feature = "powertools")]
use crate::powertools::{PowertoolsExpression, PowertoolsKeys};
use crate::{
    Document, DocumentError, Expression, Key, KeyFormat, Scope, Selection, SelectionError, Shape,
    View,
    key_fn::{self, KeyFn},
};

/// A compiled key or fingerprint: an expression of this library or of Powertools, or a function.
#[derive(Clone, Debug)]
pub struct Selector {
    /// What it is applied to.
    pub view: View,
    /// The expression as it was written; for a function its setting.
    pub text: Arc<str>,
    how: How,
}

#[derive(Clone, Debug)]
enum How {
    Expression(Expression),
    Function(KeyFn),
    /// Without an expression, the whole document.
    #[cfg(feature = "powertools")]
    Powertools(PowertoolsKeys, Option<PowertoolsExpression>),
}

/// A key or fingerprint that was made from a text. The inner error means that there is none in it; the outer error, that
/// the text cannot be read.
pub type Made<T> = Result<Result<T, SelectionError>, DocumentError>;

impl Selector {
    /// An expression of this library.
    #[must_use]
    pub fn of(view: View, expression: Expression) -> Self {
        let text = Arc::from(expression.as_str());
        Self { view, text, how: How::Expression(expression) }
    }

    pub(crate) fn function(function: KeyFn) -> Self {
        let (view, text) = (View::Payload, Arc::from(key_fn::NAME));
        Self { view, text, how: How::Function(function) }
    }

    #[cfg(feature = "powertools")]
    pub(crate) fn powertools(
        view: View,
        text: &str,
        keys: PowertoolsKeys,
        expression: Option<PowertoolsExpression>,
    ) -> Self {
        Self { view, text: Arc::from(text), how: How::Powertools(keys, expression) }
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
                return keys.make_key(text, expression.as_ref(), scope.tenant);
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
                return keys.make_fingerprint(text, expression.as_ref());
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
                expression.as_ref().is_none_or(|expression| expression.reads(member))
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
                Some(expression.as_ref().map_or(Shape::Value, PowertoolsExpression::shape))
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
            How::Powertools(keys, _) => !keys.accepts_collisions(),
            _ => false,
        }
    }

    /// A handler's result, as JSON text, as the library whose keys these are keeps it.
    #[must_use]
    pub fn result(&self, json: String) -> String {
        match &self.how {
            #[cfg(feature = "powertools")]
            How::Powertools(keys, _) => keys.result(&json).unwrap_or(json),
            _ => json,
        }
    }
}
