//! JMESPath expressions: checked when a function starts, evaluated for each record.

use std::{fmt, sync::Arc};

use jmespath::{Context, ErrorReason, Rcvar, Runtime, RuntimeError, ast::Ast};
use serde_json::Value;

use super::{
    Document, Functions, Warning, canonical,
    dialect::Loss,
    evaluation, functions,
    numeral::Side,
    parts::{self, Optional},
    reads::Looks,
    syntax, warning,
};

/// A compiled JMESPath expression (<https://jmespath.org/specification.html>), with the
/// [`Functions`] that read text beside the standard ones.
///
/// Projections drop what is `null`, as the specification says: `items[*].id` is the same for
/// `[{"id":1},{}]` and `[{"id":1}]`. Comparisons in filters (`[?id == `9`]`) are those of doubles;
/// what they select is exact again.
///
/// ```
/// use lambda_idempotency_core::key::Expression;
/// assert!(Expression::compile("json(body).orderId").is_ok());
/// let error = Expression::compile("order.{").unwrap_err();
/// assert_eq!(error.offset(), 7);
/// ```
#[derive(Clone)]
pub struct Expression {
    text: String,
    ast: Ast,
    runtime: Arc<Runtime>,
    optional: Optional,
    warnings: Vec<Warning>,
    pub(super) looks: Looks,
}

/// The canonical bytes of what an expression selected.
#[derive(Clone, PartialEq, Eq)]
pub struct Selection(pub(super) Vec<u8>);

impl Selection {
    /// The bytes. They are the raw key: not for logs.
    #[must_use]
    pub fn canonical_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Selection({} bytes)", self.0.len())
    }
}

/// Why an expression cannot be used. Displays the expression with a caret under the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    expression: String,
    offset: usize,
    reason: String,
}

/// Why a record has no key under an expression. Says what is wrong, never what was selected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// Nothing, or `null`, was selected.
    #[error("it selects nothing (or null)")]
    Missing,
    /// `""`, `[]` or `{}` was selected.
    #[error("it selects something empty")]
    Empty,
    /// One part of a list of parts is missing or `null`.
    #[error("part {part} of it selects nothing (or null)")]
    PartMissing {
        /// Its place (from 1) or its name.
        part: String,
    },
    /// One part of a list of parts is `""`, `[]` or `{}`.
    #[error("part {part} of it selects something empty")]
    PartEmpty {
        /// Its place (from 1) or its name.
        part: String,
    },
    /// Each part of a list is missing or empty, though they are optional one by one.
    #[error("each of its parts is missing, null or empty; one must be there")]
    AllMissing,
    /// More than 8 MiB.
    #[error("it selects more than 8 MiB")]
    TooLong,
    /// The document was [read](Document::read) for other expressions.
    #[error("the document was read for other expressions, and lacks what this one looks at")]
    Unread,
    /// A number that a double cannot hold exactly: two distinct ones could look the same.
    #[error(
        "it selects a number that a double cannot hold exactly; \
         send it as a string, or as an integer of at most 64 bits"
    )]
    InexactNumber,
    /// An expression reference (`&name`), which is no value.
    #[error("it selects an expression reference, which is no value")]
    NotAValue,
    /// Under a [`Dialect`](super::dialect::Dialect): distinct records could get this key.
    #[error(
        "{0}, so that distinct records could share its key; \
         send what is exact, or choose `Dialect::accept_lossy`"
    )]
    Lossy(Loss),
    /// A function met a value it cannot take.
    #[error("it cannot be evaluated here: {reason} (at offset {offset})")]
    Evaluation {
        /// What went wrong: types and counts, never values.
        reason: String,
        /// Where in the expression.
        offset: usize,
    },
}

impl SelectionError {
    /// Whether the record has no key, as opposed to one that cannot be used: something that is
    /// selected is missing, `null` or empty.
    #[must_use]
    pub const fn is_missing(&self) -> bool {
        matches!(
            self,
            Self::Missing
                | Self::Empty
                | Self::PartMissing { .. }
                | Self::PartEmpty { .. }
                | Self::AllMissing
        )
    }
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
        let mut ast = syntax::parse(text).map_err(|(offset, reason)| error(offset, reason))?;
        let runtime = functions.runtime().map_err(|reason| error(0, reason))?;
        syntax::settle(&mut ast, text, functions)
            .map_err(|(offset, reason)| error(offset, reason))?;
        Ok(Self {
            text: text.to_owned(),
            optional: Optional::default(),
            warnings: warning::of(&ast, text),
            looks: Looks::of(&ast),
            runtime,
            ast,
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
    /// use lambda_idempotency_core::key::{Document, Expression};
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
            self.optional.add(name, &self.ast).map_err(|parts| {
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
    /// # use lambda_idempotency_core::key::Expression;
    /// let expression = Expression::compile("[tenant, order.id, to_string(n)]").unwrap();
    /// assert_eq!(expression.parts(), ["tenant", "order.id", "3"]);
    /// assert!(Expression::compile("order.id").unwrap().parts().is_empty());
    /// ```
    #[must_use]
    pub fn parts(&self) -> Vec<String> {
        parts::names(&self.ast)
    }

    /// Whether it selects the same from every record: `'orderId'` is a text, `orderId` a field.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        !syntax::reads_data(&self.ast)
    }

    /// The places where it can make distinct values one, and distinct records one key.
    ///
    /// ```
    /// # use lambda_idempotency_core::key::Expression;
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
        self.on_both_sides(document, |selected| {
            parts::check(&self.ast, selected, &self.optional)?;
            let mut bytes = Vec::with_capacity(64);
            canonical::write_parts(selected, &self.optional, &mut bytes)?;
            Ok(Selection(bytes))
        })
    }

    /// What the expression selects, before any judgement whether that can be a key: to show it, or
    /// to test an expression. What is missing is `null`.
    ///
    /// # Errors
    /// It cannot be evaluated, or what it selects depends on a number that is not exact.
    pub fn evaluate(&self, document: &Document) -> Result<Value, SelectionError> {
        self.on_both_sides(document, |selected| {
            functions::value(selected).ok_or(SelectionError::NotAValue)
        })
    }

    /// What is the same on both sides of each number that is not exact does not depend on them.
    fn on_both_sides<T: PartialEq>(
        &self,
        document: &Document,
        judge: impl Fn(&Rcvar) -> Result<T, SelectionError>,
    ) -> Result<T, SelectionError> {
        if !document.has(&self.looks.document) {
            return Err(SelectionError::Unread);
        }
        let on = |side| {
            let (selected, met_inexact) =
                evaluation::on(side, &self.looks.texts, || self.interpret(document.on(side)));
            (selected.and_then(|selected| judge(&selected)), met_inexact)
        };
        let (below, met_inexact) = on(Side::Below);
        if document.is_exact() && !met_inexact {
            return below;
        }
        match (below, on(Side::Above).0) {
            (below, above) if below == above => below,
            _ => Err(SelectionError::InexactNumber),
        }
    }

    fn interpret(&self, data: &Rcvar) -> Result<Rcvar, SelectionError> {
        let mut context = Context::new(&self.text, &self.runtime);
        jmespath::interpret(data, &self.ast, &mut context).map_err(|e| {
            let offset = syntax::characters(&self.text, e.offset);
            SelectionError::Evaluation { reason: reason(e.reason), offset }
        })
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Expression({:?})", self.text)
    }
}

impl ExpressionError {
    /// An error at a byte of the expression.
    pub(super) fn at(text: &str, offset: usize, reason: String) -> Self {
        let expression = text.chars().take(syntax::LONGEST).collect();
        Self { expression, offset: syntax::characters(text, offset), reason }
    }

    /// Where the error is: characters from the start of the expression.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// What is wrong.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "invalid JMESPath expression at offset {}: {}", self.offset, self.reason)?;
        writeln!(f, "  {}", self.expression.replace('\n', " "))?;
        write!(f, "  {:>1$}", '^', self.offset + 1)
    }
}

impl std::error::Error for ExpressionError {}

/// Types and counts only: other messages could quote the record.
fn reason(reason: ErrorReason) -> String {
    match reason {
        ErrorReason::Parse(reason) => reason,
        ErrorReason::Runtime(
            reason @ (RuntimeError::InvalidSlice
            | RuntimeError::TooManyArguments { .. }
            | RuntimeError::NotEnoughArguments { .. }
            | RuntimeError::UnknownFunction(_)
            | RuntimeError::InvalidType { .. }
            | RuntimeError::InvalidReturnType { .. }),
        ) => reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(expression: &str, json: &str) -> Result<String, SelectionError> {
        let document = Document::parse(json).unwrap();
        let selection = Expression::compile(expression).unwrap().select(&document)?;
        Ok(String::from_utf8(selection.0).unwrap())
    }

    #[test]
    fn selects_fields_lists_and_json_in_json() {
        let json = r#"{"a":{"b":7},"body":"{\"id\":\"x\"}"}"#;
        assert_eq!(select("a.b", json).unwrap(), "7");
        assert_eq!(select("[a.b, json(body).id]", json).unwrap(), r#"[7,"x"]"#);
        assert_eq!(select("powertools_json(body).id", json).unwrap(), r#""x""#);
    }

    #[test]
    fn nothing_null_and_empty_are_never_a_key() {
        let json = r#"{"n":null,"s":"","a":[],"o":{},"zero":0,"no":false}"#;
        assert_eq!(select("x", json), Err(SelectionError::Missing));
        assert_eq!(select("n", json), Err(SelectionError::Missing));
        for empty in ["s", "a", "o"] {
            assert_eq!(select(empty, json), Err(SelectionError::Empty), "{empty}");
        }
        assert_eq!(select("zero", json).unwrap(), "0");
        assert_eq!(select("no", json).unwrap(), "false");
    }

    #[test]
    fn what_looks_at_no_record_is_constant() {
        for (text, constant) in [
            ("'orderId'", true),
            ("[`1`, to_string('a')]", true),
            ("orderId", false),
            ("@", false),
            ("['a', orderId]", false),
        ] {
            assert_eq!(Expression::compile(text).unwrap().is_constant(), constant, "{text}");
        }
    }

    #[test]
    fn every_part_must_be_there() {
        let json = r#"{"a":1,"s":"","n":null}"#;
        let missing = |part: &str| Err(SelectionError::PartMissing { part: part.to_owned() });
        assert_eq!(select("[a, b]", json), missing("2"));
        assert_eq!(select("{x: a, y: n}", json), missing("`y`"));
        assert_eq!(select("@ | [a, n]", json), missing("2"));
        for (nested, part) in [
            ("[a, [a, b]]", "2, 2"),
            ("{x: a, y: {z: a, n: n}}", "`y`, `n`"),
            ("[a, b] || [a, n]", "2"),
            ("a && [a, b]", "2"),
            ("[[a], [a, n]] | [*].[[0], [1]]", "1, 2"),
        ] {
            assert_eq!(select(nested, json), missing(part), "{nested}");
        }
        let empty = SelectionError::PartEmpty { part: "2".to_owned() };
        assert_eq!(select("[a, s]", json), Err(empty));
        assert_eq!(select("@", json).unwrap(), r#"{"a":1,"n":null,"s":""}"#, "data may hold null");
    }

    #[test]
    fn an_inexact_number_elsewhere_does_no_harm() {
        let json = r#"{"id":"a","price":0.1000000000000000055}"#;
        assert_eq!(select("id", json).unwrap(), r#""a""#);
        assert_eq!(select("price", json), Err(SelectionError::InexactNumber));
        assert_eq!(select("price > `0.1` || id", json), Err(SelectionError::InexactNumber));
        assert_eq!(select("price && id", json).unwrap(), r#""a""#, "it is there");
        assert_eq!(select("price < `5` && id", json).unwrap(), r#""a""#, "and it is less");
        assert_eq!(select("floor(price)", json).unwrap(), "0e0");
        for lossy in ["to_string(@)", "abs(price)", "price || id", "[id, price]"] {
            assert_eq!(select(lossy, json), Err(SelectionError::InexactNumber), "{lossy}");
        }
        assert_eq!(
            select("abs(id)", r#"{"id":9007199254740993}"#),
            Err(SelectionError::InexactNumber)
        );
    }

    #[test]
    fn bad_expressions_are_refused_with_a_caret() {
        let cases = [
            ("", 0, "empty"),
            ("a.", 2, ""),
            ("length(a, b)", 6, "takes 1 argument"),
            ("a.nope(b)", 6, "no function `nope`"),
            ("a[::0]", 5, "step"),
            ("a[?nope(@)]", 7, "no function `nope`"),
            ("\"é\".nope(b)", 8, "no function `nope`"),
        ];
        for (text, offset, reason) in cases {
            let error = Expression::compile(text).unwrap_err();
            assert!(error.reason().contains(reason), "{text}: {error}");
            assert_eq!(error.offset(), offset, "{text}: {error}");
            assert!(error.to_string().ends_with('^'));
        }
    }

    #[test]
    fn an_evaluation_error_names_types_and_not_values() {
        let error = select("json(secret)", r#"{"secret":"s3cr3t"}"#).unwrap_err().to_string();
        assert!(error.contains("json()") && !error.contains("s3cr3t"), "{error}");
        let error = select("abs(secret)", r#"{"secret":"s3cr3t"}"#).unwrap_err().to_string();
        assert!(error.contains("number") && !error.contains("s3cr3t"), "{error}");
    }
}
