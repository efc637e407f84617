//! Parses tokens into an expression, for each of the three variants.

use std::collections::HashSet;

use super::{
    ast::{Encoding, Known, Node},
    tokens::{Cursor, Mistake, PROJECTION, PROJECTION_STOP, Token, left_out, tokens},
    value::{Text, Variant},
};

/// The longest expression in bytes: short enough to be quoted in messages.
pub(crate) const LONGEST: usize = 4096;
/// Each level of an expression needs stack when it is parsed and evaluated. This many are safe on a
/// thread with 2 MiB of stack, even without optimisation.
const MOST_OPERATORS: usize = 100;

/// Messages count characters where the parser counts bytes.
pub(crate) fn characters(text: &str, offset: usize) -> usize {
    text.get(..offset).map_or(offset, |before| before.chars().count())
}

/// The recursion is at most as deep as the number of operators, which is limited before.
pub(crate) fn parse(variant: Variant, text: &str) -> Result<Node, Mistake> {
    if text.len() > LONGEST {
        return Err((0, format!("it is longer than {LONGEST} bytes; shorten it")));
    }
    let tokens = tokens(variant, text)?;
    let is_operator = |token: &Token| matches!(token, Token::Sign('.' | '[' | '(' | '{' | '|'));
    if let Some((at, _)) = tokens.iter().filter(|(_, token)| is_operator(token)).nth(MOST_OPERATORS)
    {
        return Err((*at, format!("it has more than {MOST_OPERATORS} operators; simplify it")));
    }
    let mut parser = Parser { variant, text, cursor: Cursor::new(tokens) };
    let node = parser.expression(0)?;
    match parser.cursor.peek() {
        Token::End => Ok(node),
        _ => Err(parser.cursor.mistake("unexpected text after a complete expression")),
    }
}

struct Parser<'t> {
    variant: Variant,
    text: &'t str,
    cursor: Cursor,
}

type Parsed = Result<Node, Mistake>;

impl Parser<'_> {
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
        match token {
            Token::Name(name) if self.cursor.take('(') => self.call(&name, offset),
            Token::Quoted(_) if self.cursor.peek().is('(') => {
                Err(self.cursor.mistake("write a function's name without quotes"))
            }
            Token::Name(name) => self.field(name.as_str().into(), offset),
            Token::Quoted(name) => self.field(name, offset),
            Token::Sign('@') => Ok(Node::Current),
            Token::Sign('*') => Err((offset, left_out("`*` leaves out the names of members"))),
            Token::Sign('(') => Err((offset, left_out("parentheses change what is projected"))),
            Token::Sign('{') => self.hash(offset),
            Token::Sign('[') => match self.cursor.peek() {
                Token::Number(_) | Token::Sign(':') => self.bracket(Node::Current, offset),
                Token::Sign('*') if self.cursor.ahead(1).is(']') => {
                    self.bracket(Node::Current, offset)
                }
                _ => self.list(),
            },
            _ => {
                self.cursor.back();
                Err(self.cursor.mistake("expected a value here"))
            }
        }
    }

    /// A token that continues an expression.
    fn infix(&mut self, left: Node) -> Parsed {
        let (offset, token) = (self.cursor.offset(), self.cursor.peek().clone());
        self.cursor.skip();
        match token {
            Token::Sign('.') => {
                let right = self.after_dot(token.power())?;
                then(left, right, offset)
            }
            Token::Sign('[') => self.bracket(left, offset),
            _ => {
                let right = self.expression(token.power())?;
                then(left, right, offset)
            }
        }
    }

    /// In JavaScript, every object has members of some names, and an expression with such a name alone cannot be evaluated.
    fn field(&self, name: Text, offset: usize) -> Parsed {
        let is_taken = name.is_empty() || INHERITED.split(' ').any(|inherited| name.is(inherited));
        if self.variant.is_typescript() && is_taken {
            let name = name.shown();
            let reason = format!(
                "Powertools for TypeScript does not select the member `{name}` of a record"
            );
            return Err((offset, reason));
        }
        Ok(Node::Field(name))
    }

    /// The expression that is applied to each item.
    fn projection(&mut self) -> Parsed {
        match self.cursor.peek() {
            Token::Sign('[') => self.expression(PROJECTION),
            token if token.power() < PROJECTION_STOP => Ok(Node::Current),
            _ => {
                self.cursor.require('.', "expected '.' or '['")?;
                self.after_dot(PROJECTION)
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
                let offset = self.cursor.offset();
                self.cursor.skip();
                self.hash(offset)
            }
            _ => Err(self.cursor.mistake("expected identifier, '{', or '['")),
        }
    }

    /// Behind `[`: a place or `*`.
    fn bracket(&mut self, left: Node, offset: usize) -> Parsed {
        match *self.cursor.peek() {
            Token::Sign(':') => Err((offset, left_out("it is a slice"))),
            Token::Number(_) if self.cursor.ahead(1).is(':') => {
                Err((offset, left_out("it is a slice")))
            }
            Token::Number(index) => {
                self.cursor.skip();
                self.cursor.require(']', "expected ']'")?;
                then(left, Node::Index(index), offset)
            }
            _ => {
                self.cursor.require('*', "expected number or '*'")?;
                self.cursor.require(']', "expected ']' for wildcard index")?;
                let each = self.projection()?;
                check(&left, None, offset)?;
                Ok(Node::Each(Box::new(left), Box::new(each)))
            }
        }
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

    /// Behind `{`.
    fn hash(&mut self, offset: usize) -> Parsed {
        let mut members = Vec::new();
        let mut names = HashSet::new();
        loop {
            let at = self.cursor.offset();
            let name: Text = match self.cursor.peek() {
                Token::Name(name) => name.as_str().into(),
                Token::Quoted(name) => name.clone(),
                _ => return Err(self.cursor.mistake("expected the name of a part")),
            };
            self.cursor.skip();
            if !names.insert(name.clone()) {
                let name = name.shown();
                return Err((offset, format!("two parts are named `{name}`; one would be lost")));
            }
            if self.variant.is_typescript() && name.is("__proto__") {
                return Err((at, "JavaScript leaves out a part named `__proto__`".to_owned()));
            }
            self.cursor.require(':', "expected ':' to follow key")?;
            members.push((name, self.expression(0)?));
            if !self.cursor.take(',') {
                self.cursor.require('}', "expected '}' or ','")?;
                return Ok(Node::Hash(members));
            }
        }
    }

    /// Behind `(`.
    fn call(&mut self, function: &str, offset: usize) -> Parsed {
        let encoding = match function {
            "not_null" => None,
            _ => Some(Encoding::of_function(self.variant, function).map_err(|why| (offset, why))?),
        };
        let mut arguments = Vec::new();
        while !self.cursor.take(')') {
            arguments.push(self.expression(0)?);
            if !self.cursor.take(',') {
                self.cursor.require(')', "expected ')' or ','")?;
                break;
            }
            if self.cursor.peek().is(')') {
                return Err(self.cursor.mistake("expected a value here"));
            }
        }
        let given = arguments.len();
        match (encoding, arguments.pop()) {
            (Some(encoding), Some(text)) if given == 1 => {
                let offset = characters(self.text, offset);
                Ok(Node::Decode { encoding, text: Box::new(text), offset })
            }
            (Some(_), _) => Err((offset, format!("`{function}` takes 1 argument, not {given}"))),
            (None, None) => Err((offset, "`not_null` takes at least 1 argument".to_owned())),
            (None, Some(last)) => {
                arguments.push(last);
                Ok(Node::NotNull(arguments))
            }
        }
    }
}

/// The members that every JavaScript object inherits.
const INHERITED: &str = "__proto__ constructor hasOwnProperty isPrototypeOf propertyIsEnumerable toLocaleString \
    toString valueOf __defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__";

/// The second expression, applied to the value of the first.
fn then(left: Node, right: Node, offset: usize) -> Parsed {
    check(&left, Some(right.first()), offset)?;
    Ok(Node::Then(Box::new(left), Box::new(right)))
}

/// Refuses a step that selects nothing from any record. No step means `[*]`.
fn check(left: &Node, step: Option<&Node>, offset: usize) -> Result<(), Mistake> {
    let step = match step {
        Some(Node::Each(list, _)) if matches!(**list, Node::Current) => None,
        Some(Node::Each(list, _)) => Some(list.first()),
        step => step,
    };
    let reason = match (left.known(), step) {
        (Known::List(_) | Known::Items, Some(Node::Field(name))) => {
            let name = name.shown();
            format!(
                "the expression before it is a list, which has no member `{name}`; write `| [*].{name}`"
            )
        }
        (Known::List(parts), Some(Node::Index(index))) if !is_within(*index, parts) => {
            format!("the list before it has {parts} parts")
        }
        (Known::Hash(parts), Some(Node::Field(name)))
            if !parts.iter().any(|(own, _)| own == name) =>
        {
            format!("the object before it has no part `{}`", name.shown())
        }
        (Known::Hash(_), None | Some(Node::Index(_))) => {
            "the expression before it is an object, which has no items".to_owned()
        }
        _ => return Ok(()),
    };
    Err((offset, reason))
}

/// Whether a list of so many parts has an item at this index.
fn is_within(index: i64, parts: usize) -> bool {
    let from_its_end = if index < 0 { -1 - index } else { index };
    usize::try_from(from_its_end).is_ok_and(|at| at < parts)
}
