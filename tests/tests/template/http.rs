//! Requests over HTTP: who names the caller, how long the function may take, and what a browser may send.

use serde_json::{Value, json};

use crate::{
    Problems,
    document::{entries, items, referred},
    every::the_function,
};

/// The longest timeout behind API Gateway: an HTTP API waits for 30 seconds, a REST API for 29 by default.
const LONGEST: u64 = 29;

pub(crate) fn http(template: &Value) -> Problems {
    let function = &the_function(template)["Properties"];
    let mut problems = Problems::new();
    let url = &function["FunctionUrlConfig"];
    if !url.is_null() && url["AuthType"] != "AWS_IAM" {
        problems.push("FunctionUrlConfig: without AWS_IAM nobody names the callers".to_owned());
    }
    for (name, event) in entries(&function["Events"]) {
        if event["Type"] != "HttpApi" {
            continue;
        }
        if function["Timeout"].as_u64().is_none_or(|timeout| timeout > LONGEST) {
            problems
                .push(format!("Timeout: longer than {LONGEST} s, after which API Gateway answers"));
        }
        let api = referred(template, &event["Properties"]["ApiId"]);
        let authorizers = &api["Auth"]["Authorizers"];
        let default = api["Auth"]["DefaultAuthorizer"].as_str().unwrap_or_default();
        let jwt = &authorizers[default]["JwtConfiguration"];
        if jwt["issuer"].is_null() || items(&jwt["audience"]).is_empty() {
            problems.push(format!("{name}: no authorizer names the callers"));
        }
        for (list, header) in [
            ("AllowHeaders", "idempotency-key"),
            ("AllowHeaders", "authorization"),
            ("ExposeHeaders", "idempotency-replayed"),
            ("ExposeHeaders", "retry-after"),
        ] {
            if !items(&api["CorsConfiguration"][list]).contains(&json!(header)) {
                problems.push(format!("{name}: {list} has no {header}"));
            }
        }
    }
    problems
}
