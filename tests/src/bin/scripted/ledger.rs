//! A file of effects: one line when a handler starts and one line when its order is placed, appended
//! by several processes.
//!
//! With a ledger the second line *is* the order: one system call, which has happened or not, and whose
//! effect survives the process. So it is certain afterwards how often each order was placed, and by which
//! process.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    process,
    sync::Arc,
};

use lambda_idempotency::Call;

use super::order::Order;

/// The file. Clones append to the same one.
#[derive(Clone)]
pub(super) struct Ledger(Arc<File>);

impl Ledger {
    /// The file that `SCRIPTED_LEDGER` names, if it is set.
    pub(super) fn from_env() -> io::Result<Option<Self>> {
        let Some(path) = std::env::var_os("SCRIPTED_LEDGER") else { return Ok(None) };
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Some(Self(Arc::new(file))))
    }

    /// `start o-17 m-17-2 4242 1795251600579`: step, order, message, process, fence.
    pub(super) fn write(&self, step: &str, order: &Order, call: &Call) -> io::Result<()> {
        let line = format!("{step} {}\n", attempt(order, call));
        // One write: lines of several processes never mix.
        (&*self.0).write_all(line.as_bytes())
    }
}

/// `o-17 m-17-2 4242 1795251600579`: order, message, process, fence.
pub(super) fn attempt(order: &Order, call: &Call) -> String {
    let (id, message, fence) = (&order.order_id, &call.record().id, call.fence());
    format!("{id} {message} {} {fence}", process::id())
}
