//! A parsed expression, and the fields that it reads, found in its syntax: only these are parsed.

use std::collections::BTreeMap;

use super::value::Text;

#[derive(Clone)]
pub(crate) enum Node {
    /// `@`.
    Current,
    Field(Text),
    Index(i64),
    /// `a.b` and `a | b`.
    Then(Box<Self>, Box<Self>),
    /// `a[*].b`: the second, applied to each item of the list that the first selects.
    Each(Box<Self>, Box<Self>),
    List(Vec<Self>),
    Hash(Vec<(Text, Self)>),
    /// The first argument that is not `null`.
    NotNull(Vec<Self>),
    /// A call of a function that decodes a text.
    Decode {
        encoding: Encoding,
        text: Box<Self>,
        /// The position of the call in the expression, in characters.
        offset: usize,
    },
}

/// The encoding that a function decodes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Base64,
    Base64Gzip,
    /// `application/x-www-form-urlencoded`, one text of it.
    Url,
}

/// The shape of a value, as far as the expression alone tells it.
pub(crate) enum Known<'n> {
    /// A list of this many parts.
    List(usize),
    /// A list with an item for each item of another one.
    Items,
    Hash(&'n [(Text, Node)]),
    Nothing,
}

impl Node {
    /// The list of parts that its value always is, as in `[a, b]` and `{x: a, y: b}`.
    pub(crate) fn listed(&self) -> Option<&Self> {
        match self {
            Self::List(_) | Self::Hash(_) => Some(self),
            Self::Then(_, last) => last.listed(),
            _ => None,
        }
    }

    /// The shape of its value, unless that is `null`.
    pub(crate) fn known(&self) -> Known<'_> {
        match self {
            Self::List(parts) => Known::List(parts.len()),
            Self::Hash(parts) => Known::Hash(parts),
            Self::Each(..) => Known::Items,
            Self::Then(_, last) => last.known(),
            _ => Known::Nothing,
        }
    }

    /// Its first step.
    pub(crate) fn first(&self) -> &Self {
        match self {
            Self::Then(first, _) => first.first(),
            node => node,
        }
    }
}

/// The part of a value that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of it.
    All,
    /// Whether it is present, and these members of it.
    Members(BTreeMap<String, Wanted>),
}

impl Wanted {
    pub(crate) const fn none() -> Self {
        Self::Members(BTreeMap::new())
    }

    /// Whether a document that was read with `self` has all fields of `other`.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Members(_), Self::All) => false,
            (Self::Members(read), Self::Members(wanted)) => wanted
                .iter()
                .all(|(name, wanted)| read.get(name).is_some_and(|read| read.covers(wanted))),
        }
    }

    /// Whether the member with this path is read.
    pub(crate) fn reaches(&self, member: &str) -> bool {
        let mut wanted = Some(self);
        for name in member.split('.') {
            wanted = match wanted {
                Some(Self::Members(members)) => members.get(name),
                other => other,
            };
        }
        wanted.is_some()
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        match (&mut *self, other) {
            (Self::Members(members), Self::Members(others)) => {
                for (name, other) in others {
                    members.entry(name.clone()).or_insert_with(Self::none).merge(other);
                }
            }
            (Self::Members(_), Self::All) => *self = Self::All,
            (Self::All, _) => {}
        }
    }
}

/// The fields that an expression reads: of the document, and of each nested JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldSets {
    pub(crate) document: Wanted,
    /// By the offset of the call of `json` that reads it.
    pub(crate) texts: BTreeMap<usize, Wanted>,
}

/// Where a value comes from: a path in the document or, with the offset of the call, in nested
/// JSON; `None` for a computed value.
type Location<'a> = Option<(Option<usize>, Vec<&'a str>)>;

impl FieldSets {
    pub(crate) fn of(node: &Node) -> Self {
        let mut found = Self { document: Wanted::none(), texts: BTreeMap::new() };
        found.use_of(node, Some((None, vec![])));
        found
    }

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
            Node::Field(name) => {
                return at.and_then(|(text, mut path)| {
                    path.push(name.to_str()?);
                    Some((text, path))
                });
            }
            Node::Then(first, second) => {
                let first = self.walk(first, at);
                return self.walk(second, first);
            }
            Node::Index(_) => self.mark(at),
            Node::Decode { encoding, text, offset } => {
                self.use_of(text, at);
                if *encoding == Encoding::Json {
                    self.texts.insert(*offset, Wanted::none());
                    return Some((Some(*offset), vec![]));
                }
            }
            // On `null`, a list of parts is `null`, so the value it is applied to is read too.
            Node::List(parts) => {
                self.touch(at.clone());
                parts.iter().for_each(|part| self.use_of(part, at.clone()));
            }
            Node::Hash(parts) => {
                self.touch(at.clone());
                parts.iter().for_each(|(_, part)| self.use_of(part, at.clone()));
            }
            Node::NotNull(arguments) => {
                arguments.iter().for_each(|argument| self.use_of(argument, at.clone()));
            }
            // It is applied to the items of a value that is read as a whole.
            Node::Each(list, each) => {
                self.use_of(list, at);
                self.use_of(each, None);
            }
        }
        None
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
            ("[a.b, a]", "{a:*}"),
            ("a | b", "{a:{b:*}}"),
            ("@.a", "{a:*}"),
            ("json(body).id", "{body:*}"),
            ("a.json(body).id", "{a:{body:*}}"),
            ("a.list[0].id", "{a:{list:*}}"),
            ("list[*].id", "{list:*}"),
            ("not_null(a.b, c)", "{a:{b:*},c:*}"),
            ("[0]", "*"),
        ] {
            assert_eq!(reads(expression), expected, "{expression}");
        }
    }

    #[test]
    fn of_texts_too() {
        for (expression, expected) in [
            ("json(body).[tenant, order.id]", vec!["{order:{id:*},tenant:*}"]),
            ("[json(a).b, json(json(a).c)]", vec!["{b:*}", "*", "{c:*}"]),
            ("list[*].json(@).id", vec!["{id:*}"]),
            ("json(body)", vec!["*"]),
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
}
