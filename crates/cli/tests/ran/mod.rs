//! Runs the command, and keeps what it printed, and its exit code.

use std::{
    ffi::OsStr,
    io::Write as _,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

pub(crate) fn command<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lambda-idempotency"));
    command.args(arguments);
    command
}

/// Runs the command with this text on its standard input.
pub(crate) fn fed(command: &mut Command, text: &str) -> Ran {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

impl From<&mut Command> for Ran {
    fn from(command: &mut Command) -> Self {
        command.output().unwrap().into()
    }
}

impl Ran {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{}{}", self.out, self.err))
    }

    /// Expects this exit code.
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}{}", self.out, self.err);
        self
    }

    /// Expects exit code 2, and these words in the error.
    #[track_caller]
    pub(crate) fn refused(self, said: &str) -> Self {
        let ran = self.code(2);
        assert!(ran.err.contains(said), "no `{said}` in {}", ran.err);
        ran
    }
}
