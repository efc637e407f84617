//! An expression cut into tokens.

use super::{Mistake, Variant, ast::Comparator, read::read, text::Text, value::Value};

#[derive(Clone)]
pub(crate) enum Token {
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
    /// How strongly it binds to the expression before it. A token that binds less than
    /// [`PROJECTION_STOP`] ends a projection.
    pub(crate) const fn power(&self) -> u8 {
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

    pub(crate) const fn is(&self, sign: char) -> bool {
        matches!(self, Self::Sign(own) if *own == sign)
    }
}

/// The remedy for a name that needs quotes.
const QUOTE_IT: &str = "write a name that contains it in double quotes";

pub(crate) const PROJECTION_STOP: u8 = 10;

/// The tokens with their offsets; the last is [`Token::End`].
pub(crate) fn tokens(variant: Variant, text: &str) -> Result<Vec<(usize, Token)>, Mistake> {
    let mut lexer = Lexer { variant, text, at: 0 };
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
    variant: Variant,
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
            '0'..='9' => return self.number(1).map(Token::Number),
            '"' | '\'' | '`' => {
                let quoted = self.quoted(c);
                return quoted.map_err(|why| (start, why));
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
                Token::Number(self.number(-1)?)
            }
            '=' => return Err((start, "`=` is not an operator; write `==` to compare".to_owned())),
            '-' => return Err((start, format!("`-` must be followed by digits; {QUOTE_IT}"))),
            c => return Err((start, format!("invalid character: {c}; {QUOTE_IT}"))),
        })
    }

    /// An index beyond 64 bits is outside of every list, so its exact value has no effect. The
    /// standard variant refuses indexes of more than 32 bits.
    fn number(&mut self, sign: i64) -> Result<i64, Mistake> {
        let start = self.at;
        let number = self.take_while(|c| c.is_ascii_digit()).parse().unwrap_or(i64::MAX);
        if self.variant == Variant::Standard && i32::try_from(number).is_err() {
            return Err((start, "expected a number of at most 32 bits".to_owned()));
        }
        Ok(sign * number)
    }

    /// The text up to the closing quote. A quote after a backslash does not close it.
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

    /// TypeScript replaces only the first occurrence.
    fn unescape(&self, text: &str, escaped: &str, plain: &str) -> String {
        match self.variant {
            Variant::Standard | Variant::Python(_) => text.replace(escaped, plain),
            Variant::TypeScript(_) => text.replacen(escaped, plain, 1),
        }
    }

    /// A name, a raw string or a literal.
    fn quoted(&mut self, quote: char) -> Result<Token, String> {
        let inside = self.until(quote).ok_or_else(|| format!("this {quote} is not closed"))?;
        match quote {
            '"' => match read(self.variant, &format!("\"{inside}\"")) {
                Ok(Value::String(name)) => Ok(Token::Quoted(name)),
                Ok(_) => Err("it is not a quoted name".to_owned()),
                Err(error) => Err(format!("it is not a quoted name: {error}")),
            },
            '\'' => Ok(Token::Literal(Value::text(&self.unescape(inside, "\\'", "'")))),
            _ => self.literal(&self.unescape(inside, "\\`", "`")).map(Token::Literal),
        }
    }

    /// Python reads a literal that is not JSON as text, as early JMESPath did.
    fn literal(&self, json: &str) -> Result<Value, String> {
        match (read(self.variant, json), self.variant) {
            (Ok(value), Variant::Standard) if !value.is_exact() => {
                Err("it holds a number that a double cannot hold exactly".to_owned())
            }
            (Ok(value), _) => Ok(value),
            (Err(error), Variant::Standard | Variant::TypeScript(_)) => Err(error.to_string()),
            (Err(error), Variant::Python(_)) => {
                let text = json.trim_start();
                read(self.variant, &format!("\"{text}\"")).map_err(|_| error.to_string())
            }
        }
    }
}
