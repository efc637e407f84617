//! The guide's page about performance, and the longer one in `docs`, are made from the figures of one run: their tables,
//! and their plots. `WRITE_PAGE=1` writes them; without it, the test fails if they are not those of the file.

mod aims;
mod dollars;
mod instructions;
mod lines;
mod measured;
mod plots;
pub(crate) mod tables;

use std::{env, fs};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{read, root};
use measured::Measured;

const FOLDER: &str = "crates/lambda/src/guide/measured";
const PAGE: &str = "crates/lambda/src/guide/performance.md";
const DETAILS: &str = "docs/performance.md";
/// The plots of the guide as data, which docs.rs shows: it has no files beside its pages. rustdoc takes the first definition of a name,
/// which is in this file; GitHub has the one at the end of the page, which names a file.
const EMBEDDED: &str = "crates/lambda/src/guide/measured/plots.txt";

/// Every file that is made from the figures, with its text.
fn made(measured: &Measured, peers: &Measured) -> Vec<(String, String)> {
    let [mut page, mut details] = [PAGE, DETAILS].map(read);
    for (name, text) in tables::all(measured, peers) {
        let holder = if has_block(&page, name) { &mut page } else { &mut details };
        *holder = with_block(holder, name, &text);
    }
    let mut embedded = String::new();
    let mut files = Vec::new();
    for (name, plot) in plots::all(measured, peers) {
        if page.contains(&shown(name)) {
            let data = STANDARD.encode(&plot);
            embedded.push_str(&format!("[plot-{name}]: data:image/svg+xml;base64,{data}\n"));
        }
        files.push((format!("{FOLDER}/{name}.svg"), plot));
    }
    files.extend([(PAGE.to_owned(), page), (DETAILS.to_owned(), details)]);
    files.push((EMBEDDED.to_owned(), embedded));
    files
}

/// How a page shows a plot.
fn shown(name: &str) -> String {
    format!("][plot-{name}]\n")
}

fn has_block(page: &str, name: &str) -> bool {
    page.contains(&format!("<!-- measured: {name} -->\n"))
}

/// Replaces what is between `<!-- measured: name -->` and the next `<!-- end -->`.
fn with_block(page: &str, name: &str, text: &str) -> String {
    let begin = format!("<!-- measured: {name} -->\n");
    let (before, rest) =
        page.split_once(&begin).unwrap_or_else(|| panic!("{begin} is not in the page"));
    let (_, after) = rest.split_once("<!-- end -->\n").expect("an end of the block");
    format!("{before}{begin}\n{text}\n<!-- end -->\n{after}")
}

fn measured() -> (Measured, Measured) {
    let file = |name| Measured::parse(&read(&format!("{FOLDER}/{name}.tsv")));
    (file("figures"), file("powertools"))
}

#[test]
fn the_page_and_its_plots_are_those_of_the_figures() {
    let (measured, peers) = measured();
    for (path, text) in made(&measured, &peers) {
        let file = root().join(&path);
        if env::var_os("WRITE_PAGE").is_some() {
            fs::write(&file, &text).expect("a file");
        }
        let there = fs::read_to_string(&file).unwrap_or_default();
        assert!(there == text, "{path} is not made from {FOLDER}/*.tsv: see tests/run figures");
    }
}

/// Every block and every plot of the pages is made, and each is on one page. The guide has one plot.
#[test]
fn nothing_of_the_pages_is_left_out() {
    let (measured, peers) = measured();
    let [page, details] = [PAGE, DETAILS].map(read);
    let count = |text: &str| page.matches(text).count() + details.matches(text).count();
    assert_eq!(count("<!-- measured: "), tables::all(&measured, &peers).len());
    let plots = plots::all(&measured, &peers);
    assert_eq!(count("!["), plots.len());
    assert_eq!(page.matches("![").count(), 1);
    for (name, _) in plots {
        let (page, folder) = if page.contains(&shown(name)) {
            (&page, "measured")
        } else {
            (&details, "../crates/lambda/src/guide/measured")
        };
        assert!(page.contains(&shown(name)), "{name} is not shown");
        assert!(page.contains(&format!("\n[plot-{name}]: {folder}/{name}.svg\n")), "{name}");
    }
    let guide = read("crates/lambda/src/guide/mod.rs");
    let (data, text) = (guide.find("measured/plots.txt"), guide.find("\"performance.md\""));
    assert!(
        data.is_some() && data < text,
        "the plots come first: rustdoc takes the first definition"
    );
}
