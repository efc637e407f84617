//! Refuses to compile where a panic ends the process.
//!
//! A panic of a handler fails its record alone only if it unwinds. Under `panic = "abort"` it ends the
//! process, with every other record of the batch: they are delivered again, and those whose effects had
//! happened but were not completed yet happen twice.
//!
//! `cargo lambda build --release`, and `sam build` through it, passes
//! `--config profile.release.panic="abort"` unless the manifest sets `panic` itself. So the manifest
//! has to say `unwind`; that it is the default of Cargo is not enough.

#[cfg(all(panic = "abort", not(feature = "panic-abort")))]
compile_error!(
    "lambda-idempotency is built with `panic = \"abort\"`: a panic in one handler would end the \
     process and with it every record of the batch. Add these two lines to the Cargo.toml at the root \
     of your workspace:\n\n\
     [profile.release]\n\
     panic = \"unwind\"\n\n\
     They are needed even though `unwind` is the default: `cargo lambda build` and `sam build` choose \
     `abort` for every manifest that does not set `panic`. If a panic shall end the process, turn on \
     the feature `panic-abort` of lambda-idempotency."
);
