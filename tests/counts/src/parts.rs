//! Where the instructions of one new record, and of a hundred, go: to the crates whose functions execute them.

use std::collections::{BTreeMap, HashMap};

/// The ends of the names of the cases that are divided into parts.
const DIVIDED: [&str; 2] = [": 1 new", ": 100 new"];

/// The parts of each such case, as lines with tabs: the greatest first.
pub(crate) fn table(dumps: &[(String, String)]) -> String {
    let cases: Vec<(&str, BTreeMap<&str, u64>)> = dumps
        .iter()
        .filter(|(name, _)| DIVIDED.iter().any(|end| name.ends_with(end)))
        .map(|(name, dump)| (&**name, parts(dump)))
        .collect();
    let mut all: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (nth, (_, parts)) in cases.iter().enumerate() {
        for (part, count) in parts {
            let row = all.entry(part).or_insert_with(|| vec![0; cases.len()]);
            row.iter_mut().skip(nth).take(1).for_each(|of_case| *of_case = *count);
        }
    }
    let mut rows: Vec<_> = all.into_iter().collect();
    rows.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.iter().sum::<u64>()));
    let heads: Vec<&str> = cases.iter().map(|(name, _)| *name).collect();
    let mut table = format!("{}\tpart\n", heads.join("\t"));
    for (part, counts) in rows {
        let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
        table.push_str(&format!("{}\t{part}\n", counts.join("\t")));
    }
    table
}

/// The instructions of each part, without those of the functions that it calls.
fn parts(dump: &str) -> BTreeMap<&'static str, u64> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut own: HashMap<&str, u64> = HashMap::new();
    let (mut current, mut is_call) = ("", false);
    for line in dump.lines() {
        if let Some(function) = line.strip_prefix("fn=") {
            current = id(function, &mut names);
        } else if let Some(function) = line.strip_prefix("cfn=") {
            id(function, &mut names);
        } else if line.starts_with("calls=") {
            // The next line has what the called function takes.
            is_call = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            let count = line.rsplit(' ').next().and_then(|count| count.parse().ok());
            if !std::mem::take(&mut is_call) {
                *own.entry(current).or_default() += count.unwrap_or(0);
            }
        }
    }
    let mut parts = BTreeMap::new();
    for (function, count) in own {
        *parts.entry(part(names.get(function).copied().unwrap_or_default())).or_default() += count;
    }
    parts
}

/// The number of a function, as in `(17) name`. The name is there once.
fn id<'d>(function: &'d str, names: &mut HashMap<&'d str, &'d str>) -> &'d str {
    let (id, name) = function.split_once(' ').unwrap_or((function, ""));
    if !name.is_empty() {
        names.insert(id, name);
    }
    id
}

/// The part to which a function belongs. A generic function belongs to the crate that it is used with.
fn part(function: &str) -> &'static str {
    const PARTS: [(&str, &str); 13] = [
        ("sha2::", "SHA-256: Valgrind has no instructions for it, and processors have"),
        ("lambda_idempotency_dynamodb", "lambda-idempotency-dynamodb"),
        ("lambda_idempotency_engine", "lambda-idempotency-engine"),
        ("lambda_idempotency_keys", "lambda-idempotency-keys"),
        ("lambda_idempotency_core", "lambda-idempotency-core"),
        ("lambda_idempotency", "lambda-idempotency"),
        ("aws_", "the AWS SDK"),
        ("serde_json", "serde_json"),
        ("malloc", "malloc and free"),
        ("free", "malloc and free"),
        ("realloc", "malloc and free"),
        ("unlink_chunk", "malloc and free"),
        ("__mem", "memcpy and memcmp"),
    ];
    let found = PARTS.iter().find(|(sign, _)| function.contains(sign));
    found.map_or("the standard library and other crates", |(_, part)| part)
}
