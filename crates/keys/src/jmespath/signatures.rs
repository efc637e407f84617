//! The functions that expressions may call, and their numbers of arguments.

use super::Variant;

/// The least and the most arguments.
pub(crate) type Arity = (usize, usize);

const ONE: Arity = (1, 1);
const TWO: Arity = (2, 2);
const SOME: Arity = (1, usize::MAX);

/// The functions of JMESPath (<https://jmespath.org/specification.html#built-in-functions>) and
/// those that Powertools for AWS Lambda adds.
const SHARED: [(&str, Arity); 29] = [
    ("abs", ONE),
    ("avg", ONE),
    ("ceil", ONE),
    ("contains", TWO),
    ("ends_with", TWO),
    ("floor", ONE),
    ("join", TWO),
    ("keys", ONE),
    ("length", ONE),
    ("map", TWO),
    ("max", ONE),
    ("max_by", TWO),
    ("merge", SOME),
    ("min", ONE),
    ("min_by", TWO),
    ("not_null", SOME),
    ("powertools_base64", ONE),
    ("powertools_base64_gzip", ONE),
    ("powertools_json", ONE),
    ("reverse", ONE),
    ("sort", ONE),
    ("sort_by", TWO),
    ("starts_with", TWO),
    ("sum", ONE),
    ("to_array", ONE),
    ("to_number", ONE),
    ("to_string", ONE),
    ("type", ONE),
    ("values", ONE),
];

/// Shorter names of the Powertools functions, in our own expressions.
const OURS: [(&str, Arity); 3] = [("json", ONE), ("base64", ONE), ("base64_gzip", ONE)];

/// The function that the variant calls for this name. TypeScript converts the name to a method's,
/// so that `powertoolsJson` and `Powertools_json` are accepted too.
pub(crate) fn named(variant: Variant, name: &str) -> Option<(&'static str, Arity)> {
    let is_it = |own: &str| match variant {
        Variant::Standard | Variant::Python(_) => own == name,
        Variant::TypeScript(_) => method(own) == method(name),
    };
    let is_ours = variant == Variant::Standard;
    let shared = SHARED.into_iter().filter(|(name, _)| !(is_ours && adds(name)));
    let ours = OURS.into_iter().filter(|_| is_ours);
    shared.chain(ours).find(|(own, _)| is_it(own))
}

/// Whether it adds numbers. Our own expressions have no such function: many distinct lists have one
/// sum.
pub(crate) fn adds(name: &str) -> bool {
    matches!(name, "avg" | "sum")
}

/// A letter behind `_`, and the first, in upper case.
fn method(name: &str) -> String {
    let mut method = String::with_capacity(name.len());
    let mut characters = name.chars().peekable();
    while let Some(c) = characters.next() {
        match characters.peek() {
            Some(next) if c == '_' && next.is_ascii_lowercase() => {
                method.push(next.to_ascii_uppercase());
                characters.next();
            }
            _ if method.is_empty() => method.push(c.to_ascii_uppercase()),
            _ => method.push(c),
        }
    }
    method
}

/// Whether it parses JSON, of which only the fields that the expression reads are needed.
pub(crate) fn is_json(name: &str) -> bool {
    matches!(name, "json" | "powertools_json")
}

/// The function for a message, if it has only a few results.
pub(crate) fn few_results(name: &str) -> Option<&'static str> {
    Some(match name {
        "length" => "`length`",
        "type" => "`type`",
        "contains" => "`contains`",
        "starts_with" => "`starts_with`",
        "ends_with" => "`ends_with`",
        _ => return None,
    })
}

/// Checks the number of arguments.
pub(crate) fn check(name: &str, (least, most): Arity, given: usize) -> Result<(), String> {
    if (least..=most).contains(&given) {
        return Ok(());
    }
    let at_least = if least == most { "" } else { "at least " };
    Err(format!("`{name}` takes {at_least}{least} argument(s), not {given}"))
}

/// The index of the argument that is an expression reference.
pub(crate) fn takes_reference(function: &str) -> Option<usize> {
    match function {
        "map" => Some(0),
        "max_by" | "min_by" | "sort_by" => Some(1),
        _ => None,
    }
}

/// The arguments that a function takes, for messages.
pub(crate) fn takes(function: &str) -> &'static str {
    match function {
        "abs" | "ceil" | "floor" => "a number",
        "avg" | "sum" => "a list of numbers",
        "contains" => "a list or a string, and what it may hold",
        "starts_with" | "ends_with" => "two strings",
        "join" => "a string and a list of strings",
        "keys" | "values" => "an object",
        "merge" => "objects",
        "length" => "a string, a list or an object",
        "map" => "an expression and a list",
        "max" | "min" | "sort" => "a list of numbers alone, or of strings alone",
        "max_by" | "min_by" | "sort_by" => "a list, and a number of each item or a string of each",
        "reverse" => "a list or a string",
        _ => "a string",
    }
}
