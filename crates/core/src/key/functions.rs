//! The functions that expressions may call: JMESPath's own, and one to read JSON inside JSON.
//!
//! What reads text does so by [`Document`]: JMESPath's own `to_number` would take two distinct
//! numerals for one number.

use std::sync::LazyLock;

use jmespath::{
    Context, ErrorReason, JmespathError, Rcvar, Runtime, Variable,
    functions::{ArgumentType, CustomFunction, Signature},
};

use super::{Document, numeral::Side};

static BELOW: LazyLock<Runtime> = LazyLock::new(|| runtime(Side::Below));
static ABOVE: LazyLock<Runtime> = LazyLock::new(|| runtime(Side::Above));

/// JMESPath's functions and ours, which read numbers that are not exact from that side.
pub(super) fn on(side: Side) -> &'static Runtime {
    match side {
        Side::Below => &BELOW,
        Side::Above => &ABOVE,
    }
}

/// `powertools_json` is the name that expressions written for Powertools use.
fn runtime(side: Side) -> Runtime {
    let mut runtime = Runtime::new();
    runtime.register_builtin_functions();
    for name in ["json", "powertools_json"] {
        let signature = Signature::new(vec![ArgumentType::String], None);
        let function =
            Box::new(move |args: &[Rcvar], context: &mut Context<'_>| json(args, context, side));
        runtime.register_function(name, Box::new(CustomFunction::new(signature, function)));
    }
    let signature = Signature::new(vec![ArgumentType::Any], None);
    let function = Box::new(move |args: &[Rcvar], _: &mut Context<'_>| Ok(to_number(args, side)));
    runtime.register_function("to_number", Box::new(CustomFunction::new(signature, function)));
    runtime
}

/// Whether the function reads numbers from text, which may not be exact.
pub(super) fn reads_text(name: &str) -> bool {
    matches!(name, "json" | "powertools_json" | "to_number")
}

/// How many arguments each function takes: at least, and at most.
pub(super) fn arity(name: &str) -> Option<(usize, usize)> {
    Some(match name {
        "abs" | "avg" | "ceil" | "floor" | "keys" | "length" | "max" | "min" | "reverse"
        | "sort" | "sum" | "to_array" | "to_number" | "to_string" | "type" | "values" | "json"
        | "powertools_json" => (1, 1),
        "contains" | "ends_with" | "join" | "map" | "max_by" | "min_by" | "sort_by"
        | "starts_with" => (2, 2),
        "merge" | "not_null" => (1, usize::MAX),
        _ => return None,
    })
}

/// `json(text)`: the value that a JSON text stands for.
fn json(args: &[Rcvar], context: &mut Context<'_>, side: Side) -> Result<Rcvar, JmespathError> {
    let text = args.first().and_then(|arg| arg.as_string()).map_or("", String::as_str);
    Document::parse(text).map(|document| Rcvar::clone(document.on(side))).map_err(|error| {
        JmespathError::from_ctx(context, ErrorReason::Parse(format!("json(): {error}")))
    })
}

/// `to_number(any)`: a number as it is, the number that a text stands for, else `null`.
fn to_number(args: &[Rcvar], side: Side) -> Rcvar {
    let read = args.first().and_then(|arg| match &**arg {
        Variable::Number(_) => Some(Rcvar::clone(arg)),
        Variable::String(text) => Some(Rcvar::clone(Document::parse(text).ok()?.on(side))),
        _ => None,
    });
    read.filter(|value| value.is_number()).unwrap_or_else(|| Rcvar::new(Variable::Null))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_that_is_known_is_registered() {
        for name in "abs avg ceil contains ends_with floor join keys length map max max_by merge \
                     min min_by not_null reverse sort sort_by starts_with sum to_array to_number \
                     to_string type values json powertools_json"
            .split_whitespace()
        {
            assert!(
                on(Side::Below).get_function(name).is_some() && arity(name).is_some(),
                "{name}"
            );
        }
        assert_eq!(arity("nope"), None);
    }
}
