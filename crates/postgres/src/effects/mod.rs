//! What the store commits together with a completion.

mod placeholders;
mod statement;
mod value;
mod words;

use std::fmt;

pub use self::{statement::PostgresStatement, value::PostgresValue};

/// The most bytes of the values of a call. They are kept until the handler has returned.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// The most parameters of a statement of PostgreSQL.
const MOST_VALUES: usize = 65_535;

/// The effects that a [`PostgresStore`](crate::PostgresStore) commits together with the completion of a key,
/// in one transaction: statements, in the order in which they were added.
///
/// ```
/// use lambda_idempotency_postgres::{PostgresEffects, PostgresStatement};
///
/// let mut effects = PostgresEffects::default();
/// let take = "UPDATE stock SET remaining = remaining - $1 WHERE item = $2 AND remaining >= $1";
/// effects.add(PostgresStatement::new(take).bind(2).bind("tea").expect_rows(1))?;
/// assert_eq!(
///     effects.add(PostgresStatement::new("COMMIT")).unwrap_err().to_string(),
///     "a statement that begins with COMMIT cannot be an effect: the store begins and ends the transaction"
/// );
/// # Ok::<(), lambda_idempotency_postgres::PostgresEffectError>(())
/// ```
#[derive(Default)]
pub struct PostgresEffects {
    statements: Vec<PostgresStatement>,
    bytes: usize,
}

/// Why a statement cannot be an effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresEffectError {
    /// It would end the transaction.
    #[error(
        "a statement that begins with {0} cannot be an effect: the store begins and ends the transaction"
    )]
    OfTransaction(&'static str),
    /// It would exchange data with the server.
    #[error(
        "a statement that begins with COPY cannot be an effect: the store has no data for it; use INSERT, for many rows \
         with `SELECT .. FROM unnest(..)`"
    )]
    Copy,
    /// It has more values than PostgreSQL takes.
    #[error(
        "a statement takes {MOST_VALUES} values, and this one has {values}: bind arrays as text, or split it"
    )]
    TooManyValues {
        /// How many it has.
        values: usize,
    },
    /// It has a placeholder without a value.
    #[error(
        "the statement has a placeholder ${placeholder} and {values} values: bind a value for each"
    )]
    MissingValue {
        /// The highest placeholder.
        placeholder: usize,
        /// How many values are bound.
        values: usize,
    },
    /// Its text has a NUL character.
    #[error(
        "the text of the statement has a NUL character, which PostgreSQL does not take: bind values, and never write them into it"
    )]
    NulInText,
    /// A text has a NUL character.
    #[error("value {} has a NUL character, which a text of PostgreSQL cannot hold: bind it as bytes", .position + 1)]
    Nul {
        /// The position of the value, from 0.
        position: usize,
    },
    /// The values of the call are too large together.
    #[error(
        "the effects of this call have {bytes} bytes together, and {MOST_BYTES} are allowed: collect less in a call"
    )]
    TooLarge {
        /// How large they would be.
        bytes: usize,
    },
}

impl PostgresEffects {
    /// Adds a statement.
    ///
    /// # Errors
    /// It cannot be an effect. What was added before stays.
    pub fn add(&mut self, statement: PostgresStatement) -> Result<(), PostgresEffectError> {
        if let Some(word) = words::of_transactions(statement.text()) {
            return Err(PostgresEffectError::OfTransaction(word));
        }
        if words::is_copy(statement.text()) {
            return Err(PostgresEffectError::Copy);
        }
        let values = statement.values().len();
        if values > MOST_VALUES {
            return Err(PostgresEffectError::TooManyValues { values });
        }
        if statement.text().contains('\0') {
            return Err(PostgresEffectError::NulInText);
        }
        let placeholder = placeholders::highest(statement.text());
        if placeholder > values {
            return Err(PostgresEffectError::MissingValue { placeholder, values });
        }
        if let Some(position) = statement.values().iter().position(PostgresValue::has_nul) {
            return Err(PostgresEffectError::Nul { position });
        }
        let bytes = self.bytes.saturating_add(statement.bytes());
        if bytes > MOST_BYTES {
            return Err(PostgresEffectError::TooLarge { bytes });
        }
        self.bytes = bytes;
        self.statements.push(statement);
        Ok(())
    }

    /// The statements, in the order in which they were added.
    #[must_use]
    pub fn statements(&self) -> &[PostgresStatement] {
        &self.statements
    }
}

/// Without the values, which are the application's data.
impl fmt::Debug for PostgresEffects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (statements, bytes) = (self.statements.len(), self.bytes);
        f.debug_struct("PostgresEffects")
            .field("statements", &statements)
            .field("bytes", &bytes)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_the_transaction_is_refused_however_it_is_written() {
        for text in [
            "COMMIT",
            " rollback;",
            "End",
            "begin\nwork",
            "savepoint a",
            "Start transaction",
            ";COMMIT",
            "-- at the end\ncommit",
            "/* of orders /* nested */ */ -- and\r COMMIT",
            "/**/ROLLBACK",
        ] {
            let error = PostgresEffects::default().add(PostgresStatement::new(text)).unwrap_err();
            assert!(matches!(error, PostgresEffectError::OfTransaction(_)), "{text}: {error}");
        }
        for text in ["COPY a FROM STDIN", "/* */ copy (SELECT 1) TO STDOUT"] {
            let error = PostgresEffects::default().add(PostgresStatement::new(text)).unwrap_err();
            assert_eq!(error, PostgresEffectError::Copy, "{text}");
        }
        for text in [
            "SELECT 1",
            "SET LOCAL app.tenant = 'a'",
            "COPYING()",
            "ENDORSE",
            "settle()",
            "INSERT INTO a VALUES (1)",
            "",
            "/* COMMIT",
            "/* /* */ COMMIT",
            "-- COMMIT",
            "/* COMMIT */ SELECT 1",
        ] {
            PostgresEffects::default().add(PostgresStatement::new(text)).unwrap();
        }
    }

    #[test]
    fn values_that_cannot_be_sent_are_refused_and_none_is_shown() {
        let nul = PostgresStatement::new("SELECT $1, $2").bind(1).bind("s3cr3t\0");
        assert_eq!(
            PostgresEffects::default().add(nul).unwrap_err().to_string(),
            "value 2 has a NUL character, which a text of PostgreSQL cannot hold: bind it as bytes"
        );
        let mut effects = PostgresEffects::default();
        let half = || PostgresStatement::new("SELECT $1").bind(vec![7; MOST_BYTES / 2]);
        effects.add(half()).unwrap();
        let error = effects.add(half()).unwrap_err();
        assert!(matches!(error, PostgresEffectError::TooLarge { .. }), "{error}");
        let refused = |text: &str| {
            PostgresEffects::default().add(PostgresStatement::new(text).bind(1)).unwrap_err()
        };
        assert_eq!(refused("SELECT $1, 's3cr3t\0'"), PostgresEffectError::NulInText);
        let error = refused("UPDATE seats SET taken = $2 WHERE seat = $1");
        assert_eq!(error, PostgresEffectError::MissingValue { placeholder: 2, values: 1 });
        let many = (0..=MOST_VALUES).fold(PostgresStatement::new(""), |all, _| all.bind(true));
        let error = PostgresEffects::default().add(many).unwrap_err();
        assert_eq!(error, PostgresEffectError::TooManyValues { values: MOST_VALUES + 1 });
        let secret = PostgresStatement::new("s3cr3t").bind("s3cr3t").bind(None::<i64>);
        let shown = format!("{secret:?} {:?}", secret.values());
        assert!(!shown.contains("s3cr3t") && shown.contains("[text, bigint]"), "{shown}");
        effects.add(secret).unwrap();
        assert!(!format!("{effects:?}").contains("s3cr3t"), "{effects:?}");
    }
}
