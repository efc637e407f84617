//! Expressions as the parsers of `jmespath.py` and `@aws-lambda-powertools/jmespath` take them.
//!
//! Neither builds what the specification says: `a.*.b.c` selects `c` from the *list* of all `b`, and
//! a slice behind an index (`a[0][1:].b`) projects nothing. The crate that parses our own
//! expressions does; and its trees no longer tell the two apart. Where the libraries differ from
//! each other is marked.

use super::{
    Library,
    ast::Node,
    functions,
    tokens::{PROJECTION_STOP, Token, tokens},
    value::Value,
};
use crate::key::{signatures, syntax::Mistake};

/// Nothing here is deeper than the expression has operators, which are counted before.
pub(super) fn parse(library: Library, text: &str) -> Result<Node, Mistake> {
    let mut parser = Parser { library, tokens: tokens(library, text)?, at: 0 };
    let node = parser.expression(0)?;
    match parser.peek() {
        Token::End => Ok(node),
        _ => Err(parser.unexpected()),
    }
}

struct Parser {
    library: Library,
    tokens: Vec<(usize, Token)>,
    at: usize,
}

type Parsed = Result<Node, Mistake>;

fn boxed(node: Node) -> Box<Node> {
    Box::new(node)
}

impl Parser {
    fn peek(&self) -> &Token {
        self.ahead(0)
    }

    fn ahead(&self, tokens: usize) -> &Token {
        self.tokens.get(self.at + tokens).map_or(&Token::End, |(_, token)| token)
    }

    fn offset(&self) -> usize {
        let last = self.tokens.last();
        self.tokens.get(self.at).or(last).map_or(0, |(offset, _)| *offset)
    }

    fn unexpected(&self) -> Mistake {
        let reason = match self.peek() {
            Token::End => "it ends too early",
            _ => "it has something that cannot stand there",
        };
        (self.offset(), reason.to_owned())
    }

    fn take(&mut self, sign: char) -> bool {
        let found = self.peek().is(sign);
        self.at += usize::from(found);
        found
    }

    fn require(&mut self, sign: char) -> Result<(), Mistake> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// What binds stronger than `power`.
    fn expression(&mut self, power: u8) -> Parsed {
        let mut left = self.prefix()?;
        while power < self.peek().power() {
            left = self.infix(left)?;
        }
        Ok(left)
    }

    /// A token that begins an expression.
    fn prefix(&mut self) -> Parsed {
        let (offset, token) = (self.offset(), self.peek().clone());
        if matches!(token, Token::Quoted(_)) && self.ahead(1).is('(') {
            return Err((offset, "a function's name has no quotes".to_owned()));
        }
        self.at += 1;
        Ok(match token {
            Token::Literal(value) => Node::Literal(value),
            Token::Name(name) => Node::Field { name: name.as_str().into(), offset },
            Token::Quoted(name) => Node::Field { name, offset },
            Token::Sign('@') => Node::Current,
            Token::Sign('*') => {
                let each = if self.peek().is(']') { Node::Current } else { self.projected('*')? };
                Node::Values(boxed(Node::Current), boxed(each))
            }
            Token::Filter => self.filter(Node::Current)?,
            Token::Flatten => self.flatten(Node::Current)?,
            Token::Sign('!') => Node::Not(boxed(self.expression(Token::Sign('!').power())?)),
            Token::Sign('&') => Node::Reference(boxed(self.expression(0)?)),
            Token::Sign('(') => {
                let inside = self.expression(0)?;
                self.require(')')?;
                inside
            }
            Token::Sign('{') => self.hash()?,
            Token::Sign('[') => match self.peek() {
                Token::Number(_) | Token::Sign(':') => self.bracket(Node::Current)?,
                Token::Sign('*') if self.ahead(1).is(']') => self.bracket(Node::Current)?,
                _ => self.list()?,
            },
            _ => {
                self.at -= 1;
                return Err(self.unexpected());
            }
        })
    }

    /// A token that goes on with one.
    fn infix(&mut self, left: Node) -> Parsed {
        let (offset, token) = (self.offset(), self.peek().clone());
        let power = token.power();
        self.at += 1;
        Ok(match token {
            Token::Sign('.') if self.take('*') => {
                // As strong as the dot: what follows the next one is no longer projected.
                let each = self.projected('.')?;
                Node::Values(boxed(left), boxed(each))
            }
            Token::Sign('.') => {
                let right = self.after_dot(power)?;
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
            Token::Flatten => self.flatten(left)?,
            Token::Sign('[') => self.bracket(left)?,
            _ => {
                self.at -= 1;
                return Err(self.unexpected());
            }
        })
    }

    /// Behind `(`. Commas between arguments can be left out. What would fail for every record that the
    /// call is evaluated on is refused.
    fn call(&mut self, function: &Node, offset: usize) -> Parsed {
        let name = match (function, self.library) {
            (Node::Field { name, .. }, _) => name.to_str(),
            // TypeScript looks at the value of whatever stands there.
            (Node::Literal(Value::String(name)), Library::TypeScript) => name.to_str(),
            _ => None,
        };
        let Some(name) = name else {
            return Err((offset, "what is called is no function".to_owned()));
        };
        let mut arguments = Vec::new();
        while !self.take(')') {
            arguments.push(self.expression(0)?);
            self.take(',');
        }
        let (name, arity) = functions::named(self.library, &name)
            .ok_or_else(|| (offset, format!("Powertools has no function `{name}`")))?;
        signatures::check(name, arity, arguments.len()).map_err(|reason| (offset, reason))?;
        Ok(Node::Call { name, arguments, offset })
    }

    /// Behind `[?`.
    fn filter(&mut self, list: Node) -> Parsed {
        let keep = boxed(self.expression(0)?);
        self.require(']')?;
        let power = match self.library {
            Library::Python => Token::Filter.power(),
            // So that `a[?b].c[?d]` filters each `c`, where Python filters all of them.
            Library::TypeScript => Token::Flatten.power(),
        };
        let each = boxed(self.projection(power)?);
        Ok(Node::Filter { list: boxed(list), keep, each })
    }

    /// Behind `[]`.
    fn flatten(&mut self, list: Node) -> Parsed {
        let each = self.projection(Token::Flatten.power())?;
        Ok(Node::Each(boxed(Node::Flatten(boxed(list))), boxed(each)))
    }

    /// Behind `[`: a place, a slice, or `*`.
    fn bracket(&mut self, left: Node) -> Parsed {
        let place = match self.peek() {
            Token::Number(_) if !self.ahead(1).is(':') => self.index()?,
            Token::Number(_) | Token::Sign(':') => self.slice()?,
            _ => {
                self.require('*')?;
                self.require(']')?;
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
                let slice = Node::Indexed(vec![left, place]);
                Ok(Node::Each(boxed(slice), boxed(self.projected('*')?)))
            }
            left => Ok(Node::Indexed(vec![left, place])),
        }
    }

    fn index(&mut self) -> Parsed {
        let Token::Number(index) = *self.peek() else { return Err(self.unexpected()) };
        self.at += 1;
        self.require(']')?;
        Ok(Node::Index(index))
    }

    /// Of several numbers without a colon between them, the last counts.
    fn slice(&mut self) -> Parsed {
        let offset = self.offset();
        let mut parts = [None; 3];
        let mut at = 0;
        while !self.peek().is(']') {
            match *self.peek() {
                Token::Sign(':') if at < 2 => at += 1,
                Token::Number(number) => {
                    if let Some(part) = parts.get_mut(at) {
                        *part = Some(number);
                    }
                }
                _ => return Err(self.unexpected()),
            }
            self.at += 1;
        }
        self.require(']')?;
        let [start, stop, step] = parts;
        Ok(Node::Slice { start, stop, step, offset })
    }

    /// Behind `[`.
    fn list(&mut self) -> Parsed {
        let mut parts = vec![self.expression(0)?];
        while !self.take(']') {
            self.require(',')?;
            parts.push(self.expression(0)?);
        }
        Ok(Node::List(parts))
    }

    /// Behind `{`. Here, too, commas can be left out.
    fn hash(&mut self) -> Parsed {
        let mut members = Vec::new();
        loop {
            let name = match self.peek() {
                Token::Name(name) => name.as_str().into(),
                Token::Quoted(name) => name.clone(),
                _ => return Err(self.unexpected()),
            };
            self.at += 1;
            self.require(':')?;
            members.push((name, self.expression(0)?));
            if !self.take(',') && self.take('}') {
                return Ok(Node::Hash(members));
            }
        }
    }

    fn projected(&mut self, by: char) -> Parsed {
        self.projection(Token::Sign(by).power())
    }

    /// What is selected of each.
    fn projection(&mut self, power: u8) -> Parsed {
        match self.peek() {
            Token::Sign('[') | Token::Filter => self.expression(power),
            token if token.power() < PROJECTION_STOP => Ok(Node::Current),
            _ => {
                self.require('.')?;
                self.after_dot(power)
            }
        }
    }

    fn after_dot(&mut self, power: u8) -> Parsed {
        match self.peek() {
            Token::Name(_) | Token::Quoted(_) | Token::Sign('*') => self.expression(power),
            Token::Sign('[') => {
                self.at += 1;
                self.list()
            }
            Token::Sign('{') => {
                self.at += 1;
                self.hash()
            }
            _ => Err(self.unexpected()),
        }
    }
}
