//! The function: how it is built and run, and its environment variables.

use serde_json::{Value, json};

use crate::{
    checks::{FUNCTION, Problems, expect},
    document::{at, keys},
};

/// The function is built as `orders`, and runs as a custom runtime on Arm with JSON logs.
pub(crate) fn settings(template: &Value) -> Problems {
    let metadata = "/Resources/OrdersFunction/Metadata";
    [
        expect(template, &format!("{metadata}/BuildMethod"), json!("rust-cargolambda")),
        expect(template, &format!("{metadata}/BuildProperties/Binary"), json!("orders")),
        expect(template, &format!("{FUNCTION}/CodeUri"), json!(".")),
        expect(template, &format!("{FUNCTION}/Handler"), json!("bootstrap")),
        expect(template, &format!("{FUNCTION}/Runtime"), json!("provided.al2023")),
        expect(template, &format!("{FUNCTION}/Architectures"), json!(["arm64"])),
        expect(template, &format!("{FUNCTION}/LoggingConfig/LogFormat"), json!("JSON")),
        // With WARN, Lambda drops the lines of the runtime's subscriber that are errors, too: they have no timestamp.
        expect(template, &format!("{FUNCTION}/LoggingConfig/ApplicationLogLevel"), json!("INFO")),
        expect(
            template,
            &format!("{FUNCTION}/Environment/Variables/RUST_LOG/Fn::Sub"),
            json!("${LogLevel},aws_config=warn,aws_sdk_dynamodb=warn,aws_smithy_runtime=warn,hyper_util=warn"),
        ),
    ]
    .concat()
}

/// Whether the workspace sets `panic`; otherwise `cargo lambda` builds with abort on panic.
pub(crate) fn unwinds(manifest: &str) -> bool {
    let (_, profile) = manifest.split_once("\n[profile.release]\n").unwrap_or_default();
    let settings = profile.lines().take_while(|line| !line.starts_with('['));
    settings.into_iter().any(|line| line == "panic = \"unwind\"")
}

/// The function gets its tables and key paths in the variables that it reads, and no other variables.
pub(crate) fn environment(template: &Value) -> Problems {
    let names = [
        ("IDEMPOTENCY_TABLE", "IdempotencyTable"),
        ("IDEMPOTENCY_APPLICATION", "AWS::StackName"),
        ("ORDERS_TABLE", "OrdersTable"),
        ("ORDERS_SQS_KEY", "SqsKeyPath"),
        ("ORDERS_SNS_KEY", "SnsKeyPath"),
        ("ORDERS_EVENTBRIDGE_KEY", "EventBridgeKeyPath"),
        ("ORDERS_KINESIS_KEY", "KinesisKeyPath"),
    ];
    let variables = format!("{FUNCTION}/Environment/Variables");
    let mut problems: Problems = names
        .iter()
        .flat_map(|(name, target)| {
            expect(template, &format!("{variables}/{name}"), json!({ "Ref": target }))
        })
        .collect();
    for name in keys(at(template, &variables)) {
        if name != "RUST_LOG" && !names.iter().any(|(known, _)| *known == name) {
            problems.push(format!("{variables}/{name}: the function reads no such variable"));
        }
    }
    for parameter in ["SqsKeyPath", "SnsKeyPath", "EventBridgeKeyPath", "KinesisKeyPath"] {
        problems.extend(expect(
            template,
            &format!("/Parameters/{parameter}/Default"),
            json!("orderId"),
        ));
    }
    problems
}
