//! What to give to `Idempotency::from_env_with_password`, or to `password` of a store's builder.

mod secret;
mod token;

pub use self::{
    secret::Secret,
    token::{Service, Tokens, token},
};
