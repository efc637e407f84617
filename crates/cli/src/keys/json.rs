//! The report, for programs. Its shape is described in the crate's README.

use lambda_idempotency::keys::inspect::Record;
use serde_json::{Value, json};

use super::{
    report::{File, Numbered, Report, Shared},
    text::view,
};

/// The whole report as one document.
pub(crate) fn document(report: &Report) -> Value {
    let totals = report.totals();
    json!({
        "version": 1,
        "summary": {
            "records": totals.records,
            "keys": totals.keys,
            "duplicates": totals.duplicates,
            "mismatches": totals.mismatches,
            "without_key": totals.without_key,
        },
        "records": report.files.iter().flat_map(records).collect::<Vec<_>>(),
        "shared_keys": report.shared.iter().map(shared).collect::<Vec<_>>(),
        "defaults": report.defaults().iter().map(|[source, parts, catches, misses]| json!({
            "source": source, "made_of": parts, "recognises": catches, "misses": misses,
        })).collect::<Vec<_>>(),
        "warnings": report.warnings,
    })
}

fn records(file: &File) -> impl Iterator<Item = Value> {
    file.records.iter().map(|numbered| record(file, numbered))
}

fn record(file: &File, numbered: &Numbered) -> Value {
    let Numbered { number, record } = numbered;
    let Record { source, id, arn, raw, payload, identity, group, key, .. } = record;
    let key = key.as_ref();
    let parts = key.map(|key| key.parts.iter());
    let parts = parts.into_iter().flatten();
    json!({
        "number": number,
        "file": file.path,
        "against": file.is_other,
        "source": source,
        "record": (!id.is_empty()).then_some(id),
        "arn": arn,
        "group": group,
        "identity": identity.as_ref().ok(),
        "view": view(record),
        "expression": key.and_then(|key| Some(&key.path.as_ref()?.expression)),
        "payload": payload.as_ref().ok(),
        "raw": raw,
        "selected": parts.map(|(part, value)| json!({ "part": part, "value": value }))
            .collect::<Vec<_>>(),
        "canonical": key.and_then(|key| key.selected.as_ref()),
        "key": numbered.key(),
        "key_hash": key.and_then(|key| Some(key.key.as_ref().ok()?.hash())),
        "fingerprint": key.and_then(|key| Some(key.fingerprint.as_ref()?.as_str())),
        "problem": numbered.problem(),
    })
}

fn shared(shared: &Shared) -> Value {
    json!({
        "key": shared.key,
        "records": shared.records,
        "mismatched": shared.mismatched,
        "payloads_differ": shared.payloads_differ,
    })
}
