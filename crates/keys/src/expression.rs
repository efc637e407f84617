//! Key expressions: compiled when a function starts, evaluated for each record; and the documents that are parsed for them.
//!
//! Documents are not parsed by `serde_json`: how it treats numbers and the order of members depends on features that any
//! crate of the user's program can turn on, and keys must not depend on them.

use std::{fmt, sync::Arc};

use serde_json::{Number, Value};

use crate::{
    jmespath::{
        ast::{FieldSets, Node, Wanted},
        evaluate::Evaluation,
        parser,
        read::{DocumentError, read, read_wanted},
        value::{self, Absent, Kind, MOST_BYTES, Optional, Variant},
    },
    selection::{self, Selection, SelectionError, Shape},
};

/// A compiled key expression: the part of JMESPath (<https://jmespath.org/specification.html>) that only selects, and
/// four functions that decode text.
///
/// | | |
/// |---|---|
/// | `id`, `"order-id"`, `order.id` | a member of an object |
/// | `@` | the value itself |
/// | `items[0]`, `items[-1]` | an item of a list |
/// | `items[*].sku` | a value of each item |
/// | `[tenant, order.id]`, `{by: tenant, id: order.id}` | a key of several parts |
/// | `a \| b` | `b` of what `a` selects as a whole |
/// | `not_null(id, legacyId)` | the first that there is |
/// | `json(body)`, `base64(data)`, `base64_gzip(data)`, `url_decode(s3.object.key)` | the content of a text |
///
/// All other expressions are refused, and so is a record in which an item of `items[*].sku` has no `sku`: distinct
/// values never become equal. The values that `base64_gzip` decompresses for a record have at most 8 MiB together.
/// `url_decode` decodes one text of `application/x-www-form-urlencoded`, as S3 writes object keys in its own
/// notifications: `+` is a space. It refuses a text that cannot be one; use it only for a text that is one, because texts that
/// mean the same become equal: `a+b` and `a%20b`, `%2f` and `/`.
///
/// ```
/// use lambda_idempotency_keys::{Document, Expression};
/// assert!(Expression::compile("json(body).orderId").is_ok());
/// let object = Expression::compile("url_decode(s3.object.key)").unwrap();
/// let notification = Document::parse(r#"{"s3":{"object":{"key":"my+photo%282%29.jpg"}}}"#).unwrap();
/// assert_eq!(object.evaluate(&notification).unwrap(), "my photo(2).jpg");
/// let error = Expression::compile("order.{").unwrap_err();
/// assert_eq!(error.offset(), 7);
/// let error = Expression::compile("items[?paid].id").unwrap_err();
/// assert_eq!(error.offset(), 5);
/// assert!(error.reason().starts_with("`[?` is a filter"));
/// ```
#[derive(Clone)]
pub struct Expression {
    text: String,
    node: Node,
    optional: Optional,
    pub(super) looks: FieldSets,
}

impl Expression {
    /// Compiles an expression.
    ///
    /// # Errors
    /// The first mistake, with its offset.
    pub fn compile(text: &str) -> Result<Self, ExpressionError> {
        let error = |(offset, reason)| ExpressionError::at(text, offset, reason);
        if text.trim().is_empty() {
            return Err(error((0, "it is empty; write `@` for the whole payload".to_owned())));
        }
        let node = parser::parse(Variant::Standard, text).map_err(error)?;
        let optional = Optional::default();
        Ok(Self { text: text.to_owned(), optional, looks: FieldSets::of(&node), node })
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
    /// let expression = Expression::compile("[tenant, order.id, items[0]]").unwrap();
    /// assert_eq!(expression.parts(), ["tenant", "order.id", "3"]);
    /// assert!(Expression::compile("order.id").unwrap().parts().is_empty());
    /// ```
    #[must_use]
    pub fn parts(&self) -> Vec<String> {
        selection::names(&self.node)
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

    /// Whether it reads the member with this path, or a part of the member, for any record.
    ///
    /// ```
    /// # use lambda_idempotency_keys::Expression;
    /// let expression = Expression::compile("[messageId, attributes]").unwrap();
    /// assert!(expression.reads("attributes.ApproximateReceiveCount"));
    /// assert!(!expression.reads("body"));
    /// ```
    #[must_use]
    pub fn reads(&self, member: &str) -> bool {
        self.looks.document.reaches(member)
    }

    /// Evaluates the expression and returns the canonical bytes of what it selects.
    ///
    /// # Errors
    /// The selected value cannot be a key: it is missing, `null`, empty, or holds a number that a
    /// double cannot hold exactly.
    pub fn select(&self, document: &Document) -> Result<Selection, SelectionError> {
        let (selected, absent) = self.run(document)?;
        selection::check(&selected, absent, &self.optional)?;
        let mut bytes = Vec::with_capacity(64);
        selection::write_canonical(&selected, Some(&self.optional), &mut bytes)?;
        Ok(Selection(bytes))
    }

    /// The selected value as JMESPath defines it, without checking whether it can be a key: to show
    /// it, or to test an expression. A missing value is `null`.
    ///
    /// # Errors
    /// The evaluation fails, or the selected value holds a number that a double cannot hold exactly
    /// or is larger than 8 MiB.
    pub fn evaluate(&self, document: &Document) -> Result<Value, SelectionError> {
        shown(&self.run(document)?.0, &mut { MOST_BYTES })
    }

    /// The selected value, and the first missing part of a list in it.
    fn run(&self, document: &Document) -> Result<(value::Value, Option<Absent>), SelectionError> {
        if !document.has(&self.looks.document) {
            return Err(SelectionError::Unread);
        }
        let mut evaluation = Evaluation::new(Variant::Standard);
        evaluation.texts = Some(&self.looks.texts);
        evaluation.optional = self.node.listed().map(|list| (list, &self.optional));
        let selected = evaluation.run(&self.node, &document.value)?;
        Ok((selected, evaluation.found().0))
    }
}

/// The value as a `serde_json` value. `room` limits the number of values and bytes of text, because an expression can
/// list one value many times.
fn shown(value: &value::Value, room: &mut usize) -> Result<Value, SelectionError> {
    let text = match value {
        value::Value::String(text) => text.shown(),
        _ => String::new(),
    };
    *room = room.checked_sub(1 + text.len()).ok_or(SelectionError::TooLong)?;
    Ok(match value {
        value::Value::Null | value::Value::Undefined => Value::Null,
        value::Value::Bool(value) => Value::Bool(*value),
        value::Value::Number(number) => {
            let number = match &number.kind {
                Kind::Integer(digits) => (digits.parse::<u64>().map(Number::from))
                    .or_else(|_| digits.parse::<i64>().map(Number::from))
                    .ok(),
                Kind::Double(double) => Number::from_f64(*double).filter(|_| number.exact),
            };
            Value::Number(number.ok_or(SelectionError::InexactNumber)?)
        }
        value::Value::String(_) => Value::String(text),
        value::Value::Array(items) => {
            Value::Array(items.iter().map(|item| shown(item, room)).collect::<Result<_, _>>()?)
        }
        value::Value::Object(members) => {
            let members =
                members.iter().map(|(name, member)| Ok((name.shown(), shown(member, room)?)));
            Value::Object(members.collect::<Result<_, SelectionError>>()?)
        }
    })
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

/// Why an expression is invalid. `Display` shows the expression with a caret under the mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    expression: String,
    offset: usize,
    reason: String,
}

impl ExpressionError {
    /// An error at this byte offset of the expression.
    pub(super) fn at(text: &str, offset: usize, reason: String) -> Self {
        let expression = text.chars().take(parser::LONGEST).collect();
        Self { expression, offset: parser::characters(text, offset), reason }
    }

    /// Where the mistake is, in characters from the start of the expression.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// The mistake, in words.
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

/// A parsed JSON text.
#[derive(Clone)]
pub struct Document {
    pub(super) value: value::Value,
    /// The fields that were read; `None` if all of them.
    reads: Option<Arc<Wanted>>,
}

impl Document {
    /// Parses `json`.
    ///
    /// # Errors
    /// The text is not JSON, has an object with two members of the same name, has a number that is
    /// larger than any double, or is larger than 8 MiB.
    pub fn parse(json: &str) -> Result<Self, DocumentError> {
        Ok(Self { value: read(Variant::Standard, json)?, reads: None })
    }

    /// Parses `json` and keeps the fields that some expressions read. Other expressions cannot be
    /// applied to the document.
    ///
    /// Other fields are skipped: they are not copied, and only roughly checked to be JSON. They may
    /// have two members of the same name or numbers of any size, since the key does not depend on
    /// them.
    ///
    /// # Errors
    /// The text is not JSON; a field that is read occurs twice in its object, or is a number that
    /// is larger than any double; or the text is larger than 8 MiB.
    pub fn read(json: &str, reads: &FieldSet) -> Result<Self, DocumentError> {
        let value = read_wanted(Variant::Standard, json, &reads.document)?;
        let all = *reads.document == Wanted::All;
        Ok(Self { value, reads: (!all).then(|| Arc::clone(&reads.document)) })
    }

    /// Whether the document holds these fields.
    pub(super) fn has(&self, wanted: &Wanted) -> bool {
        self.reads.as_ref().is_none_or(|read| read.covers(wanted))
    }
}

/// Shows no content, which must not be logged.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document").finish_non_exhaustive()
    }
}

/// The fields of a document that some expressions read. See [`Document::read`].
///
/// ```
/// use lambda_idempotency_keys::{Document, Expression, FieldSet};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (key, amount) = (Expression::compile("order.id")?, Expression::compile("order.amount")?);
/// let reads = FieldSet::of([&key, &amount]);
/// // The photo is not copied, and its content has no effect.
/// let payload = r#"{"order":{"id":"o-1","amount":5},"photo":"iVBORw0KGgoAAAANSUhEUg"}"#;
/// let document = Document::read(payload, &reads)?;
/// assert_eq!(key.select(&document)?.canonical_bytes(), b"\"o-1\"");
/// assert_eq!(amount.select(&document)?.canonical_bytes(), b"5");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldSet {
    pub(super) document: Arc<Wanted>,
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
    fn an_inexact_number_in_another_field_has_no_effect() {
        let json = r#"{"id":"a","price":0.1000000000000000055}"#;
        assert_eq!(select("id", json).unwrap(), r#""a""#);
        assert_eq!(select("price", json), Err(SelectionError::InexactNumber));
        for lossy in ["@", "not_null(price, id)", "[id, price]"] {
            assert_eq!(select(lossy, json), Err(SelectionError::InexactNumber), "{lossy}");
        }
    }

    #[test]
    fn an_evaluation_error_names_types_and_not_values() {
        let error = select("json(secret)", r#"{"secret":"s3cr3t"}"#).unwrap_err().to_string();
        assert!(error.contains("json()") && !error.contains("s3cr3t"), "{error}");
        let error = select("json(secret)", r#"{"secret":["s3cr3t"]}"#).unwrap_err().to_string();
        assert!(error.contains("array") && !error.contains("s3cr3t"), "{error}");
    }

    /// Each has the same result as with its own document.
    #[test]
    fn fields_read_by_one_call_of_json_do_not_affect_another() {
        let compile = |text| Expression::compile(text).unwrap();
        let both = [compile("json(body).id"), compile("json(body).n")];
        let [id, n] = &both;
        for bad in ["1,\\\"n\\\":2", "1e999", "\\\"\\\\ud800\\\""] {
            let json = format!(r#"{{"body":"{{\"id\":\"a\",\"n\":{bad}}}"}}"#);
            let document = Document::read(&json, &FieldSet::of(&both)).unwrap();
            assert_eq!(id.select(&document).unwrap().canonical_bytes(), b"\"a\"", "{json}");
            assert!(
                matches!(n.select(&document), Err(SelectionError::Evaluation { .. })),
                "{json}"
            );
        }
        // An expression that was not known when the document was read still gets its fields of nested
        // JSON.
        let other = compile("json(body).other");
        let json = r#"{"body":"{\"id\":1,\"n\":2,\"other\":3}"}"#;
        let document = Document::read(json, &FieldSet::of(&both)).unwrap();
        for (expression, expected) in [(id, b"1"), (&other, b"3"), (n, b"2")] {
            assert_eq!(expression.select(&document).unwrap().canonical_bytes(), expected);
        }
    }

    #[test]
    fn errors_name_the_position_and_never_the_content() {
        let cases = [
            (r#"{"secret":"s3cr3t","secret":"s3cr3t"}"#, "two members of the same name"),
            (r#"{"secret": s3cr3t}"#, "line 1, column 12"),
            (r#"{"secret""#, "ends too early"),
            (" \n", "not valid JSON: it is empty"),
            ("", "not valid JSON: it is empty"),
            (r#""\ud800 s3cr3t""#, "an invalid escape"),
            ("1 s3cr3t", "line 1"),
            (r#"{"a":1},"s3cr3t""#, "line 1, column 8"),
            (r#"["s3cr3t",1e999]"#, "larger than any double"),
            (r#"["s3cr3t",-1e999]"#, "larger than any double"),
        ];
        for (json, expected) in cases {
            let message = Document::parse(json).unwrap_err().to_string();
            assert!(message.contains(expected), "{json}: {message}");
            assert!(!message.contains("s3cr3t"), "{message}");
        }
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert!(Document::parse(&deep).is_err());
    }
}
