//! Values of the environment that cannot be meant stop the start.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt as _,
    process::{Command, Output},
};

use lambda_idempotency::{ConfigError, Operation, source::Sqs};

use crate::support::World;

const VARIABLES: [&str; 4] = [
    "IDEMPOTENCY_APPLICATION",
    "IDEMPOTENCY_DISABLED",
    "IDEMPOTENCY_LOG_ERROR_MESSAGES",
    "IDEMPOTENCY_REPORT_EFFECTS",
];

/// Runs `child` in a separate process, because all tests of this process share its environment.
fn in_child(variable: &str, value: &OsStr, expected: &str) -> Output {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "environment::child", "--ignored", "--test-threads=1"]);
    for variable in VARIABLES.iter().chain(&["AWS_LAMBDA_FUNCTION_NAME"]) {
        child.env_remove(variable);
    }
    child.env(variable, value).env("BEHAVIOUR_EXPECTED", expected).output().unwrap()
}

fn assert_in_child(variable: &str, value: impl AsRef<OsStr>, expected: &str) {
    let value = value.as_ref();
    let output = in_child(variable, value, expected);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{variable}={value:?}: {text}");
}

#[test]
fn a_value_that_is_not_text_is_refused() {
    for variable in VARIABLES {
        assert_in_child(variable, OsStr::from_bytes(b"orderId\xff"), "is not valid UTF-8 text");
    }
}

#[test]
fn a_switch_is_on_or_off() {
    for switch in ["IDEMPOTENCY_LOG_ERROR_MESSAGES", "IDEMPOTENCY_REPORT_EFFECTS"] {
        for value in ["", "0", "false", "False", "1", "TRUE"] {
            assert_in_child(switch, value, "");
        }
        for value in ["yes", "on", "2", " 1"] {
            assert_in_child(switch, value, "set it to `1` or `true`");
        }
    }
}

/// Builds a function, which fails with the expected text or, without one, does not.
#[test]
#[ignore = "run by the tests above, with another environment"]
fn child() {
    let expected = std::env::var("BEHAVIOUR_EXPECTED").unwrap();
    let world = World::new();
    let operation = Operation::new("place").key("id");
    let built: Result<_, ConfigError> =
        world.idempotency().on(Sqs::new(), &operation, world.handler());
    match built {
        Ok(_) => assert_eq!(expected, ""),
        Err(error) => {
            let text = error.to_string();
            assert!(!expected.is_empty() && text.contains(&expected), "{text}");
            let named = VARIABLES.iter().filter(|variable| text.contains(*variable));
            assert_eq!(named.count(), 1, "{text}");
            assert!(!text.contains("orderId") && !text.contains('\u{fffd}'), "{text}");
        }
    }
}
