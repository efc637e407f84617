//! Parses what follows `[` or `{`: indexes, slices, filters, lists and objects.

use std::collections::HashSet;

use super::{
    super::{Variant, ast::Node, text::Text, tokens::Token},
    Parsed, Parser, boxed,
};

impl Parser<'_> {
    /// Behind `[?`.
    pub(super) fn filter(&mut self, list: Node) -> Parsed {
        let keep = boxed(self.expression(0)?);
        self.cursor.require(']', "expected ']'")?;
        let power = match self.variant {
            Variant::Standard | Variant::Python(_) => Token::Filter.power(),
            // So that `a[?b].c[?d]` filters each `c`, where Python filters all of them.
            Variant::TypeScript(_) => Token::Flatten.power(),
        };
        let each = boxed(self.projection(power)?);
        Ok(Node::Filter { list: boxed(list), keep, each })
    }

    /// Behind `[]`.
    pub(super) fn flatten(&mut self, list: Node, offset: usize) -> Parsed {
        let each = self.projection(Token::Flatten.power())?;
        Ok(Node::Each(boxed(Node::Flatten { list: boxed(list), offset }), boxed(each)))
    }

    /// Behind `[`: a place, a slice, or `*`.
    pub(super) fn bracket(&mut self, left: Node) -> Parsed {
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

    pub(super) fn index(&mut self) -> Parsed {
        let Token::Number(index) = *self.cursor.peek() else {
            return Err(self.cursor.mistake("expected number"));
        };
        self.cursor.skip();
        self.cursor.require(']', "expected ':', or ']'")?;
        Ok(Node::Index(index))
    }

    /// To the libraries, the last of several numbers without a colon between them counts.
    pub(super) fn slice(&mut self) -> Parsed {
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
    pub(super) fn list(&mut self) -> Parsed {
        let mut parts = vec![self.expression(0)?];
        while !self.cursor.take(']') {
            self.cursor.require(',', "expected ']' or ','")?;
            parts.push(self.expression(0)?);
        }
        Ok(Node::List(parts))
    }

    /// Behind `{`. Here, too, the libraries allow commas to be left out.
    pub(super) fn hash(&mut self) -> Parsed {
        let offset = self.cursor.last_offset();
        let mut members = Vec::new();
        let mut names = HashSet::new();
        loop {
            let name: Text = match self.cursor.peek() {
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
}
