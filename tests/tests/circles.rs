//! No circle: no file of a crate imports itself through others. A re-export is an import, so siblings import the file that
//! has what they need, and not the facade above them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

type Module = Vec<String>;
type Files<T> = BTreeMap<Module, T>;

fn module(path: &str) -> Module {
    path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn collect(folder: &Path, above: &[String], files: &mut Files<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let is_root = ["lib", "main", "mod"].contains(&&*name);
        let module =
            if is_root { above.to_vec() } else { [above, std::slice::from_ref(&name)].concat() };
        if path.is_dir() {
            collect(&path, &module, files);
        } else if path.extension().is_some_and(|it| it == "rs") && !name.ends_with("tests") {
            files.insert(module, fs::read_to_string(&path).unwrap());
        }
    }
}

/// The paths in a source, those of a group one by one, and the number of modules in the file that are around each. Without
/// comments, the tests at its end, and the paths of macros (`$crate::`), which are their callers'.
fn paths(source: &str) -> Vec<(String, usize)> {
    let mut tests = source.match_indices("#[cfg(test)]\n");
    let tests = tests.find(|(at, _)| {
        let line = source[*at..].lines().nth(1).unwrap_or_default();
        line.contains("mod ") && line.ends_with('{')
    });
    let source = &source[..tests.map_or(source.len(), |(at, _)| at)];
    let code = source.lines().map(|line| line.split("//").next().unwrap_or_default());
    let (mut found, mut word, mut last) = (Vec::new(), String::new(), [const { String::new() }; 2]);
    // Of each open brace: the path of its group, and whether it is a module's.
    let mut around: Vec<(String, bool)> = Vec::new();
    for letter in code.flat_map(|line| line.chars().chain(['\n'])) {
        if letter.is_alphanumeric() || "_:$".contains(letter) {
            word.push(letter);
            continue;
        }
        let path = format!("{}{word}", around.last().map_or("", |(group, _)| group));
        let is_named = !word.is_empty() || letter == '*';
        if !word.is_empty() {
            last = [std::mem::take(&mut last[1]), std::mem::take(&mut word)];
        }
        match letter {
            '{' if path.ends_with("::") => around.push((path, false)),
            '{' => around.push((String::new(), last[0] == "mod")),
            _ if is_named && path.contains("::") => {
                found.push((path, around.iter().filter(|(_, is_module)| *is_module).count()));
            }
            _ => {}
        }
        if letter == '}' {
            around.pop();
        }
        if !letter.is_whitespace() {
            last = Default::default();
        }
    }
    found
}

/// The files that each file names in its paths.
fn imports(files: &Files<String>) -> Files<BTreeSet<Module>> {
    let of = |(own, source): (&Module, &String)| {
        let mut found = BTreeSet::new();
        for (path, inside) in paths(source) {
            let path = module(&path);
            let supers = path.iter().take_while(|part| *part == "super").count();
            let path = match path.first().map(String::as_str) {
                Some("crate") => path[1..].to_vec(),
                Some("self") => [own, &path[1..]].concat(),
                Some("super") if supers > inside => {
                    [&own[..own.len() - (supers - inside)], &path[supers..]].concat()
                }
                Some(_) if files.contains_key(&[own, &path[..1]].concat()) => {
                    [own, &*path].concat()
                }
                _ => continue,
            };
            let lengths = (0..=path.len()).rev();
            found.extend(lengths.map(|it| path[..it].to_vec()).find(|it| files.contains_key(it)));
        }
        found.remove(own);
        (own.clone(), found)
    };
    files.iter().map(of).collect()
}

/// The files that import themselves, each with those of them that it imports.
fn circles(imports: &Files<BTreeSet<Module>>) -> Vec<String> {
    let reached = |from: &Module| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(file) = next.pop() {
            next.extend(imports[&file].iter().filter(|file| seen.insert((*file).clone())).cloned());
        }
        seen
    };
    let all: Files<_> = imports.keys().map(|file| (file.clone(), reached(file))).collect();
    let lines =
        imports.iter().filter(|(file, _)| all[*file].contains(*file)).map(|(file, needed)| {
            let back = needed.iter().filter(|other| all[*other].contains(file));
            let back = back.map(|other| format!(" `{}`", other.join("::")));
            format!("`{}` ->{}", file.join("::"), back.collect::<String>())
        });
    lines.collect()
}

#[test]
fn a_circle_through_a_facade_and_a_group_is_seen() {
    let mut files: Files<String> = [
        ("", "mod a;\npub use a::one;"),
        ("a", "pub mod one;\nmod two;\npub(crate) use self::{one::One, two::Two};"),
        ("a::one", "use std::{\n    fmt,\n};\nmod sealed {\n    use super::One;\n}"),
        ("a::two", "// use super::One;\npub(super) struct Two(crate::a::one::One);"),
    ]
    .map(|(file, source)| (module(file), source.to_owned()))
    .into();
    assert_eq!(circles(&imports(&files)), [""; 0]);
    files.insert(module("a::two"), "use crate::{\n    b::X,\n    a::{One, y},\n};".to_owned());
    assert_eq!(circles(&imports(&files)), ["`a` -> `a::two`", "`a::two` -> `a`"]);
}

#[test]
fn no_file_of_a_crate_imports_itself_through_others() {
    let (mut found, mut arrows) = (Vec::new(), 0);
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates")).unwrap() {
        let mut files = Files::new();
        collect(&entry.unwrap().path().join("src"), &[], &mut files);
        let imports = imports(&files);
        arrows += imports.values().map(BTreeSet::len).sum::<usize>();
        found.extend(circles(&imports));
    }
    assert!(
        found.is_empty(),
        "import the file and not the facade, or move down what is shared: {found:#?}"
    );
    assert!(arrows > 1000, "{arrows} imports: are all of them read?");
}
