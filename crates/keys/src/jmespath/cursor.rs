//! The parser's position in the tokens of an expression.

use super::{Mistake, tokens::Token};

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
