//! How distinct records come to share a key, and whether these have.

use std::cell::Cell;

use super::value::{Kind, Members, Number, Value};

/// How distinct records can get one key under Powertools. Says what is selected, not its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Collision {
    /// A number that another one looks like: a double cannot hold it, or (TypeScript) is not the
    /// only one that it could be.
    #[error("it selects a number that the variant cannot tell from others")]
    Number,
    /// An object with two members of one name, of which the last counts.
    #[error("it selects from an object that names a member twice")]
    RepeatedMember,
    /// A member named `__proto__`, which TypeScript leaves out.
    #[error("it selects a member `__proto__`, which the variant leaves out")]
    Prototype,
    /// Something that is not there for JavaScript (`undefined`), and is left out or becomes `null`.
    #[error("it selects something undefined, which the variant leaves out")]
    Undefined,
    /// `0`, `false`, or a list or object of such, which TypeScript takes for missing.
    #[error("it selects only what the variant takes for missing")]
    TakenForMissing,
    /// Text that is not UTF-8, which TypeScript replaces.
    #[error("it decodes bytes that are not UTF-8, which the variant replaces")]
    Text,
    /// Numbers with a fraction, whose sum Python computes otherwise since 3.12.
    #[error("it adds numbers whose sum depends on the version of Python")]
    Addition,
    /// The record belongs to a tenant, and the variant's keys do not.
    #[error("the record has a tenant, which the variant leaves out")]
    Tenant,
}

/// The first loss that an evaluation met in what it looked at.
#[derive(Default)]
pub struct Collisions {
    first: Cell<Option<Collision>>,
}

impl Collisions {
    /// The first one, if there was any.
    #[must_use]
    pub const fn first(&self) -> Option<Collision> {
        self.first.get()
    }

    /// Notes one, which counts if it is the first.
    pub fn note(&self, collision: Collision) {
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

    /// Everything in a value that something depends on.
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
