//! How distinct records can share a key under Powertools.

use std::cell::Cell;

use super::value::{Kind, Members, Number, Value};

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
    /// Numbers with a fraction, whose sum differs between Python versions before and since 3.12.
    #[error("it adds numbers whose sum depends on the version of Python")]
    Addition,
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

    pub(crate) fn see_number(&self, number: &Number) {
        let in_doubt = match number.kind {
            Kind::Double(double) => !double.is_finite(),
            Kind::Decimal(ref decimal) => decimal.exact().is_none(),
            Kind::Integer(_) => false,
        };
        if !number.exact || in_doubt {
            self.note(Collision::Number);
        }
    }

    pub(crate) fn see_members(&self, members: &Members) {
        if members.repeated {
            self.note(Collision::RepeatedMember);
        }
    }

    /// Records the collisions in a value that affects the result.
    pub(crate) fn see(&self, value: &Value) {
        match value {
            Value::Number(number) => self.see_number(number),
            Value::Array(items) => items.iter().for_each(|item| self.see(item)),
            Value::Object(members) => {
                self.see_members(members);
                members.iter().for_each(|(_, value)| self.see(value));
            }
            Value::Undefined | Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }
}
