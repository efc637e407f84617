//! JMESPath expressions: checked when a function starts, evaluated for each record.

use std::{fmt, sync::Arc};

use serde_json::Value;

use super::{
    ExpressionError, Functions, Selection, SelectionError, Warning, canonical,
    document::Document,
    field_set::{FieldSet, Wanted},
    field_sets::FieldSets,
    jmespath::{
        Collisions, Variant, absences::Absences, ast::Node, evaluate::Evaluation, parser,
        state::State, value,
    },
    limits, own,
    parts::{self, Optional, Shape},
    reach, warning,
};

/// A compiled JMESPath expression (<https://jmespath.org/specification.html>), with the
/// [`Functions`] that read text beside the standard ones.
///
/// Projections drop what is `null`, as the specification says: `items[*].id` is the same for
/// `[{"id":1},{}]` and `[{"id":1}]`. `[]` takes the lists in a list apart, and `*` leaves out the
/// names of members: both are [warned](Self::warnings) of.
///
/// Numbers are exact, whatever their size: `[?id == `9007199254740993`]` is not
/// `9007199254740992`, `sum` and `avg` round nothing, and objects are in the order of their names.
/// A number that no double holds exactly can be compared and computed with; it cannot be a key.
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
    /// Compiles an expression and checks all that can be checked without an event: syntax, names
    /// of functions, numbers of arguments.
    ///
    /// # Errors
    /// The first thing that is wrong, with its offset.
    pub fn compile(text: &str) -> Result<Self, ExpressionError> {
        Self::compile_with(text, &Functions::standard())
    }

    /// Compiles an expression that may call these functions.
    ///
    /// # Errors
    /// The first thing that is wrong, with its offset; a function that cannot have its name.
    pub fn compile_with(text: &str, functions: &Functions) -> Result<Self, ExpressionError> {
        let error = |offset, reason| ExpressionError::at(text, offset, reason);
        if text.trim().is_empty() {
            let reason = "it is empty; `@` stands for the whole payload";
            return Err(error(0, reason.to_owned()));
        }
        functions.check().map_err(|reason| error(0, reason))?;
        let node = limits::check_size(text)
            .and_then(|()| parser::parse(Variant::Standard, text, functions))
            .map_err(|(offset, reason)| error(offset, reason))?;
        Ok(Self {
            text: text.to_owned(),
            optional: Optional::default(),
            warnings: warning::of(&node, text),
            looks: FieldSets::of(&node),
            node,
        })
    }

    /// Allows these parts of the list that the expression is to be missing, `null` or empty: a
    /// part of `{id: order.id, by: user}` by its name, one of `[order.id, user]` by its path.
    ///
    /// A missing part is hashed as missing, which is distinct from any value, and so is an empty
    /// one from a missing one. At least one part must be there. Naming parts as optional changes
    /// no key of records that have them all.
    ///
    /// # Errors
    /// The expression lists no part of such a name; it says which there are.
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
                let reason = format!("it has no part `{name}` that could be optional; {listed}");
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

    /// What its parts are called, where it lists some: `{id: order.id}` by their names, `[order.id]`
    /// by their paths, what is no path by its place, from 1. In the order of the expression.
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

    /// How its parts are put together. The keys of two expressions agree only if their shapes do; one
    /// that selects a list which stands in the data counts as [`Shape::Value`].
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

    /// Whether it selects the same from every record that it selects anything from: `'orderId'` is a text,
    /// `orderId` a field.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        reach::is_constant(&self.node)
    }

    /// The function or operator, for a message, because of which all that it selects, or all that it
    /// selects from records of some kind, is one of a few values, which many records share: a length, the
    /// name of a type, `true` or `false`. ``(paid == `true`) || id`` is `true` for whatever is paid.
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

    /// Whether what it selects surely holds the member with this path, such as `a.b`, or something in
    /// it, or a value that the member is in. `false` if that depends on the record.
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

    /// Whether it looks at the member with this path, or something in it, for any record.
    #[must_use]
    pub fn looks_at(&self, member: &str) -> bool {
        self.looks.document.reaches(member)
    }

    /// The places where it can make distinct values one, and distinct records one key.
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
    /// What is selected cannot be a key: it is missing, `null`, empty, or a number that is not
    /// exact.
    pub fn select(&self, document: &Document) -> Result<Selection, SelectionError> {
        let (selected, absent) = self.run(document)?;
        parts::check(&self.node, &selected, &self.optional)?;
        if let Some(absent) = absent {
            return Err(absent);
        }
        let mut bytes = Vec::with_capacity(64);
        canonical::write_parts(&selected, &self.optional, &mut bytes)?;
        Ok(Selection(bytes))
    }

    /// What the expression selects, before any judgement whether that can be a key: to show it, or
    /// to test an expression. What is missing is `null`.
    ///
    /// # Errors
    /// It cannot be evaluated; what it selects holds a number that is not exact, or is more than 8 MiB.
    pub fn evaluate(&self, document: &Document) -> Result<Value, SelectionError> {
        own::value(&self.run(document)?.0)
    }

    /// What is selected, and the first part found missing of a list in it.
    fn run(
        &self,
        document: &Document,
    ) -> Result<(value::Value, Option<SelectionError>), SelectionError> {
        if !document.has(&self.looks.document) {
            return Err(SelectionError::Unread);
        }
        let collisions = Collisions::default();
        let evaluation = Evaluation {
            state: State::new(Variant::Standard, &collisions).with_texts(&self.looks.texts),
            absences: Some(Absences::but_of(parts::list(&self.node))),
        };
        let selected =
            evaluation.run(&self.node, &document.value).map_err(|error| match error {
                SelectionError::Evaluation { reason, offset } => {
                    let offset = limits::characters(&self.text, offset);
                    SelectionError::Evaluation { reason, offset }
                }
                error => error,
            })?;
        Ok((selected, evaluation.absences.and_then(Absences::first)))
    }
}

impl FieldSet {
    /// What these expressions look at.
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
