//! The structure of the types whose methods are in several files: files that call each other's methods are one knot,
//! although none of them imports another.

use std::collections::{BTreeMap, BTreeSet};

use crate::modules::crates;

/// How many calls from file to file are part of a circle, for each type that has any: (crate, type, calls). The figures
/// only fall.
const CIRCLES: [(&str, &str, usize); 5] = [
    ("chaos", "Rig", 5),
    ("keys", "Call", 7),
    ("keys", "Parser", 4),
    ("lambda", "Operation", 4),
    ("postgres", "PostgresStore", 2),
];

/// The methods of a type in one file: their names, and those that they call on `self`.
#[derive(Default)]
struct Methods {
    own: BTreeSet<String>,
    called: BTreeSet<String>,
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The type of which this line begins the methods.
fn implemented(line: &str) -> Option<String> {
    let after = line.strip_prefix("impl")?;
    let after = match after.strip_prefix('<') {
        Some(generics) => generics.split_once("> ")?.1,
        None => after.strip_prefix(' ')?,
    };
    (!after.contains(" for ")).then(|| word(after)).filter(|name| !name.is_empty())
}

/// The methods of each type in this source.
fn methods(text: &str) -> BTreeMap<String, Methods> {
    let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
    let mut found: BTreeMap<String, Methods> = BTreeMap::new();
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let Some(name) = implemented(line) else { continue };
        let methods = found.entry(name).or_default();
        let inner: Vec<_> = lines.by_ref().take_while(|line| *line != "}").collect();
        for line in &inner {
            let names_function = line.strip_prefix("    ").filter(|line| !line.starts_with(' '));
            if let Some((_, named)) = names_function.and_then(|line| line.split_once("fn ")) {
                methods.own.insert(word(named));
            }
        }
        let inner: String = inner.iter().flat_map(|line| line.split_whitespace()).collect();
        let calls = inner.split("self.").skip(1).map(|rest| (word(rest), rest));
        let called = calls.filter(|(name, rest)| rest[name.len()..].starts_with('('));
        methods.called.extend(called.map(|(name, _)| name));
    }
    found
}

/// How many calls from file to file are part of a circle.
fn in_circles(files: &[Methods]) -> usize {
    let all = 0..files.len();
    let calls =
        |from: usize, to: usize| from != to && !files[from].called.is_disjoint(&files[to].own);
    let reaches = |from: usize, to: usize| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(at) = open.pop() {
            open.extend(all.clone().filter(|next| calls(at, *next) && seen.insert(*next)));
        }
        seen.contains(&to)
    };
    let pairs = all.clone().flat_map(|from| all.clone().map(move |to| (from, to)));
    pairs.filter(|(from, to)| calls(*from, *to) && reaches(*to, *from)).count()
}

#[test]
fn no_two_files_call_methods_of_each_other() {
    let (mut spread, mut found) = (0, Vec::new());
    for (of, files) in crates() {
        let all: String = files.values().map(String::as_str).collect();
        let mut types: BTreeMap<String, Vec<Methods>> = BTreeMap::new();
        for (name, methods) in files.values().flat_map(|text| methods(text)) {
            types.entry(name).or_default().push(methods);
        }
        for (name, files) in types {
            // Types of one name are not told apart.
            let is_this = |rest: &&str| rest.starts_with(&name) && word(rest) == name;
            let definitions = ["struct ", "enum "];
            let defined = definitions.iter().map(|kind| all.split(kind).filter(is_this).count());
            if files.len() < 2 || defined.sum::<usize>() != 1 {
                continue;
            }
            spread += 1;
            let circles = in_circles(&files);
            found.extend((circles > 0).then(|| (of.clone(), name, circles)));
        }
    }
    assert!(spread > 5, "{spread} types have methods in several files: is the code read?");
    found.sort();
    let found: Vec<_> = found.iter().map(|(of, name, calls)| (&**of, &**name, *calls)).collect();
    assert_eq!(found, CIRCLES, "calls from file to file that are part of a circle");
}
