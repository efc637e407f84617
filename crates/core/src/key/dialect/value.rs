//! A JSON value with all that either library sees of it: the order of members, numbers beyond 64
//! bits, half surrogates.

use std::{cmp::Ordering, collections::HashMap, sync::Arc};

use super::Library;

/// Cheap to clone.
#[derive(Clone)]
pub(super) enum Value {
    /// JavaScript's: no value at all.
    Undefined,
    Null,
    Bool(bool),
    Number(Number),
    String(Text),
    Array(Arc<[Value]>),
    Object(Arc<Members>),
}

/// A number, and whether it is the one that was written.
#[derive(Clone)]
pub(super) struct Number {
    pub(super) kind: Kind,
    /// Whether no other number could have been written in its place.
    pub(super) exact: bool,
}

#[derive(Clone)]
pub(super) enum Kind {
    /// Python's: of any size, as decimal digits.
    Integer(Arc<str>),
    Double(f64),
}

/// Code points, half surrogates among them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Text(pub(super) Arc<[u32]>);

/// The members of an object, in the order in which the library goes through them.
pub(super) struct Members {
    entries: Vec<(Text, Value)>,
    /// Whether a name was given more than once; the last value counts.
    pub(super) repeated: bool,
}

impl Value {
    pub(super) fn text(text: &str) -> Self {
        Self::String(Text::from(text))
    }

    pub(super) fn array(items: Vec<Self>) -> Self {
        Self::Array(items.into())
    }

    pub(super) fn double(double: f64) -> Self {
        Self::Number(Number { kind: Kind::Double(double), exact: true })
    }

    /// From decimal digits, maybe after a minus.
    pub(super) fn integer(digits: impl Into<Arc<str>>) -> Self {
        Self::Number(Number { kind: Kind::Integer(digits.into()), exact: true })
    }

    /// Another list for each that `replaced` knows; what holds none stays the same, and in its place.
    pub(super) fn replacing(self, replaced: &impl Fn(&Arc<[Self]>) -> Option<Arc<[Self]>>) -> Self {
        self.replaced(replaced).unwrap_or(self)
    }

    fn replaced(&self, replaced: &impl Fn(&Arc<[Self]>) -> Option<Arc<[Self]>>) -> Option<Self> {
        match self {
            Self::Array(items) => replaced(items).map(Self::Array).or_else(|| {
                let new: Vec<_> = items.iter().map(|item| item.replaced(replaced)).collect();
                let with = |(new, old): (Option<Self>, &Self)| new.unwrap_or_else(|| old.clone());
                let some = new.iter().any(Option::is_some);
                some.then(|| Self::array(new.into_iter().zip(items.iter()).map(with).collect()))
            }),
            Self::Object(members) => {
                let entries = || members.entries.iter();
                let new: Vec<_> = entries().map(|(_, value)| value.replaced(replaced)).collect();
                new.iter().any(Option::is_some).then(|| {
                    let with = |(new, (name, old)): (Option<Self>, &(Text, Self))| {
                        (name.clone(), new.unwrap_or_else(|| old.clone()))
                    };
                    let entries = new.into_iter().zip(entries()).map(with).collect();
                    Self::Object(Arc::new(Members { entries, repeated: members.repeated }))
                })
            }
            _ => None,
        }
    }

    pub(super) const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// JMESPath's idea of true: numbers always are.
    pub(super) fn is_truthy(&self) -> bool {
        match self {
            Self::Undefined | Self::Null => false,
            Self::Bool(value) => *value,
            Self::Number(_) => true,
            Self::String(text) => !text.0.is_empty(),
            Self::Array(items) => !items.is_empty(),
            Self::Object(members) => !members.entries.is_empty(),
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.chars().map(u32::from).collect())
    }
}

impl Text {
    /// Puts surrogates together that make a pair, as JavaScript's strings do by nature.
    pub(super) fn from_units(units: &[u16]) -> Self {
        let decoded = char::decode_utf16(units.iter().copied());
        let code = |unit: Result<char, _>| {
            unit.map_or_else(
                |e: std::char::DecodeUtf16Error| e.unpaired_surrogate().into(),
                u32::from,
            )
        };
        Self(decoded.map(code).collect())
    }

    /// UTF-16, as JavaScript sees it.
    pub(super) fn units(&self) -> Vec<u16> {
        let mut units = Vec::with_capacity(self.0.len());
        units.extend(self.each_unit());
        units
    }

    /// The same, one by one: a text is as long as its sender likes, and often its beginning decides.
    pub(super) fn each_unit(&self) -> impl Iterator<Item = u16> {
        self.0.iter().flat_map(|&code| {
            let mut pair = [0; 2];
            let units = match char::from_u32(code) {
                Some(c) => c.encode_utf16(&mut pair).len(),
                // Half a surrogate is one unit.
                None => {
                    pair = [u16::try_from(code).unwrap_or(0xFFFD), 0];
                    1
                }
            };
            pair.into_iter().take(units)
        })
    }

    /// Which comes first where the language compares what it counts: code points, or units of UTF-16.
    pub(super) fn compare(&self, library: Library, other: &Self) -> Ordering {
        match library {
            Library::Python => self.cmp(other),
            Library::TypeScript => self.each_unit().cmp(other.each_unit()),
        }
    }

    /// As Rust's text, if there is no half surrogate in it.
    pub(super) fn to_str(&self) -> Option<String> {
        self.0.iter().map(|&code| char::from_u32(code)).collect()
    }

    /// For messages: half surrogates are replaced.
    pub(super) fn shown(&self) -> String {
        self.0.iter().map(|&code| char::from_u32(code).unwrap_or('\u{FFFD}')).collect()
    }

    pub(super) fn is(&self, text: &str) -> bool {
        self.0.iter().copied().eq(text.chars().map(u32::from))
    }
}

impl Members {
    /// Members as they were given. Of several of one name the last value counts, at the place of the
    /// first; JavaScript moves names that look like array indexes to the front.
    pub(super) fn new(library: Library, given: Vec<(Text, Value)>) -> Self {
        let count = given.len();
        let mut places: HashMap<Text, usize> = HashMap::with_capacity(count);
        let mut entries: Vec<(Text, Value)> = Vec::with_capacity(count);
        for (name, value) in given {
            match places.get(&name).and_then(|&at| entries.get_mut(at)) {
                Some(entry) => entry.1 = value,
                None => {
                    places.insert(name.clone(), entries.len());
                    entries.push((name, value));
                }
            }
        }
        let repeated = entries.len() < count;
        if library == Library::TypeScript {
            // Stable: what is no index stays in its order, at the end.
            entries.sort_by_key(|(name, _)| array_index(name).unwrap_or(u64::MAX));
        }
        Self { entries, repeated }
    }

    /// Members that an expression puts together, where a later one may well replace another.
    pub(super) fn merged(library: Library, given: Vec<(Text, Value)>) -> Self {
        Self { repeated: false, ..Self::new(library, given) }
    }

    pub(super) fn get(&self, name: &Text) -> Option<&Value> {
        self.entries.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(Text, Value)> {
        self.entries.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// <https://tc39.es/ecma262/#array-index>
fn array_index(name: &Text) -> Option<u64> {
    let mut index = 0u64;
    for (at, &code) in name.0.iter().enumerate() {
        let digit = char::from_u32(code)?.to_digit(10)?;
        if at > 9 || (at == 1 && index == 0) {
            return None;
        }
        index = index * 10 + u64::from(digit);
    }
    (!name.0.is_empty() && index < u64::from(u32::MAX)).then_some(index)
}
