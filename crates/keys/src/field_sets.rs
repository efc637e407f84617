//! Finds the fields that an expression reads, from its syntax.

use std::collections::BTreeMap;

use super::jmespath::{ast::Node, signatures, wanted::Wanted};

/// The fields that an expression reads: of the document, and of each nested JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldSets {
    pub(super) document: Wanted,
    /// By the offset of the call of `json` that reads it.
    pub(super) texts: BTreeMap<usize, Wanted>,
}

/// Where a value comes from: a path in the document or, with the offset of the call, in nested
/// JSON; `None` for a computed value.
type Location<'a> = Option<(Option<usize>, Vec<&'a str>)>;

/// Collects the fields while it follows an expression.
struct Walk {
    document: Wanted,
    texts: BTreeMap<usize, Wanted>,
    /// Whether it leaves out what decides about a value, and cannot become part of one.
    values_only: bool,
}

impl FieldSets {
    pub(super) fn of(node: &Node) -> Self {
        Self::walked(node, false)
    }

    /// The fields whose values can become part of the expression's value.
    pub(super) fn of_values(node: &Node) -> Self {
        Self::walked(node, true)
    }

    fn walked(node: &Node, values_only: bool) -> Self {
        let mut walk = Walk { document: Wanted::none(), texts: BTreeMap::new(), values_only };
        walk.use_of(node, Some((None, vec![])));
        Self { document: walk.document, texts: walk.texts }
    }
}

impl Walk {
    /// Marks the value at the location as read as a whole.
    fn mark(&mut self, location: Location<'_>) {
        if let Some(node) = self.touch(location) {
            *node = Wanted::All;
        }
    }

    /// Marks the location as read for whether it has a value.
    fn touch(&mut self, location: Location<'_>) -> Option<&mut Wanted> {
        let (text, path) = location?;
        let mut node = match text {
            None => &mut self.document,
            Some(offset) => self.texts.get_mut(&offset)?,
        };
        for name in path {
            let Wanted::Members(members) = node else { return None };
            node = members.entry(name.to_owned()).or_insert_with(Wanted::none);
        }
        Some(node)
    }

    /// Follows an expression from a location to the location of its value, marking what it uses.
    fn walk<'a>(&mut self, node: &'a Node, at: Location<'a>) -> Location<'a> {
        match node {
            Node::Current => return at,
            Node::Field { name, .. } => {
                return at.and_then(|(text, mut path)| {
                    path.push(name.to_str()?);
                    Some((text, path))
                });
            }
            Node::Then(first, second) => {
                let first = self.walk(first, at);
                return self.walk(second, first);
            }
            Node::Literal(_) => {}
            Node::Index(_) | Node::Slice { .. } => self.mark(at),
            Node::Call { name, arguments, offset } if signatures::is_json(name) => {
                arguments.iter().for_each(|argument| self.use_of(argument, at.clone()));
                self.texts.insert(*offset, Wanted::none());
                return Some((Some(*offset), vec![]));
            }
            // On `null`, a list of parts is `null`, so the value it is applied to is read too.
            Node::List(_) | Node::Hash(_) | Node::Call { .. } | Node::Own { .. } => {
                self.touch(at.clone());
                self.parts(node).into_iter().for_each(|node| self.use_of(node, at.clone()));
            }
            Node::Compare { .. }
            | Node::And(..)
            | Node::Or(..)
            | Node::Not(_)
            | Node::Flatten { .. } => {
                self.parts(node).into_iter().for_each(|node| self.use_of(node, at.clone()));
            }
            // They are applied to the items of a value that is read as a whole.
            Node::Each(list, each) | Node::Values { object: list, each, .. } => {
                self.use_of(list, at);
                self.use_of(each, None);
            }
            Node::Filter { list, keep, each } => {
                self.use_of(list, at);
                if !self.values_only {
                    self.use_of(keep, None);
                }
                self.use_of(each, None);
            }
            Node::Reference(node) => self.use_of(node, None),
            // Only in the Powertools variants, whose documents are read as a whole.
            Node::Indexed(_) => self.mark(at),
        }
        None
    }

    fn parts<'a>(&self, node: &'a Node) -> Vec<&'a Node> {
        if self.values_only { node.sources() } else { node.children() }
    }

    fn use_of<'a>(&mut self, node: &'a Node, at: Location<'a>) {
        let location = self.walk(node, at);
        self.mark(location);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Expression, FieldSet};

    fn show(node: &Wanted) -> String {
        match node {
            Wanted::All => "*".to_owned(),
            Wanted::Members(members) => {
                let members = members.iter().map(|(name, node)| format!("{name}:{}", show(node)));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
        }
    }

    fn reads(expression: &str) -> String {
        show(&Expression::compile(expression).unwrap().looks.document)
    }

    #[test]
    fn fields_are_read_and_what_is_computed_on_is_read_as_a_whole() {
        for (expression, expected) in [
            ("id", "{id:*}"),
            ("@", "*"),
            ("a.b.c", "{a:{b:{c:*}}}"),
            ("[tenant, order.id]", "{order:{id:*},tenant:*}"),
            ("{x: a.b, y: a.c}", "{a:{b:*,c:*}}"),
            ("a.[b, c.d]", "{a:{b:*,c:{d:*}}}"),
            ("a.['x']", "{a:{}}"),
            ("[a.{x: 'x'}, b.length('x')]", "{a:{},b:{}}"),
            ("[a.b, a]", "{a:*}"),
            ("a | b", "{a:{b:*}}"),
            ("@.a", "{a:*}"),
            ("json(body).id", "{body:*}"),
            ("a.list[0].id", "{a:{list:*}}"),
            ("list[?x == `1`].id", "{list:*}"),
            ("list[*].id", "{list:*}"),
            ("a.*.id", "{a:*}"),
            ("a.b || c", "{a:{b:*},c:*}"),
            ("a.b && c.d == e", "{a:{b:*},c:{d:*},e:*}"),
            ("!(a.b)", "{a:{b:*}}"),
            ("!a.b", "{a:*}"),
            ("sort_by(list, &x)", "{list:*}"),
            ("map(&a.b, list)", "{list:*}"),
            ("length(@)", "*"),
            ("[0]", "*"),
            ("*", "*"),
            ("'x'", "{}"),
        ] {
            assert_eq!(reads(expression), expected, "{expression}");
        }
    }

    #[test]
    fn of_texts_too() {
        for (expression, expected) in [
            ("json(body).[tenant, order.id]", vec!["{order:{id:*},tenant:*}"]),
            ("[json(a).b, powertools_json(json(a).c)]", vec!["{b:*}", "*", "{c:*}"]),
            ("map(&json(@).id, list)", vec!["{id:*}"]),
            ("json(body)", vec!["*"]),
            ("length(json(body))", vec!["*"]),
            ("json(body)[0].id", vec!["*"]),
            ("base64(body)", vec![]),
        ] {
            let looks = Expression::compile(expression).unwrap().looks;
            let texts: Vec<_> = looks.texts.values().map(show).collect();
            assert_eq!(texts, expected, "{expression}");
        }
    }

    #[test]
    fn what_covers_what() {
        let of = |text: &str| Expression::compile(text).unwrap();
        let both = FieldSet::of([&of("a.b"), &of("c")]);
        for covered in ["a.b", "c", "c.d", "a.b.c[0]", "[a.b, c]"] {
            assert!(both.document.covers(&of(covered).looks.document), "{covered}");
        }
        for not in ["a", "@", "d", "a.c", "[c, a.b, d]"] {
            assert!(!both.document.covers(&of(not).looks.document), "{not}");
        }
    }

    #[test]
    fn members_that_only_conditions_read_are_not_among_the_values() {
        for (text, held) in [
            ("status == 'PAID' && id", &["id"][..]),
            ("[id, total > `100`, !paid]", &["id"]),
            ("[id, status == 'PAID' && version]", &["id", "version"]),
            ("a || b", &["a", "b"]),
            ("items[?paid].id", &["items"]),
            ("sort_by(items, &n)", &["items"]),
            ("join('-', [tenant, id])", &["id", "tenant"]),
            ("@", &[""]),
        ] {
            assert_eq!(Expression::compile(text).unwrap().value_paths(), held, "{text}");
        }
    }
}
