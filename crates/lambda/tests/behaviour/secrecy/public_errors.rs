//! The list of public errors: a new one has to be reviewed.

use std::{fs, path::Path};

/// Lists every public error of these crates. Before you add one to the list, test its texts in this folder.
#[test]
fn no_error_is_forgotten() {
    const REVIEWED: &[&str] = &[
        // Their texts are our own, with positions and parts of expressions. The other files of this folder
        // test them.
        "DivertReason",
        "DocumentError",
        "ExpressionError",
        "InspectError",
        "InvocationError",
        "Collision",
        "NoKey",
        "PayloadError",
        "ProducerError",
        "RecordError",
        // Contains a `Rejection`, and has its text.
        "Rejected",
        "Rejection",
        "RunError",
        "SecretError",
        "SelectionError",
        "StoreError",
        // Their texts are constants; `core::outbox` tests `Debug` of what they are about.
        "NotJson",
        "OutboxError",
        "PublishError",
        // Its text is the sender's, who is told what it must not hold.
        "SendError",
        // Their texts have positions, names of tables, types and codes. `dynamodb::transactions` tests that
        // they quote nothing of what the database says.
        "CollectError",
        "DynamoDbEffectError",
        "RefusedEffect",
        "TransactError",
        // Its texts have positions, numbers and names of types, and one of the words that begin or end a transaction.
        "ExecuteError",
        // Its texts have the names of steps, which the guide says must hold no data, and positions in a result.
        "StepError",
        // They are about the configuration, which is not data.
        "ConfigError",
        "DynamoDbConfigError",
        "EntropyError",
        "FilterMistake",
        "Foreign",
        "MutexMistake",
        "NoTransaction",
        "OptimisticMistake",
        "NotStarted",
        "NotText",
        // Its text is a constant, and its source is never shown.
        "NoPassword",
        "RecoveryMistake",
        "SettingsMistake",
        // Its texts are constants, or those of the store's own error: `from_env` tests that the URL is in none.
        "StoreConfigError",
        // Its texts are constants.
        "TlsError",
        "KeySpecError",
        "UnknownHashFunction",
        "UnknownPowertoolsLanguage",
    ];
    let mut found = Vec::new();
    for of in ["core", "dynamodb", "engine", "keys", "lambda"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of).join("src");
        errors(&root, &mut found);
    }
    found.sort_unstable();
    found.dedup();
    assert!(found.len() > 10, "{found:?}");
    for name in &found {
        assert!(
            REVIEWED.contains(&name.as_str()),
            "`{name}` is a new error: check that its texts contain nothing of a payload, a key or a \
             result, test it in this folder, and add it to the list"
        );
    }
}

/// The public types below `folder` that are errors.
fn errors(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            errors(&path, found);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let mut derived = false;
        for line in text.lines() {
            derived |= line.contains("thiserror::Error");
            let rest = line.strip_prefix("pub enum ").or_else(|| line.strip_prefix("pub struct "));
            if let Some(rest) = rest {
                let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
                let written = text.contains(&format!("Error for {name} "));
                if derived || written {
                    found.push(name.to_owned());
                }
            }
            // A derive belongs to the item before the next blank line.
            derived &= !line.is_empty();
        }
    }
}
