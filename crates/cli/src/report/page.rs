//! The page.

use std::collections::BTreeSet;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use sha2::{Digest as _, Sha256};

use super::html::Html;
use super::keys::{Key, Lane, keys};
use super::moment::Kind;
use super::run::Run;
use super::timeline::{draw, shape};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// The most keys that are drawn; those where most happened are.
const DRAWN: usize = 300;

/// The page of a run.
pub(crate) fn page(run: &Run<'_>) -> String {
    let mut html = Html::default();
    html.raw("<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n");
    html.raw("<meta name=viewport content=\"width=device-width, initial-scale=1\">\n");
    // No other script than the one below, and nothing from anywhere else.
    html.raw("<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-");
    html.text(BASE64_STANDARD.encode(Sha256::digest(SCRIPT))).raw("'\">\n");
    html.element("<title>", &run.title, "</title>\n");
    html.raw("<style>\n").raw(STYLE).raw("</style>\n</head>\n<body>\n");
    head(&mut html, run);
    let keys = keys(run);
    section_of_keys(&mut html, &keys);
    ledger(&mut html, run, &keys);
    for list in run.lists.iter().filter(|list| !list.rows.is_empty()) {
        html.element("<h2>", list.title, "</h2>\n").table(list.header, &list.rows);
    }
    html.raw("<footer>Made by lambda-idempotency. Times are in milliseconds since the first invocation.</footer>\n");
    html.raw("<script>").raw(SCRIPT).raw("</script>\n</body>\n</html>\n");
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
    html.raw("</ul>\n<form id=filters hidden><input type=search placeholder=\"key, record, process\" aria-label=\"Show keys with this text\">");
    for (name, label) in [
        ("again", "effects that happened again"),
        ("fault", "faults"),
        ("several", "several invocations"),
        ("failed", "failures"),
    ] {
        html.raw("<label><input type=checkbox name=").raw(name).raw(">").raw(label).raw("</label>");
    }
    html.raw("<output></output></form>\n");
    let drawn = most_interesting(keys);
    let shown = keys.iter().enumerate().filter(|(position, _)| drawn.contains(position));
    // What a reader looks for comes first; the rest is in the order of time.
    let (repeated, others): (Vec<_>, Vec<_>) =
        shown.map(|(_, key)| key).partition(|key| key.count(Kind::Again) > 0);
    for key in repeated.into_iter().chain(others) {
        card(html, key);
    }
    if keys.len() > drawn.len() {
        html.element(
            "<p>",
            keys.len() - drawn.len(),
            " keys at which less happened are not drawn.</p>\n",
        );
    }
}

/// The positions of the keys to draw.
fn most_interesting(keys: &[Key]) -> BTreeSet<usize> {
    let interest = |key: &Key| {
        let (again, faults) = (key.count(Kind::Again), key.count(Kind::Fault));
        (again, faults, key.count(Kind::Failed), key.lanes.len())
    };
    let mut positions: Vec<usize> = (0..keys.len()).collect();
    positions.sort_by_key(|position| std::cmp::Reverse(keys.get(*position).map(interest)));
    positions.into_iter().take(DRAWN).collect()
}

fn card(html: &mut Html, key: &Key) {
    let of = |kind| key.count(kind);
    html.raw("<article class=key data-is=\"");
    for (word, is) in [
        ("again ", of(Kind::Again) > 0),
        ("fault ", of(Kind::Fault) > 0),
        ("several ", key.lanes.len() > 1),
        ("failed ", of(Kind::Failed) + of(Kind::Released) > 0),
    ] {
        html.raw(if is { word } else { "" });
    }
    html.element("\"><h3><code>", &key.name, "</code> ");
    html.element("<small>", &key.operation, "</small>");
    let effects = of(Kind::Effect) + of(Kind::Again);
    for (count, one, many, class) in [
        (key.lanes.len(), " invocation", " invocations", "<span class=badge>"),
        (
            effects,
            " effect",
            " effects",
            if of(Kind::Again) > 0 {
                "<span class=\"badge red\">"
            } else {
                "<span class=\"badge amber\">"
            },
        ),
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
