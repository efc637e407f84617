//! Values of the environment that cannot be meant stop the start.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};

use lambda_idempotency::{ConfigError, Operation, source::Sqs};

use crate::support::{World, in_child};

const VARIABLES: [&str; 3] =
    ["IDEMPOTENCY_APPLICATION", "IDEMPOTENCY_DISABLED", "IDEMPOTENCY_LOG_ERROR_MESSAGES"];

#[track_caller]
fn assert_in_child(variable: &str, value: impl AsRef<OsStr>, expected: &str) {
    in_child("environment::child", 1, |child| {
        child.env(variable, value).env("BEHAVIOUR_EXPECTED", expected);
    });
}

#[test]
fn a_value_that_is_not_text_is_refused() {
    for variable in VARIABLES {
        assert_in_child(variable, OsStr::from_bytes(b"orderId\xff"), "is not valid UTF-8 text");
    }
}

#[test]
fn a_switch_is_on_or_off() {
    let switch = "IDEMPOTENCY_LOG_ERROR_MESSAGES";
    for value in ["", "0", "false", "False", "1", "TRUE"] {
        assert_in_child(switch, value, "");
    }
    for value in ["yes", "on", "2", " 1"] {
        assert_in_child(switch, value, "set it to `1` or `true`");
    }
}

/// It is for whoever tests a function, and says nothing about one that is deployed.
#[test]
fn the_variable_of_a_test_harness_stops_no_function() {
    for value in ["1", "yes", ""] {
        assert_in_child("IDEMPOTENCY_REPORT_EFFECTS", value, "");
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
