//! The effects that were committed: the effect ledger of a run whose effects are in transactions.
//!
//! Each transaction adds one to a counter of its order and writes an item for its attempt. The counter shows that an
//! order was placed again, also by the same attempt; the item shows by whom. The rig reads them past the proxies,
//! so no fault changes what it sees.

use crate::{
    history::{History, Offence},
    ledger::{Step, attempt},
    schedule,
    store::Item,
};

/// What the key of an attempt's item begins with.
const ATTEMPT: &str = "attempt ";

/// Adds the effects in these items of the table to the history.
pub(crate) fn read(items: &[Item], history: &mut History) {
    for Item { id, placed } in items {
        let line = id.strip_prefix(ATTEMPT).map(|of| attempt(Step::Effect, of.split(' ')));
        match (line, schedule::number(id)) {
            (Some(Some(line)), _) => history.committed(&line),
            (None, Some(order)) => history.placed(order, *placed),
            _ => history.offend(Offence::Ledger, format!("an unknown item in the table: {id}")),
        }
    }
}
