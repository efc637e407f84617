//! Finds out from an expression's syntax what it selects: always the same value, one of a few
//! values, or the value of a member.

use std::cell::Cell;

use super::{
    jmespath::{
        Collisions, Variant,
        ast::Node,
        error::EvaluationError,
        evaluate::Evaluation,
        signatures,
        state::{Budget, State},
        text::Text,
        value::Value,
    },
    known::{Held, Known, NOTHING, Variety, together},
};

/// The most steps that are followed, together with the items that evaluating constant parts makes.
const MOST_STEPS: usize = 1 << 18;

/// Whether the expression selects the same value from every record.
pub(super) fn is_constant(node: &Node) -> bool {
    !node.reads_data() || known(node).is_constant()
}

/// The function or operator because of which the expression selects one of only a few values, from
/// all records or from some kind of records.
pub(super) fn few_values(node: &Node) -> Option<&'static str> {
    let is_decided = || node.reads_data() && !node.can_hold_data(true);
    let by_conditions = || is_decided().then_some("its conditions");
    known(node).few().or_else(by_conditions)
}

/// Whether the selected value always contains the member with this path, or a part of the member.
pub(super) fn selects(node: &Node, member: &str) -> bool {
    let member: Vec<&str> = member.split('.').collect();
    known(node).held().iter().any(|held| held.reaches(&member))
}

/// What is known of the value that the expression selects.
pub(super) fn known(node: &Node) -> Known<'_> {
    let collisions = Collisions::default();
    let walk = Walk {
        evaluation: Evaluation {
            state: State::new(Variant::Standard, &collisions).with_budget(Budget::of(MOST_STEPS)),
            absences: None,
        },
        is_over: Cell::new(false),
    };
    let known = walk.follow(node, &Known::Path(Vec::new()));
    if walk.is_over.get() { NOTHING } else { known }
}

/// Follows one expression.
struct Walk<'w> {
    /// Evaluates constant parts. Its budget also counts the steps.
    evaluation: Evaluation<'w>,
    is_over: Cell<bool>,
}

impl Walk<'_> {
    /// What a node selects from `at`. After too many steps, the result is that nothing is known.
    fn follow<'n>(&self, node: &'n Node, at: &Known<'n>) -> Known<'n> {
        if !self.spend(1) {
            return NOTHING;
        }
        let known = match at {
            Known::Constant(value) => self.constant(node, value),
            Known::ConstantIfThere(value) => self.constant_if_there(node, value, at),
            _ => self.step(node, at),
        };
        if self.spend(known.size()) { known } else { NOTHING }
    }

    fn spend(&self, steps: usize) -> bool {
        if self.is_over.get() || self.evaluation.state.budget.spend_items(steps).is_err() {
            self.is_over.set(true);
        }
        !self.is_over.get()
    }

    /// As [`follow`](Self::follow), without counting the step.
    fn step<'n>(&self, node: &'n Node, at: &Known<'n>) -> Known<'n> {
        // On `null`, a list of parts is `null` itself, so a constant part may be missing unless the
        // list is applied to the whole record.
        let is_there = matches!(at, Known::Path(path) if path.is_empty());
        let part = |node: &'n Node| match self.follow(node, at) {
            Known::Constant(value) if !is_there => Known::ConstantIfThere(value),
            part => part,
        };
        match node {
            Node::Current => at.clone(),
            Node::Literal(value) => Known::Constant(value.clone()),
            Node::Field { name, .. } => match at {
                Known::Hash(members) if !self.spend(members.len()) => NOTHING,
                _ => field(name, at),
            },
            Node::Index(index) => match at {
                Known::List(items) => item(items, *index),
                _ => NOTHING,
            },
            Node::Then(first, second) => self.follow(second, &self.follow(first, at)),
            Node::Indexed(nodes) => {
                nodes.iter().fold(at.clone(), |at, node| self.follow(node, &at))
            }
            Node::List(parts) => Known::List(parts.iter().map(part).collect()).bounded(),
            Node::Hash(members) => {
                Known::Hash(members.iter().map(|(name, node)| (name, part(node))).collect())
                    .bounded()
            }
            Node::Flatten { list, .. } => self.follow(list, at).kept(),
            Node::Each(list, each) | Node::Values { object: list, each, .. }
                if matches!(**each, Node::Current) =>
            {
                self.follow(list, at).kept()
            }
            Node::Each(list, each) => match self.follow(list, at) {
                Known::List(items) => {
                    let held = items.iter().flat_map(|item| self.follow(each, item).held());
                    Known::Holding(held.collect()).bounded()
                }
                _ => NOTHING,
            },
            Node::Compare { .. } => Known::Few("a comparison"),
            Node::Not(_) => Known::Few("`!`"),
            Node::Or(left, right) => or(self.follow(left, at), || self.follow(right, at)),
            Node::And(left, right) => match (self.follow(left, at), self.follow(right, at)) {
                (Known::Constant(left), right) if left.is_truthy() => right,
                (left @ Known::Constant(_), _) => left,
                // Otherwise the result is the left value, which is then falsy: `null`, empty or
                // `false`.
                (_, right) if right.is_constant() => Known::Few("`&&`"),
                (_, right) => right.few().map_or_else(|| right.kept(), Known::Few),
            },
            Node::Call { name, arguments, .. } => self.call(node, name, arguments, at),
            Node::Slice { .. }
            | Node::Values { .. }
            | Node::Filter { .. }
            | Node::Own { .. }
            | Node::Reference(_) => NOTHING,
        }
    }

    /// What a node selects from a constant.
    fn constant<'n>(&self, node: &Node, value: &Value) -> Known<'n> {
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            if matches!(node, Node::Own { .. }) || !self.spend(1) {
                return NOTHING;
            }
            open.extend(node.children());
        }
        match self.evaluation.run(node, value) {
            Ok(value) => Known::Constant(value),
            Err(error) => {
                if error == EvaluationError::TooLong {
                    self.is_over.set(true);
                }
                NOTHING
            }
        }
    }

    /// What a node selects from a constant that can be missing.
    fn constant_if_there<'n>(&self, node: &'n Node, value: &Value, at: &Known<'n>) -> Known<'n> {
        match (self.constant(node, &Value::Null), self.constant(node, value)) {
            (Known::Constant(Value::Null), Known::Constant(value)) => Known::ConstantIfThere(value),
            _ => self.step(node, at),
        }
    }

    fn call<'n>(
        &self,
        node: &Node,
        name: &str,
        arguments: &'n [Node],
        at: &Known<'n>,
    ) -> Known<'n> {
        if let Some(by) = signatures::few_results(name) {
            return Known::Few(by);
        }
        if let ("map", [Node::Reference(each), list]) = (name, arguments) {
            return match self.follow(list, at) {
                Known::List(items) => {
                    Known::List(items.iter().map(|item| self.follow(each, item)).collect())
                        .bounded()
                }
                list if matches!(**each, Node::Current) => list.kept(),
                _ => NOTHING,
            };
        }
        if !node.reads_data() {
            return self.constant(node, &Value::Bool(true));
        }
        let given: Vec<_> = arguments.iter().map(|argument| self.follow(argument, at)).collect();
        if let Variety::Few(by) = together(given.iter()) {
            return Known::Few(by);
        }
        match (name, &*given) {
            ("not_null", given) => {
                let mut given =
                    given.iter().filter(|one| !matches!(one, Known::Constant(Value::Null)));
                match (given.next(), given.next()) {
                    (Some(first @ (Known::Constant(_) | Known::Few(_))), _)
                    | (Some(first), None) => first.clone(),
                    _ => NOTHING,
                }
            }
            ("merge", given) => self.merged(given),
            ("join", [_, list]) | ("sort_by", [list, ..]) => list.kept(),
            ("to_string" | "to_array" | "values" | "reverse" | "sort", [one]) => one.kept(),
            _ => NOTHING,
        }
    }

    /// Members of later objects replace members of the same name of earlier ones.
    fn merged<'n>(&self, given: &[Known<'n>]) -> Known<'n> {
        let mut held: Vec<Held<'n>> = Vec::new();
        let mut named: Vec<(&Text, Known<'n>)> = Vec::new();
        for one in given {
            if let Known::Hash(members) = one {
                if !self.spend(members.len() * (held.len() + named.len())) {
                    return NOTHING;
                }
                for (name, member) in members {
                    held.iter_mut().for_each(|held| held.except.push(name));
                    named.retain(|(own, _)| own != name);
                    named.push((name, member.clone()));
                }
            } else {
                // An unknown object may replace any of the members.
                named.clear();
                held.extend(one.held());
            }
        }
        if given.iter().all(|one| matches!(one, Known::Hash(_))) {
            return Known::Hash(named).bounded();
        }
        held.extend(named.iter().flat_map(|(_, member)| member.held()));
        Known::Holding(held).bounded()
    }
}

fn field<'n>(name: &'n Text, at: &Known<'n>) -> Known<'n> {
    match at {
        Known::Path(path) => match name.to_str() {
            Some(name) => Known::Path([path, &[name][..]].concat()),
            None => NOTHING,
        },
        Known::Hash(members) => {
            let last = members.iter().rfind(|(own, _)| *own == name);
            last.map_or(Known::Constant(Value::Null), |(_, member)| member.clone())
        }
        Known::Holding(held) => match (&**held, name.to_str()) {
            // It is the object at that path, so its member is at the path of the member.
            ([Held { path, except }], Some(own)) if !except.contains(&name) => {
                Known::Path([path, &[own][..]].concat())
            }
            _ => NOTHING,
        },
        _ => NOTHING,
    }
}

fn item<'n>(items: &[Known<'n>], index: i64) -> Known<'n> {
    let back = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
    let at = if index < 0 { items.len().checked_sub(back) } else { Some(back) };
    at.and_then(|at| items.get(at)).map_or(Known::Constant(Value::Null), Known::clone)
}

/// The left value if it is truthy, otherwise the right one.
fn or<'n>(left: Known<'n>, right: impl Fn() -> Known<'n>) -> Known<'n> {
    match left {
        Known::Constant(left) if left.is_truthy() => Known::Constant(left),
        Known::Constant(_) => right(),
        left => match left.variety() {
            Variety::One => Known::Few("`||`"),
            Variety::Few(by) => Known::Few(by),
            Variety::Unknown => NOTHING,
        },
    }
}

#[cfg(test)]
#[path = "reach_tests.rs"]
mod tests;
