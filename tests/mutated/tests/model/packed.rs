//! Records, packed so that millions of states fit in memory.
//!
//! Packing loses nothing: [`Cell::pack`] unpacks the packed record and compares. Protocol functions get
//! and return the real [`IdempotencyRecord`].

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

use lambda_idempotency_core::{
    clock::Timestamp,
    record::{Fingerprint, IdempotencyRecord, Owner, Status},
};

/// A tick of the model is a second; tick 0 is some time after the epoch, as the current time always is.
const TICK_0: u64 = 100;

/// The only result and the only error type.
pub(crate) static TEXT: LazyLock<Arc<str>> = LazyLock::new(|| "x".into());

/// The instant of a tick.
pub(crate) fn at(tick: u8) -> Timestamp {
    Timestamp::from_secs(TICK_0 + u64::from(tick))
}

/// The tick of an instant.
pub(crate) fn tick_of(instant: Timestamp) -> u8 {
    let tick = u8::try_from(instant.as_secs() - TICK_0).unwrap();
    assert_eq!(at(tick), instant, "the model has whole ticks only");
    tick
}

/// A number that represents a random owner token; 0 if there is none.
pub(crate) type Token = u8;

/// One of the payloads of a key, and its fingerprint.
pub(crate) type Payload = u8;

/// A fence in a byte: 0, the rank of a fence given out before the current tick, or a tick and the
/// fence's distance from it. Claims compare a fence only with the current time, so of past fences only
/// the order matters; see [`canonical`](crate::canonical).
pub(crate) type Fence = u8;

/// The first code of a fence of tick 0, and the number of codes of a tick.
const FENCE_0: u8 = 32;
const FENCES: u8 = 8;

/// The tick whose time a fence was made from; `None` for a rank.
pub(crate) fn tick_of_fence(fence: Fence) -> Option<u8> {
    fence.checked_sub(FENCE_0).map(|code| code / FENCES)
}

/// The fence of the first claim in the same tick; `None` for a rank.
pub(crate) fn first_of_tick(fence: Fence) -> Option<Fence> {
    tick_of_fence(fence).map(|tick| FENCE_0 + FENCES * tick)
}

/// An [`IdempotencyRecord`] in eight bytes: status, fingerprint, application and whether there are a
/// result and an error type; owner, last owner, failed attempts, lost attempts (all, and in a row),
/// lease, expiry, fence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Cell(u64);

impl Cell {
    pub(crate) fn pack(record: &IdempotencyRecord) -> Self {
        let status = match record.status {
            Status::InProgress => 0,
            Status::Completed => 1,
            Status::PermanentlyFailed => 2,
        };
        let there =
            u8::from(record.result.is_some()) | if record.error_type.is_some() { 2 } else { 0 };
        let cell = Self(u64::from_le_bytes([
            status
                | there << 2
                | pack_payload(record.fingerprint.as_ref().map(Fingerprint::as_str)) << 4
                | pack_payload(record.application.as_deref()) << 6,
            pack_token(record.owner),
            pack_token(record.last_owner),
            u8::try_from(record.failed_attempts).unwrap(),
            pack_losses(record.lost_attempts, record.consecutive_losses),
            pack_time(record.lease_until),
            pack_time(Some(record.expires_at)),
            pack_fence(record.fence),
        ]));
        assert_eq!(cell.unpack(), *record, "packing loses nothing");
        cell
    }

    pub(crate) fn unpack(self) -> IdempotencyRecord {
        let [kind, owner, last_owner, failed_attempts, losses, lease, expires, fence] =
            self.0.to_le_bytes();
        let status = [Status::InProgress, Status::Completed, Status::PermanentlyFailed]
            [usize::from(kind & 3)];
        let mut record = IdempotencyRecord::new(status, unpack_time(expires).unwrap());
        record.owner = owner_of(owner);
        record.last_owner = owner_of(last_owner);
        record.failed_attempts = u32::from(failed_attempts);
        record.lost_attempts = u32::from(losses & 15);
        record.consecutive_losses = u32::from(losses >> 4);
        record.lease_until = unpack_time(lease);
        record.fingerprint = (kind >> 4 & 3).checked_sub(1).map(fingerprint_of);
        record.application = (kind >> 6).checked_sub(1).map(application_of);
        record.result = (kind & 4 != 0).then(|| TEXT.clone().into());
        record.error_type = (kind & 8 != 0).then(|| TEXT.clone());
        record.fence = unpack_fence(fence);
        record
    }

    fn byte(self, i: usize) -> u8 {
        self.0.to_le_bytes()[i]
    }

    fn status(self) -> u8 {
        self.byte(0) & 3
    }

    pub(crate) fn in_progress(self) -> bool {
        self.status() == 0
    }

    pub(crate) fn completed(self) -> bool {
        self.status() == 1
    }

    /// The payload that the record was claimed for; the first one if neither fingerprints nor
    /// applications are used.
    pub(crate) fn payload(self) -> Payload {
        let [fingerprint, application] = [self.byte(0) >> 4 & 3, self.byte(0) >> 6];
        fingerprint.max(application).saturating_sub(1)
    }

    pub(crate) fn owner(self) -> Token {
        self.byte(1)
    }

    pub(crate) fn failed_attempts(self) -> u8 {
        self.byte(3)
    }

    pub(crate) fn lost_attempts(self) -> u8 {
        self.byte(4) & 15
    }

    pub(crate) fn consecutive_losses(self) -> u8 {
        self.byte(4) >> 4
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

    pub(crate) fn fence(self) -> Fence {
        self.byte(7)
    }

    /// Whether both name the same owner in the same role, by which a write whose answer was lost is
    /// recognised.
    pub(crate) fn same_work(self, other: Self) -> bool {
        let work = |cell: Self| (cell.status(), cell.byte(1), cell.byte(2), cell.byte(5));
        work(self) == work(other)
    }

    /// The same record with renamed tokens.
    pub(crate) fn rename(self, name: &mut impl FnMut(Token) -> Token) -> Self {
        let mut bytes = self.0.to_le_bytes();
        bytes[1] = name(bytes[1]);
        bytes[2] = name(bytes[2]);
        Self(u64::from_le_bytes(bytes))
    }

    /// The same record with another fence.
    pub(crate) fn with_fence(self, fence: Fence) -> Self {
        let mut bytes = self.0.to_le_bytes();
        bytes[7] = fence;
        Self(u64::from_le_bytes(bytes))
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [_, owner, last, failed_attempts, _, lease, expires, fence] = self.0.to_le_bytes();
        let (lost, in_a_row) = (self.lost_attempts(), self.consecutive_losses());
        let status = ["INPROGRESS", "COMPLETED", "FAILED"][usize::from(self.status())];
        let time = |packed: u8| match packed {
            0 => "-".to_owned(),
            1 => "lapsed".to_owned(),
            tick => (tick - 2).to_string(),
        };
        write!(f, "{status} owner={owner} last={last} f={failed_attempts} v={lost}/{in_a_row} ")?;
        write!(f, "lease={} exp={} fence={fence}", time(lease), time(expires))
    }
}

/// Half a byte each.
fn pack_losses(lost_attempts: u32, consecutive_losses: u32) -> u8 {
    assert!(lost_attempts < 16 && consecutive_losses < 16, "few attempts are lost");
    u8::try_from(consecutive_losses << 4 | lost_attempts).unwrap()
}

pub(crate) fn pack_token(owner: Option<Owner>) -> Token {
    owner.map_or(0, |owner| {
        (1..=Token::MAX).find(|t| owner_of(*t) == Some(owner)).expect("tokens are small")
    })
}

pub(crate) fn owner_of(token: Token) -> Option<Owner> {
    (token != 0).then(|| Owner::from_bits(u128::from(token)))
}

pub(crate) fn fingerprint_of(payload: Payload) -> Fingerprint {
    Fingerprint::new(if payload == 0 { "0" } else { "1" })
}

/// The application of a payload, in worlds with several.
pub(crate) fn application_of(payload: Payload) -> Arc<str> {
    fingerprint_of(payload).as_str().into()
}

/// 0 is none.
fn pack_payload(named: Option<&str>) -> u8 {
    named.map_or(0, |name| name.parse::<u8>().expect("a payload's number") + 1)
}

/// 0 means that there is no time, 1 is the long expired lease of a released record, then come the ticks.
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

fn pack_fence(fence: u64) -> Fence {
    if fence < u64::from(FENCE_0) {
        return Fence::try_from(fence).unwrap();
    }
    let (tick, past) = (fence / 1000 - TICK_0, fence % 1000);
    assert!(past < u64::from(FENCES), "a tick has more claims than codes for fences");
    FENCE_0 + FENCES * u8::try_from(tick).unwrap() + u8::try_from(past).unwrap()
}

fn unpack_fence(fence: Fence) -> u64 {
    match fence.checked_sub(FENCE_0) {
        None => u64::from(fence),
        Some(code) => at(code / FENCES).as_millis() + u64::from(code % FENCES),
    }
}
