//! What the table holds. Ten million completed records fit into 400 MB.

use lambda_idempotency_core::{
    clock::Timestamp,
    record::{IdempotencyRecord, Owner, Status},
    store::Write,
};

/// The items by the number of their key.
#[derive(Default)]
pub(super) struct Items(Vec<Item>);

#[derive(Default)]
enum Item {
    #[default]
    None,
    /// A completed record, of which nothing is worth more room.
    Completed(Completed),
    Whole(Box<IdempotencyRecord>),
}

struct Completed {
    owner: [u64; 2],
    fence: u64,
    expires_at: u32,
}

impl Items {
    pub(super) fn for_keys(keys: u32) -> Self {
        Self((0..keys).map(|_| Item::None).collect())
    }

    pub(super) fn get(&self, key: u32) -> Option<IdempotencyRecord> {
        match self.0.get(key as usize)? {
            Item::None => None,
            Item::Completed(completed) => Some(completed.record()),
            Item::Whole(record) => Some((**record).clone()),
        }
    }

    pub(super) fn is_completed(&self, key: u32) -> bool {
        match &self.0[key as usize] {
            Item::None => false,
            Item::Completed(_) => true,
            Item::Whole(record) => record.status == Status::Completed,
        }
    }

    pub(super) fn put(&mut self, key: u32, record: Option<IdempotencyRecord>) {
        self.0[key as usize] = match record {
            None => Item::None,
            Some(mut record) => {
                // For people: nothing is decided by it.
                record.provenance = None;
                match Completed::of(&record) {
                    Some(completed) => Item::Completed(completed),
                    None => Item::Whole(Box::new(record)),
                }
            }
        };
    }

    /// Whether the guard of a write holds.
    pub(super) fn holds(&self, key: u32, write: &Write) -> bool {
        match &self.0[key as usize] {
            Item::None => write.applies(None),
            Item::Completed(completed) => write.applies(Some(&completed.record())),
            Item::Whole(record) => write.applies(Some(record)),
        }
    }
}

impl Completed {
    /// This record in less room, if it then is still the same.
    fn of(record: &IdempotencyRecord) -> Option<Self> {
        let owner = record.owner?.to_bits();
        let compact = Self {
            owner: [(owner >> 64) as u64, owner as u64],
            fence: record.fence,
            expires_at: u32::try_from(record.expires_at.as_secs()).ok()?,
        };
        (record.status == Status::Completed && compact.record() == *record).then_some(compact)
    }

    fn record(&self) -> IdempotencyRecord {
        let expires_at = Timestamp::from_secs(u64::from(self.expires_at));
        let mut record = IdempotencyRecord::new(Status::Completed, expires_at);
        let [high, low] = self.owner.map(u128::from);
        record.owner = Some(Owner::from_bits(high << 64 | low));
        record.fence = self.fence;
        record
    }
}
