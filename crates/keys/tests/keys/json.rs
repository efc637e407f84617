//! A model of JSON values, and many ways to write each.

use std::collections::BTreeMap;

use proptest::prelude::*;

/// A JSON value whose numbers are integers; `numbers` tests the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Integer(i128),
    Text(String),
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

/// Integers of 64 bits, with and without sign; small ones and the extremes often.
pub(crate) fn integer() -> impl Strategy<Value = i128> {
    prop_oneof![
        (-3..=3_i128),
        any::<i64>().prop_map(i128::from),
        any::<u64>().prop_map(i128::from),
        ((1_i128 << 53) - 2..=(1 << 53) + 2),
        Just(i128::from(i64::MIN)),
        Just(i128::from(u64::MAX)),
    ]
}

/// Texts that are easily confused with each other, or with structure.
pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[a-c]{1,3}",
        "[\"\\\\,:\\[\\]{}01 \u{0}\u{7f}é\u{1F600}]{0,6}",
        Just("null".to_owned()),
        Just("1".to_owned()),
        any::<String>(),
    ]
}

pub(crate) fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        integer().prop_map(Json::Integer),
        text().prop_map(Json::Text),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::List),
            prop::collection::btree_map(text(), inner, 0..4).prop_map(Json::Object),
        ]
    })
}

impl Json {
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Text(text) => text.is_empty(),
            Self::List(items) => items.is_empty(),
            Self::Object(members) => members.is_empty(),
            Self::Bool(_) | Self::Integer(_) => false,
        }
    }

    /// The value as JSON text; `style` decides about white space, escapes and the order of members.
    pub(crate) fn written(&self, style: u64) -> String {
        let mut out = String::new();
        self.write(&mut Style(style), &mut out);
        out
    }

    fn write(&self, style: &mut Style, out: &mut String) {
        style.space(out);
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => out.push_str(&value.to_string()),
            Self::Integer(value) => out.push_str(&value.to_string()),
            Self::Text(text) => style.string(text, out),
            Self::List(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    item.write(style, out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                if style.flip() {
                    members.reverse();
                }
                out.push('{');
                for (at, (name, value)) in members.into_iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    style.space(out);
                    style.string(name, out);
                    style.space(out);
                    out.push(':');
                    value.write(style, out);
                }
                out.push('}');
            }
        }
        style.space(out);
    }
}

/// A sequence of choices; 0 always chooses the plain form.
struct Style(u64);

impl Style {
    fn flip(&mut self) -> bool {
        // Xorshift; 0 stays 0.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 & 4 != 0
    }

    fn space(&mut self, out: &mut String) {
        if self.flip() {
            out.push_str(if self.flip() { " " } else { "\r\n\t" });
        }
    }

    fn string(&mut self, text: &str, out: &mut String) {
        out.push('"');
        for c in text.chars() {
            if self.flip() || c < ' ' {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            } else {
                if matches!(c, '"' | '\\') {
                    out.push('\\');
                }
                out.push(c);
            }
        }
        out.push('"');
    }
}
