//! The official JMESPath compliance suite, evaluated by our own parsers.
//!
//! Values that cannot be a key (`null`, `""`, ...) are refused after the evaluation; `missing`
//! tests that.

use std::{fs, path::Path};

use lambda_idempotency_keys::{Document, Expression, FieldSet, SelectionError};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// The number of cases, so that a missing case is noticed.
const RESULTS: usize = 715;
const ERRORS: usize = 146;
const BENCHMARKS: usize = 14;

/// Cases in which we differ: (file, expression, reason).
const DIFFERENT: &[(&str, &str, &str)] = &[
    ("functions", "avg(numbers)", "there is no `avg`"),
    ("functions", "sum(numbers)", "there is no `sum`"),
    ("functions", "sum(decimals)", "there is no `sum`"),
    ("functions", "sum(array[].to_number(@))", "there is no `sum`"),
    ("functions", "sum(`[]`)", "there is no `sum`"),
    (
        "benchmarks",
        "sum(z, y, x, w, v, u, t, s, r, q, p, o, n, m, l, k, j, i, h, g, f, e, d, c, b, a)",
        "only for parsers; there is no `sum`",
    ),
    (
        "benchmarks",
        "foo[bar > baz][qux > baz]",
        "only for parsers; a filter without `?`, which the language no longer has",
    ),
    (
        "benchmarks",
        OF_104_LEVELS,
        "longer than any key expression: the limit on operators protects the stack",
    ),
];

/// An abbreviation of the expression `a[*].b[*]...`, with the letters from `a` to `z` four times.
const OF_104_LEVELS: &str = "a[*] to z[*], four times";

fn different() -> Vec<(&'static str, String)> {
    let levels = ('a'..='z').cycle().take(104).map(|letter| format!("{letter}[*]"));
    let levels = levels.collect::<Vec<_>>().join(".");
    (DIFFERENT.iter())
        .map(|(file, text, _)| (*file, text.replace(OF_104_LEVELS, &levels)))
        .collect()
}

#[derive(Deserialize)]
struct Group {
    given: Box<RawValue>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    expression: String,
    /// `Some(null)` is a result, too.
    #[serde(default, deserialize_with = "given")]
    result: Option<Box<RawValue>>,
    error: Option<String>,
    bench: Option<String>,
}

fn given<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(d).map(Some)
}

#[derive(Default)]
struct Tally {
    results: usize,
    errors: usize,
    benchmarks: usize,
}

fn files() -> Vec<(String, Vec<Group>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jmespath");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap())
        })
        .collect();
    files.sort_by(|(one, _), (other, _)| one.cmp(other));
    files
}

/// Numbers are compared by value, as JMESPath does: it has only one kind.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, value)| other.get(name).is_some_and(|o| same(value, o)))
        }
        _ => one == other,
    }
}

/// `None` if the case passes, else the problem.
fn judge(given: &str, case: &Case) -> Option<String> {
    // Mistakes that do not depend on the record are found when an expression is compiled.
    let compiled = Expression::compile(&case.expression);
    let expression = match (&case.error, compiled) {
        (Some(kind), Err(error)) => {
            let reason = error.reason();
            let is_kind = match kind.as_str() {
                "unknown-function" => reason.contains("there is no function"),
                "invalid-arity" => reason.contains("argument(s), not"),
                "invalid-value" => reason.contains("step of a slice"),
                "syntax" | "invalid-type" => true,
                _ => false,
            };
            return (!is_kind).then(|| format!("expected {kind}, got {reason}"));
        }
        (_, Ok(expression)) => expression,
        (None, Err(error)) => return Some(error.to_string()),
    };
    let evaluated = expression.evaluate(&Document::parse(given).unwrap());
    let sparse = Document::read(given, &FieldSet::of([&expression])).unwrap();
    if evaluated != expression.evaluate(&sparse) {
        return Some("the result differs when only the fields that it reads are parsed".to_owned());
    }
    match (&case.error, &case.result, evaluated) {
        (Some(kind), _, Err(SelectionError::Evaluation { .. })) if kind == "invalid-type" => None,
        (Some(kind), _, evaluated) => Some(format!("expected {kind}, got {evaluated:?}")),
        (None, Some(expected), Ok(value)) => {
            let at = Expression::compile("@").unwrap();
            let expected = at.evaluate(&Document::parse(expected.get()).unwrap()).unwrap();
            (!same(&expected, &value)).then(|| format!("expected {expected}, got {value}"))
        }
        // A benchmark.
        (None, None, Ok(_)) => None,
        (None, _, Err(error)) => Some(error.to_string()),
    }
}

#[test]
fn every_case_of_the_suite() {
    let (mut tally, mut wrong) = (Tally::default(), Vec::new());
    let mut differing = different();
    for (file, groups) in &files() {
        for group in groups {
            for case in &group.cases {
                match (&case.result, &case.error, &case.bench) {
                    (Some(_), None, None) => tally.results += 1,
                    (None, Some(_), None) => tally.errors += 1,
                    (None, None, Some(_)) => tally.benchmarks += 1,
                    _ => panic!("a case of no kind in {file}: {}", case.expression),
                }
                let listed =
                    differing.iter().position(|(of, text)| of == file && *text == case.expression);
                match (listed, judge(group.given.get(), case)) {
                    (None, None) => {}
                    (Some(at), Some(_)) => drop(differing.remove(at)),
                    (Some(_), None) => {
                        wrong.push(format!("{file}: `{}` does not differ", case.expression));
                    }
                    (None, Some(problem)) => {
                        wrong.push(format!("{file}: `{}`: {problem}", case.expression));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(differing, [], "not in the suite");
    assert_eq!(
        (tally.results, tally.errors, tally.benchmarks),
        (RESULTS, ERRORS, BENCHMARKS),
        "results, errors, benchmarks"
    );
}
