//! What an expression selects whatever the data, as far as its syntax says: always the same, one of
//! a few values, or the value of a member.

use std::cell::Cell;

use super::{
    SelectionError,
    document::MOST_BYTES,
    jmespath::{
        Losses, Variant,
        ast::Node,
        evaluate::{Budget, Evaluation},
        functions::Sorted,
        value::{Text, Value},
    },
};

/// What is known of a value before there is a record.
#[derive(Clone)]
enum Known<'n> {
    /// The same for every record.
    Constant(Value),
    /// The same for every record that has it, and `null` for others.
    ConstantIfThere(Value),
    /// One of a few, because of this function or operator.
    Few(&'static str),
    /// What is at this path of fields.
    Path(Vec<&'n str>),
    List(Vec<Self>),
    Hash(Vec<(&'n Text, Self)>),
    /// It has in it what is at these paths. Nothing is known if there are none.
    Holding(Vec<Held<'n>>),
}

/// A path of fields whose value is part of another, but for these of its members.
#[derive(Clone)]
struct Held<'n> {
    path: Vec<&'n str>,
    except: Vec<&'n Text>,
}

/// How many values are followed.
const LARGEST: usize = 1000;
/// How many steps are followed, and how many items are made of what is always the same, altogether.
const MOST_STEPS: usize = 1 << 18;
const NOTHING: Known<'static> = Known::Holding(Vec::new());

/// Whether the same is selected from every record.
pub(super) fn is_constant(node: &Node) -> bool {
    !node.reads_data() || known(node).is_constant()
}

/// Why all that is selected, or all that is selected from records of some kind, is one of a few
/// values: the function or operator that makes it so.
pub(super) fn few_values(node: &Node) -> Option<&'static str> {
    known(node).few()
}

/// Whether what is selected surely holds the member with this path, or something in it.
pub(super) fn selects(node: &Node, member: &str) -> bool {
    let member: Vec<&str> = member.split('.').collect();
    known(node).held().iter().any(|held| held.reaches(&member))
}

fn known(node: &Node) -> Known<'_> {
    let walk = Walk {
        evaluation: Evaluation {
            variant: Variant::Standard,
            losses: &Losses::default(),
            sorted: Sorted::default(),
            room: Cell::new(MOST_BYTES),
            budget: Budget::of(MOST_STEPS),
            looks: None,
            absences: None,
        },
        is_over: Cell::new(false),
    };
    let known = walk.follow(node, &Known::Path(Vec::new()));
    if walk.is_over.get() { NOTHING } else { known }
}

/// How far apart the values of different records are.
enum Variety {
    One,
    /// A few, because of this function or operator.
    Few(&'static str),
    Unknown,
}

impl Held<'_> {
    fn reaches(&self, member: &[&str]) -> bool {
        let next = member.get(self.path.len());
        self.path.iter().zip(member).all(|(one, other)| one == other)
            && !next.is_some_and(|next| self.except.iter().any(|name| name.is(next)))
    }
}

impl<'n> Known<'n> {
    fn variety(&self) -> Variety {
        match self {
            Self::Constant(_) | Self::ConstantIfThere(_) => Variety::One,
            Self::Few(by) => Variety::Few(by),
            Self::List(items) => together(items.iter()),
            Self::Hash(members) => together(members.iter().map(|(_, member)| member)),
            Self::Path(_) | Self::Holding(_) => Variety::Unknown,
        }
    }

    fn is_constant(&self) -> bool {
        matches!(self.variety(), Variety::One)
    }

    fn few(&self) -> Option<&'static str> {
        match self.variety() {
            Variety::Few(by) => Some(by),
            Variety::One | Variety::Unknown => None,
        }
    }

    /// The paths whose values are part of it.
    fn held(&self) -> Vec<Held<'n>> {
        match self {
            Self::Path(path) => vec![Held { path: path.clone(), except: Vec::new() }],
            Self::List(items) => items.iter().flat_map(Self::held).collect(),
            Self::Hash(members) => members.iter().flat_map(|(_, member)| member.held()).collect(),
            Self::Holding(held) => held.clone(),
            Self::Constant(_) | Self::ConstantIfThere(_) | Self::Few(_) => Vec::new(),
        }
    }

    /// Nothing is known of what is too large: expressions can multiply.
    fn bounded(self) -> Self {
        if self.size() > LARGEST { NOTHING } else { self }
    }

    fn size(&self) -> usize {
        1 + match self {
            Self::List(items) => items.iter().map(Self::size).sum(),
            Self::Hash(members) => members.iter().map(|(_, member)| member.size()).sum(),
            Self::Holding(held) => held.iter().map(|held| 1 + held.except.len()).sum(),
            Self::Path(path) => path.len(),
            Self::Constant(_) | Self::ConstantIfThere(_) | Self::Few(_) => 0,
        }
    }

    /// Another value that has in it what this has.
    fn kept(&self) -> Self {
        Self::Holding(self.held())
    }
}

fn together<'k, 'n: 'k>(parts: impl Iterator<Item = &'k Known<'n>>) -> Variety {
    let mut all = Variety::One;
    for part in parts {
        match (part.variety(), &all) {
            (Variety::Unknown, _) => return Variety::Unknown,
            (Variety::Few(by), Variety::One) => all = Variety::Few(by),
            _ => {}
        }
    }
    all
}

/// One way through an expression.
struct Walk<'w> {
    /// Of what is always the same. Its budget is of steps, too.
    evaluation: Evaluation<'w>,
    is_over: Cell<bool>,
}

impl Walk<'_> {
    /// What a node selects from what is at `at`; nothing is known after too many steps.
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
        if self.is_over.get() || self.evaluation.budget.spend_items(steps).is_err() {
            self.is_over.set(true);
        }
        !self.is_over.get()
    }

    /// What is known without counting the steps.
    fn step<'n>(&self, node: &'n Node, at: &Known<'n>) -> Known<'n> {
        // A list of parts of nothing is nothing, so that what is always the same may be missing. That is
        // not known of lists of parts either, which are nothing themselves then.
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
                // What is not true and a value is nothing, or `false`.
                (_, right) if right.is_constant() => Known::Few("`&&`"),
                (_, right) => right.few().map_or_else(|| right.kept(), Known::Few),
            },
            Node::Call { name, arguments, .. } => self.call(name, arguments, at),
            Node::Slice { .. }
            | Node::Values { .. }
            | Node::Filter { .. }
            | Node::Own { .. }
            | Node::Reference(_) => NOTHING,
        }
    }

    /// What is selected from what is always the same.
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
                if error == SelectionError::TooLong {
                    self.is_over.set(true);
                }
                NOTHING
            }
        }
    }

    /// What is selected from what is always the same or `null`.
    fn constant_if_there<'n>(&self, node: &'n Node, value: &Value, at: &Known<'n>) -> Known<'n> {
        match (self.constant(node, &Value::Null), self.constant(node, value)) {
            (Known::Constant(Value::Null), Known::Constant(value)) => Known::ConstantIfThere(value),
            _ => self.step(node, at),
        }
    }

    fn call<'n>(&self, name: &str, arguments: &'n [Node], at: &Known<'n>) -> Known<'n> {
        let by = match name {
            "length" => Some("`length`"),
            "type" => Some("`type`"),
            "contains" => Some("`contains`"),
            "starts_with" => Some("`starts_with`"),
            "ends_with" => Some("`ends_with`"),
            _ => None,
        };
        if let Some(by) = by {
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

    /// Members of later objects replace those of the same name before.
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
                // It may replace any of them.
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
            // One object: what is at its member is at a member of that path.
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

/// The first if that is true, else the other.
fn or<'n>(left: Known<'n>, right: impl Fn() -> Known<'n>) -> Known<'n> {
    match left {
        Known::Constant(left) if left.is_truthy() => Known::Constant(left),
        Known::Constant(_) => right(),
        Known::Few(by) => Known::Few(by),
        _ => NOTHING,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Expression;

    #[test]
    fn what_can_only_be_one_of_a_few_values() {
        for few in [
            "length(items)",
            "order.length(items)",
            "type(id)",
            "amount > `100`",
            "!paid",
            "contains(tags, 'a')",
            "starts_with(id, 'a')",
            "id && 'yes'",
            "(a == b) || 'no'",
            "(a == b) | @",
            "to_string(length(items))",
            "[length(items), type(id)]",
            "{n: length(items), x: 'x'}",
            "paid && (a == b)",
            "[a == b][0]",
            "{x: a == b, y: id}.x",
            "(paid == `true`) || id",
            "length(items) || id",
            "not_null(length(items), id)",
            "order.[length(items), 'v1']",
            "order.{n: type(@), v: 'v1'}",
        ] {
            assert!(Expression::compile(few).unwrap().few_values().is_some(), "{few}");
        }
        for many in [
            "id",
            "@",
            "[id, length(items)]",
            "{id: id, large: amount > `100`}",
            "items[?paid == `true`].id",
            "(a == b) && id",
            "id || (a == b)",
            "not_null(id, length(items))",
            "[id, a == b][0]",
            "items[*].type(id)",
            "to_string(id)",
            "sum(items)",
            "'constant'",
        ] {
            assert_eq!(Expression::compile(many).unwrap().few_values(), None, "{many}");
        }
    }

    #[test]
    fn what_is_always_the_same() {
        for constant in [
            "'x'",
            "id | 'x'",
            "'x' || id",
            "not_null('x', id)",
            "{a: 'x', b: id}.a",
            "[id, 'x'][1]",
            "['x', 'y']",
            "[['x', id][0], `1`]",
            "'x' && 'y'",
            "not_null(`null`, 'x', id)",
            "order.['x']",
            "order.{v: 'x'}",
            "order.{v: 'x'}.v",
            "order.['x', `{\"a\":\"y\"}`] | [1].a",
            "order.[['x']]",
            "[order.['x'], 'y']",
        ] {
            assert!(Expression::compile(constant).unwrap().is_constant(), "{constant}");
        }
        for other in [
            "id",
            "id || 'x'",
            "'' || id",
            "[id, 'x']",
            "not_null(id, 'x')",
            "{a: 'x', b: id}.b",
            "a.{k: 'x'}.k || id",
            "merge({a: 'x'}, @).a",
            "order.['x'] || id",
            "(order.['x'])[0] || id",
            "(order.[a].['x'])[0] || id",
            "not_null(order.['x'][0], id)",
            "[order.['x'], id]",
            "order.['x', id]",
        ] {
            assert!(!Expression::compile(other).unwrap().is_constant(), "{other}");
        }
    }

    /// Each of these stands for millions of values.
    #[test]
    fn expressions_that_multiply_are_not_followed_for_ever() {
        for (first, by) in [("@", " | [@,@]"), ("`1`", " | [@,@]"), ("[@]", " | [@,@,@][]")] {
            let expression = format!("{first}{}", by.repeat(30));
            let expression = Expression::compile(&expression).unwrap();
            assert!(!expression.selects("a") && expression.few_values().is_none());
        }
    }

    /// The first stands for 125 million values, the second for 10^7 steps to one of them, the third
    /// evaluates what is always the same as often.
    #[test]
    fn maps_of_maps_are_not_followed_for_ever() {
        let list = |item: &str| format!("[{}]", vec![item; 400].join(","));
        let (many, few) = (list("@"), format!("[{}]", ["@"; 150].join(",")));
        let nested =
            |depth: usize| "map(&".repeat(depth) + "@" + &format!(", {few})").repeat(depth);
        for text in [
            format!(
                "{many} | map(&[@,@,@,@,@,@,@,@,@,@], @) | map(&map(&[@,@,@,@,@,@,@,@,@,@], @), @)"
            ),
            format!("{few} | map(&map(&map(&map(&{few}, @), {few}), {few}), @)"),
            nested(8),
            format!("{} | map(&map(&map(&map(&@, {few}), {few}), {few}), @)", list("`1`")),
        ] {
            let expression = Expression::compile(&text).unwrap();
            let selects = expression.selects("a");
            assert!(!selects && !expression.is_constant(), "{text}");
            assert_eq!(expression.few_values(), None, "{text}");
        }
    }

    /// Each level asked its parts twice.
    #[test]
    fn lists_in_lists_are_followed_once() {
        let nested = |part: &str| "[".repeat(80) + part + &"]".repeat(80);
        let few = |text: &str| Expression::compile(text).unwrap().few_values();
        assert_eq!(few(&nested("type(a)")), Some("`type`"));
        assert_eq!(few(&nested("a")), None);
    }

    #[test]
    fn what_surely_holds_a_member() {
        let selects = |text, member| Expression::compile(text).unwrap().selects(member);
        for text in [
            "@",
            "a",
            "a.b",
            "a.b.c",
            "a | b",
            "[id, a.b]",
            "{x: a}",
            "@.a",
            "to_string(@)",
            "values(a)",
            "a.*",
            "*",
            "id && a.b",
            "join('-', [id, a.b])",
            "[a.b][0]",
            "[id, a.b][-1]",
            "[id, a.b] | @[1]",
            "{x: a, y: id}.x.b",
            "not_null(a.b)",
            "merge(@, {x: 'y'})",
            "merge({a: id}, {a: a.b})",
            "sort([id, a.b])",
            "map(&@, [id, a.b])",
            "[a.b][]",
            "[{x: a.b}][*].x",
        ] {
            assert!(selects(text, "a.b"), "{text}");
        }
        for text in [
            "id",
            "b",
            "a.c",
            "[id, a.c]",
            "id || a.b",
            "a.b == 'x'",
            "b.a",
            "x.a.b",
            "a.*.c",
            "[id, a.b][0]",
            "{x: a.b, y: id}.y",
            "merge(@, {a: id})",
            "merge({a: a.b}, {a: id})",
            "not_null(id, a.b)",
        ] {
            assert!(!selects(text, "a.b"), "{text}");
        }
        let looks_at = |text| Expression::compile(text).unwrap().looks_at("a.b");
        assert!(looks_at("id || a.b") && looks_at("a.b == 'x' && id") && looks_at("a"));
        assert!(!looks_at("a.c") && !looks_at("id"));
    }
}
