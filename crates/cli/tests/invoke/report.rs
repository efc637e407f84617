//! The page of `invoke --report`: complete, with nothing from outside and nothing that could run. The step `browser` shows it
//! in one.

use crate::{invoke, messages, path};

/// The id of a record that would change the title of the page if it were markup.
const HOSTILE: &str = "<script>document.title='hacked'</script>\"'><img src=x onerror=alert(1)>";
const ESCAPED: &str = "&lt;script&gt;document.title=&#39;hacked&#39;&lt;/script&gt;&quot;&#39;&gt;&lt;img src=x \
                       onerror=alert(1)&gt;";

#[tokio::test]
async fn a_page_holds_everything_that_it_needs_and_text_of_an_event_stays_text() {
    let event = messages(&[("good", "succeed"), (HOSTILE, "report")]);
    let page = path("page.html");
    let options = ["--max-receive-count", "2", "--report", page.to_str().unwrap()];
    let said = invoke("page", &event, &options).await.err;
    assert!(said.contains("The page is in"), "{said}");
    let text = std::fs::read_to_string(&page).unwrap();
    std::fs::remove_file(page).unwrap();
    for word in ["good", ESCAPED, "dead-lettered", "told to report", "In words", "Invocations"] {
        assert!(text.contains(word), "no `{word}` in {text}");
    }
    for element in ["<svg", "<table", "default-src 'none'"] {
        assert!(text.contains(element), "no {element} in {text}");
    }
    for outside in ["<script", "<img", "<link", "<a ", "href=", "url(", "http://", "https://"] {
        assert!(!text.contains(outside), "{outside} in {text}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_page_that_cannot_be_written_costs_nothing_else() {
    let options = ["--report", "/dev/full"];
    let ran = invoke("full", &messages(&[("m1", "succeed")]), &options).await;
    let ran = ran.refused("cannot write /dev/full");
    assert!(ran.out.contains("1 delivery: 1 executed"), "{}", ran.out);
}
