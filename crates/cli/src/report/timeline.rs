//! The timeline of a key: a lane for each invocation, on one axis of time.
//!
//! A handler takes milliseconds and a redelivery waits for seconds, so the axis is not proportional: a gap of time has a
//! width that grows with its logarithm. The order is exact, nothing covers anything else, and the end of a long gap is
//! labelled with its time.

use super::html::Html;
use super::keys::{Key, Lane};
use super::moment::{Kind, Moment};

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
        let is_handler = moment.kind == Kind::Handler;
        html.raw(if is_handler { "<rect class=handler" } else { "<rect class=lasting" });
        let height = if is_handler { 8.0 } else { 12.0 };
        bar(html, axis.x(moment.at), axis.x(until), y, height);
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
