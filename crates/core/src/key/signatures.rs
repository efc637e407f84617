//! The functions that expressions may call, and how many arguments they take.

/// How many arguments: at least, and at most.
pub(super) type Arity = (usize, usize);

const ONE: Arity = (1, 1);
const TWO: Arity = (2, 2);
const SOME: Arity = (1, usize::MAX);

/// Those of JMESPath (<https://jmespath.org/specification.html#built-in-functions>) and those that
/// Powertools for AWS Lambda adds.
pub(super) const SHARED: [(&str, Arity); 29] = [
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

/// Those, and the shorter names that ours have for Powertools'.
pub(super) fn standard(name: &str) -> Option<Arity> {
    if matches!(name, "json" | "base64" | "base64_gzip") {
        return Some(ONE);
    }
    SHARED.iter().find(|(own, _)| *own == name).map(|(_, arity)| *arity)
}

/// What is wrong with so many arguments.
pub(super) fn check(name: &str, (least, most): Arity, given: usize) -> Result<(), String> {
    if (least..=most).contains(&given) {
        return Ok(());
    }
    let at_least = if least == most { "" } else { "at least " };
    Err(format!("`{name}` takes {at_least}{least} argument(s), not {given}"))
}
