//! Splits the work of a delivery into what the machine decides by and the user's code.

use std::sync::Arc;

use lambda_idempotency_core::contained::Contained;
use lambda_idempotency_keys::Key;

use crate::{
    delivery::{Job, Work},
    machine::{Ask, Carried, Task},
};

impl<'a> Work<'a> {
    /// What the machine has to know of the work, what identifies it if it has no key, and its
    /// handler.
    pub(super) fn ask(
        self,
        group: Option<Arc<str>>,
        receives: u32,
    ) -> (Ask<'a>, Option<Key>, Contained<Job<'a>>) {
        let ask = |task| Ask {
            key: None,
            fingerprint: None,
            payload: "",
            group,
            receives,
            task,
            lets_pass: false,
            kept: None,
        };
        match self {
            Self::Keyed { key, fingerprint, payload, job } => {
                let ask = Ask { key: Some(key), fingerprint, payload, ..ask(Task::Keyed) };
                (ask, None, Contained::new(job))
            }
            Self::Unprotected { identity, job } => {
                (ask(Task::Unprotected), Some(identity), Contained::new(job))
            }
            Self::Reject(rejection) => {
                (ask(Task::Reject(Carried(rejection))), None, Contained::none())
            }
        }
    }
}
