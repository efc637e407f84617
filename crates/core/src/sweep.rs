//! A sweep over what workers have left in a store: its pages, its time and its end.

use std::{fmt, num::NonZeroUsize, time::Duration};

use crate::{
    browse::{Browse, Cursor, Left, Swept},
    clock::{Clock, Timestamp},
    key::Key,
    record::IdempotencyRecord,
    store::{StoreError, StoreErrorKind},
};

/// How many idempotency records are read at a time.
const PAGE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(99);

/// How long a call may take.
pub const CALL: Duration = Duration::from_secs(5);

/// One sweep, from a cursor to the end of the store or to its deadline, whichever is first. It reads one page at least.
pub struct Sweep<'s, S> {
    store: &'s S,
    clock: &'s dyn Clock,
    left: Left,
    deadline: Option<Timestamp>,
    /// Where the page begins that was read last.
    from: Option<Cursor>,
    has_begun: bool,
    /// How far it came.
    pub swept: Swept,
}

impl<'s, S: Browse> Sweep<'s, S> {
    /// A sweep from `from`, or from the beginning of the store.
    pub fn new(
        store: &'s S,
        clock: &'s dyn Clock,
        left: Left,
        from: Option<&Cursor>,
        deadline: Option<Timestamp>,
    ) -> Self {
        let swept = Swept { next: from.cloned(), ..Swept::default() };
        Self { store, clock, left, deadline, from: None, has_begun: false, swept }
    }

    /// The records of the next page in which something is left; `None` at the end of the sweep.
    ///
    /// # Errors
    /// The page, or a record of it, could not be read now.
    pub async fn page(&mut self) -> Result<Option<Vec<(Key, IdempotencyRecord)>>, StoreError> {
        let (is_late, until) = (self.is_late(), self.call_deadline());
        if self.swept.is_complete || (self.has_begun && is_late) {
            return Ok(None);
        }
        let page = match self.store.left(self.left, self.swept.next.as_ref(), PAGE, until).await {
            // The next sweep goes on from here. An error would lose the place.
            Err(_) if self.has_begun && self.is_late() => return Ok(None),
            page => page?,
        };
        let swept = &mut self.swept;
        self.has_begun = true;
        swept.is_complete = page.next.is_none();
        self.from = std::mem::replace(&mut swept.next, page.next);
        let mut found = Vec::new();
        for (key, item) in page.items {
            swept.examined += 1;
            match item {
                Ok(record) if self.left.is_in(&record) => found.push((key, record)),
                Ok(_) => {}
                Err(error) if error.kind() == StoreErrorKind::Corrupt => swept.unreadable += 1,
                // It can be read another time.
                Err(error) => return Err(error),
            }
        }
        Ok(Some(found))
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| self.clock.now() >= deadline)
    }

    /// When a call that begins now has to be answered.
    pub fn call_deadline(&self) -> Timestamp {
        let until = self.clock.now().plus(CALL);
        self.deadline.map_or(until, |deadline| deadline.min(until))
    }

    /// Ends the sweep before its last page was dealt with: the next one reads that page again.
    pub fn end_before_page(self) -> Swept {
        Swept { is_complete: false, next: self.from, ..self.swept }
    }
}

impl<S> fmt::Debug for Sweep<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sweep").field("left", &self.left).finish_non_exhaustive()
    }
}
