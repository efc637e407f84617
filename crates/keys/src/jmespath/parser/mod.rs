//! Parses tokens into an expression, for each of the three variants.
//!
//! Neither library follows the specification everywhere: in both, `a.*.b.c` selects `c` from the
//! *list* of all `b`, a slice after an index (`a[0][1:].b`) does not project, and commas between
//! arguments may be left out. Comments mark where the two differ from each other.

mod brackets;
mod call;

use super::{
    Mistake, Variant,
    ast::Node,
    cursor::Cursor,
    own::OwnFunctions,
    tokens::{PROJECTION_STOP, Token, tokens},
};

/// The recursion is at most as deep as the number of operators, which is limited before.
pub(crate) fn parse(
    variant: Variant,
    text: &str,
    functions: &OwnFunctions,
) -> Result<Node, Mistake> {
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
    functions: &'f OwnFunctions,
}

type Parsed = Result<Node, Mistake>;

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
