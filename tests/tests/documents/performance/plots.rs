//! The plots of the page, as SVG that is readable on light and on dark pages.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::dollars::{BATCH, bills};
use super::lines::{self, Line};
use super::measured::Measured;

pub(crate) type Colour = RGBColor;

pub(crate) const SIZE: (u32, u32) = (720, 400);
/// The room for the title.
pub(crate) const TOP: u32 = 50;
pub(crate) const FONT: &str = "sans-serif";
/// Each colour, and what it becomes on a dark page. The lines differ for people who see few colours, too.
const BACKGROUND: (Colour, &str) = (RGBColor(255, 255, 255), "#161B22");
pub(crate) const TEXT: Colour = RGBColor(51, 51, 51);
pub(crate) const GRID: Colour = RGBColor(221, 221, 221);
const THIS: Colour = RGBColor(0, 98, 155);
const BY_HAND: Colour = RGBColor(190, 76, 0);
const FLOOR: Colour = RGBColor(110, 110, 110);
const TABLE: Colour = RGBColor(84, 110, 122);
const DURATION: Colour = RGBColor(142, 36, 170);
const INVOCATIONS: Colour = RGBColor(0, 121, 107);
const DARK: [(Colour, &str); 9] = [
    BACKGROUND,
    (TEXT, "#D0D7DE"),
    (GRID, "#3A424C"),
    (THIS, "#6CB6FF"),
    (BY_HAND, "#F5A524"),
    (FLOOR, "#9AA4AF"),
    (TABLE, "#90A4AE"),
    (DURATION, "#D58FEA"),
    (INVOCATIONS, "#4DB6AC"),
];

/// Each plot: its name, and its SVG.
pub(crate) fn all(measured: &Measured, peers: &Measured) -> Vec<(&'static str, String)> {
    let line = |label, colour, dashed, (scenario, function, column): (&str, &str, &str)| {
        let points = [1, 10, 100, 1000, 10_000].map(|size: usize| {
            (size as f64, measured.get(scenario, size, function, "one", column))
        });
        Line { label, colour, dashed, points: points.to_vec() }
    };
    let cpu = [
        line("by hand", BY_HAND, false, ("fresh", "by hand", "cpu_us")),
        line("this library", THIS, false, ("fresh", "this", "cpu_us")),
        line("floor", FLOOR, false, ("fresh", "floor", "cpu_us")),
    ];
    let requests = [
        line("by hand, new", BY_HAND, false, ("fresh", "by hand", "requests")),
        line("by hand, duplicate", BY_HAND, true, ("store", "by hand", "requests")),
        line("this, new", THIS, false, ("fresh", "this", "requests")),
        line("this, duplicate", THIS, true, ("store", "this", "requests")),
    ];
    let latency = [
        line("by hand", BY_HAND, false, ("delayed", "by hand", "p50_ms")),
        line("this library", THIS, false, ("delayed", "this", "p50_ms")),
    ];
    vec![
        ("cpu", lines::plot("Processor time of a new record", "microseconds a record", &cpu)),
        ("requests", lines::plot("Requests for a record", "requests a record", &requests)),
        (
            "latency",
            lines::plot(
                "Duration of an invocation, 5 ms more for each request",
                "milliseconds, median",
                &latency,
            ),
        ),
        ("dollars", dollars(measured, peers)),
    ]
}

/// A bar for each function, of the parts of its bill.
fn dollars(measured: &Measured, peers: &Measured) -> String {
    let bills = bills(measured, peers);
    let most = bills.iter().map(|(_, bill)| bill.total()).fold(0.0, f64::max);
    let title = format!(
        "Estimated bill for a million new records, batches of {BATCH}; Powertools from another run"
    );
    written(&title, |root| {
        let mut chart = ChartBuilder::on(root)
            .margin(12)
            .margin_top(TOP + 20)
            .margin_right(70)
            .margin_left(260)
            .x_label_area_size(48)
            .build_cartesian_2d(0.0..(most * 5.0).ceil() / 5.0, 0.0..bills.len() as f64)?;
        let small = (FONT, 17).into_font().color(&TEXT);
        chart
            .configure_mesh()
            .disable_y_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(TEXT)
            .label_style(small.clone())
            .axis_desc_style(small.clone())
            .x_desc("USD")
            .x_label_formatter(&|x| format!("{x:.1}"))
            .draw()?;
        let left_of = small.clone().pos(Pos::new(HPos::Right, VPos::Center));
        for (nth, (name, bill)) in bills.iter().enumerate() {
            let top = bills.len() as f64 - nth as f64;
            let parts =
                [(bill.table, TABLE), (bill.duration, DURATION), (bill.invocations, INVOCATIONS)];
            let mut left = 0.0;
            for (part, colour) in parts {
                let corners = [(left, top - 0.25), (left + part, top - 0.75)];
                chart.draw_series([Rectangle::new(corners, colour.filled())])?;
                left += part;
            }
            let (start, y) = chart.backend_coord(&(0.0, top - 0.5));
            let (end, _) = chart.backend_coord(&(left, top - 0.5));
            root.draw_text(name, &left_of, (start - 8, y))?;
            root.draw_text(&format!("{left:.2}"), &small, (end + 8, y - 7))?;
        }
        let parts = [
            ("DynamoDB", TABLE),
            ("Lambda, duration", DURATION),
            ("Lambda, invocations", INVOCATIONS),
        ];
        for ((name, colour), at) in parts.into_iter().zip([260, 372, 542]) {
            root.draw(&Rectangle::new([(at, 50), (at + 11, 61)], colour.filled()))?;
            root.draw_text(name, &small, (at + 17, 49))?;
        }
        Ok(())
    })
}

/// An SVG with a background of its own, whose colours follow the reader's preference.
pub(crate) fn written(
    title: &str,
    draw: impl FnOnce(
        &DrawingArea<SVGBackend<'_>, Shift>,
    ) -> Result<(), DrawingAreaErrorKind<std::io::Error>>,
) -> String {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        root.fill(&BACKGROUND.0).expect("a background");
        let style = (FONT, 20).into_font().color(&TEXT);
        root.draw_text(title, &style, (16, 14)).expect("a title");
        draw(&root).expect("a plot");
        root.present().expect("a whole plot");
    }
    let rules = DARK.map(|(RGBColor(r, g, b), dark)| {
        let light = format!("#{r:02X}{g:02X}{b:02X}");
        format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}")
    });
    let style = format!("<style>@media(prefers-color-scheme:dark){{{}}}</style>", rules.concat());
    let start = text.find('>').expect("an element") + 1;
    text.insert_str(start, &style);
    text
}
