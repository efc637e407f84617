//! A parsed expression.

use std::sync::Arc;

use super::{own::Own, signatures, text::Text, value::Value};

#[derive(Clone)]
pub(crate) enum Node {
    /// `@`.
    Current,
    Field {
        name: Text,
        offset: usize,
    },
    Literal(Value),
    Index(i64),
    Slice {
        start: Option<i64>,
        stop: Option<i64>,
        step: Option<i64>,
        offset: usize,
    },
    /// `a[0]` in the libraries: each node is applied to the result of the one before. Further
    /// brackets are added to it, and a slice among them does not project.
    Indexed(Vec<Self>),
    /// `a.b` and `a | b`.
    Then(Box<Self>, Box<Self>),
    /// `a[*].b`, `a[].b`, `a[1:].b`: the second, applied to each item of the list that the first
    /// selects.
    Each(Box<Self>, Box<Self>),
    /// `a.*.b`: the same for the values of an object.
    Values {
        object: Box<Self>,
        each: Box<Self>,
        offset: usize,
    },
    Filter {
        list: Box<Self>,
        keep: Box<Self>,
        each: Box<Self>,
    },
    Flatten {
        list: Box<Self>,
        offset: usize,
    },
    List(Vec<Self>),
    Hash(Vec<(Text, Self)>),
    Or(Box<Self>, Box<Self>),
    And(Box<Self>, Box<Self>),
    Not(Box<Self>),
    Compare {
        by: Comparator,
        left: Box<Self>,
        right: Box<Self>,
        offset: usize,
    },
    Call {
        name: &'static str,
        arguments: Vec<Self>,
        offset: usize,
    },
    /// A call of a function of the user.
    Own {
        name: Arc<str>,
        function: Own,
        arguments: Vec<Self>,
        offset: usize,
    },
    /// `&a`.
    Reference(Box<Self>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Node {
    /// Whether it reads the data. `'orderId'` does not: it is a text, the same for every record.
    pub(crate) fn reads_data(&self) -> bool {
        let mut open = vec![self];
        while let Some(node) = open.pop() {
            if matches!(
                node,
                Self::Current | Self::Field { .. } | Self::Index(_) | Self::Slice { .. }
            ) {
                return true;
            }
            open.extend(node.children());
        }
        false
    }

    /// Whether its value can hold something of the record, rather than only depend on it.
    /// `at` says this of the value that it is applied to.
    pub(crate) fn can_hold_data(&self, at: bool) -> bool {
        match self {
            Self::Current | Self::Field { .. } | Self::Index(_) | Self::Slice { .. } => at,
            Self::Literal(_) | Self::Not(_) | Self::Compare { .. } | Self::Reference(_) => false,
            Self::Then(first, each) | Self::Each(first, each) => {
                each.can_hold_data(first.can_hold_data(at))
            }
            Self::Values { object: list, each, .. } | Self::Filter { list, each, .. } => {
                each.can_hold_data(list.can_hold_data(at))
            }
            Self::Indexed(nodes) => nodes.iter().fold(at, |at, node| node.can_hold_data(at)),
            Self::Call { name, .. } if signatures::few_results(name).is_some() => false,
            Self::Call { name: "map", arguments, .. } => match &**arguments {
                [Self::Reference(each), list] => each.can_hold_data(list.can_hold_data(at)),
                _ => at,
            },
            _ => self.sources().iter().any(|node| node.can_hold_data(at)),
        }
    }

    /// The list of parts that its value always is, as in `[a, b]` and `{x: a, y: b}`.
    pub(crate) fn listed(&self) -> Option<&Self> {
        match self {
            Self::List(_) | Self::Hash(_) => Some(self),
            Self::Then(_, last) => last.listed(),
            _ => None,
        }
    }

    /// Whether it is a condition, or has only a few values for another reason: its value does not
    /// identify a record.
    pub(crate) fn is_condition(&self) -> bool {
        match self {
            Self::Compare { .. } | Self::Not(_) => true,
            Self::And(left, right) | Self::Or(left, right) => {
                left.is_condition() && right.is_condition()
            }
            Self::Call { name, .. } => signatures::few_results(name).is_some(),
            Self::Then(_, last) => last.is_condition(),
            node => !node.reads_data(),
        }
    }

    /// The expressions whose values can become part of its value. The others are conditions, or
    /// decide an order.
    pub(crate) fn sources(&self) -> Vec<&Self> {
        match self {
            Self::Filter { list, each, .. } => vec![list, each],
            Self::Compare { .. } | Self::Not(_) => vec![],
            Self::And(_, right) => vec![right],
            // Except in `map`, a reference decides the order or the choice of items.
            Self::Call { name, arguments, .. } if *name != "map" => {
                arguments.iter().filter(|one| !matches!(one, Self::Reference(_))).collect()
            }
            node => node.children(),
        }
    }

    /// Whether its value is always a list or missing.
    pub(crate) const fn is_projection(&self) -> bool {
        matches!(self, Self::Each(..) | Self::Values { .. } | Self::Filter { .. })
    }

    /// The expressions that it consists of.
    pub(crate) fn children(&self) -> Vec<&Self> {
        match self {
            Self::Current
            | Self::Field { .. }
            | Self::Literal(_)
            | Self::Index(_)
            | Self::Slice { .. } => vec![],
            Self::Flatten { list: one, .. } | Self::Not(one) | Self::Reference(one) => vec![one],
            Self::Then(one, other)
            | Self::Each(one, other)
            | Self::Values { object: one, each: other, .. }
            | Self::Or(one, other)
            | Self::And(one, other)
            | Self::Compare { left: one, right: other, .. } => vec![one, other],
            Self::Filter { list, keep, each } => vec![list, keep, each],
            Self::Indexed(nodes)
            | Self::List(nodes)
            | Self::Call { arguments: nodes, .. }
            | Self::Own { arguments: nodes, .. } => nodes.iter().collect(),
            Self::Hash(members) => members.iter().map(|(_, node)| node).collect(),
        }
    }
}
