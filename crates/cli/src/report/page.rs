//! The page: HTML in which everything that is not written in this program is escaped.
//!
//! The timeline of a key has a lane for each invocation, on one axis of time. A handler takes milliseconds and a redelivery
//! waits for seconds, so the axis is not proportional: a gap of time has a width that grows with its logarithm. The order is
//! exact, nothing covers anything else, and the end of a long gap is labelled with its time.

use std::{cmp::Reverse, fmt::Display};

use super::story::{Key, Kind, Lane, Moment, Run, keys};

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
    // Problems come first; the rest is in the order of time.
    keys.sort_by_key(|key| {
        Reverse([Kind::Again, Kind::Fault, Kind::Failed].map(|kind| key.count(kind)))
    });
    section_of_keys(&mut html, &keys);
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
    (Kind::Refused, "claim not made"),
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

/// The longest word that a cell of a table shows on one line, in bytes.
const LONGEST_WORD: usize = 24;

/// A document that grows.
#[derive(Default)]
pub(crate) struct Html(String);

impl Html {
    /// Adds markup of this program.
    pub(crate) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Adds a number, for example a coordinate.
    pub(crate) fn number(&mut self, number: f64) -> &mut Self {
        self.0.push_str(&format!("{number:.1}"));
        self
    }

    /// Adds text from anywhere, also within a quoted attribute.
    pub(crate) fn text(&mut self, text: impl Display) -> &mut Self {
        for letter in text.to_string().chars() {
            match letter {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                // A terminal's and a browser's control characters have no place in a page.
                letter if letter.is_control() && letter != '\n' => self.0.push('\u{fffd}'),
                letter => self.0.push(letter),
            }
        }
        self
    }

    /// Adds an element with this text.
    pub(crate) fn element(
        &mut self,
        open: &'static str,
        text: impl Display,
        close: &'static str,
    ) -> &mut Self {
        self.raw(open).text(text).raw(close)
    }

    /// A table. The first row of cells is its header.
    pub(crate) fn table(&mut self, header: &[&str], rows: &[Vec<String>]) -> &mut Self {
        self.raw("<div class=scroll><table><thead><tr>");
        for title in header {
            self.element("<th>", title, "</th>");
        }
        self.raw("</tr></thead><tbody>");
        for row in rows {
            self.raw("<tr>");
            for cell in row {
                // A hash has to break; words of prose and short names do not.
                let is_long = cell.split_whitespace().any(|word| word.len() > LONGEST_WORD);
                self.element(if is_long { "<td class=long>" } else { "<td>" }, cell, "</td>");
            }
            self.raw("</tr>");
        }
        self.raw("</tbody></table></div>\n")
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

/// Where lanes begin, right of their labels.
const LEFT: f64 = 132.0;
const LANE: f64 = 34.0;
const TOP: f64 = 24.0;
/// The least distance between two times, and how much wider a tenfold gap is.
const STEP: f64 = 15.0;
const TENFOLD: f64 = 20.0;
/// The width of a label of time.
const LABEL: f64 = 44.0;
/// Space for the words after the last place.
const WORDS: f64 = 190.0;
/// Gaps from here on are marked, in milliseconds.
const LONG: f64 = 40.0;
/// Times that are closer than this are one place on the axis.
const SAME: f64 = 0.05;

/// A place on the axis: a time, and its coordinate.
struct Axis(Vec<(f64, f64)>);

impl Axis {
    fn of(key: &Key) -> Self {
        let mut times: Vec<f64> = Vec::new();
        for lane in &key.lanes {
            times.extend([lane.began, lane.ended]);
            times.extend(
                lane.moments.iter().flat_map(|moment| [Some(moment.at), moment.until]).flatten(),
            );
        }
        times.sort_by(f64::total_cmp);
        times.dedup_by(|later, earlier| *later - *earlier < SAME);
        let mut places: Vec<(f64, f64)> = Vec::new();
        for time in times {
            let x = match places.last() {
                None => LEFT + 8.0,
                Some((before, x)) => x + STEP + TENFOLD * (1.0 + (time - before)).log10(),
            };
            places.push((time, x));
        }
        Self(places)
    }

    fn x(&self, time: f64) -> f64 {
        let at = self.0.iter().rev().find(|(known, _)| *known <= time + SAME);
        at.or(self.0.first()).map_or(LEFT, |(_, x)| *x)
    }

    fn end(&self) -> f64 {
        self.0.last().map_or(LEFT, |(_, x)| x + WORDS)
    }
}

pub(crate) fn draw(html: &mut Html, key: &Key) {
    let axis = Axis::of(key);
    let height = TOP + LANE * key.lanes.len() as f64 + 6.0;
    html.raw("<div class=scroll><svg role=img width=\"").number(axis.end());
    html.raw("\" height=\"").number(height).raw("\" aria-label=\"Timeline of ").text(&key.name);
    html.raw("\">");
    gaps(html, &axis, height);
    for (position, lane) in key.lanes.iter().enumerate() {
        let y = TOP + LANE * position as f64 + LANE / 2.0;
        draw_lane(html, &axis, lane, y);
    }
    html.raw("</svg></div>\n");
}

/// Lines where much time passes between two places, and the time at which each ends.
fn gaps(html: &mut Html, axis: &Axis, height: f64) {
    let mut last = f64::MIN;
    for pair in axis.0.windows(2) {
        let [(before, left), (after, right)] = pair else { continue };
        if after - before < LONG {
            continue;
        }
        let middle = f64::midpoint(*left, *right);
        html.raw("<line class=gap x1=\"").number(middle).raw("\" x2=\"").number(middle);
        html.raw("\" y1=\"18\" y2=\"").number(height).raw("\"/>");
        if right - last < LABEL {
            continue; // the line says that time passes
        }
        last = *right;
        html.raw("<text class=time text-anchor=middle x=\"").number(*right).raw("\" y=\"12\">");
        html.text(length(*after)).raw("</text>");
    }
}

/// `1.5 s`, `320 ms`.
fn length(ms: f64) -> String {
    if ms >= 1000.0 { format!("{:.1} s", ms / 1000.0) } else { format!("{ms:.0} ms") }
}

fn draw_lane(html: &mut Html, axis: &Axis, lane: &Lane, y: f64) {
    html.raw("<text class=lane x=\"0\" y=\"").number(y + 4.0).raw("\">#").text(lane.invocation);
    html.raw("  pid ").text(lane.pid).raw("</text>");
    let (left, right) = (axis.x(lane.began), axis.x(lane.ended));
    html.raw(if lane.is_cut_off { "<rect class=\"inv cut\"" } else { "<rect class=inv" });
    bar(html, left - 6.0, right + 6.0, y, 20.0);
    html.raw("<title>invocation ").text(lane.invocation).raw(", process ").text(lane.pid);
    html.raw(": ").text(length(lane.ended - lane.began)).raw("</title></rect>");
    // Bars first, so that signs are above them.
    for moment in &lane.moments {
        let Some(until) = moment.until else { continue };
        html.raw("<rect class=handler");
        bar(html, axis.x(moment.at), axis.x(until), y, 8.0);
        title(html, moment);
        html.raw("</rect>");
    }
    // Signs at one time are beside each other.
    let mut last = f64::MIN;
    for moment in lane.moments.iter().filter(|moment| moment.kind != Kind::Handler) {
        let x = axis.x(moment.at).max(last + 9.0);
        last = x;
        sign(html, moment, x, y);
    }
    let end = last.max(right) + 16.0;
    html.raw(if lane.is_cut_off { "<text class=\"end bad\" x=\"" } else { "<text class=end x=\"" });
    html.number(end).raw("\" y=\"").number(y + 4.0).raw("\">").text(&lane.end).raw("</text>");
}

fn bar(html: &mut Html, left: f64, right: f64, y: f64, height: f64) {
    html.raw(" rx=\"4\" x=\"").number(left).raw("\" width=\"").number((right - left).max(3.0));
    html.raw("\" y=\"").number(y - height / 2.0).raw("\" height=\"").number(height).raw("\">");
}

fn title(html: &mut Html, moment: &Moment) {
    html.raw("<title>").number(moment.at).raw(" ms: ").text(&moment.text).raw("</title>");
}

/// The shape of a kind, drawn around the origin.
pub(crate) fn shape(kind: Kind) -> &'static str {
    match kind {
        Kind::Claim => "<circle class=claim r=5.5 />",
        Kind::Refused => "<circle class=refused r=4.5 />",
        Kind::Handler => "<rect class=handler x=-8 y=-4 width=16 height=8 rx=3 />",
        Kind::Effect => "<path class=effect d=\"M0-7L7 0L0 7L-7 0Z\"/>",
        Kind::Again => {
            "<path class=again d=\"M0-8L8 0L0 8L-8 0Z\"/><path class=cross d=\"M-3-3L3 3M3-3L-3 3\"/>"
        }
        Kind::Completed => {
            "<circle class=completed r=7 /><path class=tick d=\"M-3.2 0L-1 2.6L3.4-2.4\"/>"
        }
        Kind::Released => "<path class=released d=\"M4-5L-3 0L4 5\"/>",
        Kind::Failed => "<rect class=failed x=-6 y=-6 width=12 height=12 rx=2 />",
        Kind::Answered => "<path class=answered d=\"M-4-5L4 0L-4 5Z\"/>",
        Kind::Returned => "<path class=returned d=\"M4-5L-4 0L4 5Z\"/>",
        Kind::Fault => "<path class=fault d=\"M1-9L-5 2H-1L-2 9L5-2H1Z\"/>",
    }
}

fn sign(html: &mut Html, moment: &Moment, x: f64, y: f64) {
    html.raw("<g transform=\"translate(").number(x).raw(" ").number(y).raw(")\">");
    html.raw(shape(moment.kind));
    title(html, moment);
    html.raw("</g>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_are_too_long_for_a_line_are_broken_in_a_table() {
        let mut html = Html::default();
        html.table(&["outcome", "key"], &[vec!["permanently failed".to_owned(), "0f".repeat(32)]]);
        let text = html.into_string();
        assert!(text.contains("<td>permanently failed</td><td class=long>0f0f"), "{text}");
    }

    #[test]
    fn text_cannot_become_markup() {
        let mut html = Html::default();
        html.raw("<p title=\"").text("\" onclick='x' a=\"").raw("\">");
        html.text("<script>alert(1)</script>&amp;\u{1b}[2J");
        assert_eq!(
            html.into_string(),
            "<p title=\"&quot; onclick=&#39;x&#39; a=&quot;\">&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;\u{fffd}[2J"
        );
    }
}

#[cfg(test)]
mod timeline_tests {
    use super::*;

    fn key(times: &[f64]) -> Key {
        let moment =
            |at: &f64| Moment { at: *at, until: None, kind: Kind::Claim, text: String::new() };
        let moments = times.iter().map(moment).collect();
        let lane = Lane {
            invocation: 1,
            pid: 7,
            began: 0.0,
            ended: 9000.0,
            is_cut_off: false,
            end: String::new(),
            moments,
        };
        Key { name: "k".to_owned(), operation: String::new(), lanes: vec![lane] }
    }

    #[test]
    fn later_times_are_further_right_and_never_too_close() {
        let axis = Axis::of(&key(&[1.0, 1.01, 2.0, 2000.0, 9000.0]));
        let places: Vec<f64> = [0.0, 1.0, 2.0, 2000.0, 9000.0].map(|time| axis.x(time)).into();
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= STEP), "{places:?}");
        assert!(axis.end() < 600.0, "a long wait does not make a wide page: {}", axis.end());
        assert!((axis.x(1.0) - axis.x(1.01)).abs() < f64::EPSILON);
    }

    /// Gaps of one length would all have one label, if it were their length.
    #[test]
    fn the_end_of_each_long_gap_is_labelled_with_its_time() {
        let mut html = Html::default();
        draw(&mut html, &key(&[1.0, 3001.0, 6001.0]));
        let text = html.into_string();
        for time in [">3.0 s</text>", ">6.0 s</text>", ">9.0 s</text>"] {
            assert_eq!(text.matches(time).count(), 1, "{time}: {text}");
        }
    }
}
