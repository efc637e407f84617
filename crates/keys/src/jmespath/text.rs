//! The text of a string or a name, which in Python and JavaScript may have half surrogates.

use std::{cmp::Ordering, sync::Arc};

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
