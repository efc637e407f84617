//! The page.

use std::cmp::Reverse;

use super::html::Html;
use super::keys::{Key, Lane, keys};
use super::moment::Kind;
use super::run::Run;
use super::timeline::{draw, shape};

const STYLE: &str = include_str!("page.css");
/// The most keys that are drawn.
const DRAWN: usize = 300;

pub(crate) fn page(run: &Run<'_>) -> String {
    let mut html = Html::default();
    html.raw("<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n");
    html.raw("<meta name=viewport content=\"width=device-width, initial-scale=1\">\n");
    // No script, and nothing from anywhere else.
    html.raw("<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'\">\n");
    html.element("<title>", &run.title, "</title>\n");
    html.raw("<style>\n").raw(STYLE).raw("</style>\n</head>\n<body>\n");
    head(&mut html, run);
    let mut keys = keys(run);
    // What a reader looks for comes first; the rest is in the order of time.
    keys.sort_by_key(|key| {
        Reverse([Kind::Again, Kind::Fault, Kind::Failed].map(|kind| key.count(kind)))
    });
    section_of_keys(&mut html, &keys);
    ledger(&mut html, run, &keys);
    for list in run.lists.iter().filter(|list| !list.rows.is_empty()) {
        html.element("<h2>", list.title, "</h2>\n").table(list.header, &list.rows);
    }
    html.raw("<footer>Made by lambda-idempotency. Times are in milliseconds since the first invocation.</footer>\n");
    html.raw("</body>\n</html>\n");
    html.into_string()
}

fn head(html: &mut Html, run: &Run<'_>) {
    html.element("<header><h1>", &run.title, "</h1>\n");
    html.element("<p class=sub>", &run.subtitle, "</p>\n");
    let (good, verdict) = &run.verdict;
    html.raw(if *good { "<p class=\"verdict good\">" } else { "<p class=\"verdict bad\">" });
    html.text(verdict).raw("</p>\n<ul class=numbers>");
    for (number, meaning) in &run.numbers {
        html.element("<li><b>", number, "</b>").element("<span>", meaning, "</span></li>");
    }
    html.raw("</ul></header>\n");
}

const LEGEND: [(Kind, &str); 11] = [
    (Kind::Claim, "claimed"),
    (Kind::Refused, "claim refused"),
    (Kind::Handler, "handler"),
    (Kind::Effect, "effect"),
    (Kind::Again, "effect again"),
    (Kind::Completed, "completed"),
    (Kind::Released, "released or renewed"),
    (Kind::Failed, "failed permanently"),
    (Kind::Answered, "acknowledged"),
    (Kind::Returned, "returned"),
    (Kind::Fault, "fault"),
];

fn section_of_keys(html: &mut Html, keys: &[Key]) {
    html.element("<h2>Keys (", keys.len(), ")</h2>\n<ul class=legend>");
    for (kind, meaning) in LEGEND {
        html.raw("<li><svg width=20 height=20><g transform=\"translate(10 10)\">").raw(shape(kind));
        html.raw("</g></svg>").text(meaning).raw("</li>");
    }
    html.raw("</ul>\n");
    keys.iter().take(DRAWN).for_each(|key| card(html, key));
    if let rest @ 1.. = keys.len().saturating_sub(DRAWN) {
        html.element("<p>", rest, " further keys are not drawn.</p>\n");
    }
}

fn card(html: &mut Html, key: &Key) {
    let of = |kind| key.count(kind);
    html.element("<article class=key><h3><code>", &key.name, "</code> ");
    html.element("<small>", &key.operation, "</small>");
    for (count, one, many, class) in [
        (key.lanes.len(), " invocation", " invocations", "<span class=badge>"),
        (of(Kind::Effect), " effect", " effects", "<span class=\"badge amber\">"),
        (of(Kind::Again), " effect again", " effects again", "<span class=\"badge red\">"),
        (of(Kind::Fault), " fault", " faults", "<span class=\"badge red\">"),
        (of(Kind::Completed), " completion", " completions", "<span class=\"badge green\">"),
    ] {
        if count > 0 {
            html.raw(class).text(count).raw(if count == 1 { one } else { many }).raw("</span>");
        }
    }
    html.raw("</h3>\n");
    draw(html, key);
    html.raw("<details><summary>In words</summary>");
    html.table(
        &["ms", "invocation", "process", "what"],
        &key.lanes.iter().flat_map(words).collect::<Vec<_>>(),
    );
    html.raw("</details></article>\n");
}

fn words(lane: &Lane) -> impl Iterator<Item = Vec<String>> {
    lane.moments.iter().map(|moment| {
        let at = format!("{:.1}", moment.at);
        vec![at, lane.invocation.to_string(), lane.pid.to_string(), moment.text.clone()]
    })
}

/// Every effect, in time.
fn ledger(html: &mut Html, run: &Run<'_>, keys: &[Key]) {
    let is_effect = |kind| matches!(kind, Kind::Effect | Kind::Again);
    let mut rows: Vec<(f64, Vec<String>)> = Vec::new();
    for key in keys {
        for lane in &key.lanes {
            for moment in lane.moments.iter().filter(|moment| is_effect(moment.kind)) {
                let again = if moment.kind == Kind::Again { "again" } else { "" };
                let row = [
                    format!("{:.1}", moment.at),
                    key.name.clone(),
                    moment.text.clone(),
                    lane.invocation.to_string(),
                    lane.pid.to_string(),
                    again.to_owned(),
                ];
                rows.push((moment.at, row.into()));
            }
        }
    }
    if rows.is_empty() && run.story.effects.is_empty() {
        html.raw("<h2>Ledger of effects</h2>\n<p>The function reported no effects. With <code>lambda_idempotency::testing::effect(&amp;call, \"name\")</code> in a handler they are shown here.</p>\n");
        return;
    }
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let rows: Vec<_> = rows.into_iter().map(|(_, row)| row).collect();
    html.element(
        "<h2>Ledger of effects (",
        rows.len(),
        ")</h2>\n<details open><summary>All effects, in the order in which they happened</summary>",
    );
    html.table(&["ms", "key", "effect", "invocation", "process", ""], &rows).raw("</details>\n");
}
