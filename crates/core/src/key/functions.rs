//! The functions that expressions may call: JMESPath's own, and one to read JSON inside JSON.

use std::sync::LazyLock;

use jmespath::{
    Context, ErrorReason, JmespathError, Rcvar, Runtime,
    functions::{ArgumentType, CustomFunction, Signature},
};

use super::Document;

/// JMESPath's functions, and ours beside them; `powertools_json` is the name that expressions
/// written for Powertools use.
pub(super) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut runtime = Runtime::new();
    runtime.register_builtin_functions();
    for name in ["json", "powertools_json"] {
        let signature = Signature::new(vec![ArgumentType::String], None);
        runtime.register_function(name, Box::new(CustomFunction::new(signature, Box::new(json))));
    }
    runtime
});

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
fn json(args: &[Rcvar], context: &mut Context<'_>) -> Result<Rcvar, JmespathError> {
    let text = args.first().and_then(|arg| arg.as_string()).map_or("", String::as_str);
    Document::parse(text).map(|document| document.0).map_err(|error| {
        JmespathError::from_ctx(context, ErrorReason::Parse(format!("json(): {error}")))
    })
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
            assert!(RUNTIME.get_function(name).is_some() && arity(name).is_some(), "{name}");
        }
        assert_eq!(arity("nope"), None);
    }
}
