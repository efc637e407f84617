//! Functions on text, some of which also take lists.

use std::sync::Arc;

use super::{
    super::{
        Variant, coercion, compare,
        decode::{self, NotUnpacked},
        read::{is_beyond_us, read, read_wanted},
        strict,
        text::Text,
        value::Value,
        wanted::Wanted,
    },
    Answer, Call, Why,
};

impl Call<'_> {
    /// The units that the language counts: code points, or UTF-16 units.
    pub(super) fn symbols(&self, text: &Text) -> Vec<u32> {
        match self.variant {
            Variant::Standard | Variant::Python(_) => text.codes().collect(),
            Variant::TypeScript(_) => text.units().into_iter().map(u32::from).collect(),
        }
    }

    pub(super) fn join(&self, separator: &Text, items: &[Value]) -> Answer {
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            let Value::String(text) = item else { return Err(self.type_error(item)) };
            texts.push(text);
        }
        let separators = separator.bytes().saturating_mul(items.len().saturating_sub(1));
        let length = texts.iter().map(|text| text.bytes()).sum::<usize>();
        let length = length.saturating_add(separators);
        self.spend_text(length)?;
        let plain: Option<Vec<&str>> = texts.iter().map(|text| text.to_str()).collect();
        if let (Some(texts), Some(separator)) = (plain, separator.to_str()) {
            return Ok(Value::text(&texts.join(separator)));
        }
        let mut joined = Vec::with_capacity(length);
        for (at, text) in texts.into_iter().enumerate() {
            if at > 0 {
                joined.extend(separator.codes());
            }
            joined.extend(text.codes());
        }
        let joined = Text::from_codes(joined);
        Ok(Value::String(match self.variant {
            Variant::Standard | Variant::Python(_) => joined,
            Variant::TypeScript(_) => Text::from_units(&joined.units()),
        }))
    }

    /// `part in text`, or `text.includes(part)`, which converts any value to text.
    pub(super) fn contains_text(&self, text: &Text, part: &Value) -> Answer {
        let part = match (part, self.variant) {
            (Value::String(part), _) => part.clone(),
            (part, Variant::TypeScript(_)) => coercion::text(part),
            (_, Variant::Standard) => return Ok(Value::Bool(false)),
            (part, Variant::Python(_)) => return Err(self.type_error(part)),
        };
        Ok(Value::Bool(match (text.to_str(), part.to_str()) {
            (Some(text), Some(part)) => text.contains(part),
            // Half surrogates: in JavaScript, one is also within a pair.
            _ => searchable(&self.symbols(text)).contains(&searchable(&self.symbols(&part))),
        }))
    }

    /// JavaScript compares lists and objects by identity. Ours have the same identity, because we
    /// copy them exactly where the variant does.
    pub(super) fn has(&self, items: &[Value], part: &Value) -> bool {
        items.iter().any(|item| match (item, part, self.variant) {
            (Value::Array(item), Value::Array(part), Variant::TypeScript(_)) => {
                Arc::ptr_eq(item, part)
            }
            (Value::Object(item), Value::Object(part), Variant::TypeScript(_)) => {
                Arc::ptr_eq(item, part)
            }
            (item, part, variant) => compare::same(variant, item, part),
        })
    }

    pub(super) fn reverse(&self, value: &Value) -> Answer {
        Ok(match (value, self.variant) {
            (Value::String(text), Variant::Standard | Variant::Python(_)) => {
                let mut codes: Vec<u32> = text.codes().collect();
                codes.reverse();
                Value::String(Text::from_codes(codes))
            }
            (Value::String(text), Variant::TypeScript(_)) => {
                let units: Vec<u16> = text.units().into_iter().rev().collect();
                Value::String(Text::from_units(&units))
            }
            (Value::Array(items), Variant::Standard | Variant::Python(_)) => {
                Value::array(items.iter().rev().cloned().collect())
            }
            (Value::Array(items), Variant::TypeScript(_)) => return self.reverse_in_place(items),
            (value, _) => return Err(self.type_error(value)),
        })
    }

    /// Text that is not in the strict form is an error: a decoder that skips unknown characters
    /// would decode two distinct texts to the same value.
    pub(super) fn decode_strictly(&self, text: &str) -> Answer {
        let room = &self.state.room;
        let decoded = match self.name {
            "base64" | "powertools_base64" => strict::base64(text),
            "base64_gzip" | "powertools_base64_gzip" => strict::base64_gzip(text, room.get())
                .inspect(|plain| {
                    room.set(room.get().saturating_sub(plain.len()));
                }),
            _ => {
                let wanted = self.state.texts.and_then(|texts| texts.get(&self.offset));
                let read = read_wanted(self.variant, text, wanted.unwrap_or(&Wanted::All));
                return read.map_err(|error| format!("{}(): {error}", self.name).into());
            }
        };
        decoded
            .map(|text| Value::text(&text))
            .map_err(|why| format!("{}(): {why}", self.name).into())
    }

    /// Text that cannot be decoded is `undefined` in TypeScript and an error in Python.
    pub(super) fn decode(&self, text: &Text) -> Answer {
        let collisions = self.state.collisions;
        if text.to_str().is_none() && self.name == "powertools_json" {
            return Err(self.differs("it meets half a surrogate pair"));
        }
        let decoded = match self.name {
            "powertools_json" => self.json(text)?,
            "powertools_base64" => decode::base64(self.variant, text)
                .and_then(|bytes| decode::utf8(self.variant, &bytes, true, collisions)),
            _ => match decode::base64(self.variant, text) {
                Some(bytes) => self
                    .gunzip(&bytes)?
                    .and_then(|plain| decode::utf8(self.variant, &plain, false, collisions)),
                None => None,
            },
        };
        match decoded {
            Some(value) => Ok(value),
            None if self.variant.is_typescript() => Ok(Value::Undefined),
            None => Err(format!("{}() cannot read the text", self.name).into()),
        }
    }

    /// Returns `None` for text that the variant cannot parse. Text beyond *our* limits is an error,
    /// because the variant might parse it, and all `undefined` values have the same key.
    fn json(&self, text: &Text) -> Result<Option<Value>, Why> {
        match text.to_str().map(|json| read(self.variant, json)) {
            Some(Ok(value)) => Ok(Some(value)),
            Some(Err(error)) if is_beyond_us(&error) => {
                Err(format!("{}(): {error}", self.name).into())
            }
            Some(Err(_)) | None => Ok(None),
        }
    }

    fn gunzip(&self, bytes: &[u8]) -> Result<Option<Vec<u8>>, Why> {
        let room = &self.state.room;
        match decode::gunzip(self.variant, bytes, room.get()) {
            Ok(plain) => {
                room.set(room.get().saturating_sub(plain.len()));
                Ok(Some(plain))
            }
            Err(NotUnpacked::Unreadable(inflated)) => {
                room.set(room.get().saturating_sub(inflated));
                Ok(None)
            }
            Err(NotUnpacked::TooLarge) => {
                let bound = "the decompressed texts of a record are larger than 8 MiB together";
                Err(format!("{}(): {bound}", self.name).into())
            }
        }
    }
}

/// Symbols as characters, so that `str` searches them. A half surrogate is none, so it and all beyond 16 bits become
/// characters of ranges that are then free.
fn searchable(symbols: &[u32]) -> String {
    let mut text = String::with_capacity(symbols.len());
    for &symbol in symbols {
        let characters = match symbol {
            0xD800..0xE000 => [Some(0x1_0000 + symbol), None],
            0x1_0000.. => [Some(0x2_0000 + (symbol >> 10)), Some(0x3_0000 + (symbol & 0x3FF))],
            _ => [Some(symbol), None],
        };
        text.extend(characters.into_iter().flatten().filter_map(char::from_u32));
    }
    text
}
