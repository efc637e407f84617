//! Fails the build if a panic would end the process.
//!
//! A panic in a handler fails only its own record if it unwinds. With `panic = "abort"` it ends the
//! process and all handlers of the batch: their records are delivered again, and effects of records
//! that were not yet completed happen twice.
//!
//! `cargo lambda build --release`, and `sam build` through it, passes `--config
//! profile.release.panic="abort"` unless the manifest sets `panic` itself. Therefore the manifest
//! has to set `unwind`, although it is Cargo's default.
//!
//! `lambda-idempotency` turns the check on. It is in this crate because Cargo need not compile the AWS SDK before it.

#[cfg(all(panic = "abort", feature = "runs-handlers", not(feature = "panic-abort")))]
compile_error!(
    "lambda-idempotency is built with `panic = \"abort\"`: a panic in one handler would end the \
     process and all handlers of the batch. Add these two lines to the Cargo.toml at the root of \
     your workspace:\n\n[profile.release]\npanic = \"unwind\"\n\nThey are needed even though \
     `unwind` is the default: `cargo lambda build` and `sam build` choose `abort` for every \
     manifest that does not set `panic`. If a panic is meant to end the process, enable the \
     feature `panic-abort` of lambda-idempotency."
);
