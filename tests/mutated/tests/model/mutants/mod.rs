//! Protocols with one mistake each. They show that the checker finds such a mistake.

pub(crate) mod answers;
pub(crate) mod claims;
pub(crate) mod fences;
pub(crate) mod guards;
pub(crate) mod settlements;
