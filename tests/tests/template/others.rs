//! The templates in `docs/templates`: the checks find nothing in them, and find mistakes for which they compute something.

use std::{collections::BTreeMap, fs};

use serde_json::{Value, json};

use crate::{
    checks::Problems,
    document::{breaking, long_form},
    every::{self, problems},
    root,
};

/// The templates, by the names of their files.
fn templates() -> BTreeMap<String, Value> {
    let files = fs::read_dir(root().join("docs/templates")).unwrap();
    files
        .filter_map(|file| {
            let path = file.unwrap().path();
            let name = path.file_name()?.to_str()?.strip_suffix(".yaml")?.to_owned();
            let text = fs::read_to_string(&path).unwrap();
            Some((name, long_form(serde_yaml_ng::from_str(&text).unwrap())))
        })
        .collect()
}

#[test]
fn the_templates_of_other_topologies_have_no_problems() {
    let templates = templates();
    let names: Vec<_> = templates.keys().map(String::as_str).collect();
    assert_eq!(names, ["http", "minimal", "sns-fifo-to-sqs-fifo", "stream"]);
    for (name, template) in templates {
        assert_eq!(problems(&template), Problems::new(), "{name}");
    }
}

#[test]
fn the_list_of_templates_is_complete() {
    let list = fs::read_to_string(root().join("docs/templates/README.md")).unwrap();
    for name in templates().keys() {
        assert!(list.contains(&format!("| [`{name}.yaml`]({name}.yaml) |")), "{name}");
    }
}

/// The template that a reader of the quick start copies, and deploys.
#[test]
fn the_template_of_the_quick_start_reports_failures_tells_somebody_and_names_its_application() {
    let page = fs::read_to_string(root().join("crates/lambda/src/guide/quick_start.md")).unwrap();
    let text = page.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let template = long_form(serde_yaml_ng::from_str(text).unwrap());
    let checks = [every::mappings, every::alarms, every::application];
    let problems: Problems = checks.iter().flat_map(|check| check(&template)).collect();
    assert_eq!(problems, Problems::new());
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let to_set = readme.split("## Four things to set in AWS").nth(1).unwrap();
    let to_set = to_set.split("\n## ").next().unwrap();
    for thing in
        ["IDEMPOTENCY_TABLE", "PartiQLInsert", "ReportBatchItem", "IDEMPOTENCY_APPLICATION"]
    {
        assert!(to_set.contains(thing) && text.contains(thing), "{thing}");
    }
}

/// Each row breaks a template in one way, and has some words of the expected problem.
#[test]
fn every_mistake_in_another_topology_is_found() {
    let templates = templates();
    let function = "/Resources/Function/Properties";
    let statement = "/Resources/Role/Properties/Policies/0/PolicyDocument/Statement";
    let breakages: Vec<(&str, String, Option<Value>, &str)> = vec![
        // The function and its table.
        (
            "minimal",
            "/Resources/Function/Metadata/BuildProperties/Binary".into(),
            Some(json!("first_used")),
            "there is no function \"first_used\"",
        ),
        (
            "minimal",
            format!("{function}/Environment/Variables/IDEMPOTENCY_TABLE/Ref"),
            Some(json!("Table")),
            "there is no table Table",
        ),
        // Queues.
        (
            "minimal",
            format!("{function}/Events/Orders/Properties/BatchSize"),
            Some(json!(100)),
            "needs a window",
        ),
        ("minimal", format!("{function}/Timeout"), Some(json!(31)), "must be at least 186"),
        (
            "sns-fifo-to-sqs-fifo",
            "/Resources/Queue/Properties/VisibilityTimeout".into(),
            None,
            "VisibilityTimeout is 30",
        ),
        (
            "minimal",
            "/Resources/Queue/Properties/RedrivePolicy/maxReceiveCount".into(),
            Some(json!(9)),
            "must be at least 10",
        ),
        (
            "sns-fifo-to-sqs-fifo",
            "/Resources/Queue/Properties/RedrivePolicy/maxReceiveCount".into(),
            Some(json!(14)),
            "must be at least 15",
        ),
        ("minimal", "/Resources/Queue/Properties/RedrivePolicy".into(), None, "no dead-letter"),
        (
            "minimal",
            "/Resources/DeadLetterQueue/Properties/MessageRetentionPeriod".into(),
            None,
            "keeps messages for longer",
        ),
        (
            "sns-fifo-to-sqs-fifo",
            "/Resources/DeadLetterQueue/Properties/FifoQueue".into(),
            None,
            "of another kind",
        ),
        // Alarms.
        (
            "minimal",
            "/Resources/DeadLetterAlarm".into(),
            None,
            "nobody is told of messages in Dead",
        ),
        (
            "sns-fifo-to-sqs-fifo",
            "/Resources/UndeliveredAlarm/Properties/AlarmActions".into(),
            None,
            "nobody is told of messages in Undelivered",
        ),
        (
            "stream",
            "/Resources/GivenUpAlarm/Properties/MetricName".into(),
            Some(json!("ApproximateNumberOfMessages")),
            "nobody is told of messages in GivenUp",
        ),
        ("stream", "/Resources/Alarms/Properties/Subscription".into(), None, "nobody is told"),
        // Retention.
        (
            "minimal",
            "/Resources/Queue/Properties/MessageRetentionPeriod".into(),
            Some(json!(432_000)),
            "a delivery can come 1641600 s later",
        ),
        (
            "sns-fifo-to-sqs-fifo",
            "/Resources/Queue/Properties/MessageRetentionPeriod".into(),
            Some(json!(345_601)),
            "the retention is 1900800 s",
        ),
        (
            "stream",
            format!("{function}/Events/Changes/Properties/MaximumRecordAgeInSeconds"),
            Some(json!(86_401)),
            "Changes: a delivery can come 86401 s later",
        ),
        (
            "stream",
            format!("{function}/Events/Orders/Properties/MaximumRecordAgeInSeconds"),
            None,
            "Orders: a delivery can come 31536000 s later",
        ),
        (
            "minimal",
            "/Resources/Function/Metadata/BuildProperties".into(),
            None,
            "not found in the function's source",
        ),
        // Streams.
        (
            "stream",
            format!("{function}/Events/Orders/Properties/MaximumRetryAttempts"),
            Some(json!(-1)),
            "MaximumRetryAttempts",
        ),
        (
            "stream",
            format!("{function}/Events/Changes/Properties/MaximumRetryAttempts"),
            Some(json!(10)),
            "MaximumRetryAttempts",
        ),
        (
            "stream",
            format!("{function}/Events/Changes/Properties/DestinationConfig"),
            None,
            "Changes: no OnFailure queue",
        ),
        ("stream", format!("{function}/Events/Changes/Type"), Some(json!("MSK")), "no check knows"),
        // The chain.
        (
            "sns-fifo-to-sqs-fifo",
            "/Resources/UndeliveredQueue/Properties/FifoQueue".into(),
            None,
            "not both FIFO",
        ),
        ("sns-fifo-to-sqs-fifo", "/Resources/Topic/Properties/FifoTopic".into(), None, "not both"),
        (
            "sns-fifo-to-sqs-fifo",
            "/Resources/Subscription/Properties/RawMessageDelivery".into(),
            None,
            "RawMessageDelivery",
        ),
        (
            "sns-fifo-to-sqs-fifo",
            "/Resources/Subscription/Properties/RedrivePolicy".into(),
            None,
            "the topic may not send to null",
        ),
        (
            "sns-fifo-to-sqs-fifo",
            "/Resources/FromTheTopic/Properties/PolicyDocument/Statement/0/Condition".into(),
            None,
            "the topic may not send",
        ),
        // HTTP.
        ("http", format!("{function}/Timeout"), Some(json!(30)), "longer than 29 s"),
        ("http", format!("{function}/FunctionUrlConfig/AuthType"), Some(json!("NONE")), "AWS_IAM"),
        ("http", "/Resources/Api/Properties/Auth/DefaultAuthorizer".into(), None, "no authorizer"),
        (
            "http",
            "/Resources/Api/Properties/Auth/Authorizers/Users/JwtConfiguration/audience/0".into(),
            None,
            "no authorizer",
        ),
        (
            "http",
            "/Resources/Api/Properties/CorsConfiguration/AllowHeaders/2".into(),
            None,
            "AllowHeaders has no idempotency-key",
        ),
        (
            "http",
            "/Resources/Api/Properties/CorsConfiguration/ExposeHeaders".into(),
            None,
            "ExposeHeaders has no retry-after",
        ),
        // Permissions.
        ("http", format!("{statement}/0/Action/6"), None, "PartiQLDelete"),
        ("minimal", format!("{statement}/0/Action/7"), Some(json!("dynamodb:Scan")), "Scan"),
        ("minimal", format!("{statement}/0/Resource"), Some(json!("*")), "on \"*\" is not needed"),
        ("minimal", format!("{statement}/1/Action/1"), None, "sqs:DeleteMessage"),
        ("minimal", format!("{statement}/2"), None, "logs:PutLogEvents"),
        ("minimal", format!("{statement}/1/Effect"), Some(json!("Deny")), "Effect"),
        ("minimal", format!("{statement}/1/NotAction"), Some(json!([])), "other words"),
        ("stream", format!("{statement}/3/Resource"), Some(json!("*")), "dynamodb:ListStreams"),
        ("stream", format!("{statement}/4"), None, "sqs:SendMessage"),
        (
            "stream",
            format!("{function}/Policies"),
            Some(json!(["AmazonDynamoDBFullAccess"])),
            "adds permissions",
        ),
        (
            "minimal",
            "/Resources/More".into(),
            Some(json!({"Type": "AWS::IAM::RolePolicy"})),
            "a policy elsewhere",
        ),
    ];
    for (name, pointer, value, expected) in breakages {
        let found = problems(&breaking(&templates[name], &pointer, value.clone()));
        assert!(
            found.iter().any(|problem| problem.contains(expected)),
            "{name}{pointer} = {value:?}: no problem with {expected:?} among {found:#?}"
        );
    }
}
