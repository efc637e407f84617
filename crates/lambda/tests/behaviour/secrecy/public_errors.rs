//! The list of public errors: a new one has to be reviewed.

use std::{collections::BTreeSet, fs, path::Path};

/// Errors whose texts are reviewed, and why none of them has a payload, a key or a result.
const REVIEWED: [(&str, &str); 5] = [
    (
        "our own texts, with positions and parts of expressions; tests of this folder produce them",
        "Collision DivertReason DocumentError ExpressionError InspectError InvocationError NoKey PayloadError \
         ProducerError RecordError Rejected Rejection RunError SecretError SelectionError StoreError",
    ),
    ("constants", "NoPassword NotJson OutboxError PublishError StoreConfigError TlsError"),
    ("the text of the sender, who is told what it must not hold", "SendError"),
    (
        "positions, numbers and names of tables, types and steps; `dynamodb::transactions` tests that they quote no \
         database",
        "CollectError DynamoDbEffectError ExecuteError RefusedEffect StepError TransactError",
    ),
    (
        "the configuration, which is not data",
        "ConfigError DynamoDbConfigError EntropyError FilterMistake Foreign KeySpecError MutexMistake NoTransaction \
         NotStarted NotText OptimisticMistake RecoveryMistake SettingsMistake UnknownHashFunction \
         UnknownPowertoolsLanguage",
    ),
];

/// Before you add an error to the list, test its texts in this folder.
#[test]
fn no_error_is_forgotten() {
    let mut found = BTreeSet::new();
    for of in ["core", "dynamodb", "engine", "keys", "lambda"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of).join("src");
        errors(&root, &mut found);
    }
    let reviewed = REVIEWED.iter().flat_map(|(_, names)| names.split(' '));
    let reviewed: BTreeSet<String> = reviewed.map(str::to_owned).collect();
    let new: Vec<_> = found.difference(&reviewed).collect();
    assert!(found.len() > 10 && new.is_empty(), "not reviewed: {new:?}");
}

/// The public types below `folder` that are errors.
fn errors(folder: &Path, found: &mut BTreeSet<String>) {
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
                if derived || text.contains(&format!("Error for {name} ")) {
                    found.insert(name.to_owned());
                }
            }
            // A derive belongs to the item before the next blank line.
            derived &= !line.is_empty();
        }
    }
}
