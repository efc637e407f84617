//! Operations whose work must not overlap, but may be repeated.

use lambda_idempotency_core::policy::{Mode, Policy};

use super::Operation;
use crate::error::{ConfigError, MutexMistake};

/// # Mutex
impl Operation {
    /// Makes keys exclude each other, and nothing more: no two handlers of a key run at the same time, on any
    /// worker, and **each delivery calls the handler**. Default: no, a key is done once.
    ///
    /// For work that must not overlap but may be repeated, such as a nightly import, a rebuild of an index, or
    /// changes of one account by different records: the key names what is protected, not the record. The key is
    /// claimed before the handler is called, and the claim is deleted when it has ended, whether it succeeded or
    /// failed. A record whose key is busy waits or returns by [`on_conflict`](Self::on_conflict). If a worker
    /// dies, the key is free when its lease ends, and [`Call::lost_attempts`](crate::Call::lost_attempts) tells
    /// the next handler. Guarantees and cost: [choosing a mode](crate::guide::choosing_a_mode#mutex-mode).
    ///
    /// No result is kept, so no duplicate is answered from one, and a copy in the same batch runs after the other.
    /// A permanent failure is given to the sink of [`divert`](Self::divert), if there is one; otherwise its
    /// record returns to its source, and the next delivery calls the handler again. In the handler,
    /// [`Call::step`](crate::Call::step) and [`Call::publish`](crate::Call::publish) are errors, and
    /// [`Call::subkey`](crate::Call::subkey) is another one in each attempt.
    ///
    /// Give an operation that becomes a mutex a new name: a key that was completed before is answered from its
    /// completion until that expires.
    ///
    /// # Errors
    /// Settings that would have no effect: [`retention`](Self::retention), [`fingerprint`](Self::fingerprint),
    /// [`on_failure`](Self::on_failure), [`on_timeout`](Self::on_timeout),
    /// [`on_permanent_failure`](Self::on_permanent_failure),
    /// [`max_failed_attempts`](Self::max_failed_attempts), [`max_lost_attempts`](Self::max_lost_attempts).
    /// [`recoverable`](Self::recoverable), because the next record of a key replaces the one that was kept. When a
    /// function is built: no [`key`](Self::key), because each record would have its own.
    ///
    /// ```
    /// use lambda_idempotency::{OnConflict, Operation};
    ///
    /// // One import of a tenant at a time. A second one is not needed while the first runs.
    /// let import = Operation::new("import").key("tenant").mutex().on_conflict(OnConflict::Skip);
    /// assert_eq!(import.check(), Ok(()));
    /// assert!(import.max_failed_attempts(3).check().is_err());
    /// ```
    #[must_use]
    pub fn mutex(mut self) -> Self {
        self.policy.mode = Mode::Mutex;
        self.changed()
    }

    /// Refuses a mutex whose keys are the identities of the records, so that none excludes another.
    pub(crate) fn names_what_it_excludes(&self) -> Result<(), ConfigError> {
        if self.policy.mode != Mode::Mutex || self.prepared()?.names_key() {
            return Ok(());
        }
        Err(ConfigError::Mutex { operation: self.shared_name(), mistake: MutexMistake::NoKey })
    }

    /// Refuses settings that have no effect, or that need a completion.
    pub(super) fn check_mutex(&self) -> Result<(), ConfigError> {
        if self.policy.mode != Mode::Mutex {
            return Ok(());
        }
        let (policy, default) = (&self.policy, Policy::default());
        let settings = [
            ("retention", policy.retention != default.retention),
            ("fingerprint", self.fingerprint.is_some()),
            ("on_failure", policy.on_failure != default.on_failure),
            ("on_timeout", policy.on_timeout != default.on_timeout),
            ("on_permanent_failure", policy.on_permanent_failure != default.on_permanent_failure),
            ("max_failed_attempts", policy.max_failed_attempts.is_some()),
            ("max_lost_attempts", policy.max_lost_attempts.is_some()),
        ];
        let set = settings.into_iter().find(|(_, is_set)| *is_set);
        let mistake = match set {
            _ if self.recoverable.is_some() => MutexMistake::Recoverable,
            Some((setting, _)) => MutexMistake::NoEffect { setting },
            None => return Ok(()),
        };
        Err(ConfigError::Mutex { operation: self.shared_name(), mistake })
    }
}
