//! One key in a store, and claims of it.

use std::time::Duration;

use futures_util::FutureExt;
use lambda_idempotency_core::{
    admission::{Admission, Claim, Held, Settled, Settlement, admit},
    clock::Timestamp,
    memory::MemoryStore,
    record::{IdempotencyRecord, Owner},
    store::{Guard, Store, Verdict, Write},
};
use lambda_idempotency_keys::Key;

/// The lease that [`claim`] asks for, and the retention.
pub(crate) const LEASE: u64 = 30;
pub(crate) const RETENTION: u64 = 100;

pub(crate) fn at(secs: u64) -> Timestamp {
    Timestamp::from_secs(1000 + secs)
}

pub(crate) fn claim(owner: u128, now: u64) -> Claim {
    Claim {
        owner: Owner::from_bits(owner),
        lease_until: at(now + LEASE),
        retention: Duration::from_secs(RETENTION),
        clock_skew: Duration::from_secs(1),
        fingerprint: None,
        application: None,
        provenance: None,
        payload: None,
    }
}

pub(crate) fn complete() -> Settlement {
    Settlement::Complete { result: Some("1".into()), outbox: None }
}

pub(crate) fn release() -> Settlement {
    Settlement::Release { error_type: "Declined".into() }
}

/// One key in a store.
#[derive(Default)]
pub(crate) struct Table(pub(crate) MemoryStore);

impl Table {
    pub(crate) fn read(&self) -> Option<IdempotencyRecord> {
        let keys = [Key::from_text("k")];
        self.0.read(&keys, at(0)).now_or_never().unwrap().remove(0).unwrap()
    }

    /// Sends a write that must be applied.
    pub(crate) fn applies(&self, write: &Write) {
        assert!(matches!(self.send(write), Verdict::Written), "refused by {:?}", self.read());
    }

    /// Sends a write that must be refused, and returns the record that it found.
    pub(crate) fn refuses(&self, write: &Write) -> Option<IdempotencyRecord> {
        match self.send(write) {
            Verdict::Found(found) => found,
            other => panic!("{other:?}"),
        }
    }

    fn send(&self, write: &Write) -> Verdict {
        let writes = std::slice::from_ref(write);
        self.0.write(writes, at(0)).now_or_never().unwrap().remove(0)
    }

    /// Claims the key with as many writes as are needed.
    pub(crate) fn claim(&self, claim: &Claim, now: u64) -> Admission {
        let mut found = None;
        loop {
            match admit(claim, found.as_ref(), at(now)) {
                Admission::Try { guard, held } => match self.send(&write(guard, &held)) {
                    Verdict::Found(there) => found = there,
                    _ => return Admission::Won(held),
                },
                answer => return answer,
            }
        }
    }

    pub(crate) fn hold(&self, owner: u128, now: u64) -> Held {
        match self.claim(&claim(owner, now), now) {
            Admission::Won(held) => held,
            other => panic!("the key is busy: {other:?}"),
        }
    }

    /// Settles with one write.
    pub(crate) fn settle(&self, held: &Held, settlement: &Settlement, now: u64) -> Settled {
        match self.send(&settling(held, settlement, now)) {
            Verdict::Found(found) => held.settled(settlement, found.as_ref(), at(now)),
            _ => Settled::Done,
        }
    }
}

pub(crate) fn write(guard: Guard, held: &Held) -> Write {
    Write::new(Key::from_text("k"), guard, Some(held.record.clone()))
}

pub(crate) fn settling(held: &Held, settlement: &Settlement, now: u64) -> Write {
    let (guard, record) = held.write(settlement, at(now));
    Write::new(Key::from_text("k"), guard, record)
}

/// The write by which `claim` takes over what is stored now.
pub(crate) fn takeover(table: &Table, claim: &Claim, now: u64) -> Write {
    match admit(claim, table.read().as_ref(), at(now)) {
        Admission::Try { guard, held } => write(guard, &held),
        other => panic!("nothing to take over: {other:?}"),
    }
}
