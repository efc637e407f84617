//! Parses tokens into an expression, for each of the three variants.
//!
//! Neither library follows the specification everywhere: in both, `a.*.b.c` selects `c` from the
//! *list* of all `b`, a slice after an index (`a[0][1:].b`) does not project, and commas between
//! arguments may be left out. Comments mark where the two differ from each other.

use std::collections::HashSet;

use super::{
    Mistake, Variant,
    ast::Node,
    cursor::Cursor,
    signatures,
    tokens::{PROJECTION_STOP, Token, tokens},
    value::Value,
};
use crate::Functions;

/// The recursion is at most as deep as the number of operators, which is limited before.
pub(crate) fn parse(variant: Variant, text: &str, functions: &Functions) -> Result<Node, Mistake> {
    let mut parser = Parser { variant, cursor: Cursor::new(tokens(variant, text)?), functions };
    let node = parser.expression(0)?;
    match parser.cursor.peek() {
        Token::End => Ok(node),
        _ => Err(parser.cursor.mistake("unexpected text after a complete expression")),
    }
}

struct Parser<'f> {
    variant: Variant,
    cursor: Cursor,
    functions: &'f Functions,
}

type Parsed = Result<Node, Mistake>;

/// The remedy for an unknown function.
const OWN: &str = "add your own with `.key_functions(..)`";
const NO_VALUE: &str = "an expression reference (`&name`) is not a value; \
                        only `map`, `sort_by`, `max_by` and `min_by` take one";

fn boxed(node: Node) -> Box<Node> {
    Box::new(node)
}

impl Parser<'_> {
    fn is_standard(&self) -> bool {
        self.variant == Variant::Standard
    }

    /// Parses while the next token binds stronger than `power`.
    fn expression(&mut self, power: u8) -> Parsed {
        let mut left = self.prefix()?;
        while power < self.cursor.peek().power() {
            left = self.infix(left)?;
        }
        Ok(left)
    }

    /// A token that begins an expression.
    fn prefix(&mut self) -> Parsed {
        let (offset, token) = (self.cursor.offset(), self.cursor.peek().clone());
        self.cursor.skip();
        Ok(match token {
            Token::Literal(value) => Node::Literal(value),
            Token::Name(name) => Node::Field { name: name.as_str().into(), offset },
            Token::Quoted(_) if self.cursor.peek().is('(') => {
                return Err(self.cursor.mistake("write a function's name without quotes"));
            }
            Token::Quoted(name) => Node::Field { name, offset },
            Token::Sign('@') => Node::Current,
            Token::Sign('*') => {
                let each =
                    if self.cursor.peek().is(']') { Node::Current } else { self.projected('*')? };
                Node::Values { object: boxed(Node::Current), each: boxed(each), offset }
            }
            Token::Filter => self.filter(Node::Current)?,
            Token::Flatten => self.flatten(Node::Current, offset)?,
            Token::Sign('!') => Node::Not(boxed(self.expression(Token::Sign('!').power())?)),
            Token::Sign('&') if self.is_standard() => return Err((offset, NO_VALUE.to_owned())),
            Token::Sign('&') => Node::Reference(boxed(self.expression(0)?)),
            Token::Sign('(') => {
                let inside = self.expression(0)?;
                self.cursor.require(')', "expected ')' to close '('")?;
                inside
            }
            Token::Sign('{') => self.hash()?,
            Token::Sign('[') => match self.cursor.peek() {
                Token::Number(_) | Token::Sign(':') => self.bracket(Node::Current)?,
                Token::Sign('*') if self.cursor.ahead(1).is(']') => self.bracket(Node::Current)?,
                _ => self.list()?,
            },
            _ => {
                self.cursor.back();
                return Err(self.cursor.mistake("expected a value here"));
            }
        })
    }

    /// A token that continues an expression.
    fn infix(&mut self, left: Node) -> Parsed {
        let (offset, token) = (self.cursor.offset(), self.cursor.peek().clone());
        let power = token.power();
        self.cursor.skip();
        Ok(match token {
            Token::Sign('.') if self.cursor.peek().is('*') => {
                let star = self.cursor.offset();
                self.cursor.skip();
                // In the libraries it binds as strongly as the dot, so the part after the next dot
                // is not projected.
                let each = self.projected(if self.is_standard() { '*' } else { '.' })?;
                Node::Values { object: boxed(left), each: boxed(each), offset: star }
            }
            Token::Sign('.') => {
                let right = self.after_dot(power)?;
                if let (true, true, Node::Field { name, .. }) =
                    (self.is_standard(), left.is_projection(), &right)
                {
                    let name = name.shown();
                    let reason = "the expression before it is a list, which has no member";
                    return Err((offset, format!("{reason} `{name}`; write `| [*].{name}`")));
                }
                Node::Then(boxed(left), boxed(right))
            }
            Token::Sign('|') => Node::Then(boxed(left), boxed(self.expression(power)?)),
            Token::Or => Node::Or(boxed(left), boxed(self.expression(power)?)),
            Token::And => Node::And(boxed(left), boxed(self.expression(power)?)),
            Token::Compare(by) => {
                let right = boxed(self.expression(power)?);
                Node::Compare { by, left: boxed(left), right, offset }
            }
            Token::Sign('(') => self.call(&left, offset)?,
            Token::Filter => self.filter(left)?,
            Token::Flatten => self.flatten(left, offset)?,
            Token::Sign('[') => self.bracket(left)?,
            _ => {
                self.cursor.back();
                return Err(self.cursor.mistake("this cannot follow a value"));
            }
        })
    }

    /// After `(`. Refuses calls that would fail for every record.
    fn call(&mut self, function: &Node, offset: usize) -> Parsed {
        let name = match (function, self.variant) {
            (Node::Field { name, .. }, _) => name.to_str(),
            // TypeScript takes the function's name from the value of any token.
            (Node::Literal(Value::String(name)), Variant::TypeScript) => name.to_str(),
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
        if let Some((name, function)) = self.functions.get(name) {
            signatures::check(name, (function.arity, function.arity), arguments.len())
                .map_err(|reason| (offset, reason))?;
            let (name, function) = (name.clone(), function.clone());
            return Ok(Node::Own { name, function, arguments, offset });
        }
        let (name, arity) = signatures::named(self.variant, name).ok_or_else(|| {
            let reason = match self.variant {
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

    /// Behind `[?`.
    fn filter(&mut self, list: Node) -> Parsed {
        let keep = boxed(self.expression(0)?);
        self.cursor.require(']', "expected ']'")?;
        let power = match self.variant {
            Variant::Standard | Variant::Python => Token::Filter.power(),
            // So that `a[?b].c[?d]` filters each `c`, where Python filters all of them.
            Variant::TypeScript => Token::Flatten.power(),
        };
        let each = boxed(self.projection(power)?);
        Ok(Node::Filter { list: boxed(list), keep, each })
    }

    /// Behind `[]`.
    fn flatten(&mut self, list: Node, offset: usize) -> Parsed {
        let each = self.projection(Token::Flatten.power())?;
        Ok(Node::Each(boxed(Node::Flatten { list: boxed(list), offset }), boxed(each)))
    }

    /// Behind `[`: a place, a slice, or `*`.
    fn bracket(&mut self, left: Node) -> Parsed {
        let place = match self.cursor.peek() {
            Token::Number(_) if !self.cursor.ahead(1).is(':') => self.index()?,
            Token::Number(_) | Token::Sign(':') => self.slice()?,
            _ => {
                self.cursor.require('*', "expected number, ':', or '*'")?;
                self.cursor.require(']', "expected ']' for wildcard index")?;
                return Ok(Node::Each(boxed(left), boxed(self.projected('*')?)));
            }
        };
        let is_slice = matches!(place, Node::Slice { .. });
        match left {
            Node::Indexed(mut places) => {
                places.push(place);
                Ok(Node::Indexed(places))
            }
            left if is_slice => {
                let slice = if self.is_standard() {
                    Node::Then(boxed(left), boxed(place))
                } else {
                    Node::Indexed(vec![left, place])
                };
                Ok(Node::Each(boxed(slice), boxed(self.projected('*')?)))
            }
            left if self.is_standard() => Ok(Node::Then(boxed(left), boxed(place))),
            left => Ok(Node::Indexed(vec![left, place])),
        }
    }

    fn index(&mut self) -> Parsed {
        let Token::Number(index) = *self.cursor.peek() else {
            return Err(self.cursor.mistake("expected number"));
        };
        self.cursor.skip();
        self.cursor.require(']', "expected ':', or ']'")?;
        Ok(Node::Index(index))
    }

    /// To the libraries, the last of several numbers without a colon between them counts.
    fn slice(&mut self) -> Parsed {
        let offset = self.cursor.offset();
        let mut parts = [None; 3];
        let mut at = 0;
        while !self.cursor.peek().is(']') {
            match *self.cursor.peek() {
                Token::Sign(':') if at < 2 => at += 1,
                Token::Sign(':') => {
                    return Err(self.cursor.mistake("a slice has two colons at most"));
                }
                Token::Number(number) => match parts.get_mut(at) {
                    Some(Some(_)) if self.is_standard() => {
                        return Err(self.cursor.mistake("expected ':', or ']'"));
                    }
                    Some(part) => *part = Some(number),
                    None => {}
                },
                _ => return Err(self.cursor.mistake("expected number, ':', or ']'")),
            }
            self.cursor.skip();
        }
        let [start, stop, step] = parts;
        if step == Some(0) && self.is_standard() {
            return Err(self.cursor.mistake("the step of a slice cannot be 0"));
        }
        self.cursor.skip();
        Ok(Node::Slice { start, stop, step, offset })
    }

    /// Behind `[`.
    fn list(&mut self) -> Parsed {
        let mut parts = vec![self.expression(0)?];
        while !self.cursor.take(']') {
            self.cursor.require(',', "expected ']' or ','")?;
            parts.push(self.expression(0)?);
        }
        Ok(Node::List(parts))
    }

    /// Behind `{`. Here, too, the libraries allow commas to be left out.
    fn hash(&mut self) -> Parsed {
        let offset = self.cursor.last_offset();
        let mut members = Vec::new();
        let mut names = HashSet::new();
        loop {
            let name: super::value::Text = match self.cursor.peek() {
                Token::Name(name) => name.as_str().into(),
                Token::Quoted(name) => name.clone(),
                _ => return Err(self.cursor.mistake("expected the name of a part")),
            };
            self.cursor.skip();
            if !names.insert(name.clone()) && self.is_standard() {
                let name = name.shown();
                return Err((offset, format!("two parts are named `{name}`; one would be lost")));
            }
            self.cursor.require(':', "expected ':' to follow key")?;
            members.push((name, self.expression(0)?));
            if !self.cursor.take(',') {
                if self.cursor.take('}') {
                    return Ok(Node::Hash(members));
                }
                if self.is_standard() {
                    return Err(self.cursor.mistake("expected '}' or ','"));
                }
            }
        }
    }

    fn projected(&mut self, by: char) -> Parsed {
        self.projection(Token::Sign(by).power())
    }

    /// The expression that is applied to each item.
    fn projection(&mut self, power: u8) -> Parsed {
        match self.cursor.peek() {
            Token::Sign('[') | Token::Filter => self.expression(power),
            token if token.power() < PROJECTION_STOP => Ok(Node::Current),
            _ => {
                self.cursor.require('.', "expected '.', '[', or '[?'")?;
                self.after_dot(power)
            }
        }
    }

    fn after_dot(&mut self, power: u8) -> Parsed {
        match self.cursor.peek() {
            Token::Name(_) | Token::Quoted(_) | Token::Sign('*') => self.expression(power),
            Token::Sign('[') => {
                self.cursor.skip();
                self.list()
            }
            Token::Sign('{') => {
                self.cursor.skip();
                self.hash()
            }
            _ => Err(self.cursor.mistake("expected identifier, '*', '{', or '['")),
        }
    }
}
