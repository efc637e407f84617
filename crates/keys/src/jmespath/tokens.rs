//! An expression cut into tokens, and the parser's position in them.

use super::{
    read::read,
    value::{Text, Value, Variant},
};

/// The byte offset of a mistake in an expression, and its message.
pub(crate) type Mistake = (usize, String);

#[derive(Clone)]
pub(crate) enum Token {
    Name(String),
    Quoted(Text),
    Number(i64),
    /// `.`, `*`, `]`, `,`, `:`, `@`, `(`, `)`, `{`, `}`, `[` or `|`.
    Sign(char),
    End,
}

impl Token {
    /// How strongly it binds to the expression before it. A token that binds less than
    /// [`PROJECTION_STOP`] ends a projection.
    pub(crate) const fn power(&self) -> u8 {
        match self {
            Self::Sign('|') => 1,
            Self::Sign('.') => 40,
            Self::Sign('[') => 55,
            _ => 0,
        }
    }

    pub(crate) const fn is(&self, sign: char) -> bool {
        matches!(self, Self::Sign(own) if *own == sign)
    }
}

/// How strongly `[*]` binds.
pub(crate) const PROJECTION: u8 = 20;
pub(crate) const PROJECTION_STOP: u8 = 10;

/// The remedy for a name that needs quotes.
const QUOTE_IT: &str = "write a name that contains it in double quotes";

/// A form of JMESPath that the language does not have, and the remedy.
pub(crate) fn left_out(what: &str) -> String {
    format!(
        "{what}, and a key expression only selects and decodes; compute such a key with \
         `.key_fn(|payload: &str| -> Result<Vec<String>, &'static str> {{ .. }})`"
    )
}

/// The tokens with their offsets; the last is [`Token::End`].
pub(crate) fn tokens(variant: Variant, text: &str) -> Result<Vec<(usize, Token)>, Mistake> {
    let mut lexer = Lexer { variant, text, at: 0 };
    let mut tokens = Vec::new();
    while let Some(c) = lexer.peek() {
        let start = lexer.at;
        if matches!(c, ' ' | '\t' | '\n' | '\r') {
            lexer.skip(c);
        } else {
            tokens.push((start, lexer.token(c).map_err(|reason| (start, reason))?));
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

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or("")
    }

    fn token(&mut self, c: char) -> Result<Token, String> {
        match c {
            'a'..='z' | 'A'..='Z' | '_' => {
                let name = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
                return Ok(Token::Name(name.to_owned()));
            }
            '0'..='9' => return self.number(1).map(Token::Number),
            '"' => return self.quoted(),
            _ => self.skip(c),
        }
        Err(match (c, self.peek()) {
            ('[', Some('?')) => left_out("`[?` is a filter"),
            ('[', Some(']')) => left_out("`[]` makes distinct lists equal"),
            ('|', Some('|')) => left_out(
                "`||` chooses by a condition (`not_null(a, b)` takes the first that there is)",
            ),
            ('&', Some('&')) | ('!', _) if self.peek() != Some('=') => {
                left_out("`&&` and `!` are conditions")
            }
            ('&', _) => left_out("`&` makes an argument of an expression"),
            ('=' | '!' | '<' | '>', _) => left_out("it is a comparison"),
            ('\'' | '`', _) => left_out(
                "it is a constant, the same for every record (a field is written without quotes, or in double quotes)",
            ),
            ('.' | '*' | ']' | ',' | ':' | '@' | '(' | ')' | '{' | '}' | '[' | '|', _) => {
                return Ok(Token::Sign(c));
            }
            ('-', Some('0'..='9')) => return self.number(-1).map(Token::Number),
            ('-', _) => format!("`-` must be followed by digits; {QUOTE_IT}"),
            ('$' | '/', _) if self.at == 1 => format!(
                "invalid character: {c}; a JMESPath begins with a name, and its names are joined by dots: `order.id`"
            ),
            _ => format!("invalid character: {c}; {QUOTE_IT}"),
        })
    }

    fn number(&mut self, sign: i64) -> Result<i64, String> {
        let number = self.take_while(|c| c.is_ascii_digit()).parse::<i32>();
        let number = number.map_err(|_| "expected a number of at most 32 bits".to_owned())?;
        Ok(sign * i64::from(number))
    }

    /// A name in double quotes. A quote after a backslash does not close it.
    fn quoted(&mut self) -> Result<Token, String> {
        let quoted = self.rest();
        let mut characters = quoted.char_indices().skip(1);
        while let Some((at, c)) = characters.next() {
            if c == '"' {
                self.at += at + 1;
                return match read(self.variant, quoted.get(..=at).unwrap_or_default()) {
                    Ok(Value::String(name)) => Ok(Token::Quoted(name)),
                    Ok(_) => Err("it is not a quoted name".to_owned()),
                    Err(error) => Err(format!("it is not a quoted name: {error}")),
                };
            }
            if c == '\\' {
                characters.next();
            }
        }
        Err("this \" is not closed".to_owned())
    }
}

/// The tokens of an expression, and how many have been taken.
pub(super) struct Cursor {
    tokens: Vec<(usize, Token)>,
    at: usize,
}

impl Cursor {
    pub(super) const fn new(tokens: Vec<(usize, Token)>) -> Self {
        Self { tokens, at: 0 }
    }

    /// Skips the next token.
    pub(super) fn skip(&mut self) {
        self.at += 1;
    }

    /// Returns to the token before.
    pub(super) fn back(&mut self) {
        self.at = self.at.saturating_sub(1);
    }

    pub(super) fn peek(&self) -> &Token {
        self.ahead(0)
    }

    pub(super) fn ahead(&self, tokens: usize) -> &Token {
        self.tokens.get(self.at + tokens).map_or(&Token::End, |(_, token)| token)
    }

    pub(super) fn offset(&self) -> usize {
        let last = self.tokens.last();
        self.tokens.get(self.at).or(last).map_or(0, |(offset, _)| *offset)
    }

    /// An error at the next token.
    pub(super) fn mistake(&self, reason: &str) -> Mistake {
        let end = if matches!(self.peek(), Token::End) { ", but it ends" } else { "" };
        (self.offset(), format!("{reason}{end}"))
    }

    pub(super) fn take(&mut self, sign: char) -> bool {
        let found = self.peek().is(sign);
        self.at += usize::from(found);
        found
    }

    pub(super) fn require(&mut self, sign: char, expected: &str) -> Result<(), Mistake> {
        if self.take(sign) { Ok(()) } else { Err(self.mistake(expected)) }
    }
}
