//! A JSON value with all that any variant sees of it: the order of members, numbers beyond 64 bits,
//! half surrogates.

use std::{cmp::Ordering, collections::HashMap, sync::Arc};

use super::{Variant, decimal::Decimal};

/// Cheap to clone.
#[derive(Clone)]
pub(crate) enum Value {
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
pub(crate) struct Number {
    pub(crate) kind: Kind,
    /// Whether no other number could have been written in its place.
    pub(crate) exact: bool,
}

#[derive(Clone)]
pub(crate) enum Kind {
    /// As decimal digits: of 64 bits in the standard, of any size in Python.
    Integer(Arc<str>),
    /// The standard's: with a point or an exponent, or beyond 64 bits.
    Decimal(Arc<Decimal>),
    Double(f64),
}

/// A text in either of two forms, so that equal texts have equal forms.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Text {
    Plain(Arc<str>),
    /// Code points with half surrogates among them; never in the standard.
    Codes(Arc<[u32]>),
}

/// The members of an object, in the order in which the variant goes through them.
pub(crate) struct Members {
    entries: Vec<(Text, Value)>,
    /// Whether they are in the order of their names.
    sorted: bool,
    /// Whether a name was given more than once; the last value counts.
    pub(crate) repeated: bool,
}

impl Value {
    pub(crate) fn text(text: &str) -> Self {
        Self::String(Text::from(text))
    }

    pub(crate) fn array(items: Vec<Self>) -> Self {
        Self::Array(items.into())
    }

    pub(crate) fn double(double: f64) -> Self {
        Self::Number(Number { kind: Kind::Double(double), exact: true })
    }

    pub(crate) fn decimal(decimal: Decimal) -> Self {
        Self::Number(Number { kind: Kind::Decimal(Arc::new(decimal)), exact: true })
    }

    /// From decimal digits, maybe after a minus.
    pub(crate) fn integer(digits: impl Into<Arc<str>>) -> Self {
        Self::Number(Number { kind: Kind::Integer(digits.into()), exact: true })
    }

    /// Another list for each that `replaced` knows; what holds none stays the same, and in its place.
    pub(crate) fn replacing(self, replaced: &impl Fn(&Arc<[Self]>) -> Option<Arc<[Self]>>) -> Self {
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
                    let Members { sorted, repeated, .. } = **members;
                    Self::Object(Arc::new(Members { entries, sorted, repeated }))
                })
            }
            _ => None,
        }
    }

    /// Whether each number in it is one that a double holds exactly.
    pub(crate) fn is_exact(&self) -> bool {
        match self {
            Self::Number(Number { kind: Kind::Decimal(decimal), .. }) => decimal.exact().is_some(),
            Self::Array(items) => items.iter().all(Self::is_exact),
            Self::Object(members) => members.iter().all(|(_, value)| value.is_exact()),
            _ => true,
        }
    }

    pub(crate) const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// JMESPath's idea of true: numbers always are.
    pub(crate) fn is_truthy(&self) -> bool {
        match self {
            Self::Undefined | Self::Null => false,
            Self::Bool(value) => *value,
            Self::Number(_) => true,
            Self::String(text) => !text.is_empty(),
            Self::Array(items) => !items.is_empty(),
            Self::Object(members) => !members.entries.is_empty(),
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::Plain(text.into())
    }
}

/// In the order of their code points, which is that of the bytes of UTF-8.
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

    /// Puts surrogates together that make a pair, as JavaScript's strings do by nature.
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

    /// How much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Plain(plain) => plain.len(),
            Self::Codes(codes) => 4 * codes.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.to_str() == Some("")
    }

    /// UTF-16, as JavaScript sees it.
    pub(crate) fn units(&self) -> Vec<u16> {
        self.each_unit().collect()
    }

    /// The same, one by one: a text is as long as its sender likes, and often its beginning decides.
    pub(crate) fn each_unit(&self) -> impl Iterator<Item = u16> {
        self.codes().flat_map(|code| {
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
    pub(crate) fn compare(&self, variant: Variant, other: &Self) -> Ordering {
        match variant {
            Variant::Standard | Variant::Python => self.cmp(other),
            Variant::TypeScript => self.each_unit().cmp(other.each_unit()),
        }
    }

    /// As Rust's text, if there is no half surrogate in it.
    pub(crate) fn to_str(&self) -> Option<&str> {
        match self {
            Self::Plain(plain) => Some(plain),
            Self::Codes(_) => None,
        }
    }

    /// For messages: half surrogates are replaced.
    pub(crate) fn shown(&self) -> String {
        self.codes().map(|code| char::from_u32(code).unwrap_or('\u{FFFD}')).collect()
    }

    pub(crate) fn is(&self, text: &str) -> bool {
        self.to_str() == Some(text)
    }
}

impl Members {
    /// Members as they were given. Of several of one name the last value counts, at the place of the
    /// first. JavaScript moves names that look like array indexes to the front; the standard has no
    /// order, and ours is that of the names.
    pub(crate) fn new(variant: Variant, mut given: Vec<(Text, Value)>) -> Self {
        let count = given.len();
        let sorted = variant == Variant::Standard;
        if sorted {
            // Stable: the last of several is that which was given last.
            given.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
        let mut entries: Vec<(Text, Value)> = Vec::with_capacity(count);
        let mut places: HashMap<Text, usize> = HashMap::new();
        for (name, value) in given {
            let at = match entries.last() {
                Some((last, _)) if sorted => (*last == name).then(|| entries.len() - 1),
                _ => places.get(&name).copied(),
            };
            match at.and_then(|at| entries.get_mut(at)) {
                Some(entry) => entry.1 = value,
                None => {
                    if !sorted {
                        places.insert(name.clone(), entries.len());
                    }
                    entries.push((name, value));
                }
            }
        }
        let repeated = entries.len() < count;
        if variant == Variant::TypeScript {
            // Stable: what is no index stays in its order, at the end.
            entries.sort_by_key(|(name, _)| array_index(name).unwrap_or(u64::MAX));
        }
        Self { entries, sorted, repeated }
    }

    /// Members that an expression puts together, where a later one may well replace another.
    pub(crate) fn merged(variant: Variant, given: Vec<(Text, Value)>) -> Self {
        Self { repeated: false, ..Self::new(variant, given) }
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
