//! Names of the API in prose exist: `Idempotency::with_cache` is a member of that type, `.retention(..)` is a function
//! of any type. Code blocks of pages are compiled, but code between backticks in a sentence is not.

use std::collections::{BTreeMap, BTreeSet};

use crate::{files, pages, quoted, read};

/// The public items of all crates, as `docs/api` lists them: the members of each type or module by its name, and all
/// functions.
#[derive(Default)]
struct Apis {
    members: BTreeMap<String, BTreeSet<String>>,
    functions: BTreeSet<String>,
}

/// Types of the standard library, and words before a parenthesis that are not ours.
const FOREIGN: [&str; 7] = ["Duration", "cfg", "extensions", "fn", "get", "parse", "place_order"];

/// Functions of JMESPath, where expressions are named in prose.
const IN_EXPRESSIONS: &str = "crates/keys/src/jmespath/signatures.rs";

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word(text: &str) -> &str {
    text.split(|c| !is_word(c)).next().unwrap_or_default()
}

/// The word at the end of a text.
fn last_word(text: &str) -> &str {
    text.rsplit(|c| !is_word(c)).next().unwrap_or_default()
}

impl Apis {
    /// Reads lines such as `pub fn lambda_idempotency::http::Http<K>::caller(self) -> Self`.
    fn list(&mut self, lines: &str) {
        for line in lines.lines().filter(|line| !line.starts_with("impl")) {
            let Some(at) = line.find("lambda_idempotency") else { continue };
            // The path, without parameters.
            let (mut depth, mut path) = (0, String::new());
            for c in line[at..].chars() {
                match c {
                    '<' => depth += 1,
                    '>' => depth -= 1,
                    _ if depth > 0 => {}
                    c if is_word(c) || c == ':' => path.push(c),
                    _ => break,
                }
            }
            let names: Vec<_> = path.trim_end_matches(':').split("::").collect();
            let [.., owner, name] = names[..] else { continue };
            self.members.entry(owner.to_owned()).or_default().insert(name.to_owned());
            if line[..at].ends_with("fn ") {
                self.functions.insert(name.to_owned());
            }
        }
    }

    /// The names in backticks that do not exist.
    fn missing(&self, text: &str) -> Vec<String> {
        let expressions = read(IN_EXPRESSIONS);
        let is_function = |name: &str| {
            self.functions.contains(name) || expressions.contains(&format!("\"{name}\""))
        };
        let has = |owner: &str, name: &str| {
            self.members.get(owner).is_some_and(|members| members.contains(name))
        };
        let mut missing = Vec::new();
        // Without code blocks.
        let prose: String = text.split("```").step_by(2).collect();
        // Names of CloudFormation look like Rust.
        for code in prose.lines().flat_map(quoted).filter(|code| !code.contains("AWS::")) {
            for (at, sign) in code.match_indices('(').chain(code.match_indices("::")) {
                let name = last_word(&code[..at]);
                let member = word(&code[at + sign.len()..]);
                let is_qualified = code[..at - name.len()].ends_with(':');
                let is_lost = match name.chars().next() {
                    _ if FOREIGN.contains(&name) => false,
                    Some('a'..='z') if sign == "(" && !is_qualified => !is_function(name),
                    Some('A'..='Z') if sign == "::" => !member.is_empty() && !has(name, member),
                    _ => false,
                };
                missing.extend(is_lost.then(|| format!("`{code}`: no `{name}{sign}{member}`")));
            }
        }
        missing
    }
}

#[test]
fn every_api_that_a_page_names_exists() {
    let mut apis = Apis::default();
    files(&["docs/api"], &[".txt"]).iter().for_each(|(_, items)| apis.list(items));
    let pages = pages();
    let mistakes = pages.iter().flat_map(|(page, text)| {
        apis.missing(text).into_iter().map(move |mistake| format!("{page}: {mistake}"))
    });
    let mistakes: Vec<_> = mistakes.collect();
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

#[test]
fn an_api_that_does_not_exist_is_found() {
    let mut apis = Apis::default();
    apis.list(
        "pub lambda_idempotency::Cache::entries: u32\npub fn lambda_idempotency::Cache<T>::off() -> Self\n\
         impl lambda_idempotency::Other\npub lambda_idempotency::Disposition::Busy\n",
    );
    let page = "`Cache::off()`, `Cache::entries`, `Disposition::Busy`, `.off()`, `!Ref AWS::StackName`, \
                `json(body).id`\n```rust\nno::Matter::at(all)\n```\n";
    assert_eq!(apis.missing(page), [""; 0]);
    for wrong in ["Cache::on", "Disposition::Lost", "Gone::is"] {
        let page = format!("see `{wrong}` and `x.gone(1).{wrong}`");
        assert_eq!(apis.missing(&page).len(), 3, "{wrong}");
    }
}
