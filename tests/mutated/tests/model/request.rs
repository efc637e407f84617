//! Writes in flight, packed.

use lambda_idempotency_core::{
    admission::Settlement,
    record::IdempotencyRecord,
    store::{Guard, RecordVersion, Write},
};
use lambda_idempotency_keys::Key;

use std::sync::LazyLock;

use crate::packed::{Cell, TEXT, Token, at, owner_of, pack_token};

static KEY: LazyLock<Key> = LazyLock::new(|| Key::from_text("k"));

/// A [`Guard`], packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Condition {
    Absent,
    OwnedBy(Token),
    /// The five fields of a [`RecordVersion`]; the others are blank.
    Unchanged(Cell),
}

impl Condition {
    fn pack(guard: &Guard) -> Self {
        match guard {
            Guard::Absent => Self::Absent,
            Guard::OwnedBy(owner) => Self::OwnedBy(pack_token(Some(*owner))),
            Guard::Unchanged(seen) => {
                let mut record = IdempotencyRecord::new(seen.status, seen.expires_at);
                record.owner = seen.owner;
                record.last_owner = seen.last_owner;
                record.lease_until = seen.lease_until;
                assert_eq!(RecordVersion::of(&record), *seen, "packing loses nothing");
                Self::Unchanged(Cell::pack(&record))
            }
        }
    }

    fn unpack(self) -> Guard {
        match self {
            Self::Absent => Guard::Absent,
            Self::OwnedBy(owner) => Guard::OwnedBy(owner_of(owner).expect("a claim has a token")),
            Self::Unchanged(cell) => Guard::Unchanged(RecordVersion::of(&cell.unpack())),
        }
    }
}

/// The purpose of a write. The store does not use it; the checks of applied writes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Intent {
    Claim,
    Complete,
    FailPermanently,
    Release,
    Undo,
    /// The handler was stopped at the deadline.
    LeaveStanding,
    /// Renews the lease until this tick.
    Renew(u8),
}

impl Intent {
    /// The settlement of this purpose.
    pub(crate) fn settlement(self) -> Settlement {
        match self {
            Self::Complete => {
                Settlement::Complete { result: Some(TEXT.clone().into()), outbox: None }
            }
            Self::FailPermanently => {
                Settlement::FailPermanently { result: None, error_type: TEXT.clone() }
            }
            Self::Release => Settlement::Release { error_type: TEXT.clone() },
            Self::Undo => Settlement::Undo,
            Self::LeaveStanding => Settlement::LeaveStanding,
            Self::Renew(until) => Settlement::Renew { lease_until: at(until) },
            Self::Claim => unreachable!("a claim settles nothing"),
        }
    }
}

/// A write in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Request {
    pub(crate) intent: Intent,
    /// The token of the claim that the write is part of.
    pub(crate) by: Token,
    pub(crate) guard: Condition,
    pub(crate) record: Option<Cell>,
}

impl Request {
    /// Packs what the protocol asks to be written.
    pub(crate) fn new(
        intent: Intent,
        by: Token,
        (guard, record): (Guard, Option<IdempotencyRecord>),
    ) -> Self {
        let record = record.as_ref().map(Cell::pack);
        Self { intent, by, guard: Condition::pack(&guard), record }
    }

    pub(crate) fn write(&self) -> Write {
        Write::new(KEY.clone(), self.guard.unpack(), self.record.map(Cell::unpack))
    }

    pub(crate) fn rename(&mut self, name: &mut impl FnMut(Token) -> Token) {
        self.by = name(self.by);
        self.guard = match self.guard {
            Condition::Absent => Condition::Absent,
            Condition::OwnedBy(owner) => Condition::OwnedBy(name(owner)),
            Condition::Unchanged(cell) => Condition::Unchanged(cell.rename(name)),
        };
        self.record = self.record.map(|cell| cell.rename(name));
    }
}
