//! The functions that expressions may call: JMESPath's own, some to read text, and the user's.
//!
//! What reads text does so by [`Document`]: JMESPath's own `to_number` would take two distinct
//! numerals for one number.

use std::{
    collections::BTreeMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, LazyLock},
};

use jmespath::{
    Context, ErrorReason, JmespathError, Rcvar, Runtime, Variable,
    functions::{ArgumentType, CustomFunction, Signature},
};
use serde_json::Value;

use super::{
    Document, SelectionError, decode,
    document::MOST_BYTES,
    evaluation,
    signatures::{self, Arity},
};

static STANDARD: LazyLock<Arc<Runtime>> = LazyLock::new(|| Arc::new(standard()));

/// The functions that an expression may call: the standard ones, and your own.
///
/// Beside those of JMESPath (<https://jmespath.org/specification.html#built-in-functions>) there
/// are three that read text: `json(text)`, `base64(text)`, and `base64_gzip(text)`, which gives at
/// most 8 MiB in all of its calls for a record. `powertools_json`, `powertools_base64` and
/// `powertools_base64_gzip` are other names for them.
///
/// A function of your own gets its arguments as JSON values and returns one. It must return the
/// same for the same arguments, always and in every version of your program that shares a table:
/// its result is part of the key. It may be called twice for a record.
///
/// ```
/// use lambda_idempotency_core::key::{Document, Expression, Functions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let functions = Functions::standard().with("lower", 1, |arguments| match arguments {
///     [text] => text.as_str().map(|text| text.to_lowercase().into()).ok_or("it is no text"),
///     _ => Err("one text is needed"),
/// });
/// let by_email = Expression::compile_with("lower(email)", &functions)?;
/// let one = by_email.select(&Document::parse(r#"{"email":"Ann@example.com"}"#)?)?;
/// let other = by_email.select(&Document::parse(r#"{"email":"ann@example.com"}"#)?)?;
/// assert_eq!(one, other);
/// assert!(Expression::compile_with("lower(email, 1)", &functions).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Functions {
    own: BTreeMap<Arc<str>, Own>,
}

#[derive(Clone)]
struct Own {
    arity: usize,
    call: Arc<Call>,
}

type Call = dyn Fn(&[Value]) -> Result<Value, &'static str> + Send + Sync;

impl Functions {
    /// The standard functions alone.
    #[must_use]
    pub fn standard() -> Self {
        Self::default()
    }

    /// Adds a function that takes `arity` arguments. Numbers that no double holds exactly come a
    /// little smaller than they are, and in a second call a little larger; if the results differ,
    /// the record is refused.
    ///
    /// Its error is a fixed text, so that nothing of a record can find its way into a log. If it
    /// panics, the record is refused as for an error.
    ///
    /// The name must be one that JMESPath can call (`[A-Za-z_][A-Za-z0-9_]*`) and not that of a
    /// standard function; [`Expression::compile_with`](super::Expression::compile_with) refuses
    /// any other.
    #[must_use]
    pub fn with(
        mut self,
        name: impl Into<Arc<str>>,
        arity: usize,
        function: impl Fn(&[Value]) -> Result<Value, &'static str> + Send + Sync + 'static,
    ) -> Self {
        self.own.insert(name.into(), Own { arity, call: Arc::new(function) });
        self
    }

    /// How many arguments a function takes: at least, and at most.
    pub(super) fn arity(&self, name: &str) -> Option<Arity> {
        let own = || self.own.get(name).map(|own| (own.arity, own.arity));
        signatures::standard(name).or_else(own)
    }

    /// What the interpreter calls them by; or what is wrong with a name.
    pub(super) fn runtime(&self) -> Result<Arc<Runtime>, String> {
        if self.own.is_empty() {
            return Ok(Arc::clone(&STANDARD));
        }
        let mut runtime = standard();
        for (name, own) in &self.own {
            if signatures::standard(name).is_some() {
                return Err(format!(
                    "there is a standard function `{name}`; give yours another name"
                ));
            }
            if !is_identifier(name) {
                return Err(format!("a function cannot be called {name:?}"));
            }
            let call = Arc::clone(&own.call);
            register(
                &mut runtime,
                name,
                vec![ArgumentType::Any; own.arity],
                move |arguments, _| call_own(&*call, arguments),
            );
        }
        Ok(Arc::new(runtime))
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.own.keys()).finish()
    }
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn standard() -> Runtime {
    let mut runtime = Runtime::new();
    runtime.register_builtin_functions();
    register(&mut runtime, "to_number", vec![ArgumentType::Any], |arguments, _| {
        Ok(to_number(arguments))
    });
    read_text(&mut runtime, "json", |text, offset| {
        evaluation::json(text, offset).map_err(|error| error.to_string())
    });
    read_text(&mut runtime, "base64", |encoded, _| text(decode::base64(encoded)));
    read_text(&mut runtime, "base64_gzip", |encoded, _| text(evaluation::base64_gzip(encoded)));
    runtime
}

/// Under its own name, and the one that expressions written for Powertools use.
fn read_text(
    runtime: &mut Runtime,
    name: &str,
    function: fn(&str, usize) -> Result<Rcvar, String>,
) {
    for name in [name.to_owned(), format!("powertools_{name}")] {
        register(runtime, &name, vec![ArgumentType::String], move |arguments, offset| {
            let text = arguments.first().and_then(|text| text.as_string());
            function(text.map_or("", String::as_str), offset)
        });
    }
}

/// Whether it reads JSON, of which an expression may look at some members only.
pub(super) fn is_json(name: &str) -> bool {
    matches!(name, "json" | "powertools_json")
}

fn register(
    runtime: &mut Runtime,
    name: &str,
    arguments: Vec<ArgumentType>,
    call: impl Fn(&[Rcvar], usize) -> Result<Rcvar, String> + Send + Sync + 'static,
) {
    let named = name.to_owned();
    let call = move |arguments: &[Rcvar], context: &mut Context<'_>| {
        call(arguments, context.offset).map_err(|problem| {
            let reason = ErrorReason::Parse(format!("{named}(): {problem}"));
            JmespathError::from_ctx(context, reason)
        })
    };
    let function = CustomFunction::new(Signature::new(arguments, None), Box::new(call));
    runtime.register_function(name, Box::new(function));
}

fn text(decoded: Result<String, &'static str>) -> Result<Rcvar, String> {
    decoded.map(|text| Rcvar::new(Variable::String(text))).map_err(str::to_owned)
}

/// `to_number(any)`: a number as it is, the number that a text stands for, else `null`.
fn to_number(arguments: &[Rcvar]) -> Rcvar {
    let read = arguments.first().and_then(|argument| match &**argument {
        Variable::Number(_) => Some(Rcvar::clone(argument)),
        Variable::String(text) => Some(evaluation::value(&Document::parse(text).ok()?)),
        _ => None,
    });
    read.filter(|value| value.is_number()).unwrap_or_else(|| Rcvar::new(Variable::Null))
}

fn call_own(call: &Call, arguments: &[Rcvar]) -> Result<Rcvar, String> {
    let values = arguments.iter().map(|argument| value(argument)).collect::<Result<Vec<_>, _>>();
    let values = values.map_err(|error| match error {
        SelectionError::NotAValue => {
            "it takes values, and no expression reference (`&name`)".to_owned()
        }
        error => error.to_string(),
    })?;
    // What one record makes a function do must not end the invocation of all.
    let returned =
        catch_unwind(AssertUnwindSafe(|| call(&values))).map_err(|_| "it panicked")??;
    // What `Value` holds depends on features of `serde_json`; its text does not.
    let document = Document::parse(&returned.to_string()).map_err(|error| error.to_string())?;
    Ok(evaluation::value(&document))
}

/// As `serde_json` has it, unless it is no value, or larger than any document.
pub(super) fn value(variable: &Variable) -> Result<Value, SelectionError> {
    let mut room = MOST_BYTES;
    copied(variable, &mut room)
}

/// `room` is for values and bytes of text: an expression can list one value many times over.
fn copied(variable: &Variable, room: &mut usize) -> Result<Value, SelectionError> {
    let mut take = |size: usize| {
        *room = room.checked_sub(size).ok_or(SelectionError::TooLong)?;
        Ok(())
    };
    take(1)?;
    Ok(match variable {
        Variable::Null => Value::Null,
        Variable::Bool(value) => Value::Bool(*value),
        Variable::Number(number) => Value::Number(number.clone()),
        Variable::String(text) => {
            take(text.len())?;
            Value::String(text.clone())
        }
        Variable::Array(items) => {
            Value::Array(items.iter().map(|item| copied(item, room)).collect::<Result<_, _>>()?)
        }
        Variable::Object(members) => Value::Object(
            (members.iter())
                .map(|(name, member)| Ok((name.clone(), copied(member, room)?)))
                .collect::<Result<_, _>>()?,
        ),
        Variable::Expref(_) => return Err(SelectionError::NotAValue),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_that_is_known_is_registered() {
        let ours = ["json", "base64", "base64_gzip"].into_iter();
        for name in signatures::SHARED.iter().map(|(name, _)| *name).chain(ours) {
            let arity = signatures::standard(name);
            assert!(STANDARD.get_function(name).is_some() && arity.is_some(), "{name}");
        }
        assert_eq!(signatures::standard("nope"), None);
    }

    #[test]
    fn names_that_cannot_be_called_are_refused() {
        let named = |name: &str| Functions::standard().with(name, 0, |_| Ok(Value::Null)).runtime();
        for name in ["length", "json", "powertools_json", "", "1a", "a-b", "é", "a b"] {
            assert!(named(name).is_err(), "{name}");
        }
        for name in ["a", "_A1"] {
            assert!(named(name).is_ok(), "{name}");
        }
    }
}
