//! The lock that this module takes. `tests/shuttle` compiles the same sources with another one,
//! which gives way to other threads wherever a thread could be interrupted.

pub(super) use std::sync::{Mutex, MutexGuard};
