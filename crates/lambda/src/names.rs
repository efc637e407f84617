//! Ensures that each operation name of a process stands for one piece of work.

use std::{
    any::{TypeId, type_name},
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use lambda_idempotency_core::policy::Mode;

use crate::{error::ConfigError, operation::modes_agree};

/// The names in use. Clones share them.
///
/// A name may be used several times for the same thing: for a function that is built again with the
/// same handler, and for each call of `run`. Two different things with one name would answer each
/// other's duplicates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Arc<Mutex<InUse>>);

type InUse = HashMap<Arc<str>, (Use, Mode)>;

/// Lambda and its emulators set this variable for each process of a function.
const RUNTIME_API: &str = "AWS_LAMBDA_RUNTIME_API";

/// The limit of names for calls of `run`, because a program may make names from its data.
const MAX_RUN_NAMES: usize = 1000;

/// The handler of a function's records, by its type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandlerType {
    id: TypeId,
    name: &'static str,
    /// Whether two handlers of this type do the same. Types without a size do, such as functions and closures that capture
    /// nothing: they are what their type says. Others hold something that may differ.
    is_whole: bool,
}

impl HandlerType {
    pub(crate) fn of<H: 'static>() -> Self {
        Self { id: TypeId::of::<H>(), name: type_name::<H>(), is_whole: size_of::<H>() == 0 }
    }

    /// Refuses two handlers of one operation that are not known to do the same: they would answer each other's
    /// duplicates.
    pub(crate) fn agrees_with(self, other: Self, operation: &str) -> Result<(), ConfigError> {
        if self.id != other.id {
            return Err(ConfigError::name(format!(
                "operation `{operation}` has two handlers, `{}` and `{}`, which would answer each other's duplicates; give \
                 each piece of work its own name or, if it is the same for several sources, register the same handler for \
                 each",
                self.name, other.name
            )));
        }
        if self.is_whole {
            return Ok(());
        }
        Err(ConfigError::name(format!(
            "operation `{operation}` has two handlers of type `{}`, which may do different work because of what they hold, \
             and would answer each other's duplicates; give one handler to all sources at once, `.on((one, other), ..)`, \
             build the function once and clone it, or give each operation its own name",
            self.name
        )))
    }
}

/// The work for which the name of an operation is used.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use {
    Records(HandlerType),
    /// `Idempotency::http`.
    #[cfg(feature = "http")]
    Http,
    /// [`Idempotency::run`](crate::Idempotency::run) and [`Idempotency::run_many`](crate::Idempotency::run_many).
    Run,
}

impl Names {
    /// The names of the process where Lambda runs it, because its operations share a table. Elsewhere
    /// those of one `Idempotency`: the tests of a process have their own store and handlers
    /// under the same names.
    pub(crate) fn of_process() -> Self {
        static OF_FUNCTION: LazyLock<Names> = LazyLock::new(Names::default);
        if std::env::var_os(RUNTIME_API).is_some() { OF_FUNCTION.clone() } else { Self::default() }
    }

    /// Takes names for the handlers of a function's records: all of them, or none if one is refused.
    pub(crate) fn take_records(
        &self,
        handlers: &[(Arc<str>, HandlerType, Mode)],
    ) -> Result<(), ConfigError> {
        let used = handlers.iter();
        let used: Vec<_> =
            used.map(|(name, handler, mode)| (name, Use::Records(*handler), *mode)).collect();
        self.add(&used)
    }

    /// Takes a name for work that is not a source's.
    pub(crate) fn take(&self, name: &Arc<str>, used: Use, mode: Mode) -> Result<(), ConfigError> {
        self.add(&[(name, used, mode)])
    }

    /// Whether a layer for HTTP requests has this name.
    #[cfg(feature = "http")]
    pub(crate) fn is_of_requests(&self, name: &str) -> bool {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(names.get(name), Some((Use::Http, _)))
    }

    fn add(&self, used: &[(&Arc<str>, Use, Mode)]) -> Result<(), ConfigError> {
        // A poisoned lock can be used: no panic can leave the map half-changed.
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, now, mode) in used {
            if let Some((before, earlier)) = names.get(*name) {
                agree(name, *before, *now)?;
                modes_agree(*earlier, *mode, name)?;
            }
        }
        for (name, now, mode) in used {
            if !matches!(now, Use::Run) || names.len() < MAX_RUN_NAMES {
                names.entry(Arc::clone(name)).or_insert((*now, *mode));
            }
        }
        Ok(())
    }
}

/// Whether a name may be used again.
fn agree(name: &str, before: Use, now: Use) -> Result<(), ConfigError> {
    match (before, now) {
        // Closures of two call sites have different types, even if they do the same work.
        (Use::Run, Use::Run) => Ok(()),
        (Use::Records(before), Use::Records(now)) => before.agrees_with(now, name),
        #[cfg(feature = "http")]
        (Use::Http, Use::Http) => Err(ConfigError::name(format!(
            "operation `{name}` has two layers of `.http(..)`, whose services would answer each other's duplicates; make \
                 the layer once and clone it or, for other work, give each operation its own name"
        ))),
        (before, now) => {
            let (before, now) = (before.describe(), now.describe());
            Err(ConfigError::name(format!(
                "operation `{name}` is used for {before} and for {now}, and their records would share keys; give one of \
                 them another name"
            )))
        }
    }
}

impl Use {
    const fn describe(self) -> &'static str {
        match self {
            Self::Records(_) => "a function's records",
            #[cfg(feature = "http")]
            Self::Http => "`.http(..)`",
            Self::Run => "`.run(..)`",
        }
    }
}
