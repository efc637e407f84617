//! The functions `max`, `min` and `sort`, with and without keys.

use std::{cmp::Ordering, sync::Arc};

use super::{
    super::{Variant, coercion, compare, numbers, value::Value},
    Answer, Call, Evaluated, Why,
};

/// A value, and the key it is ordered by.
type Keyed = (Value, Value);

impl Call<'_> {
    /// `max`, `min`, `sort`.
    pub(super) fn ordered(&self, items: &Arc<[Value]>) -> Answer {
        let keyed = || items.iter().map(|item| (item.clone(), item.clone())).collect::<Vec<_>>();
        if !self.variant.is_typescript() {
            return self.pick(&keyed());
        }
        self.check_types(items)?;
        match self.name {
            "sort" => self.sort_in_place(items),
            name => self.reduce(&keyed(), name == "max"),
        }
    }

    /// `max_by`, `min_by`, `sort_by`.
    pub(super) fn by(&self, items: &Value, key: &dyn Fn(&Value) -> Evaluated) -> Answer {
        let Value::Array(items) = items else { return Err(self.type_error(items)) };
        let keyed = items.iter().map(|item| {
            let key = key(item).map_err(Why::Error)?;
            self.state.see(&key);
            match key {
                Value::Number(_) | Value::String(_) => Ok((key, item.clone())),
                other => Err(self.type_error(&other)),
            }
        });
        let keyed = keyed.collect::<Result<Vec<Keyed>, Why>>()?;
        match (self.variant, self.name) {
            (Variant::TypeScript(_), "max_by") => self.reduce(&keyed, true),
            (Variant::TypeScript(_), "min_by") => self.reduce(&keyed, false),
            _ => self.pick(&keyed),
        }
    }

    /// TypeScript checks only that no number is followed by a value of another type.
    fn check_types(&self, items: &[Value]) -> Result<(), Why> {
        let is_number = |item: &&Value| matches!(item, Value::Number(_));
        let behind = items.iter().skip_while(|item| !is_number(item)).find(|item| !is_number(item));
        behind.map_or(Ok(()), |other| Err(self.type_error(other)))
    }

    /// The last greatest or least of values, and the first by keys, as JavaScript compares them.
    fn reduce(&self, keyed: &[Keyed], greatest: bool) -> Answer {
        let Some((first, rest)) = keyed.split_first() else { return Ok(Value::Null) };
        let is_nan = |(key, _): &Keyed| match key {
            Value::Number(number) => numbers::double(number).is_nan(),
            _ => false,
        };
        let by_keys = self.name.ends_with("_by");
        if !by_keys && matches!(first.0, Value::Number(_)) && keyed.iter().any(is_nan) {
            return Ok(Value::double(f64::NAN));
        }
        let (mut best, mut best_operand) = (first, coercion::Operand::of(&first.0));
        for current in rest {
            if by_keys && compare::same(self.variant, &best.0, &current.0) {
                continue;
            }
            let operand = coercion::Operand::of(&current.0);
            let stays = if greatest {
                operand.is_less(&best_operand)
            } else {
                best_operand.is_less(&operand)
            };
            if !stays.ok_or_else(|| self.differs("it compares with a text"))? {
                (best, best_operand) = (current, operand);
            }
        }
        Ok(best.1.clone())
    }

    /// The first greatest, the first least, or all in order.
    fn pick(&self, keyed: &[Keyed]) -> Answer {
        if let Some((first, _)) = keyed.first() {
            for (key, _) in keyed {
                self.order(first, key)?;
            }
        }
        let order = |a: &Value, b: &Value| self.order(a, b).unwrap_or(Ordering::Equal);
        let mut sorted: Vec<&Keyed> = keyed.iter().collect();
        sorted.sort_by(|a, b| order(&a.0, &b.0));
        if self.name.starts_with("sort") {
            return Ok(Value::array(sorted.into_iter().map(|(_, item)| item.clone()).collect()));
        }
        let picked = if self.name.starts_with("max") {
            let Some((greatest, item)) = sorted.last() else { return Ok(Value::Null) };
            if self.variant == Variant::Standard && self.name == "max" {
                // Of `1` and `1.0`, which are equal, the last is returned.
                return Ok(item.clone());
            }
            let mut equal = sorted.iter();
            equal.find(|(key, _)| order(key, greatest).is_eq())
        } else {
            sorted.first()
        };
        Ok(picked.map_or(Value::Null, |(_, item)| item.clone()))
    }

    /// The order of two texts, or of two numbers.
    fn order(&self, a: &Value, b: &Value) -> Result<Ordering, Why> {
        match (a, b) {
            (Value::Number(a), Value::Number(b)) => {
                compare::numbers(a, b).ok_or_else(|| self.differs("it meets NaN"))
            }
            (Value::String(a), Value::String(b)) => Ok(a.compare(self.variant, b)),
            (Value::Number(_) | Value::String(_), Value::Number(_) | Value::String(_))
                if self.variant.is_typescript() =>
            {
                Err(self.differs("it compares numbers with texts"))
            }
            (Value::Number(_) | Value::String(_), other) | (other, _) => {
                Err(self.type_error(other))
            }
        }
    }
}
