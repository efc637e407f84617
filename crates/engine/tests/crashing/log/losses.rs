//! The losses in a row of a key, counted by the writes of the store.

use lambda_idempotency_core::record::{IdempotencyRecord, Status};

/// The attempts of a key that were lost, one after the other.
#[derive(Default)]
pub(super) struct Losses {
    /// The fence of a claim that was not given up, and how many attempts of the key are over then.
    claim: Option<(u64, u32)>,
    in_a_row: u32,
}

impl Losses {
    /// Of what is known under this fence.
    pub(super) fn of(&self, fence: u64) -> u32 {
        self.claim.filter(|(claim, _)| *claim == fence).map_or(0, |_| self.in_a_row)
    }

    /// Counts a write. Says whether the record has the same number.
    pub(super) fn landed(&mut self, record: Option<&IdempotencyRecord>) -> bool {
        let Some(record) = record.filter(|record| record.status == Status::InProgress) else {
            *self = Self::default();
            return true;
        };
        let over = record.failed_attempts + record.lost_attempts;
        match self.claim {
            _ if record.owner.is_none() => {
                let tried = self.claim.is_some_and(|(_, before)| over > before);
                (self.claim, self.in_a_row) = (None, if tried { 0 } else { self.in_a_row });
            }
            Some((fence, _)) if fence == record.fence => {}
            lost => {
                self.in_a_row += u32::from(lost.is_some());
                self.claim = Some((record.fence, over));
            }
        }
        record.consecutive_losses == self.in_a_row
    }
}
