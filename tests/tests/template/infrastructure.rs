//! The examples for the CDK and for Terraform have what the templates have. `bash tests/run infrastructure` compares
//! what the CDK makes of its example; this compares the sources, which needs no other tools.

use std::{collections::BTreeSet, fs};

use crate::{Problems, grants, root};

/// A source, and what it must contain besides the permissions.
const SOURCES: [(&str, &[&str]); 3] = [
    (
        "cdk/src/idempotency-table.ts",
        &[
            "partitionKey: { name: 'id', type: dynamodb.AttributeType.STRING }",
            "timeToLiveAttribute: 'expiration'",
            "dynamodb.BillingMode.PAY_PER_REQUEST",
            "'IDEMPOTENCY_TABLE'",
            "'IDEMPOTENCY_APPLICATION'",
        ],
    ),
    (
        "cdk/src/app.ts",
        &[
            "reportBatchItemFailures: true",
            "6 * timeout",
            "enforceSSL: true",
            "memorySize: 256",
            "keepRecordsOf(fn, stack.stackName)",
            "metricApproximateNumberOfMessagesVisible",
            "addAlarmAction(new SnsAction(alarms))",
        ],
    ),
    (
        "terraform/main.tf",
        &[
            "hash_key     = \"id\"",
            "attribute_name = \"expiration\"",
            "enabled        = true",
            "\"PAY_PER_REQUEST\"",
            "[\"ReportBatchItemFailures\"]",
            "IDEMPOTENCY_TABLE ",
            "IDEMPOTENCY_APPLICATION = var.name",
        ],
    ),
];

fn problems(name: &str, source: &str, needed: &[&str]) -> Problems {
    let missing = needed.iter().filter(|part| !source.contains(**part));
    let mut problems: Problems = missing.map(|part| format!("{name} has no {part}")).collect();
    let quoted = |c| matches!(c, '"' | '\'');
    let actions = source.split(quoted).filter(|part| part.starts_with("dynamodb:"));
    let granted: BTreeSet<&str> = actions.collect();
    if !granted.is_empty() || name != "cdk/src/app.ts" {
        let wanted = BTreeSet::from(grants::IDEMPOTENCY);
        let differences = granted.symmetric_difference(&wanted);
        problems.extend(differences.map(|action| format!("{name}: {action}")));
    }
    problems
}

fn source(name: &str) -> String {
    fs::read_to_string(root().join("docs/infrastructure").join(name)).unwrap()
}

#[test]
fn the_cdk_and_terraform_examples_have_what_the_templates_have() {
    for (name, needed) in SOURCES {
        assert_eq!(problems(name, &source(name), needed), Problems::new());
    }
}
