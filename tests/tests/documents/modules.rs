//! The structure of the crates: files are short, and modules of a crate do not import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

/// The most lines of a source file.
const LONGEST: usize = 400;
/// Modules that could be crates of their own: they import nothing of the crate around them.
const APART: [(&str, &str); 1] = [("keys", "jmespath")];

pub(crate) type Module = Vec<String>;

/// The imports of a file from its own crate, and its re-exports.
#[derive(Default)]
struct Imports {
    private: Vec<Module>,
    public: BTreeMap<String, Module>,
}

/// The paths of a tree of imports, each with the name that it gets.
fn paths(tree: &str, before: &[String]) -> Vec<(String, Module)> {
    let (head, group) = tree.split_once('{').unwrap_or((tree, ""));
    let (head, alias) =
        head.split_once(" as ").map_or((head, None), |(head, as_)| (head, Some(as_)));
    let parts = head.split("::").map(str::trim).filter(|part| !part.is_empty() && *part != "self");
    let path: Module = before.iter().cloned().chain(parts.map(str::to_owned)).collect();
    let Some(group) = group.trim_end().strip_suffix('}') else {
        let name = alias.map(|alias| alias.trim().to_owned()).or(path.last().cloned());
        return name.map(|name| (name, path)).into_iter().collect();
    };
    let (mut depth, mut items) = (0, vec![String::new()]);
    for c in group.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match (c, depth) {
            (',', 0) => items.push(String::new()),
            (c, _) => items.last_mut().expect("an item").push(c),
        }
    }
    let items = items.iter().filter(|item| !item.trim().is_empty());
    items.flat_map(|item| paths(item.trim(), &path)).collect()
}

fn imports(module: &[String], text: &str, modules: &BTreeSet<Module>) -> Imports {
    let mut imports = Imports::default();
    // Up to the tests in the file. Declarations of other files of tests come before imports.
    let mut tests = text.match_indices("\n#[cfg(test)]\nmod ");
    let tests =
        tests.find(|(at, _)| text[*at..].lines().nth(2).is_some_and(|it| it.ends_with('{')));
    let code = format!("\n{}", &text[..tests.map_or(text.len(), |(at, _)| at)]);
    for statement in code.split(';') {
        // Each import begins a line, after comments and attributes.
        let starts = ["\nuse ", "\npub use ", "\npub(crate) use ", "\npub(super) use "];
        let Some(at) = starts.iter().filter_map(|start| statement.rfind(start)).max() else {
            continue;
        };
        let (visibility, tree) = statement[at..].trim().split_once("use ").expect("an import");
        for (name, path) in paths(&tree.replace('\n', " "), &[]) {
            let supers = path.iter().take_while(|part| *part == "super").count();
            let Some(outside) = module.len().checked_sub(supers) else { continue };
            let inner = [module, path.get(..1).unwrap_or_default()].concat();
            let path = match path.first().map(String::as_str) {
                Some("crate") => path[1..].to_vec(),
                Some("super") => [&module[..outside], &path[supers..]].concat(),
                _ if modules.contains(&inner) => [module, &path].concat(),
                _ => continue,
            };
            if visibility.is_empty() {
                imports.private.push(path);
            } else {
                imports.public.insert(name, path);
            }
        }
    }
    imports
}

/// The module that defines the item at the path, even if another module exports it.
fn owner(path: &[String], all: &BTreeMap<Module, Imports>, depth: usize) -> Option<Module> {
    let length = (0..=path.len()).rev().find(|length| all.contains_key(&path[..*length]))?;
    let (module, rest) = path.split_at(length);
    match rest.split_first().and_then(|(name, rest)| Some((all[module].public.get(name)?, rest))) {
        Some((target, rest)) if depth < 9 => owner(&[target, rest].concat(), all, depth + 1),
        _ => Some(module.to_vec()),
    }
}

/// The modules of each crate, with their texts.
pub(crate) fn crates() -> BTreeMap<String, BTreeMap<Module, String>> {
    let mut crates = BTreeMap::<_, BTreeMap<_, _>>::new();
    for (path, text) in crate::sources() {
        let path = path.trim_end_matches(".rs");
        let mut parts = path.split('/').skip(1).map(str::to_owned);
        let (of, _src) = (parts.next().expect("a crate"), parts.next());
        let mut module: Module = parts.collect();
        module.pop_if(|name| matches!(&**name, "lib" | "main" | "mod"));
        if !path.ends_with("_tests") {
            crates.entry(of).or_default().insert(module, text);
        }
    }
    crates
}

#[test]
fn source_files_are_short_and_no_two_modules_import_each_other() {
    let mut arrows = 0;
    for (of, files) in crates() {
        let modules: BTreeSet<Module> = files.keys().cloned().collect();
        let all: BTreeMap<Module, Imports> =
            files.iter().map(|(m, text)| (m.clone(), imports(m, text, &modules))).collect();
        let mut left: BTreeMap<&Module, BTreeSet<Module>> = BTreeMap::new();
        for (module, Imports { private, .. }) in &all {
            let lines = files[module].lines().count();
            assert!(lines <= LONGEST, "{of}: {} has {lines} lines; split it", module.join("::"));
            let needed = private.iter().filter_map(|path| owner(path, &all, 0));
            // A file below that of a type may have methods of it.
            left.insert(module, needed.filter(|other| !module.starts_with(other)).collect());
        }
        arrows += left.values().map(BTreeSet::len).sum::<usize>();
        // Removes modules that import none of the remaining ones, until nothing changes: only circles remain.
        loop {
            let open: BTreeSet<Module> = left.keys().map(|module| (*module).clone()).collect();
            left.retain(|_, needed| needed.iter().any(|module| open.contains(module)));
            if left.len() == open.len() {
                break;
            }
        }
        let circle: Vec<_> = left.keys().map(|module| module.join("::")).collect();
        assert!(circle.is_empty(), "{of}: in a circle, or above one: {circle:?}");
        for (_, apart) in APART.iter().filter(|(name, _)| *name == of) {
            let is_inside = |module: &Module| module.first().is_some_and(|first| first == apart);
            let inside = all.iter().filter(|(module, _)| is_inside(module));
            assert!(inside.clone().count() > 20, "{apart}: are the files read?");
            for module in inside.map(|(module, _)| module) {
                let Imports { private, public } = &all[module];
                let is_closed = private.iter().chain(public.values()).all(is_inside);
                let names_crate = files[module].contains("crate::");
                assert!(is_closed && !names_crate, "{}: imports others", module.join("::"));
            }
        }
    }
    assert!(arrows > 1000, "{arrows} imports are found: is the code read?");
}
