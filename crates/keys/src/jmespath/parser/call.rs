//! Parses the call of a function.

use super::{
    super::{Variant, ast::Node, signatures, value::Value},
    Parsed, Parser, boxed,
};

/// The remedy for an unknown function.
const OWN: &str = "add your own with `.key_functions(..)`";

impl Parser<'_> {
    /// After `(`. Refuses calls that would fail for every record.
    pub(super) fn call(&mut self, function: &Node, offset: usize) -> Parsed {
        let name = match (function, self.variant) {
            (Node::Field { name, .. }, _) => name.to_str(),
            // TypeScript takes the function's name from the value of any token.
            (Node::Literal(Value::String(name)), Variant::TypeScript(_)) => name.to_str(),
            _ => None,
        };
        let Some(name) = name else {
            return Err((offset, "what is called is not a function".to_owned()));
        };
        let by_reference = signatures::takes_reference(name).filter(|_| self.is_standard());
        let mut arguments = Vec::new();
        while !self.cursor.take(')') {
            if by_reference == Some(arguments.len()) && self.cursor.take('&') {
                arguments.push(Node::Reference(boxed(self.expression(0)?)));
            } else {
                arguments.push(self.expression(0)?);
            }
            if !self.cursor.take(',') && self.is_standard() {
                self.cursor.require(')', "expected ')' or ','")?;
                break;
            }
            if self.is_standard() && self.cursor.peek().is(')') {
                return Err(self.cursor.mistake("expected a value here"));
            }
        }
        if let Some((name, function)) = self.functions.get_key_value(name) {
            signatures::check(name, (function.arity, function.arity), arguments.len())
                .map_err(|reason| (offset, reason))?;
            let (name, function) = (name.clone(), function.clone());
            return Ok(Node::Own { name, function, arguments, offset });
        }
        let (name, arity) = signatures::named(self.variant, name).ok_or_else(|| {
            let reason = match self.variant {
                Variant::Standard if signatures::adds(name) => format!(
                    "`{name}` is not available, because many distinct lists have one {name}; \
                     select the numbers themselves, as in `items[*].price`"
                ),
                Variant::Standard => format!("there is no function `{name}`; {OWN}"),
                _ => format!("Powertools has no function `{name}`"),
            };
            (offset, reason)
        })?;
        signatures::check(name, arity, arguments.len()).map_err(|reason| (offset, reason))?;
        match by_reference.and_then(|place| Some((place, arguments.get(place)?))) {
            None | Some((_, Node::Reference(_))) => Ok(Node::Call { name, arguments, offset }),
            Some((place, _)) => {
                let reason = "takes an expression reference (`&name`) as argument";
                Err((offset, format!("`{name}` {reason} {}", place + 1)))
            }
        }
    }
}
