//! Protocols that are wrong in one place each. A checker that lets one pass checks nothing.

pub(crate) mod answers;
pub(crate) mod claims;
pub(crate) mod engine;
pub(crate) mod fences;
pub(crate) mod guards;
pub(crate) mod settlements;
