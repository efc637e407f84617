//! The parameters of a statement, one for each column: a value if it is the same in all rows, or else an array.
//!
//! Most columns of a batch are the same in all rows, and so are all columns of a single row. What is sent once need not
//! be made into rows by the server.

use std::borrow::Cow;

use lambda_idempotency_core::{
    record::{IdempotencyRecord, Status},
    store::{Guard, RecordVersion},
};
use tokio_postgres::types::{ToSql, Type};

use crate::row::{Token, Value, millis, status_text, values};

/// A parameter with its type. The server is told the types, so it need not be asked for them.
pub(crate) type Parameter<'p> = (Box<dyn ToSql + Send + Sync + 'p>, Type);

/// Parameters, column by column.
#[derive(Default)]
pub(crate) struct Columns<'p>(Vec<Column<'p>>);

enum Column<'p> {
    Text(Vec<Option<Cow<'p, str>>>),
    Number(Vec<Option<i64>>),
    Token(Vec<Option<Token>>),
    Flag(Vec<bool>),
}

/// A value of a row of parameters.
pub(crate) enum Cell<'p> {
    Record(Value<'p>),
    Flag(bool),
}

impl<'p> Columns<'p> {
    /// Adds a row. All rows have the same columns.
    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = Cell<'p>>) {
        for (position, cell) in row.into_iter().enumerate() {
            if self.0.len() <= position {
                self.0.push(Column::of(&cell));
            }
            if let Some(column) = self.0.get_mut(position) {
                column.push(cell);
            }
        }
    }

    pub(crate) const fn are_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The parameters, in the order of the columns, and which of them are arrays.
    pub(crate) fn parameters(self) -> (Vec<Parameter<'p>>, Vec<bool>) {
        self.0.into_iter().map(Column::parameter).unzip()
    }
}

impl<'p> Column<'p> {
    const fn of(cell: &Cell<'_>) -> Self {
        match cell {
            Cell::Record(Value::Text(_)) => Self::Text(Vec::new()),
            Cell::Record(Value::Number(_)) => Self::Number(Vec::new()),
            Cell::Record(Value::Token(_)) => Self::Token(Vec::new()),
            Cell::Flag(_) => Self::Flag(Vec::new()),
        }
    }

    fn push(&mut self, cell: Cell<'p>) {
        match (self, cell) {
            (Self::Text(column), Cell::Record(Value::Text(text))) => column.push(text),
            (Self::Number(column), Cell::Record(Value::Number(number))) => column.push(number),
            (Self::Token(column), Cell::Record(Value::Token(token))) => column.push(token),
            (Self::Flag(column), Cell::Flag(flag)) => column.push(flag),
            // A column has cells of one kind: rows are made by the functions below only.
            _ => {}
        }
    }

    fn parameter(self) -> (Parameter<'p>, bool) {
        match self {
            Self::Text(column) => sent(column, Type::TEXT, Type::TEXT_ARRAY),
            Self::Number(column) => sent(column, Type::INT8, Type::INT8_ARRAY),
            Self::Token(column) => sent(column, Type::UUID, Type::UUID_ARRAY),
            Self::Flag(column) => sent(column, Type::BOOL, Type::BOOL_ARRAY),
        }
    }
}

/// The parameter of a column, and whether it is an array.
fn sent<'p, T>(mut column: Vec<T>, one: Type, many: Type) -> (Parameter<'p>, bool)
where
    T: ToSql + PartialEq + Send + Sync + 'p,
{
    let is_the_same = column.windows(2).all(|pair| matches!(pair, [a, b] if a == b));
    match column.pop() {
        Some(value) if is_the_same => ((Box::new(value), one), false),
        last => {
            column.extend(last);
            ((Box::new(column), many), true)
        }
    }
}

/// The cell of a key.
pub(crate) fn key_cell(key: &str) -> Cell<'_> {
    Cell::Record(Value::Text(Some(key.into())))
}

/// The cells of a record.
pub(crate) fn record_cells(record: &IdempotencyRecord) -> impl Iterator<Item = Cell<'_>> {
    values(record).into_iter().map(Cell::Record)
}

/// The cells of a guard, in the order of [`GUARD_COLUMNS`](crate::statements::GUARD_COLUMNS); `None`
/// for [`Guard::Absent`], under which nothing is compared.
pub(crate) fn guard_cells(guard: &Guard) -> Option<[Cell<'static>; 6]> {
    let text = |status| Cell::Record(Value::Text(Some(status_text(status).into())));
    let token = |owner: Option<_>| Cell::Record(Value::Token(owner.map(Token)));
    let number = |number| Cell::Record(Value::Number(number));
    match guard {
        Guard::Absent => None,
        Guard::OwnedBy(owner) => Some([
            text(Status::InProgress),
            token(Some(*owner)),
            Cell::Flag(false),
            token(None),
            number(None),
            number(None),
        ]),
        Guard::Unchanged(RecordVersion { status, owner, last_owner, lease_until, expires_at }) => {
            Some([
                text(*status),
                token(*owner),
                Cell::Flag(true),
                token(*last_owner),
                number(lease_until.map(millis)),
                number(Some(millis(*expires_at))),
            ])
        }
    }
}

/// Keys as one array.
pub(crate) fn keys<'k>(keys: impl Iterator<Item = &'k str>) -> Parameter<'k> {
    (Box::new(keys.collect::<Vec<_>>()), Type::TEXT_ARRAY)
}

/// A number.
pub(crate) fn number(number: i64) -> Parameter<'static> {
    (Box::new(number), Type::INT8)
}
