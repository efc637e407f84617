//! Ensures that each operation name of a process stands for one piece of work.

use std::{
    any::{TypeId, type_name},
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{error::ConfigError, operation::Place};

/// The names in use. Clones share them.
///
/// A name may be used several times for the same thing: for a function that is built again with the
/// same handler, and for each call of `run`. Two different things with one name would answer each
/// other's duplicates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Arc<Mutex<HashMap<Arc<str>, Use>>>);

/// The limit of names for calls of `run`, because a program may make names from its data.
const MAX_RUN_NAMES: usize = 1000;

/// The handler of a function's records, by its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandlerType {
    id: TypeId,
    name: &'static str,
}

impl HandlerType {
    pub(crate) fn of<H: 'static>() -> Self {
        Self { id: TypeId::of::<H>(), name: type_name::<H>() }
    }

    /// Whether the type can hide different functions: function pointers and trait objects.
    fn is_pointer(&self) -> bool {
        self.name.contains("fn(") || self.name.contains("dyn ")
    }
}

#[derive(Clone, Copy, Debug)]
enum Use {
    Records(HandlerType),
    /// The layer with this name.
    Layer(&'static str),
    Run,
}

impl Names {
    /// Takes a name for the handler of a function's records.
    pub(crate) fn take_records(
        &self,
        name: &Arc<str>,
        handler_type: HandlerType,
    ) -> Result<(), ConfigError> {
        self.add(name, Use::Records(handler_type))
    }

    /// Takes a name for a place that is not a source.
    pub(crate) fn take(&self, name: &Arc<str>, place: Place) -> Result<(), ConfigError> {
        let used = match place {
            Place::Run => Use::Run,
            place => Use::Layer(place.name()),
        };
        self.add(name, used)
    }

    fn add(&self, name: &Arc<str>, now: Use) -> Result<(), ConfigError> {
        // A poisoned lock can be used: no panic can leave the map half-changed.
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = names.get(name) {
            return agree(name, *before, now);
        }
        if !matches!(now, Use::Run) || names.len() < MAX_RUN_NAMES {
            names.insert(Arc::clone(name), now);
        }
        Ok(())
    }
}

/// Whether a name may be used again.
fn agree(name: &Arc<str>, before: Use, now: Use) -> Result<(), ConfigError> {
    let name = Arc::clone(name);
    match (before, now) {
        // Closures of two call sites have different types, even if they do the same work.
        (Use::Run, Use::Run) => Ok(()),
        (Use::Records(before), Use::Records(now)) if before != now => {
            Err(ConfigError::TwoHandlers { name, handlers: [before.name, now.name] })
        }
        (Use::Records(_), Use::Records(now)) if now.is_pointer() => {
            Err(ConfigError::UnknownHandler { name, handler: now.name })
        }
        (Use::Records(_), Use::Records(_)) => Ok(()),
        (before, now) => {
            Err(ConfigError::NameInUse { name, places: [before.describe(), now.describe()] })
        }
    }
}

impl Use {
    const fn describe(self) -> &'static str {
        match self {
            Self::Records(_) => "a function's records",
            Self::Layer(layer) => layer,
            Self::Run => "`.run(..)`",
        }
    }
}
