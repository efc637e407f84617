//! What the operations of a process are used for, by name: one name is one piece of work.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{error::ConfigError, operation::Place};

/// The names that are in use. Clones share them.
///
/// A name may be used for the same thing several times: for functions that are built again, and for
/// each call of `run`. Two things that have it would answer each other's duplicates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Arc<Mutex<HashMap<Arc<str>, &'static str>>>);

impl Names {
    /// Takes a name for a place, if nothing else has it.
    pub(crate) fn take(&self, name: &Arc<str>, place: Place) -> Result<(), ConfigError> {
        let place = describe(place);
        // A panic cannot leave the map half-changed.
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match names.get(name) {
            Some(before) if *before != place => {
                let name = Arc::clone(name);
                Err(ConfigError::NameInUse { name, places: [*before, place] })
            }
            Some(_) => Ok(()),
            None => {
                names.insert(Arc::clone(name), place);
                Ok(())
            }
        }
    }
}

/// All records of a function are one thing: the function itself refuses a name that two of its handlers
/// have.
const fn describe(place: Place) -> &'static str {
    match place {
        Place::Source(_) => "a function's records",
        Place::Event => "`.event(..)`",
        #[cfg(feature = "http")]
        Place::Http => "`.http(..)`",
        Place::Run => "`.run(..)`",
    }
}
