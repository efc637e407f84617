//! A JSON value with every detail that a variant can observe: the order of members, numbers beyond
//! 64 bits, and half surrogates in texts. And why a value cannot be a key: a part of it is missing, or distinct records
//! can share it under Powertools.

use std::{
    cell::Cell,
    cmp::Ordering,
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

/// The most bytes of a document: more than any event that Lambda delivers (6 MB).
pub(crate) const MOST_BYTES: usize = 8 << 20;

/// The implementation whose semantics are used. Comments mark where they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// The specification, with exact numbers.
    Standard,
    /// `jmespath.py`, which Powertools for Python uses.
    Python(OfPowertools),
    /// `@aws-lambda-powertools/jmespath`.
    TypeScript(OfPowertools),
}

/// No value without the feature, so that no program contains what only these variants do.
#[cfg(not(feature = "powertools"))]
type OfPowertools = std::convert::Infallible;
#[cfg(feature = "powertools")]
type OfPowertools = ();

impl Variant {
    pub(crate) const fn is_python(self) -> bool {
        matches!(self, Self::Python(_))
    }

    pub(crate) const fn is_typescript(self) -> bool {
        matches!(self, Self::TypeScript(_))
    }
}

/// Cheap to clone.
#[derive(Clone)]
pub(crate) enum Value {
    /// JavaScript's `undefined`.
    Undefined,
    Null,
    Bool(bool),
    Number(Number),
    String(Text),
    Array(Arc<[Value]>),
    Object(Arc<Members>),
}

/// A number, and whether it is exactly the number that was written.
#[derive(Clone)]
pub(crate) struct Number {
    pub(crate) kind: Kind,
    /// Whether no other number has the same representation.
    pub(crate) exact: bool,
}

#[derive(Clone)]
pub(crate) enum Kind {
    /// Decimal digits: at most 64 bits in the standard variant, any size in Python.
    Integer(Arc<str>),
    /// With a point or an exponent, or beyond 64 bits: the nearest double.
    Double(f64),
}

/// The members of an object, in the order in which the variant iterates over them.
pub(crate) struct Members {
    entries: Vec<(Text, Value)>,
    /// Whether the members are sorted by name.
    sorted: bool,
    /// Whether a name occurred more than once. The last value is used.
    pub(crate) repeated: bool,
}

impl Value {
    pub(crate) fn text(text: &str) -> Self {
        Self::String(Text::from(text))
    }

    pub(crate) fn array(items: Vec<Self>) -> Self {
        Self::Array(items.into())
    }

    /// An integer from decimal digits, with an optional minus.
    pub(crate) fn integer(digits: impl Into<Arc<str>>) -> Self {
        Self::Number(Number { kind: Kind::Integer(digits.into()), exact: true })
    }

    pub(crate) const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// <https://tc39.es/ecma262/#sec-toboolean>
    pub(crate) fn is_truthy_to_javascript(&self) -> bool {
        match self {
            Self::Undefined | Self::Null => false,
            Self::Bool(value) => *value,
            Self::Number(Number { kind: Kind::Double(double), .. }) => {
                *double != 0.0 && !double.is_nan()
            }
            Self::Number(Number { kind: Kind::Integer(digits), .. }) => &**digits != "0",
            Self::String(text) => !text.is_empty(),
            Self::Array(_) | Self::Object(_) => true,
        }
    }

    /// The type's name, for messages.
    pub(crate) const fn type_name(&self) -> &'static str {
        match self {
            Self::Undefined => "unknown",
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }
}

impl Members {
    /// The members of a parsed object. If a name occurs several times, the last value is used, at
    /// the position of the first. JavaScript moves names that are array indexes to the front. The
    /// standard defines no order; ours is by name.
    pub(crate) fn new(variant: Variant, mut given: Vec<(Text, Value)>) -> Self {
        let count = given.len();
        let sorted = variant == Variant::Standard;
        if sorted {
            // The sort is stable, so the last of several members of a name stays the last.
            given.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
        let mut entries: Vec<(Text, Value)> = Vec::with_capacity(count);
        let mut positions: HashMap<Text, usize> = HashMap::new();
        for (name, value) in given {
            let at = match entries.last() {
                Some((last, _)) if sorted => (*last == name).then(|| entries.len() - 1),
                _ => positions.get(&name).copied(),
            };
            match at.and_then(|at| entries.get_mut(at)) {
                Some(entry) => entry.1 = value,
                None => {
                    if !sorted {
                        positions.insert(name.clone(), entries.len());
                    }
                    entries.push((name, value));
                }
            }
        }
        let repeated = entries.len() < count;
        if variant.is_typescript() {
            // The sort is stable, so names that are not indexes keep their order, at the end.
            entries.sort_by_key(|(name, _)| array_index(name).unwrap_or(u64::MAX));
        }
        Self { entries, sorted, repeated }
    }

    pub(crate) fn get(&self, name: &Text) -> Option<&Value> {
        let found = if self.sorted {
            let at = self.entries.binary_search_by(|(own, _)| own.cmp(name)).ok();
            at.and_then(|at| self.entries.get(at))
        } else {
            self.entries.iter().find(|(own, _)| own == name)
        };
        found.map(|(_, value)| value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(Text, Value)> {
        self.entries.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// <https://tc39.es/ecma262/#array-index>
fn array_index(name: &Text) -> Option<u64> {
    let mut index = 0u64;
    for (at, code) in name.codes().enumerate() {
        let digit = char::from_u32(code)?.to_digit(10)?;
        if at > 9 || (at == 1 && index == 0) {
            return None;
        }
        index = index * 10 + u64::from(digit);
    }
    (!name.is_empty() && index < u64::from(u32::MAX)).then_some(index)
}

/// Whether a value is there, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// `null`, or nothing.
    Missing,
    /// `""`, `[]` or `{}`.
    Empty,
    Present,
}

impl Presence {
    pub(crate) fn of(value: &Value) -> Self {
        let is_empty = match value {
            Value::Undefined | Value::Null => return Self::Missing,
            Value::Bool(_) | Value::Number(_) => false,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.len() == 0,
        };
        if is_empty { Self::Empty } else { Self::Present }
    }
}

/// A text, in one of two forms. Equal texts always have the same form.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Text {
    Plain(Arc<str>),
    /// Code points that include half surrogates; never in the standard variant.
    Codes(Arc<[u32]>),
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::Plain(text.into())
    }
}

/// Ordered by code points, as the bytes of UTF-8 are.
impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Plain(one), Self::Plain(other)) => one.cmp(other),
            (one, other) => one.codes().cmp(other.codes()),
        }
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Text {
    pub(crate) fn from_codes(codes: Vec<u32>) -> Self {
        let plain: Option<String> = codes.iter().map(|&code| char::from_u32(code)).collect();
        plain.map_or_else(|| Self::Codes(codes.into()), |plain| Self::Plain(plain.into()))
    }

    /// Combines surrogate pairs into code points.
    pub(crate) fn from_units(units: &[u16]) -> Self {
        let decoded = char::decode_utf16(units.iter().copied());
        let code = |unit: Result<char, _>| {
            unit.map_or_else(
                |e: std::char::DecodeUtf16Error| e.unpaired_surrogate().into(),
                u32::from,
            )
        };
        Self::from_codes(decoded.map(code).collect())
    }

    pub(crate) fn codes(&self) -> impl Iterator<Item = u32> {
        let (plain, codes): (&str, &[u32]) = match self {
            Self::Plain(plain) => (plain, &[]),
            Self::Codes(codes) => ("", codes),
        };
        plain.chars().map(u32::from).chain(codes.iter().copied())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.to_str() == Some("")
    }

    /// The UTF-16 units, as in JavaScript.
    pub(crate) fn units(&self) -> Vec<u16> {
        let mut units = Vec::new();
        for code in self.codes() {
            match char::from_u32(code) {
                Some(c) => units.extend(c.encode_utf16(&mut [0; 2]).iter()),
                // A half surrogate is one unit.
                None => units.push(u16::try_from(code).unwrap_or(0xFFFD)),
            }
        }
        units
    }

    /// The text as a `str`, if it has no half surrogates.
    pub(crate) fn to_str(&self) -> Option<&str> {
        match self {
            Self::Plain(plain) => Some(plain),
            Self::Codes(_) => None,
        }
    }

    /// The text for messages, with half surrogates replaced.
    pub(crate) fn shown(&self) -> String {
        self.codes().map(|code| char::from_u32(code).unwrap_or('\u{FFFD}')).collect()
    }

    pub(crate) fn is(&self, text: &str) -> bool {
        self.to_str() == Some(text)
    }
}

/// A part that is missing or empty, with its place from the innermost list outwards.
pub(crate) struct Absent {
    pub(crate) presence: Presence,
    place: Vec<String>,
}

impl Absent {
    pub(super) fn at(presence: Presence, label: String) -> Self {
        Self { presence, place: vec![label] }
    }

    pub(super) fn within(mut self, label: String) -> Self {
        self.place.push(label);
        self
    }

    /// Its place, from the outermost list inwards.
    pub(crate) fn place(self) -> String {
        self.place.into_iter().rev().collect::<Vec<_>>().join(", ")
    }
}

/// The parts of an expression that may be missing: by name if the expression names its parts (`{x: a}`), otherwise by
/// index, from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Optional {
    pub(crate) names: BTreeSet<String>,
    pub(crate) positions: BTreeSet<usize>,
}

/// How distinct records can get the same key under Powertools. The message never quotes the
/// selected value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Collision {
    /// A number that is not distinct from others: a double cannot hold it exactly, or (in
    /// TypeScript) its double has other integers too.
    #[error("it selects a number that the variant cannot distinguish from others")]
    Number,
    /// An object with two members of one name, of which the last counts.
    #[error("it selects from an object that names a member twice")]
    RepeatedMember,
    /// A member named `__proto__`, which TypeScript leaves out.
    #[error("it selects a member `__proto__`, which the variant leaves out")]
    Prototype,
    /// A value that is `undefined` in JavaScript, and is left out or becomes `null`.
    #[error("it selects something undefined, which the variant leaves out")]
    Undefined,
    /// `0`, `false`, or a list or object of such values, which TypeScript treats as missing.
    #[error("it selects only values that the variant treats as missing")]
    TakenForMissing,
    /// Text that is not UTF-8, which TypeScript replaces.
    #[error("it decodes bytes that are not UTF-8, which the variant replaces")]
    Text,
    /// The record belongs to a tenant, which the variant does not add to its keys.
    #[error("the record has a tenant, which the variant leaves out")]
    Tenant,
}

/// The first collision that an evaluation found in the values it used.
#[derive(Default)]
pub(crate) struct Collisions {
    first: Cell<Option<Collision>>,
}

impl Collisions {
    /// The first one, if there was any.
    pub(crate) const fn first(&self) -> Option<Collision> {
        self.first.get()
    }

    /// Records a collision, unless one was recorded before.
    pub(crate) fn note(&self, collision: Collision) {
        if self.first.get().is_none() {
            self.first.set(Some(collision));
        }
    }

    pub(crate) fn see_members(&self, members: &Members) {
        if members.repeated {
            self.note(Collision::RepeatedMember);
        }
    }
}
