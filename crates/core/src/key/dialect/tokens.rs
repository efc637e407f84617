//! An expression cut into tokens, as the lexers of both libraries cut it.

use super::{
    Library,
    ast::Comparator,
    read::read,
    value::{Text, Value},
};
use crate::key::syntax::Mistake;

#[derive(Clone)]
pub(super) enum Token {
    Name(String),
    Quoted(Text),
    Literal(Value),
    Number(i64),
    Compare(Comparator),
    /// `.`, `*`, `]`, `,`, `:`, `@`, `(`, `)`, `{`, `}`, `[`, `|`, `&` or `!`.
    Sign(char),
    /// `[]`.
    Flatten,
    /// `[?`.
    Filter,
    Or,
    And,
    End,
}

impl Token {
    /// How strongly it binds what stands before it. What binds less than [`PROJECTION_STOP`] ends a
    /// projection.
    pub(super) const fn power(&self) -> u8 {
        match self {
            Self::Sign('|') => 1,
            Self::Or => 2,
            Self::And => 3,
            Self::Compare(_) => 5,
            Self::Flatten => 9,
            Self::Sign('*') => 20,
            Self::Filter => 21,
            Self::Sign('.') => 40,
            Self::Sign('!') => 45,
            Self::Sign('{') => 50,
            Self::Sign('[') => 55,
            Self::Sign('(') => 60,
            _ => 0,
        }
    }

    pub(super) const fn is(&self, sign: char) -> bool {
        matches!(self, Self::Sign(own) if *own == sign)
    }
}

pub(super) const PROJECTION_STOP: u8 = 10;

/// The tokens with their places; the last is [`Token::End`].
pub(super) fn tokens(library: Library, text: &str) -> Result<Vec<(usize, Token)>, Mistake> {
    let mut lexer = Lexer { library, text, at: 0 };
    let mut tokens = Vec::new();
    while let Some(c) = lexer.peek() {
        let start = lexer.at;
        if !matches!(c, ' ' | '\t' | '\n' | '\r') {
            tokens.push((start, lexer.token(c)?));
        } else {
            lexer.skip(c);
        }
    }
    tokens.push((text.len(), Token::End));
    Ok(tokens)
}

struct Lexer<'t> {
    library: Library,
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    const fn skip(&mut self, c: char) {
        self.at += c.len_utf8();
    }

    fn take(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        if found {
            self.skip(c);
        }
        found
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or("")
    }

    fn token(&mut self, c: char) -> Result<Token, Mistake> {
        let start = self.at;
        match c {
            'a'..='z' | 'A'..='Z' | '_' => {
                let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
                return Ok(Token::Name(name.to_owned()));
            }
            '0'..='9' => return Ok(Token::Number(self.number())),
            '"' => return self.quoted().ok_or_else(|| (start, "it is no quoted name".to_owned())),
            '\'' => {
                let inside = self.until('\'').ok_or_else(|| unclosed(start))?;
                return Ok(Token::Literal(Value::text(&self.unescape(inside, "\\'", "'"))));
            }
            '`' => {
                let inside = self.until('`').ok_or_else(|| unclosed(start))?;
                let json = self.unescape(inside, "\\`", "`");
                return self.literal(&json).map(Token::Literal).map_err(|why| (start, why));
            }
            _ => self.skip(c),
        }
        Ok(match c {
            '.' | '*' | ']' | ',' | ':' | '@' | '(' | ')' | '{' | '}' => Token::Sign(c),
            '[' if self.take(']') => Token::Flatten,
            '[' if self.take('?') => Token::Filter,
            '|' if self.take('|') => Token::Or,
            '&' if self.take('&') => Token::And,
            '=' if self.take('=') => Token::Compare(Comparator::Equal),
            '!' if self.take('=') => Token::Compare(Comparator::NotEqual),
            '<' if self.take('=') => Token::Compare(Comparator::LessOrEqual),
            '>' if self.take('=') => Token::Compare(Comparator::GreaterOrEqual),
            '<' => Token::Compare(Comparator::Less),
            '>' => Token::Compare(Comparator::Greater),
            '[' | '|' | '&' | '!' => Token::Sign(c),
            '-' if self.peek().is_some_and(|c| c.is_ascii_digit()) => {
                Token::Number(self.number().saturating_neg())
            }
            _ => return Err((start, format!("`{c}` cannot stand there"))),
        })
    }

    /// Beyond 64 bits, any index is as far outside of every list.
    fn number(&mut self) -> i64 {
        self.take_while(|c| c.is_ascii_digit()).parse().unwrap_or(i64::MAX)
    }

    /// What is between two of these, which a backslash keeps from being the second.
    fn until(&mut self, quote: char) -> Option<&'t str> {
        self.skip(quote);
        let inside = self.rest();
        let mut characters = inside.char_indices();
        while let Some((at, c)) = characters.next() {
            if c == quote {
                self.at += at + quote.len_utf8();
                return inside.get(..at);
            }
            if c == '\\' {
                characters.next();
            }
        }
        None
    }

    /// TypeScript replaces the first of them only.
    fn unescape(&self, text: &str, escaped: &str, plain: &str) -> String {
        match self.library {
            Library::Python => text.replace(escaped, plain),
            Library::TypeScript => text.replacen(escaped, plain, 1),
        }
    }

    fn quoted(&mut self) -> Option<Token> {
        let json = format!("\"{}\"", self.until('"')?);
        match read(self.library, &json) {
            Ok(Value::String(name)) => Some(Token::Quoted(name)),
            _ => None,
        }
    }

    /// Python still reads what is no JSON as text, as the language once had it.
    fn literal(&self, json: &str) -> Result<Value, String> {
        match (read(self.library, json), self.library) {
            (Ok(value), _) => Ok(value),
            (Err(error), Library::TypeScript) => Err(error.to_string()),
            (Err(error), Library::Python) => {
                let text = json.trim_start();
                read(self.library, &format!("\"{text}\"")).map_err(|_| error.to_string())
            }
        }
    }
}

fn unclosed(start: usize) -> Mistake {
    (start, "it is not closed".to_owned())
}
