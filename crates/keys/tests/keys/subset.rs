//! Expressions select what JMESPath says, and distinct selected values are distinct keys: random expressions on random
//! documents, beside the crate `jmespath` and a model.

use std::{collections::BTreeMap, fmt};

use jmespath::{
    Context, ErrorReason, JmespathError, Rcvar, Runtime, Variable,
    functions::{ArgumentType, CustomFunction, Signature},
};
use lambda_idempotency_keys::{Document, Expression, SelectionError};
use proptest::prelude::*;

use crate::{json::Json, support::cases};

/// An expression: chains between pipes.
#[derive(Clone, Debug)]
struct Pipes(Vec<Chain>);

/// A first value, and the steps from it.
#[derive(Clone, Debug)]
struct Chain(First, Vec<Step>);

#[derive(Clone, Debug)]
enum First {
    Current,
    Field(&'static str),
    Parts(Parts),
    NotNull(Vec<Pipes>),
    Json(Box<Pipes>),
}

#[derive(Clone, Debug)]
enum Step {
    Field(&'static str),
    Index(i32),
    Each,
    Parts(Parts),
}

#[derive(Clone, Debug)]
enum Parts {
    List(Vec<Pipes>),
    Named(Vec<(&'static str, Pipes)>),
}

impl fmt::Display for Pipes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(chains) = self;
        f.write_str(&chains.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | "))
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(first, steps) = self;
        match first {
            First::Current => f.write_str("@")?,
            First::Field(name) => f.write_str(name)?,
            First::Parts(parts) => parts.fmt(f)?,
            First::NotNull(arguments) => write!(f, "not_null({})", joined(arguments))?,
            First::Json(text) => write!(f, "json({text})")?,
        }
        steps.iter().try_for_each(|step| match step {
            Step::Field(name) => write!(f, ".{name}"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Each => f.write_str("[*]"),
            Step::Parts(parts) => write!(f, ".{parts}"),
        })
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(parts) => write!(f, "[{}]", joined(parts)),
            Self::Named(parts) => {
                let parts = parts.iter().map(|(name, part)| format!("{name}: {part}"));
                write!(f, "{{{}}}", parts.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

fn joined(parts: &[Pipes]) -> String {
    parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

const NAMES: [&str; 4] = ["a", "b", "c", "\"d e\""];

fn pipes(depth: u32) -> BoxedStrategy<Pipes> {
    prop::collection::vec(chain(depth), 1..=if depth > 1 { 2 } else { 1 }).prop_map(Pipes).boxed()
}

fn chain(depth: u32) -> BoxedStrategy<Chain> {
    let name = || prop::sample::select(NAMES.to_vec());
    let leaf = prop_oneof![1 => Just(First::Current), 5 => name().prop_map(First::Field)];
    let step = prop_oneof![
        4 => name().prop_map(Step::Field),
        2 => (-3..3).prop_map(Step::Index),
        2 => Just(Step::Each),
    ];
    let steps = prop::collection::vec(step, 0..4);
    if depth == 0 {
        return (leaf, steps).prop_map(|(first, steps)| Chain(first, steps)).boxed();
    }
    let first = prop_oneof![
        4 => leaf,
        2 => parts(depth - 1).prop_map(First::Parts),
        1 => prop::collection::vec(pipes(depth - 1), 1..3).prop_map(First::NotNull),
        1 => pipes(depth - 1).prop_map(|text| First::Json(Box::new(text))),
    ];
    let last = prop::option::weighted(0.3, parts(depth - 1).prop_map(Step::Parts));
    (first, steps, last)
        .prop_map(|(first, steps, last)| Chain(first, steps.into_iter().chain(last).collect()))
        .boxed()
}

fn parts(depth: u32) -> BoxedStrategy<Parts> {
    prop_oneof![
        prop::collection::vec(pipes(depth), 1..3).prop_map(Parts::List),
        prop::collection::btree_map(prop::sample::select(NAMES.to_vec()), pipes(depth), 1..3)
            .prop_map(|parts| Parts::Named(parts.into_iter().collect())),
    ]
    .boxed()
}

/// Documents that the expressions fit often.
fn document() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        1 => Just(Json::Null),
        1 => any::<bool>().prop_map(Json::Bool),
        3 => (-3..3_i128).prop_map(Json::Integer),
        2 => "[ab]{0,2}".prop_map(Json::Text),
        1 => prop::sample::select(vec![r#"{"a":[1,{"b":2}]}"#, "[1,null]", "null"])
            .prop_map(|text| Json::Text(text.to_owned())),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let names = prop::sample::select(vec!["a", "b", "c", "d e"]).prop_map(str::to_owned);
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Json::List),
            2 => prop::collection::btree_map(names, inner, 1..4).prop_map(Json::Object),
        ]
    })
}

/// A document and one that differs in a place.
fn two_documents() -> impl Strategy<Value = (Json, Json)> {
    let place = any::<prop::sample::Index>();
    (document(), place, document(), any::<bool>()).prop_map(|(one, place, other, is_near)| {
        let mut near = one.clone();
        let mut places = Vec::new();
        leaves(&mut near, &mut places);
        let at = place.index(places.len());
        if let Some(leaf) = places.into_iter().nth(at).filter(|_| is_near) {
            *leaf = if *leaf == Json::Integer(1) { Json::Integer(2) } else { Json::Integer(1) };
            return (one, near);
        }
        (one, other)
    })
}

fn leaves<'j>(value: &'j mut Json, found: &mut Vec<&'j mut Json>) {
    if value.is_empty() || !matches!(value, Json::List(_) | Json::Object(_)) {
        return found.push(value);
    }
    match value {
        Json::List(items) => items.iter_mut().for_each(|item| leaves(item, found)),
        Json::Object(members) => members.values_mut().for_each(|member| leaves(member, found)),
        _ => {}
    }
}

/// `json(text)`, for the reference.
fn reference(expression: &str, document: &str) -> Result<serde_json::Value, JmespathError> {
    let mut runtime = Runtime::new();
    runtime.register_builtin_functions();
    let read = |arguments: &[Rcvar], context: &mut Context<'_>| -> Result<Rcvar, JmespathError> {
        let text = arguments[0].as_string().unwrap();
        let failed =
            |why| JmespathError::new(context.expression, context.offset, ErrorReason::Parse(why));
        Variable::from_json(text).map(Rcvar::new).map_err(failed)
    };
    let signature = Signature::new(vec![ArgumentType::String], None);
    runtime.register_function("json", Box::new(CustomFunction::new(signature, Box::new(read))));
    let found = runtime.compile(expression)?.search(Variable::from_json(document).unwrap())?;
    Ok(serde_json::from_str(&found.to_string()).unwrap())
}

/// The model: the value that an expression selects, with `null` where a step selects nothing.
fn selected(Pipes(chains): &Pipes, value: &Json) -> Option<Json> {
    chains.iter().try_fold(value.clone(), |value, Chain(first, steps)| {
        let first = match first {
            First::Current => value,
            First::Field(name) => member(name, &value),
            First::Parts(parts) => listed(parts, &value)?,
            First::NotNull(arguments) => {
                let all = arguments.iter().map(|argument| selected(argument, &value));
                let all = all.collect::<Option<Vec<_>>>()?;
                all.into_iter().find(|one| *one != Json::Null).unwrap_or(Json::Null)
            }
            First::Json(text) => match selected(text, &value)? {
                Json::Text(text) => of_serde(serde_json::from_str(&text).ok()?),
                _ => return None,
            },
        };
        walked(steps, first)
    })
}

fn walked(steps: &[Step], value: Json) -> Option<Json> {
    let Some((step, rest)) = steps.split_first() else { return Some(value) };
    match (step, value) {
        (Step::Each, Json::List(items)) => {
            let items = items.into_iter().map(|item| walked(rest, item));
            Some(Json::List(items.collect::<Option<_>>()?))
        }
        (Step::Each, _) => Some(Json::Null),
        (Step::Field(name), value) => walked(rest, member(name, &value)),
        (Step::Parts(parts), value) => walked(rest, listed(parts, &value)?),
        (Step::Index(index), Json::List(items)) => {
            let back = if *index < 0 { items.len() as i32 } else { 0 };
            let item = usize::try_from(index + back).ok().and_then(|at| items.get(at));
            walked(rest, item.cloned().unwrap_or(Json::Null))
        }
        (Step::Index(_), _) => walked(rest, Json::Null),
    }
}

fn member(name: &str, value: &Json) -> Json {
    match value {
        Json::Object(members) => members.get(name.trim_matches('"')).cloned().unwrap_or(Json::Null),
        _ => Json::Null,
    }
}

fn listed(parts: &Parts, value: &Json) -> Option<Json> {
    if *value == Json::Null {
        return Some(Json::Null);
    }
    Some(match parts {
        Parts::List(parts) => {
            Json::List(parts.iter().map(|part| selected(part, value)).collect::<Option<_>>()?)
        }
        Parts::Named(parts) => {
            let part = |(name, part): &(&str, Pipes)| {
                Some((name.trim_matches('"').to_owned(), selected(part, value)?))
            };
            Json::Object(parts.iter().map(part).collect::<Option<BTreeMap<_, _>>>()?)
        }
    })
}

fn of_serde(value: serde_json::Value) -> Json {
    match value {
        serde_json::Value::Null => Json::Null,
        serde_json::Value::Bool(value) => Json::Bool(value),
        serde_json::Value::Number(number) => Json::Integer(number.as_i64().unwrap().into()),
        serde_json::Value::String(text) => Json::Text(text),
        serde_json::Value::Array(items) => Json::List(items.into_iter().map(of_serde).collect()),
        serde_json::Value::Object(members) => {
            Json::Object(members.into_iter().map(|(name, one)| (name, of_serde(one))).collect())
        }
    }
}

proptest! {
    #![proptest_config(cases(4096))]

    #[test]
    fn every_expression_selects_what_the_reference_selects(
        expression in pipes(2), document in document(), style in any::<u64>(),
    ) {
        let text = expression.to_string();
        // An expression that selects nothing from any record is refused.
        let Ok(compiled) = Expression::compile(&text) else { return Ok(()) };
        let json = document.written(style);
        let ours = compiled.evaluate(&Document::parse(&json).unwrap());
        match (ours, reference(&text, &json)) {
            (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours, theirs, "{} of {}", text, json),
            (Err(SelectionError::Evaluation { .. }), Err(_)) => {}
            (ours, theirs) => prop_assert!(false, "{} of {}: {:?}, {:?}", text, json, ours, theirs),
        }
    }

    /// Without any exclusion.
    #[test]
    fn documents_that_differ_in_a_selected_part_differ_in_their_keys(
        expression in pipes(2), (one, other) in two_documents(),
    ) {
        let Ok(compiled) = Expression::compile(&expression.to_string()) else { return Ok(()) };
        let select = |document: &Json| compiled.select(&Document::parse(&document.written(0)).unwrap());
        if let (Ok(a), Ok(b)) = (select(&one), select(&other)) {
            let (one_of, other_of) = (selected(&expression, &one), selected(&expression, &other));
            prop_assert!(one_of.is_some() && other_of.is_some());
            prop_assert_eq!(a == b, one_of == other_of, "{} of {:?} and {:?}", expression, one, other);
        }
    }
}
