//! JMESPath expressions: compiled when a function starts, evaluated for each record.

use std::{fmt, sync::Arc};

use serde_json::Value;

use super::{
    ExpressionError, Functions, Selection, SelectionError, Warning, canonical,
    document::Document,
    fallback,
    field_set::FieldSet,
    field_sets::FieldSets,
    jmespath::{
        Collisions, Variant,
        absences::{Absence, Absences},
        ast::Node,
        error::EvaluationError,
        evaluate::Evaluation,
        limits, parser,
        state::State,
        value,
        wanted::Wanted,
    },
    parts::{self, Optional, Shape},
    reach, user_functions, warning,
};

/// A compiled JMESPath expression (<https://jmespath.org/specification.html>), with additional
/// [`Functions`] that decode text.
///
/// Projections drop what is `null`, as the specification says: `items[*].id` is the same for
/// `[{"id":1},{}]` and `[{"id":1}]`. `[]` flattens nested lists, and `*` drops the names of
/// members; [`warnings`](Self::warnings) reports both.
///
/// Numbers of any size are compared exactly: `9007199254740993` does not equal `9007199254740992`.
/// A number that a double cannot hold exactly can be compared, but it cannot be a key. Members of
/// objects are ordered by name. There is no `sum` and no `avg`.
///
/// What is missing stays missing: where `paid` is not true, `paid && id` selects nothing, and so
/// does `to_string(id)` where there is no `id`.
///
/// ```
/// use lambda_idempotency_keys::Expression;
/// assert!(Expression::compile("json(body).orderId").is_ok());
/// let error = Expression::compile("order.{").unwrap_err();
/// assert_eq!(error.offset(), 7);
/// ```
#[derive(Clone)]
pub struct Expression {
    text: String,
    node: Node,
    optional: Optional,
    warnings: Vec<Warning>,
    pub(super) looks: FieldSets,
}

impl Expression {
    /// Compiles an expression and checks what can be checked without an event: syntax, names of
    /// functions, numbers of arguments.
    ///
    /// # Errors
    /// The first mistake, with its offset.
    pub fn compile(text: &str) -> Result<Self, ExpressionError> {
        Self::compile_with(text, &Functions::standard())
    }

    /// Compiles an expression that may call these functions.
    ///
    /// # Errors
    /// The first mistake, with its offset; or a function has an invalid name.
    pub fn compile_with(text: &str, functions: &Functions) -> Result<Self, ExpressionError> {
        let error = |offset, reason| ExpressionError::at(text, offset, reason);
        if text.trim().is_empty() {
            let reason = "it is empty; write `@` for the whole payload";
            return Err(error(0, reason.to_owned()));
        }
        functions.check().map_err(|reason| error(0, reason))?;
        let node = limits::check_size(text)
            .and_then(|()| parser::parse(Variant::Standard, text, &functions.own))
            .map_err(|(offset, reason)| error(offset, reason))?;
        Ok(Self {
            text: text.to_owned(),
            optional: Optional::default(),
            warnings: warning::of(&node, text),
            looks: FieldSets::of(&node),
            node,
        })
    }

    /// How many of its parts may be missing.
    // For `lambda-idempotency`, which compares two sources of one operation.
    #[doc(hidden)]
    #[must_use]
    pub fn optional_parts(&self) -> usize {
        self.optional.names.len() + self.optional.positions.len()
    }

    /// Allows these parts of the expression to be missing, `null` or empty. A part of
    /// `{id: order.id, by: user}` is identified by its name, a part of `[order.id, user]` by its
    /// path.
    ///
    /// A missing part is hashed as missing, which differs from every value, including an empty one.
    /// At least one part must be present. Making parts optional does not change the keys of records
    /// that have all parts.
    ///
    /// # Errors
    /// The expression does not list a part of that name; the message names its parts.
    ///
    /// ```
    /// use lambda_idempotency_keys::{Document, Expression};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let parts = Expression::compile("[order.id, user]")?.optional(["user"])?;
    /// let guest = parts.select(&Document::parse(r#"{"order":{"id":7}}"#)?)?;
    /// assert_eq!(guest.canonical_bytes(), b"[7,~]");
    /// assert!(parts.select(&Document::parse(r#"{"user":"ann"}"#)?).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn optional<'n>(
        mut self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Self, ExpressionError> {
        for name in names {
            self.optional.add(name, &self.node).map_err(|parts| {
                let listed = match &*parts {
                    [] => "write it as `[a, b]` or `{a: a, b: b}`".to_owned(),
                    parts => format!("it lists `{}`", parts.join("`, `")),
                };
                let reason = format!("it has no part `{name}` to make optional; {listed}");
                ExpressionError::at(&self.text, 0, reason)
            })?;
        }
        Ok(self)
    }

    /// The expression as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The names of its parts, if it lists parts, in the order of the expression: the names in
    /// `{id: order.id}`, the paths in `[order.id]`, and for other parts their position, from 1.
    ///
    /// ```
    /// # use lambda_idempotency_keys::Expression;
    /// let expression = Expression::compile("[tenant, order.id, to_string(n)]").unwrap();
    /// assert_eq!(expression.parts(), ["tenant", "order.id", "3"]);
    /// assert!(Expression::compile("order.id").unwrap().parts().is_empty());
    /// ```
    #[must_use]
    pub fn parts(&self) -> Vec<String> {
        parts::names(&self.node)
    }

    /// How its parts are combined. The keys of two expressions can be equal only if their shapes
    /// are. An expression that selects a list from the data has [`Shape::Value`].
    ///
    /// ```
    /// # use lambda_idempotency_keys::{Expression, Shape};
    /// let shape = |text: &str| Expression::compile(text).unwrap().shape();
    /// assert_eq!(shape("[tenant, order.id]"), Shape::List(2));
    /// assert_eq!(shape("order.id"), Shape::Value);
    /// ```
    #[must_use]
    pub fn shape(&self) -> Shape {
        Shape::of(&self.node)
    }

    /// Whether it selects the same value from every record that it selects a value from:
    /// `'orderId'` is a text, `orderId` is a field.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.looks.document.is_nothing() || reach::is_constant(&self.node)
    }

    /// The function or operator, for a message, because of which it selects one of only a few
    /// values (a length, the name of a type, `true` or `false`), from all records or from some kind
    /// of records. For instance, ``(paid == `true`) || id`` selects `true` from every paid order.
    ///
    /// ```
    /// # use lambda_idempotency_keys::Expression;
    /// let few = |text| Expression::compile(text).unwrap().few_values();
    /// assert_eq!(few("length(items)"), Some("`length`"));
    /// assert_eq!(few("[order.id, length(items)]"), None);
    /// ```
    #[must_use]
    pub fn few_values(&self) -> Option<&'static str> {
        reach::few_values(&self.node)
    }

    /// Whether it takes a value that many records share where a record lacks a field, so that all
    /// records without the field select the same. A constant beside a field is no fallback.
    ///
    /// ```
    /// # use lambda_idempotency_keys::Expression;
    /// let has_fallback = |text| Expression::compile(text).unwrap().has_fallback();
    /// assert!(has_fallback("[tenant, id || 'none']") && has_fallback("not_null(id, 'none')"));
    /// assert!(!has_fallback("['orders', id]"));
    /// ```
    #[must_use]
    pub fn has_fallback(&self) -> bool {
        fallback::is_in(&self.node)
    }

    /// Whether the selected value always contains the member with this path, such as `a.b`, a part
    /// of the member, or a value that contains it. `false` if that depends on the record.
    ///
    /// ```
    /// # use lambda_idempotency_keys::Expression;
    /// let expression = Expression::compile("[messageId, attributes]").unwrap();
    /// assert!(expression.selects("attributes.ApproximateReceiveCount"));
    /// ```
    #[must_use]
    pub fn selects(&self, member: &str) -> bool {
        reach::selects(&self.node, member)
    }

    /// Whether it reads the member with this path, or a part of the member, for any record.
    #[must_use]
    pub fn looks_at(&self, member: &str) -> bool {
        self.looks.document.reaches(member)
    }

    /// The paths of the members that it reads, such as `a.b`, in alphabetical order. The path of the
    /// whole document is empty.
    ///
    /// ```
    /// # use lambda_idempotency_keys::Expression;
    /// let expression = Expression::compile("[tenant, order.id, items[?paid].id]").unwrap();
    /// assert_eq!(expression.reads(), ["items", "order.id", "tenant"]);
    /// ```
    #[must_use]
    pub fn reads(&self) -> Vec<String> {
        self.looks.document.paths()
    }

    /// The paths of the members whose values its value can contain: as [`reads`](Self::reads), without members that
    /// only conditions read.
    // For `lambda-idempotency`.
    #[doc(hidden)]
    #[must_use]
    pub fn value_paths(&self) -> Vec<String> {
        FieldSets::of_values(&self.node).document.paths()
    }

    /// The places where it can make distinct values equal, and so give distinct records the same
    /// key.
    ///
    /// ```
    /// # use lambda_idempotency_keys::Expression;
    /// let expression = Expression::compile("join('-', [tenant, id])").unwrap();
    /// assert_eq!(expression.warnings().len(), 1);
    /// ```
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Evaluates the expression and returns the canonical bytes of what it selects.
    ///
    /// # Errors
    /// The selected value cannot be a key: it is missing, `null`, empty, or holds a number that a
    /// double cannot hold exactly.
    pub fn select(&self, document: &Document) -> Result<Selection, SelectionError> {
        let absences = Absences::but_of(self.node.listed());
        let (selected, absent) = self.run(document, Some(absences))?;
        parts::check(&self.node, &selected, &self.optional)?;
        if let Some(absent) = absent {
            return Err(absent.into());
        }
        let mut bytes = Vec::with_capacity(64);
        canonical::write_parts(&selected, &self.optional, &mut bytes)?;
        Ok(Selection(bytes))
    }

    /// The selected value as JMESPath defines it, without checking whether it can be a key: to show
    /// it, or to test an expression. A missing value is `null`.
    ///
    /// # Errors
    /// The evaluation fails, or the selected value holds a number that a double cannot hold exactly
    /// or is larger than 8 MiB.
    pub fn evaluate(&self, document: &Document) -> Result<Value, SelectionError> {
        Ok(user_functions::value(&self.run(document, None)?.0)?)
    }

    /// The selected value, and the first missing part of a list in it.
    fn run(
        &self,
        document: &Document,
        absences: Option<Absences<'_>>,
    ) -> Result<(value::Value, Option<Absence>), SelectionError> {
        if !document.has(&self.looks.document) {
            return Err(SelectionError::Unread);
        }
        let collisions = Collisions::default();
        let evaluation = Evaluation {
            state: State::new(Variant::Standard, &collisions).with_texts(&self.looks.texts),
            absences,
        };
        let selected =
            evaluation.run(&self.node, &document.value).map_err(|error| match error {
                EvaluationError::Failed { reason, offset } => {
                    let offset = limits::characters(&self.text, offset);
                    SelectionError::Evaluation { reason, offset }
                }
                error => error.into(),
            })?;
        Ok((selected, evaluation.absences.and_then(Absences::first)))
    }
}

impl FieldSet {
    /// The fields that these expressions read.
    #[must_use]
    pub fn of<'e>(expressions: impl IntoIterator<Item = &'e Expression>) -> Self {
        let mut document = Wanted::none();
        expressions.into_iter().for_each(|expression| document.merge(&expression.looks.document));
        Self { document: Arc::new(document) }
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expression({:?})", self.text)
    }
}

#[cfg(test)]
#[path = "expression_tests.rs"]
mod tests;
