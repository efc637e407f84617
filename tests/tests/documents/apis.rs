//! Names of the API in prose exist: `Idempotency::with_cache` is a method of that type, `.retention(..)` is a method
//! of any type. Code blocks of pages are compiled, but code between backticks in a sentence is not.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use crate::root;

/// The methods, variants and public fields of each type by its name, and all functions.
#[derive(Default)]
struct Apis {
    of_types: BTreeMap<String, BTreeSet<String>>,
    /// The types that the macro of event sources makes. Their members are those of its `impl $name`, of all groups.
    sources: BTreeSet<String>,
    functions: BTreeSet<String>,
}

/// Names of CloudFormation, which look like Rust.
const RESOURCES: &str = "AWS::";

/// Types of the standard library that the pages use.
const STANDARD: [&str; 1] = ["Duration"];

/// Other words before a parenthesis.
const FOREIGN_FUNCTIONS: [&str; 6] = ["cfg", "extensions", "fn", "get", "parse", "place_order"];

/// Functions of JMESPath, where expressions are named in prose.
const IN_EXPRESSIONS: &str = "crates/keys/src/jmespath/signatures.rs";

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// The type whose body a line opens, and whether its members are public without `pub`.
fn opens(line: &str) -> Option<(&str, bool)> {
    let body = line.strip_suffix('{')?;
    for (keyword, open) in [("pub enum ", true), ("pub trait ", true), ("pub struct ", false)] {
        if let Some(name) = body.strip_prefix(keyword) {
            return Some((word(name), open));
        }
    }
    let rest = body.strip_prefix("impl")?.trim_start();
    // `impl<T: Into<X>> Trait for Type<T>`: the type is after `for`, or first.
    let after_generics = match rest.strip_prefix('<') {
        Some(_) => rest.split_once("> ").map_or(rest, |(_, rest)| rest),
        None => rest,
    };
    match after_generics.split_once(" for ") {
        Some((_, name)) => Some((word(name), true)),
        None => Some((word(after_generics), false)),
    }
}

impl Apis {
    fn read() -> Self {
        let mut apis = Self::default();
        for package in fs::read_dir(root().join("crates")).expect("crates") {
            apis.folder(&package.expect("a crate").path().join("src"));
        }
        apis
    }

    fn folder(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).expect("sources") {
            let path = entry.expect("a file").path();
            if path.is_dir() {
                self.folder(&path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                self.source(&fs::read_to_string(&path).expect("a source"));
            }
        }
    }

    /// Reads a file as rustfmt leaves it: a body ends with a brace below its first letter.
    fn source(&mut self, source: &str) {
        let mut owner: Option<(usize, String, bool)> = None;
        for line in source.lines() {
            let text = line.trim_start();
            let indent = line.len() - text.len();
            if let Some((start, _, _)) = &owner
                && indent <= *start
                && !text.is_empty()
                && text.starts_with('}')
            {
                owner = None;
            }
            if let Some((name, open)) = opens(text) {
                self.of_types.entry(name.to_owned()).or_default();
                owner = Some((indent, name.to_owned(), open));
                continue;
            }
            if let Some((name, events)) = text.split_once(" => ")
                && events.split(';').next().is_some_and(|events| events.ends_with("Events"))
            {
                self.sources.insert(name.to_owned());
            }
            let member = owner.as_ref().filter(|(start, _, _)| indent == start + 4);
            let open = member.is_some_and(|(_, _, open)| *open);
            let Some(name) = declared(text, open) else { continue };
            if text.contains("fn ") {
                self.functions.insert(name.to_owned());
            }
            if let Some((_, owner, _)) = member {
                self.of_types.entry(owner.clone()).or_default().insert(name.to_owned());
            }
        }
    }

    fn has(&self, owner: &str, name: &str) -> bool {
        let owns = |owner| self.of_types.get(owner).is_some_and(|names| names.contains(name));
        STANDARD.contains(&owner) || owns(owner) || (self.sources.contains(owner) && owns(""))
    }

    /// The names in backticks that do not exist.
    fn missing(&self, text: &str) -> Vec<String> {
        let expressions = crate::read(IN_EXPRESSIONS);
        let mut missing = Vec::new();
        for code in code(text).filter(|code| !code.contains(RESOURCES)) {
            let methods = called(code).into_iter().filter(|name| {
                !self.functions.contains(*name)
                    && !FOREIGN_FUNCTIONS.contains(name)
                    && !expressions.contains(&format!("\"{name}\""))
            });
            missing.extend(methods.map(|name| format!("`{code}`: no function `{name}`")));
            let members = members(code).into_iter().filter(|(owner, name)| !self.has(owner, name));
            missing.extend(members.map(|(owner, name)| format!("`{code}`: no `{owner}::{name}`")));
        }
        missing
    }
}

/// The public name that a line declares in a body, or outside of one.
fn declared(line: &str, open: bool) -> Option<&str> {
    let public = line.strip_prefix("pub ");
    let rest = public.unwrap_or(line);
    let qualified = ["const ", "async ", "unsafe "];
    let bare = qualified.iter().fold(rest, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
    if let Some(name) = bare.strip_prefix("fn ") {
        return (public.is_some() || open).then(|| word(name));
    }
    if let Some(field) = public {
        let name = word(field);
        return field.get(name.len()..)?.starts_with(": ").then_some(name);
    }
    let variant = open && line.starts_with(char::is_uppercase);
    variant.then(|| word(line)).filter(|name| !name.is_empty())
}

/// The code between backticks in a page's prose, without code blocks, which are compiled.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines()
        .filter(move |line| {
            let fence = line.trim_start().starts_with("```");
            fenced ^= fence;
            !fenced && !fence
        })
        .flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// The names before an opening parenthesis: methods and functions that are called.
fn called(code: &str) -> Vec<&str> {
    // A name after `::` is looked up with its type; text that is not Rust (`GetItem (..)`) has a space.
    let names = code.match_indices('(').filter_map(|(at, _)| {
        let before = code.get(..at)?;
        let start = before.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        let name = before.get(start..)?;
        let qualified = before.get(..start)?.ends_with(':');
        let is_name = name.starts_with(|c: char| c.is_ascii_lowercase()) && !qualified;
        is_name.then_some(name)
    });
    names.collect()
}

/// The pairs of a type and a member: `Cache::off`.
fn members(code: &str) -> Vec<(&str, &str)> {
    let pairs = code.match_indices("::").filter_map(|(at, _)| {
        let before = code.get(..at)?;
        let start = before.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
        let (owner, name) = (before.get(start..)?, word(code.get(at + 2..)?));
        let is_type = owner.starts_with(|c: char| c.is_ascii_uppercase());
        (is_type && !name.is_empty()).then_some((owner, name))
    });
    pairs.collect()
}

/// Every page: at the root, below `docs`, of the guide, and of the crates.
fn pages() -> Vec<PathBuf> {
    fn below(folder: &Path, pages: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("a file").path();
            if path.is_dir() {
                below(&path, pages);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                pages.push(path);
            }
        }
    }
    let mut pages = vec![root().join("README.md"), root().join("CHANGELOG.md")];
    below(&root().join("docs"), &mut pages);
    below(&root().join("crates/lambda/src/guide"), &mut pages);
    let crates = fs::read_dir(root().join("crates")).expect("crates");
    let readmes = crates.map(|package| package.expect("a crate").path().join("README.md"));
    pages.extend(readmes.filter(|page| page.exists()));
    pages
}

#[test]
fn every_api_that_a_page_names_exists() {
    let apis = Apis::read();
    let mut mistakes = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page");
        let shown = page.strip_prefix(root()).unwrap_or(&page).display().to_string();
        mistakes
            .extend(apis.missing(&text).into_iter().map(|mistake| format!("{shown}: {mistake}")));
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

#[test]
fn an_api_that_does_not_exist_is_found() {
    let mut apis = Apis::default();
    apis.source(
        "pub struct Cache {\n    pub entries: u32,\n    bytes: u32,\n}\n\
         impl Cache {\n    pub const fn off() -> Self {\n    }\n    fn hidden(&self) {\n    }\n}\n\
         impl<T: Into<String>> From<T> for Cache {\n    fn from(text: T) -> Self {\n    }\n}\n\
         pub enum Disposition {\n    Retry,\n    Busy { until: u32 },\n}\n    Sqs => SqsEvents; messages\n\
         impl $name {\n    pub fn new() -> Self {\n    }\n}\n",
    );
    let page = "`Cache::off()`, `Cache::entries`, `Cache::from`, `Disposition::Busy`, `.off()`, `Sqs::new()`, \
                `!Ref AWS::StackName`, `json(body).id`\n```rust\nno::Matter::at(all)\n```\n";
    assert_eq!(apis.missing(page), [""; 0]);
    for wrong in
        ["Cache::on", "Cache::hidden", "Cache::bytes", "Disposition::Lost", "Gone::is", "Sqs::old"]
    {
        let page = format!("see `{wrong}` and `x.gone(1).{wrong}`");
        assert_eq!(apis.missing(&page).len(), 3, "{wrong}");
    }
}
