//! The page of `invoke --report`: well formed, complete, with nothing from outside and nothing that could run.

use crate::{invoke, messages, path};

/// The id of a record that would change the title of the page if it were markup.
const HOSTILE: &str = "<script>document.title='hacked'</script>\"'><img src=x onerror=alert(1)>";

/// The page after a delivery of these messages.
async fn page(name: &str, event: &str) -> String {
    let page = path(&format!("{name}.html"));
    let options = ["--max-receive-count", "2", "--report", page.to_str().unwrap()];
    let said = invoke(name, event, &options).await.err;
    assert!(said.contains("The page is in"), "{said}");
    let text = std::fs::read_to_string(&page).unwrap();
    std::fs::remove_file(page).unwrap();
    text
}

/// What a browser would see: the elements with their attributes, and the text outside of styles.
#[derive(Default)]
struct Parsed {
    elements: Vec<(String, String)>,
    text: String,
}

/// Elements that have no end.
const EMPTY: [&str; 3] = ["meta", "input", "br"];

/// Reads a page, and fails at an element that is not closed where it has to be.
fn parse(page: &str) -> Parsed {
    let mut parsed = Parsed::default();
    let mut open: Vec<String> = Vec::new();
    let mut rest = page;
    while let Some((text, tag)) = rest.split_once('<') {
        parsed.text.push_str(text);
        // A `>` within a quoted attribute does not end the tag.
        let mut quoted = false;
        let end = tag.find(|letter| {
            quoted ^= letter == '"';
            letter == '>' && !quoted
        });
        let (tag, after) = tag.split_at(end.unwrap());
        rest = &after[1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "near {tag}: {open:?}");
            continue;
        }
        let (name, attributes) = tag.split_once([' ', '\n']).unwrap_or((tag, ""));
        parsed.elements.push((name.to_owned(), attributes.to_owned()));
        if name == "style" {
            (_, rest) = rest.split_once("</style>").unwrap();
        } else if !(EMPTY.contains(&name) || name.starts_with('!') || attributes.ends_with('/')) {
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty(), "not closed: {open:?}");
    parsed.text.push_str(rest);
    for (sign, letter) in
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")]
    {
        parsed.text = parsed.text.replace(sign, letter);
    }
    parsed
}

#[tokio::test]
async fn a_page_is_well_formed_and_holds_everything_that_it_needs() {
    let event = messages(&[("good", "succeed"), ("bad", "report")]);
    let page = page("page", &event).await;
    let parsed = parse(&page);
    for word in ["good", "bad", "dead-lettered", "told to report", "In words", "Invocations"] {
        assert!(parsed.text.contains(word), "no `{word}` in {}", parsed.text);
    }
    let names: Vec<&str> = parsed.elements.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.contains(&"svg") && names.contains(&"table"), "{names:?}");
    for outside in ["link", "img", "iframe", "object", "embed", "a", "base", "form action"] {
        assert!(!names.contains(&outside), "{outside}");
    }
    for (name, attributes) in &parsed.elements {
        for attribute in ["src=", "href=", "url(", "http://", "https://"] {
            assert!(!attributes.contains(attribute), "<{name} {attributes}>");
        }
        let handler = attributes.split_whitespace().any(|attribute| attribute.starts_with("on"));
        assert!(!handler, "<{name} {attributes}>");
    }
    assert!(page.contains("default-src 'none'"), "a policy that forbids everything else");
}

#[tokio::test]
async fn markup_in_an_event_stays_text() {
    let page = page("hostile", &messages(&[(HOSTILE, "report")])).await;
    let parsed = parse(&page);
    assert!(parsed.text.contains(HOSTILE), "the id is shown as it is: {}", parsed.text);
    assert!(!parsed.elements.iter().any(|(name, _)| name == "img" || name == "script"));
    assert!(!page.contains("<script>document"), "{page}");
}
