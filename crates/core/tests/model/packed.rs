//! Records, guards and writes, packed small enough that millions of states fit in memory.
//!
//! Packing loses nothing: [`Cell::pack`] unpacks what it packed and compares. Whatever a protocol
//! function is asked about or answers is the real [`Record`] and the real [`Guard`].

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

use lambda_idempotency_core::{
    clock::Timestamp,
    key::Key,
    record::{Owner, Record, Status},
    store::{Guard, Seen, Write},
};

/// A tick of the model is a second; tick 0 is some time after the epoch, as now always is.
const TICK_0: u64 = 100;

/// The one outcome and the one error type there are.
pub(crate) static TEXT: LazyLock<Arc<str>> = LazyLock::new(|| "x".into());
static KEY: LazyLock<Key> = LazyLock::new(|| Key::from_text("k"));

/// The instant of a tick.
pub(crate) fn at(tick: u8) -> Timestamp {
    Timestamp::from_secs(TICK_0 + u64::from(tick))
}

/// A number that stands for a random owner token; 0 is none.
pub(crate) type Token = u8;

/// A [`Record`] in eight bytes: status, owner, last owner, failures, vanished, lease, expiry, and
/// whether there is an outcome and an error.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Cell(u64);

impl Cell {
    pub(crate) fn pack(record: &Record) -> Self {
        // Nothing decides by the fence, and it would make each history a state of its own.
        let mut record = record.clone();
        record.fence = 0;
        let status = match record.status {
            Status::InProgress => 0,
            Status::Completed => 1,
            Status::Failed => 2,
        };
        let flags = u8::from(record.outcome.is_some()) | if record.error.is_some() { 2 } else { 0 };
        let cell = Self(u64::from_le_bytes([
            status,
            token(record.owner),
            token(record.last_owner),
            u8::try_from(record.failures).unwrap(),
            u8::try_from(record.vanished).unwrap(),
            pack_time(record.lease_until),
            pack_time(Some(record.expires_at)),
            flags,
        ]));
        assert_eq!(cell.unpack(), record, "packing must lose nothing");
        cell
    }

    pub(crate) fn unpack(self) -> Record {
        let [status, owner, last_owner, failures, vanished, lease, expires, flags] =
            self.0.to_le_bytes();
        let status = [Status::InProgress, Status::Completed, Status::Failed][usize::from(status)];
        let mut record = Record::new(status, unpack_time(expires).unwrap());
        record.owner = owner_of(owner);
        record.last_owner = owner_of(last_owner);
        record.failures = u32::from(failures);
        record.vanished = u32::from(vanished);
        record.lease_until = unpack_time(lease);
        record.outcome = (flags & 1 != 0).then(|| TEXT.clone().into());
        record.error = (flags & 2 != 0).then(|| TEXT.clone());
        record
    }

    fn byte(self, i: usize) -> u8 {
        self.0.to_le_bytes()[i]
    }

    pub(crate) fn in_progress(self) -> bool {
        self.byte(0) == 0
    }

    pub(crate) fn completed(self) -> bool {
        self.byte(0) == 1
    }

    pub(crate) fn owner(self) -> Token {
        self.byte(1)
    }

    pub(crate) fn failures(self) -> u8 {
        self.byte(3)
    }

    pub(crate) fn vanished(self) -> u8 {
        self.byte(4)
    }

    /// The tick of the lease; ticks before 0 (a released record) count as 0, `None` as the last.
    pub(crate) fn lease(self) -> u8 {
        match self.byte(5) {
            0 => u8::MAX,
            packed => packed.saturating_sub(2),
        }
    }

    pub(crate) fn expires(self) -> u8 {
        self.byte(6) - 2
    }

    /// Whether both name the same holder in the same role: what a lost answer is recognised by.
    pub(crate) fn same_work(self, other: Self) -> bool {
        let bytes = |cell: Self| (cell.byte(0), cell.byte(1), cell.byte(2), cell.byte(5));
        bytes(self) == bytes(other)
    }

    /// The same record under other token names.
    pub(crate) fn rename(self, name: &mut impl FnMut(Token) -> Token) -> Self {
        let mut bytes = self.0.to_le_bytes();
        bytes[1] = name(bytes[1]);
        bytes[2] = name(bytes[2]);
        Self(u64::from_le_bytes(bytes))
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [status, owner, last, failures, vanished, lease, expires, _] = self.0.to_le_bytes();
        let status = ["INPROGRESS", "COMPLETED", "FAILED"][usize::from(status)];
        let time = |packed: u8| match packed {
            0 => "-".to_owned(),
            1 => "lapsed".to_owned(),
            tick => (tick - 2).to_string(),
        };
        write!(f, "{status} owner={owner} last={last} f={failures} v={vanished} ")?;
        write!(f, "lease={} exp={}", time(lease), time(expires))
    }
}

/// A [`Guard`], packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Condition {
    Absent,
    Mine(Token),
    /// The five fields of a [`Seen`]; the others are blank.
    Seen(Cell),
}

impl Condition {
    pub(crate) fn pack(guard: &Guard) -> Self {
        match guard {
            Guard::Absent => Self::Absent,
            Guard::Mine(owner) => Self::Mine(token(Some(*owner))),
            Guard::Seen(seen) => {
                let mut record = Record::new(seen.status, seen.expires_at);
                record.owner = seen.owner;
                record.last_owner = seen.last_owner;
                record.lease_until = seen.lease_until;
                assert_eq!(Seen::of(&record), *seen, "packing must lose nothing");
                Self::Seen(Cell::pack(&record))
            }
        }
    }

    fn unpack(self) -> Guard {
        match self {
            Self::Absent => Guard::Absent,
            Self::Mine(owner) => Guard::Mine(Owner::from_bits(u128::from(owner))),
            Self::Seen(cell) => Guard::Seen(Seen::of(&cell.unpack())),
        }
    }
}

/// What a write is for. The store does not see this; the checks at each landing do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Intent {
    Claim,
    Complete,
    Remember,
    Release,
    PutBack,
    /// Until the tick named.
    Renew(u8),
}

/// A write on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Request {
    pub(crate) intent: Intent,
    /// The claim on whose behalf it is made.
    pub(crate) by: Token,
    pub(crate) guard: Condition,
    pub(crate) record: Option<Cell>,
}

impl Request {
    pub(crate) fn write(&self) -> Write {
        Write {
            key: KEY.clone(),
            guard: self.guard.unpack(),
            record: self.record.map(Cell::unpack),
        }
    }

    pub(crate) fn rename(&mut self, name: &mut impl FnMut(Token) -> Token) {
        self.by = name(self.by);
        self.guard = match self.guard {
            Condition::Absent => Condition::Absent,
            Condition::Mine(owner) => Condition::Mine(name(owner)),
            Condition::Seen(cell) => Condition::Seen(cell.rename(name)),
        };
        self.record = self.record.map(|cell| cell.rename(name));
    }
}

fn token(owner: Option<Owner>) -> Token {
    owner.map_or(0, |owner| {
        (1..=Token::MAX).find(|t| owner_of(*t) == Some(owner)).expect("tokens are small")
    })
}

pub(crate) fn owner_of(token: Token) -> Option<Owner> {
    (token != 0).then(|| Owner::from_bits(u128::from(token)))
}

/// 0 is none, 1 is the long past lease of a released record, then come the ticks.
fn pack_time(time: Option<Timestamp>) -> u8 {
    match time {
        None => 0,
        Some(t) if t.as_secs() == 0 => 1,
        Some(t) => u8::try_from(t.as_secs() - TICK_0 + 2).unwrap(),
    }
}

fn unpack_time(packed: u8) -> Option<Timestamp> {
    match packed {
        0 => None,
        1 => Some(Timestamp::from_millis(1)),
        tick => Some(at(tick - 2)),
    }
}
